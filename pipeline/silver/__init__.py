"""Silver: typed events, traces, runs, tests, members and assignments."""
