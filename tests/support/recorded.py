"""Traces of real clients, recorded by `tests/pages/record.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TRACES = Path(__file__).parent.parent / "pages" / "traces"

NAMES = tuple(sorted(path.stem for path in TRACES.glob("*.jsonl")))


def lines_of(name: str) -> list[dict[str, Any]]:
    """A recorded trace with its header."""
    return [json.loads(line) for line in (TRACES / f"{name}.jsonl").read_text().splitlines()]
