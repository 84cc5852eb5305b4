"""Settings of a cluster, under Kafka's names where Kafka has them."""
