"""The files that the demo leaves: the trace of its cluster, and counts for each group to compare other tools with."""

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
"""The number of rebalances that `completed`, that `emptied` their group, and that were `avoided`."""


def write_seen(folder: Path, run_id: str) -> None:
    """Write `run_id` and the counts of each group, from the complete trace in the folder.

    Raises ValueError for the trace of another run.
    """
    lines = [json.loads(line) for line in (folder / TRACE).read_text(encoding="utf-8").splitlines()]
    if lines[0]["run_id"] != run_id:
        traced = lines[0]["run_id"]
        raise ValueError(f"{folder / TRACE}: the trace of run {traced}, not of {run_id}; run the demo again")
    seen = {"run_id": run_id, "groups": counted(lines)}
    (folder / SEEN).write_text(json.dumps(seen, indent=1) + "\n", encoding="utf-8")


def counted(events: Iterable[Event]) -> dict[str, Counts]:
    """Count the rebalances of each group."""
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
