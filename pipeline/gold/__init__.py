"""Facts: rebalances, what they cost, commits, fencing and heartbeats."""
