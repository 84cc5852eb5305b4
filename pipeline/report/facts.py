"""The facts of the report, queried from the tables once; the page and the summary use nothing else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from koordinator.trace.names import SUFFIX

from ..queries import Row, queries_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..views import Query, Rows

PER_DECADE = 4
"""Bars per power of ten in a distribution of times."""

STATES = ("Stable", "PreparingRebalance", "CompletingRebalance", "Empty", "Dead")
"""The states of a group, in the order of the chart."""

INTERVALS_S = (1, 2, 5, 10, 30, 60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400)
"""Intervals that one bar of a chart over time may stand for, in seconds."""

BARS_MAX = 60

QUERIES = queries_of(__package__ or "", "queries.sql")
"""The queries of `queries.sql`, by name. `totals`, the first, has one row."""

FAILURES_MAX = 200
"""Maximum number of failed checks that the report lists."""

QUERIES_AT_ONCE = 4
"""Spark takes longer to plan the query of a small table than to run it, and plans each query on one core."""


class Facts(Row):
    """The rows of each query of `queries.sql`, by its name; `totals` is a row.

    `interval_s` is the interval of a bar over time.
    """


def read_facts(query: Query, report_progress: Callable[[str], None] = lambda _: None) -> Facts:
    """Run all queries, several at once; `report_progress` is called with a name before each of the `STEPS`.

    Raises JobFailed if the store cannot be read.
    """
    report_progress("totals")
    (totals,) = query(QUERIES["totals"])
    times = [second for name in ("since_s", "until_s", "last_s") if (second := totals[name]) is not None]
    totals |= {"since_s": min(times, default=0), "until_s": max(times, default=0)}
    interval_s = interval(totals["first_s"], totals["last_s"])
    arguments = totals | {"interval_s": interval_s, "suffix": SUFFIX, "failures_max": FAILURES_MAX}
    results: dict[str, Rows] = {}
    with ThreadPoolExecutor(QUERIES_AT_ONCE) as pool:
        waiting = {name: pool.submit(query, QUERIES[name], **arguments) for name in [*QUERIES][1:]}
        for name, rows in waiting.items():
            report_progress(name.replace("_", " "))
            results[name] = rows.result()
    return Facts(totals=totals, interval_s=interval_s, **results)


STEPS = len(QUERIES)
"""Number of progress steps: one for the totals, one for each other query."""


def interval(first_s: int | None, last_s: int | None) -> int:
    """Return the interval of a bar that keeps their number below BARS_MAX."""
    seconds = (last_s or 0) - (first_s or 0)
    return next((choice for choice in INTERVALS_S if seconds // choice < BARS_MAX), INTERVALS_S[-1])
