"""`koordinator serve`: a cluster for as long as the process lives."""

from __future__ import annotations

import signal

ENDS = (signal.SIGINT, signal.SIGTERM)
"""The signals that end the process in order."""
