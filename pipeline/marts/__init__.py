"""Marts: verdicts, comparisons of clients, and flaky tests."""
