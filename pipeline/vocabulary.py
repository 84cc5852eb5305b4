"""The vocabulary of the trace, read from the data file that the emulator ships: one source for both."""

from __future__ import annotations

import json
from importlib.resources import files

_VOCABULARY = json.loads(files("koordinator.emulator.trace").joinpath("vocabulary.json").read_text(encoding="utf-8"))

METADATA_KINDS: tuple[str, ...] = tuple(_VOCABULARY["metadata_kinds"])
"""The kinds of lines that are not events."""

KINDS: tuple[str, ...] = tuple(kind for kind in _VOCABULARY["kinds"] if kind not in METADATA_KINDS)
"""The kinds of events in a trace."""

SUB_CAUSES: tuple[tuple[str, str], ...] = tuple((name, pattern) for name, pattern in _VOCABULARY["sub_causes"])
"""Categories of client reasons, with the patterns of their texts; the first match counts."""

OUTCOMES: dict[str, str] = _VOCABULARY["outcomes"]
"""Outcome of a rebalance by the state that ends it. Others are `superseded` by the next rebalance, or still `open`."""

CLIENT_CHECKS: dict[str, str] = _VOCABULARY["checks"]
"""The client checks, with their titles."""
