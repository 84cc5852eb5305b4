"""Fault injection: rules, holds, and the requests they act on."""
