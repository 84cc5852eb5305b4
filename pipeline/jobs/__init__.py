"""What the command does: one module for each of its jobs."""
