"""The dependencies between tables, from silver to the verdicts, in build order.

A step is a table, the function that builds it, and the tables that function reads. A load writes each table before it
builds the next and reads it back, so that nothing is computed twice. The step FOLD makes the rows that are folded; the
tables of the fold follow from it, and are written together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from .fold.frames import FOLD, FOLDED, fold_input, unfolded
from .frames import sql
from .queries import inputs_of, queries_of
from .schema import EVENT, GROUP_STATE, TABLES, TRACE

if TYPE_CHECKING:
    from collections.abc import Callable

    from .frames import Frame
    from .schema import Table


@dataclass(frozen=True, slots=True)
class Step:
    """A table, the function that builds it, and the input tables of that function."""

    table: Table
    build: Callable[..., Frame]
    inputs: tuple[Table, ...]


QUERIES = queries_of(__package__ or "", "tables.sql")
"""The queries of `tables.sql`, by the path of the table that they make."""


def _from_query(path: str) -> Step:
    """Return the step of a table that a query makes."""
    names = inputs_of(QUERIES[path])

    def build(*inputs: Frame) -> Frame:
        frames = {name.replace("/", "_"): frame for name, frame in zip(names, inputs, strict=True)}
        return sql(QUERIES[path], TABLES[path], **frames)

    return Step(TABLES[path], build, tuple(TABLES[name] for name in names))


PER_HOME_STEPS: tuple[Step, ...] = (
    *map(_from_query, ("silver/trace", "silver/test")),
    Step(FOLD, fold_input, (EVENT, TRACE, GROUP_STATE)),
    *(Step(table, partial(unfolded, table), (FOLD,)) for table in FOLDED),
    *map(_from_query, ("gold/heartbeat", "gold/avoided", "mart/test_run")),
)
"""Tables derived from the events, headers and outcomes of single traces; a load rebuilds them per `home`."""

STORE_STEPS: tuple[Step, ...] = (*map(_from_query, ("silver/run", "mart/flaky", "mart/client_matrix")),)
"""Tables that compare runs; every load rebuilds them as a whole."""
