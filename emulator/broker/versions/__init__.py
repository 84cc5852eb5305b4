"""Version differences beyond the fields of a message, and the versions that each Kafka release accepts."""
