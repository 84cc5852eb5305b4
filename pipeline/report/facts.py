"""The facts of the report, queried from the tables once; the page and the summary use nothing else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from .. import schema
from . import advice, queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from ..schema import Table

Rows = list[dict[str, Any]]
"""The rows of a query, by column."""

INTERVALS_S = (1, 2, 5, 10, 30, 60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400)
"""Intervals that one bar of a chart over time may stand for, in seconds."""

BARS_MAX = 60

TOTALS: dict[Callable[..., DataFrame], Table] = {
    queries.extent: schema.TRACE,
    queries.span: schema.REBALANCE,
    queries.costs: schema.MEMBER_DOWNTIME,
    queries.observed: schema.STATE_TIME,
    queries.groups: schema.GROUP,
    queries.avoided: schema.AVOIDED,
}
"""The queries with a single row, each with its table."""

QUERIES: dict[Callable[..., DataFrame], tuple[Table, ...]] = {
    queries.by_time: (schema.REBALANCE,),
    queries.causes: (schema.REBALANCE,),
    queries.join_times: (schema.REBALANCE,),
    queries.stopped_groups: (schema.MEMBER_DOWNTIME,),
    queries.stopped_members: (schema.MEMBER_DOWNTIME,),
    advice.weeks: (schema.REBALANCE,),
    queries.stragglers: (schema.REBALANCE,),
    queries.state_times: (schema.STATE_TIME,),
    queries.moves: (schema.PARTITION_GAP, schema.REBALANCE),
    queries.cohorts: (
        *(schema.REBALANCE, schema.MEMBER_DOWNTIME, schema.PARTITION_GAP, schema.STATE_TIME, schema.AVOIDED),
    ),
    advice.gains: (schema.REBALANCE, schema.MEMBER_DOWNTIME),
    queries.commits: (schema.COMMIT,),
    queries.wasted: (schema.REBALANCE, schema.PARTITION_GAP),
    advice.storms: (schema.REBALANCE, schema.MEMBER_DOWNTIME),
    queries.longest: (schema.REBALANCE,),
    queries.checks: (schema.VERDICT,),
    queries.failures: (schema.VERDICT,),
    queries.flaky: (schema.FLAKY,),
    queries.rebalance_heavy: (schema.FLAKY,),
    queries.clients: (schema.CLIENT_MATRIX,),
    queries.heartbeats: (schema.HEARTBEAT,),
    queries.removals: (schema.EVENT, schema.TRACE),
    queries.fencing: (schema.FENCING,),
    queries.transactions: (schema.TRANSACTION,),
    queries.logs: (schema.CLIENT_JOIN,),
    queries.rows_read: (schema.COUNTS,),
    queries.quarantine: (schema.QUARANTINE,),
    queries.unread: (schema.UNREAD,),
}
"""The other queries with their tables. Without rows in the first one a query has none."""

QUERIES_AT_ONCE = 4
"""Spark takes longer to plan the query of a small table than to run it, and plans each query on one core."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The results, each named after its query in `queries` or `advice`.

    `totals` merges the queries with a single row; `interval_s` is the interval of a bar over time.
    """

    totals: dict[str, Any]
    interval_s: int
    by_time: Rows
    causes: Rows
    join_times: Rows
    stopped_groups: Rows
    stopped_members: Rows
    weeks: Rows
    stragglers: Rows
    state_times: Rows
    moves: Rows
    cohorts: Rows
    gains: Rows
    commits: Rows
    wasted: Rows
    storms: Rows
    longest: Rows
    checks: Rows
    failures: Rows
    flaky: Rows
    rebalance_heavy: Rows
    clients: Rows
    heartbeats: Rows
    removals: Rows
    fencing: Rows
    transactions: Rows
    logs: Rows
    rows_read: Rows
    quarantine: Rows
    unread: Rows


def read_facts(
    read: Callable[[Table], DataFrame],
    report_progress: Callable[[str], None] = lambda _: None,
    has_rows: Callable[[Table], bool] = lambda _: True,
) -> Facts:
    """Run all queries, several at once. `read` returns a table, and `has_rows` whether it may have rows.

    `report_progress` is called with a name before the wait for each of the `STEPS`.
    """

    def rows(query: Callable[..., DataFrame], *inputs: Table | int) -> Rows:
        frames = (each if isinstance(each, int) else read(each) for each in inputs)
        return [row.asDict(recursive=True) for row in query(*frames).collect()]

    report_progress("totals")
    with ThreadPoolExecutor(QUERIES_AT_ONCE) as pool:
        of_totals = [pool.submit(rows, query, table) for query, table in TOTALS.items()]
        totals: dict[str, Any] = {name: value for one in of_totals for name, value in one.result()[0].items()}
        times = [second for name in ("since_s", "until_s", "last_s") if (second := totals[name]) is not None]
        totals |= {"since_s": min(times, default=0), "until_s": max(times, default=0)}
        interval_s = interval(totals["first_s"], totals["last_s"])
        more = {
            queries.by_time: (interval_s,),
            queries.moves: (interval_s,),
            advice.weeks: (totals["since_s"], totals["until_s"]),
        }
        waiting = {
            query.__name__: pool.submit(rows, query, *tables, *more.get(query, ()))
            for query, tables in QUERIES.items()
            if has_rows(tables[0])
        }
        results: dict[str, Rows] = {}
        for query in QUERIES:
            name = query.__name__
            report_progress(name.replace("_", " "))
            results[name] = waiting[name].result() if name in waiting else []
    return Facts(totals=totals, interval_s=interval_s, **results)


STEPS = len(fields(Facts)) - 1
"""Number of progress steps: one for the totals, one for each other query."""


def interval(first_s: int | None, last_s: int | None) -> int:
    """Return the interval of a bar that keeps their number below BARS_MAX."""
    seconds = (last_s or 0) - (first_s or 0)
    return next((choice for choice in INTERVALS_S if seconds // choice < BARS_MAX), INTERVALS_S[-1])
