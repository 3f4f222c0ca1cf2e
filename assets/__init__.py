"""Assets: what Dagster shows of a flow, one asset a source or view, and their checks."""
