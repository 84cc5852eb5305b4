"""Requests, frames and groups made for tests, by hand or at random."""
