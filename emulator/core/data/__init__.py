"""The data plane: topics, logs, produce, fetch, metadata and the admin APIs of topics."""
