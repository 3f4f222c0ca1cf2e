"""Tables that belong to someone else, followed where they are: with a change data feed, without."""
