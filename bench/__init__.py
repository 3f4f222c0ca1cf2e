"""The speed bars: a program that measures ticks against Spark's own work in one warm session."""
