"""What stays of the demo: the trace of its cluster, and what was seen there of each group, to compare others with."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from bouncing import story

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bouncing.story import Event

TRACE, SEEN = "trace.jsonl", "seen.json"
"""The files of the folder."""

Counts = dict[str, int]
"""How many rebalances were `completed` and `emptied` their group, and how many were `avoided`."""


def write_seen(folder: Path) -> None:
    """Write what the trace there, which is complete, shows of each group."""
    lines = [json.loads(line) for line in (folder / TRACE).read_text(encoding="utf-8").splitlines()]
    (folder / SEEN).write_text(json.dumps(counted(lines), indent=1) + "\n", encoding="utf-8")


def counted(events: Iterable[Event]) -> dict[str, Counts]:
    """What happened to each group."""
    of_group: dict[str, list[Event]] = {}
    for event in events:
        if "group_id" in event:
            of_group.setdefault(event["group_id"], []).append(event)
    found = {}
    for group_id, own in sorted(of_group.items()):
        ended = Counter(each.state for each in story.rebalances(own))
        found[group_id] = {
            "completed": ended["Stable"],
            "emptied": ended["Empty"],
            "avoided": len(story.avoided(own)),
        }
    return found
