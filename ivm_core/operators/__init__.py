"""Operators: one file an operator, each with its delta equation, rendered for Spark."""
