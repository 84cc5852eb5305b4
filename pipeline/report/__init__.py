"""The report: one self-contained page, and a summary for pull requests."""
