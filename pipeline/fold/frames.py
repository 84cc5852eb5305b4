"""The fold on Spark: one shuffle of events by trace, and the rows of every table in one frame."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from .. import schema
from ..frames import mapped, sql
from ..job_errors import JobFailed
from ..schema import Table
from ..schema.kinds import StructOf, TableColumn
from .event_lines import trace_lines
from .group_facts import NEVER, WATCHED
from .heartbeats import Heartbeats
from .settled import CARRIED
from .trace_fold import fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..frames import Frame
    from .group_facts import Row

COLUMNS = (
    *(
        "trace_id",
        "seq",
        "source",
        "wall_us",
        "group_us",
        "kind",
        "node",
        "conn_id",
        "correlation_id",
        "api",
        "api_version",
    ),
    *("client_id", "principal", "client_software", "client_version"),
    *("group_id", "member_id", "instance_id", "generation"),
    *("state_from", "state_to", "change", "cause", "reason", "client_reason", "timer", "error", "error_code"),
    *("rule_id", "count", "body"),
)
"""The columns of silver/event that the fold reads."""

TRACE_NAMES = ("trace_id", "run_id", "test_id", "cluster")
"""The columns of a row's trace, from silver/trace."""

PART_ROWS = 100_000
"""Number of events of a trace that are in memory before its regular heartbeats are left out."""

BATCH_ROWS = 10_000
"""The largest number of rows of a table that go back to Spark at once."""

FOLDED: tuple[Table, ...] = (
    *(schema.GROUP, schema.MEMBER, schema.MEMBER_SPAN, schema.ASSIGNMENT, schema.ROUND, schema.ARRIVAL, schema.MOVE),
    *(schema.REBALANCE, schema.MEMBER_DOWNTIME, schema.PARTITION_GAP, schema.STATE_TIME, schema.COMMIT),
    *(schema.FENCING, schema.DELIVERY, schema.DEAD_LETTER, schema.TASK, schema.TRANSACTION, schema.VERDICT),
    *(schema.GROUP_STATE, schema.CLIENT_JOIN),
)
"""The tables that the fold makes."""

TABLES = tuple(table.name for table in FOLDED)

FOLD = Table(
    "silver",
    "fold",
    "The rows of every table that the fold makes, each in the column of its table.",
    ("trace_id",),
    (
        *(each for each in schema.TRACE.definitions if each.name in TRACE_NAMES),
        *(TableColumn(table.name, StructOf(table.definitions)) for table in FOLDED),
    ),
)
"""The result of the fold; a load keeps it only until it has written the tables."""

ROWS = replace(FOLD, definitions=tuple(each for each in FOLD.definitions if each.name not in TRACE_NAMES[1:]))
"""The columns of the fold that come from events."""


def _as_events(**columns: str) -> str:
    return ", ".join(columns.get(name, "NULL") for name in COLUMNS)


EVENTS = " UNION ALL ".join(
    f"SELECT {columns} FROM {rows}"  # noqa: S608 - our own names
    for columns, rows in (
        (", ".join(COLUMNS), "silver.event"),
        (
            _as_events(
                trace_id="trace_id", seq=f"{NEVER}", kind=f"'{WATCHED}'", wall_us="watched_us", group_us="watched_us"
            ),
            "silver.trace WHERE watched_us IS NOT NULL",
        ),
        (
            _as_events(trace_id="trace_id", seq="0", kind=f"'{CARRIED}'", group_id="group_id", body="state"),
            "silver.group_state",
        ),
    )
)
"""The events, the ends of logs, and the states of groups that go on."""


class FoldFailed(JobFailed):
    """A trace whose events cannot be followed; `job_errors` finds it in Spark's text by this name."""


