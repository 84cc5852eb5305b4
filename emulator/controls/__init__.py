"""What a test may do to a cluster from outside Kafka's protocol: operations on plain data; time is an argument."""
