"""Access control lists: the rights of principals, and their administration (KIP-11, KIP-290, KIP-801)."""