def folded(event: Frame, trace: Frame, group_state: Frame) -> Any:  # noqa: ANN401 - a Frame
    """Return the rows of all tables: a column for each table, and in each row one that is not null.

    A log that goes on has its new events only, and the states of its groups.
    """
    events = sql(EVENTS, silver_event=event, silver_group_state=group_state, silver_trace=trace)
    # groupBy would give a worker all events of a trace at once; sorted partitions arrive in batches
    rows = mapped(events, fold_partition, ROWS, ("trace_id", "seq"))
    return sql("SELECT rows.*, run_id, test_id, cluster FROM {rows} AS rows LEFT JOIN silver.trace USING (trace_id)",
               FOLD, rows=rows, silver_trace=trace)  # fmt: skip


def unfolded(table: Table, fold_: Frame) -> Any:  # noqa: ANN401 - a Frame
    """Return the rows of one table, with their home if the rows of all tables have one."""
    if isinstance(fold_, pa.Table):
        rows = fold_.filter(fold_[table.name].is_valid())
        of_trace = {*TRACE_NAMES, "home"}.intersection(rows.column_names)
        names = [*table.names, *({"home"} & of_trace)]
        return pa.table({
            name: rows[name] if name in of_trace else pc.struct_field(rows[table.name], name) for name in names
        })  # fmt: skip
    columns = [name if name in TRACE_NAMES else f"{table.name}.{name}" for name in table.names]
    home = ["home"] if "home" in fold_.columns else []
    return fold_.where(fold_[table.name].isNotNull()).select(*columns, *home)


def fold_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Fold each trace of a partition that is sorted by trace and line."""
    result = ROWS.arrow
    for trace_id, slices in groupby(_slices(batches), key=itemgetter(0)):
        heartbeats = Heartbeats()
        events = pa.concat_tables(heartbeats.shortened(part) for part in _parts(each for _, each in slices))
        try:
            for name, rows in _trace_rows(result, trace_id, events):
                yield from _in_columns(result, trace_id, name, rows)
        except (MemoryError, OSError):
            # the machine's limits, not the events
            raise
        except Exception as error:
            raise FoldFailed(
                f"the events of trace {trace_id} cannot be followed ({error!r}). Remove its file if it is damaged, else"
                " report this; nothing is loaded"
            ) from error


def _slices(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Return each trace's part of each batch."""
    for batch in batches:
        runs, start = pc.run_end_encode(batch["trace_id"]), 0
        for trace_id, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            yield trace_id, batch.slice(start, end - start)
            start = end


def _parts(slices: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Return a trace in parts of at least PART_ROWS events, but for the last one."""
    part: list[pa.RecordBatch] = []
    for each in slices:
        part.append(each)
        if sum(map(len, part)) >= PART_ROWS:
            yield pa.Table.from_batches(part)
            part = []
    if part:
        yield pa.Table.from_batches(part)


def _trace_rows(result: pa.Schema, trace_id: str, events: pa.Table) -> Iterator[tuple[str, pa.Array]]:
    """Return the rows of each table, once or several times."""
    waiting: dict[str, list[Row]] = {}
    for path, rows in fold(trace_id, list(trace_lines(events))):
        name = path.rpartition("/")[2]
        its_rows = waiting.setdefault(name, [])
        its_rows.extend(rows)
        if len(its_rows) >= BATCH_ROWS:
            yield name, pa.array(waiting.pop(name), result.field(name).type)
    for name, its_rows in waiting.items():
        yield name, pa.array(its_rows, result.field(name).type)


def _in_columns(result: pa.Schema, trace_id: str, name: str, rows: pa.Array) -> Iterator[pa.RecordBatch]:
    """Return rows in the column of their table, not too many at once: the other columns take memory, too."""
    for start in range(0, len(rows), BATCH_ROWS):
        part = rows[start : start + BATCH_ROWS]
        columns = [part if field.name == name else pa.nulls(len(part), field.type) for field in list(result)[1:]]
        ids = pa.array([trace_id] * len(part), result.field(0).type)
        yield from pa.Table.from_arrays([ids, *columns], schema=result).to_batches()
