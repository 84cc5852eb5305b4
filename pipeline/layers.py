"""The dependencies between tables, from silver to the verdicts, in build order.

A step is a table, the function that builds it, and the tables that function reads. A load writes each table before it
builds the next and reads it back, so that nothing is computed twice. It keeps the result of the fold until it has
written the tables that the fold makes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from . import schema as tables
from .fold.frames import FOLD, FOLDED, folded, unfolded
from .gold.avoided import avoided
from .gold.client_join import client_join
from .gold.heartbeat import heartbeat
from .marts.test_run import client_matrix, flaky, test_run
from .silver.call import call
from .silver.trace import run, test, trace

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
    Step(FOLD, folded, (tables.EVENT, tables.TRACE, tables.GROUP_STATE)),
    *(Step(table, partial(unfolded, table), (FOLD,)) for table in FOLDED),
    Step(tables.CALL, call, (tables.EVENT,)),
    Step(tables.HEARTBEAT, heartbeat, (tables.CALL, tables.MEMBER_SPAN, tables.TRACE)),
    Step(tables.CLIENT_JOIN, client_join, (tables.EVENT, tables.TRACE)),
    Step(tables.AVOIDED, avoided, (tables.EVENT, tables.TRACE)),
    Step(
        tables.TEST_RUN,
        test_run,
        (tables.TRACE, tables.TEST, tables.MEMBER, tables.REBALANCE, tables.VERDICT),
    ),
)
"""Tables derived from the events, headers and outcomes of single traces; a load rebuilds them per `home`."""

STORE_STEPS: tuple[Step, ...] = (
    Step(tables.RUN, run, (tables.TRACE,)),
    Step(tables.FLAKY, flaky, (tables.TEST_RUN,)),
    Step(tables.CLIENT_MATRIX, client_matrix, (tables.TEST_RUN,)),
)
"""Tables that compare runs; every load rebuilds them as a whole."""
