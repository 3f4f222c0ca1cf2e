"""Views that read themselves: declaring components, and bringing them to their fixpoint."""
