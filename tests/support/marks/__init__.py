"""The markers `needs` and `slow`, as plugins of pytest, and names for the cases of a loop."""
