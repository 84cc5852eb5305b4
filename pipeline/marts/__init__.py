"""What people ask for: verdicts, clients compared, flaky tests."""
