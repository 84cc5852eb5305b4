"""Inputs, stores and clusters for the tests of the pipeline."""
