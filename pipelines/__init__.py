"""Pipelines: definitions, sensors and runnable examples put together from assets and resources."""
