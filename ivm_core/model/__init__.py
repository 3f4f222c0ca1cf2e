"""Ids, schemas, errors, weights: the words everything else is written in. Standard library only."""
