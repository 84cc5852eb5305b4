"""Gold: the facts about rebalances, their costs, commits, fencing and heartbeats."""
