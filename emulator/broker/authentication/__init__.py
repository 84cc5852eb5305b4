"""Authentication of connections: security protocols, SASL mechanisms, and the states of an exchange; no I/O."""
