"""Consumer groups (KIP-848): the coordinator assigns, and every member walks to its target with its heartbeats."""
