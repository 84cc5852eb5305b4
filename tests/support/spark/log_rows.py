"""Recorded logs (tests/pipeline/logs/)."""

from __future__ import annotations

from pathlib import Path

LOGS = Path(__file__).parents[2] / "pipeline" / "logs"

RELEASES = ("2.4", "2.8", "3.9-old", "3.9-new", "4.3")


def recorded(release: str, name: str = "server.log") -> list[str]:
    """Return the lines of a recorded log."""
    return (LOGS / release / name).read_text().splitlines()
