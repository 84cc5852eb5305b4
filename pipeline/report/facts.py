"""What the report says, asked of the tables once; the page and the summary are made of it and of nothing else."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from .. import schema
from . import questions

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from ..schema import Table

Rows = list[dict[str, Any]]
"""The rows of an answer, by column."""

STRETCHES_S = (1, 2, 5, 10, 30, 60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400)
"""What one bar of a chart over time may stand for."""

BARS_MAX = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The answers, each under the name of its question in `questions`.

    `totals` has the answers that are one row, together; `stretch_s` is what a bar over time stands for.
    """

    totals: dict[str, Any]
    stretch_s: int
    by_time: Rows
    causes: Rows
    join_times: Rows
    stopped_groups: Rows
    stopped_members: Rows
    stragglers: Rows
    state_times: Rows
    moves: Rows
    cohorts: Rows
    commits: Rows
    wasted: Rows
    storms: Rows
    longest: Rows
    checks: Rows
    failures: Rows
    flaky: Rows
    heavy: Rows
    clients: Rows
    beats: Rows
    fenced: Rows
    logs: Rows
    read: Rows
    refused: Rows


def asked(read: Callable[[Table], DataFrame], tell: Callable[[str], None] = lambda _: None) -> Facts:
    """Ask everything. `read` gives a table; `tell` is told before each of the `STEPS` what is asked next."""
    rebalance, downtime, gap = read(schema.REBALANCE), read(schema.MEMBER_DOWNTIME), read(schema.PARTITION_GAP)
    state_time, avoided, verdict = read(schema.STATE_TIME), read(schema.AVOIDED), read(schema.VERDICT)
    flaky = read(schema.FLAKY)
    tell("totals")
    totals: dict[str, Any] = {}
    for frame in (
        questions.extent(read(schema.TRACE)),
        questions.span(rebalance),
        questions.costs(downtime),
        questions.watched(state_time),
        questions.saved(avoided),
    ):
        totals |= _rows(frame)[0]
    stretch_s = stretch(totals["first_s"], totals["last_s"])
    frames = {
        "by_time": questions.by_time(rebalance, stretch_s),
        "causes": questions.causes(rebalance),
        "join_times": questions.join_times(rebalance),
        "stopped_groups": questions.stopped_groups(downtime),
        "stopped_members": questions.stopped_members(downtime),
        "stragglers": questions.stragglers(rebalance),
        "state_times": questions.state_times(state_time),
        "moves": questions.moves(gap, rebalance, stretch_s),
        "cohorts": questions.cohorts(rebalance, downtime, gap, state_time, avoided),
        "commits": questions.commits(read(schema.COMMIT)),
        "wasted": questions.wasted(rebalance, gap),
        "storms": questions.storms(rebalance, downtime),
        "longest": questions.longest(rebalance),
        "checks": questions.checks(verdict),
        "failures": questions.failures(verdict),
        "flaky": questions.flaky(flaky),
        "heavy": questions.heavy(flaky),
        "clients": questions.clients(read(schema.CLIENT_MATRIX)),
        "beats": questions.beats(read(schema.HEARTBEAT)),
        "fenced": questions.fenced(read(schema.FENCING)),
        "logs": questions.logs(read(schema.CLIENT_JOIN)),
        "read": questions.read(read(schema.COUNTS)),
        "refused": questions.refused(read(schema.QUARANTINE)),
    }
    answers: dict[str, Rows] = {}
    for name, frame in frames.items():
        tell(name.replace("_", " "))
        answers[name] = _rows(frame)
    return Facts(totals=totals, stretch_s=stretch_s, **answers)


STEPS = len(fields(Facts)) - 1
"""How often `asked` tells what it asks: once for the totals, once for each of the others."""


def stretch(first_s: int | None, last_s: int | None) -> int:
    """What a bar stands for, so that there are not too many of them."""
    seconds = (last_s or 0) - (first_s or 0)
    return next((each for each in STRETCHES_S if seconds // each < BARS_MAX), STRETCHES_S[-1])


def _rows(frame: DataFrame) -> Rows:
    return [row.asDict(recursive=True) for row in frame.collect()]
