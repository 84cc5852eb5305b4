"""The report: one page that holds everything, and a summary for pull requests."""
