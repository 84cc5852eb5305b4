"""What Java and Scala compute and Kafka shows: hashes, and the orders of hash tables."""
