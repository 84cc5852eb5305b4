"""Snapshots of a cluster as one JSON document, restore and reset."""
