"""A timeline for each trace that the report points to: the emulator's page, of lines made from events again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from koordinator.emulator.pages.html import html_of

from ..silver.trace_rows import NAMES, RENAMED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from .facts import Facts

TRACES_MAX = 20
"""How many traces have a timeline: those in which a check failed, then those of the longest rebalances."""

EVENTS_MAX = 20_000
"""How many events a page shows, which a browser draws at once; of a longer trace those around the first evidence."""

BEFORE = 2_000
"""How many of them come before it."""

NOT_IN_LINES = {"trace_id", "source", "home", "batch", "name"}


def wanted(facts: Facts) -> dict[str, int]:
    """The traces to show, and the event of each that the report points to first."""
    seqs: dict[str, int] = {}
    for row in (*facts.failures, *facts.longest, *facts.storms):
        seq = row.get("first_seq") or row.get("start_seq")
        if seq is not None and len(seqs) < TRACES_MAX:
            seqs.setdefault(row["trace_id"], seq)
    return seqs


def timelines(event: DataFrame, trace: DataFrame, seqs: dict[str, int]) -> Iterator[tuple[str, str]]:
    """Each trace's id with its page."""
    titles = {row.trace_id: row for row in trace.where(F.col("trace_id").isin(list(seqs))).collect()}
    for trace_id, seq in seqs.items():
        own = event.where((F.col("trace_id") == trace_id) & (F.col("seq") >= seq - BEFORE))
        rows = own.orderBy("seq").limit(EVENTS_MAX).collect()
        about = titles[trace_id]
        shown = f"{len(rows):,} of {about.n_events:,} events of the trace" if len(rows) != about.n_events else ""
        title = about.test_id or about.cluster or trace_id
        yield trace_id, html_of(lines(row.asDict() for row in rows), title=title, subtitle=shown)


def lines(events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Events as the lines of the trace they came from."""
    for event in events:
        line = {
            RENAMED.get(name, name): value
            for name, value in event.items()
            if name not in NOT_IN_LINES and value is not None
        }
        if event["name"] is not None and event["kind"] in NAMES:
            line[NAMES[event["kind"]]] = event["name"]
        if event["body"] is not None:
            line["body"] = json.loads(event["body"])
        yield line
