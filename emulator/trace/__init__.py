"""The trace: events, JSON lines, vocabulary, retention, and the trace file and topic."""
