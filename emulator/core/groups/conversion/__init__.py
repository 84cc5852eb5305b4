"""Where the two protocols meet: classic members of consumer groups, and groups that change their kind (KIP-848)."""
