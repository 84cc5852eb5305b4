"""Streams groups: members that share the tasks of a Kafka Streams topology (KIP-1071)."""
