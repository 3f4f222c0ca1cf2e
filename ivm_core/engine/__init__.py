"""Engine: joins the program to the store: ticks, replay, watching, and the start of Spark."""
