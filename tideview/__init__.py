"""Tideview on Dagster: the folders `assets`, `resources` and `pipelines` under one name."""
