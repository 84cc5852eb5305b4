"""Rebalance analytics over traces and logs, on Spark. It reads files; of the emulator it knows the trace's format."""
