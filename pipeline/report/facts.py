"""The facts of the report, queried from the tables once; the page and the summary use nothing else."""

from __future__ import annotations

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


def read_facts(read: Callable[[Table], DataFrame], report_progress: Callable[[str], None] = lambda _: None) -> Facts:
    """Run all queries. `read` returns a table; `report_progress` is called with a name before each of the `STEPS`."""
    rebalance, downtime, gap = map(read, (schema.REBALANCE, schema.MEMBER_DOWNTIME, schema.PARTITION_GAP))
    state_time, avoided = read(schema.STATE_TIME), read(schema.AVOIDED)
    verdict, flaky = read(schema.VERDICT), read(schema.FLAKY)
    report_progress("totals")
    totals: dict[str, Any] = {}
    for frame in (
        queries.extent(read(schema.TRACE)),
        queries.span(rebalance),
        queries.costs(downtime),
        queries.observed(state_time),
        queries.groups(read(schema.GROUP)),
        queries.avoided(avoided),
    ):
        totals |= _rows(frame)[0]
    times = [second for name in ("since_s", "until_s", "last_s") if (second := totals[name]) is not None]
    totals |= {"since_s": min(times, default=0), "until_s": max(times, default=0)}
    interval_s = interval(totals["first_s"], totals["last_s"])
    frames = {
        "by_time": queries.by_time(rebalance, interval_s),
        "causes": queries.causes(rebalance),
        "join_times": queries.join_times(rebalance),
        "stopped_groups": queries.stopped_groups(downtime),
        "stopped_members": queries.stopped_members(downtime),
        "weeks": advice.weeks(rebalance, totals["since_s"], totals["until_s"]),
        "stragglers": queries.stragglers(rebalance),
        "state_times": queries.state_times(state_time),
        "moves": queries.moves(gap, rebalance, interval_s),
        "cohorts": queries.cohorts(rebalance, downtime, gap, state_time, avoided),
        "gains": advice.gains(rebalance, downtime),
        "commits": queries.commits(read(schema.COMMIT)),
        "wasted": queries.wasted(rebalance, gap),
        "storms": advice.storms(rebalance, downtime),
        "longest": queries.longest(rebalance),
        "checks": queries.checks(verdict),
        "failures": queries.failures(verdict),
        "flaky": queries.flaky(flaky),
        "rebalance_heavy": queries.rebalance_heavy(flaky),
        "clients": queries.clients(read(schema.CLIENT_MATRIX)),
        "heartbeats": queries.heartbeats(read(schema.HEARTBEAT)),
        "removals": queries.removals(read(schema.EVENT), read(schema.TRACE)),
        "fencing": queries.fencing(read(schema.FENCING)),
        "transactions": queries.transactions(read(schema.TRANSACTION)),
        "logs": queries.logs(read(schema.CLIENT_JOIN)),
        "rows_read": queries.rows_read(read(schema.COUNTS)),
        "quarantine": queries.quarantine(read(schema.QUARANTINE)),
        "unread": queries.unread(read(schema.UNREAD)),
    }
    results: dict[str, Rows] = {}
    for name, frame in frames.items():
        report_progress(name.replace("_", " "))
        results[name] = _rows(frame)
    return Facts(totals=totals, interval_s=interval_s, **results)


STEPS = len(fields(Facts)) - 1
"""Number of progress steps: one for the totals, one for each other query."""


def interval(first_s: int | None, last_s: int | None) -> int:
    """Return the interval of a bar that keeps their number below BARS_MAX."""
    seconds = (last_s or 0) - (first_s or 0)
    return next((choice for choice in INTERVALS_S if seconds // choice < BARS_MAX), INTERVALS_S[-1])


def _rows(frame: DataFrame) -> Rows:
    return [row.asDict(recursive=True) for row in frame.collect()]
