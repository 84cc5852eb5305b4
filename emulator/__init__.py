"""The emulator: a Kafka broker that coordinates groups, in rings from the sockets in to the rules."""
