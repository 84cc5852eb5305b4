"""Kafka's protocol without I/O: bytes in, bytes out, for one node and for a cluster of nodes."""
