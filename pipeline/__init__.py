"""Rebalance analytics over traces and logs, on Spark. It reads files and depends on the trace's format alone."""
