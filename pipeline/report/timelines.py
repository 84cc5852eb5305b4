"""Timelines of the traces that the report refers to: the emulator's page, from events converted back to lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.emulator.pages.html import html_of

from ..silver.trace_lines import lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..views import Query
    from .facts import Facts

TRACES_MAX = 20
"""Maximum number of timelines: traces with a failed check first, then those of the longest rebalances."""

EVENTS_MAX = 20_000
"""Maximum number of events on a page, which a browser draws at once; a longer trace is cut around its evidence."""

EVENTS_BEFORE = 2_000
"""Number of these events before the first evidence."""


def traces_to_show(facts: Facts) -> dict[str, int]:
    """Return the traces to show, each with the first event that the report refers to."""
    seqs: dict[str, int] = {}
    for row in (*facts.failures, *facts.longest, *facts.storms):
        seq = row.get("first_seq") or row.get("start_seq")
        if seq is not None and len(seqs) < TRACES_MAX:
            seqs.setdefault(row["trace_id"], seq)
    return seqs


def timelines(query: Query, seqs: dict[str, int]) -> Iterator[tuple[str, str]]:
    """Yield each trace id with its page."""
    for trace_id, seq in seqs.items():
        (about,) = query("SELECT * FROM silver.trace WHERE trace_id = :trace_id", trace_id=trace_id)
        rows = query(
            "SELECT * FROM silver.event WHERE trace_id = :trace_id AND seq >= :first ORDER BY seq LIMIT :events_max",
            trace_id=trace_id,
            first=seq - EVENTS_BEFORE,
            events_max=EVENTS_MAX,
        )
        shown = f"{len(rows):,} of {about['n_events']:,} events of the trace" if len(rows) != about["n_events"] else ""
        title = about["test_id"] or about["cluster"] or trace_id
        yield trace_id, html_of(lines_of(rows), title=title, subtitle=shown)
