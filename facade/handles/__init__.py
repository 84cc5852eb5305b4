"""Handles: the Python API of a cluster, for tests."""
