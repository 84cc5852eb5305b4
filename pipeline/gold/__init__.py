"""Gold beside the fold: heartbeats, avoided rebalances, and the joins in client logs."""
