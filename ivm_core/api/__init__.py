"""API: the public names."""
