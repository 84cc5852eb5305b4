"""The data directory: logs, the metadata journal, and recovery after a crash."""
