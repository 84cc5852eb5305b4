"""The trace: events, their JSON lines, retention, and the trace file."""
