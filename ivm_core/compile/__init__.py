"""Compile: ordered rewrites, the verdict on each node, and lowering to operators."""
