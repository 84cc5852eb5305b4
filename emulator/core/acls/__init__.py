"""Access control lists: what principals may do, and the administration of that (KIP-11, KIP-290, KIP-801)."""
