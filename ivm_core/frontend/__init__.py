"""Frontend: the doors through which a query becomes a plan."""
