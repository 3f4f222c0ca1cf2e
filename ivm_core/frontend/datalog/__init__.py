"""The Datalog door: Soufflé's notation, checked, and translated to one SELECT per relation."""
