"""Others that keep a result up to date, or make it anew: each with its own recommended settings."""
