"""What was read, and how it is read: traces, and the logs of brokers and clients."""
