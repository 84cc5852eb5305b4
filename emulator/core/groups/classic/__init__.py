"""Classic groups: the join and sync phases of the protocol before KIP-848."""
