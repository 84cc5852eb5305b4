"""The dependencies between tables, from silver to the verdicts, in build order.

A step is a table, the function that builds it, and the tables that function reads. A load writes each table before it
builds the next and reads it back, so that nothing is computed twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import schema as tables
from .gold.avoided import avoided
from .gold.client_join import client_join
from .gold.commit import commit
from .gold.fencing import fencing
from .gold.heartbeat import heartbeat
from .gold.member_downtime import member_downtime
from .gold.partition_gap import partition_gap
from .gold.rebalance import rebalance
from .gold.state_time import state_time
from .marts.client_matrix import client_matrix
from .marts.flaky import flaky
from .marts.verdict import verdict
from .silver.arrival import arrival
from .silver.assignment import assignment
from .silver.call import call
from .silver.member import group, member
from .silver.member_span import member_span
from .silver.move import move
from .silver.round import round_
from .silver.run import run
from .silver.test import test
from .silver.trace import trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from .schema import Table


@dataclass(frozen=True, slots=True)
class Step:
    """A table, the function that builds it, and the input tables of that function."""

    table: Table
    build: Callable[..., DataFrame]
    inputs: tuple[Table, ...]


PER_HOME_STEPS: tuple[Step, ...] = (
    Step(tables.TRACE, trace, (tables.EVENT, tables.HEADER)),
    Step(tables.TEST, test, (tables.TRACE, tables.OUTCOME)),
    Step(tables.CALL, call, (tables.EVENT,)),
    Step(tables.MEMBER_SPAN, member_span, (tables.EVENT, tables.CALL)),
    Step(tables.ASSIGNMENT, assignment, (tables.CALL, tables.MEMBER_SPAN)),
    Step(tables.ROUND, round_, (tables.EVENT, tables.MEMBER_SPAN)),
    Step(tables.ARRIVAL, arrival, (tables.CALL, tables.ROUND)),
    Step(tables.CLIENT_JOIN, client_join, (tables.EVENT, tables.TRACE)),
    Step(tables.MOVE, move, (tables.ASSIGNMENT, tables.ROUND)),
    Step(
        tables.REBALANCE,
        rebalance,
        (
            *(tables.EVENT, tables.CALL, tables.MEMBER_SPAN),
            *(tables.ROUND, tables.ARRIVAL, tables.MOVE, tables.TRACE),
        ),
    ),
    Step(
        tables.MEMBER_DOWNTIME,
        member_downtime,
        (tables.CALL, tables.ROUND, tables.ARRIVAL, tables.MOVE, tables.REBALANCE, tables.TRACE),
    ),
    Step(
        tables.PARTITION_GAP,
        partition_gap,
        (
            *(tables.EVENT, tables.CALL, tables.MEMBER_SPAN),
            *(tables.ROUND, tables.ARRIVAL, tables.MOVE, tables.REBALANCE, tables.TRACE),
        ),
    ),
    Step(tables.STATE_TIME, state_time, (tables.EVENT, tables.TRACE)),
    Step(tables.COMMIT, commit, (tables.EVENT, tables.CALL, tables.MEMBER_SPAN, tables.TRACE)),
    Step(tables.FENCING, fencing, (tables.EVENT, tables.TRACE)),
    Step(tables.HEARTBEAT, heartbeat, (tables.CALL, tables.MEMBER_SPAN, tables.TRACE)),
    Step(tables.AVOIDED, avoided, (tables.EVENT, tables.TRACE)),
    Step(tables.MEMBER, member, (tables.EVENT, tables.CALL)),
    Step(tables.GROUP, group, (tables.EVENT,)),
    Step(tables.VERDICT, verdict, (tables.EVENT, tables.CALL, tables.MEMBER, tables.GROUP, tables.TRACE)),
)
"""Tables derived from the events, headers and outcomes of single traces; a load rebuilds them per `home`."""

STORE_STEPS: tuple[Step, ...] = (
    Step(tables.RUN, run, (tables.TRACE,)),
    Step(tables.FLAKY, flaky, (tables.TEST, tables.REBALANCE)),
    Step(
        tables.CLIENT_MATRIX,
        client_matrix,
        (tables.VERDICT, tables.TRACE, tables.TEST, tables.MEMBER, tables.REBALANCE),
    ),
)
"""Tables that compare runs; every load rebuilds them as a whole."""
