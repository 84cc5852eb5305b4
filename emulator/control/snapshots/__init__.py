"""Snapshots of a cluster as JSON documents, restore and reset."""
