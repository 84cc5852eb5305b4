"""Read-only operations: groups, topics, the trace, and checks on them."""
