"""Marts beside the fold: comparisons of clients, and flaky tests."""
