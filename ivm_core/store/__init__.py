"""The only home of Delta: tick log, traces, and a user's table read as deltas."""
