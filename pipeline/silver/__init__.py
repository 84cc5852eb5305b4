"""Silver beside the fold: typed events, calls, traces, runs and tests."""
