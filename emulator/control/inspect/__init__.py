"""Read-only operations: groups, topics, the trace, and assertions on them."""
