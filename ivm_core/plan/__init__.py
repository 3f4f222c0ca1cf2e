"""Plan: the frozen relational tree and what is known of it."""
