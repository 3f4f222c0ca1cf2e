"""TPC-H: tables of any scale and the 22 queries, for the tests and for the speed tables."""
