"""The fold of a load: all events of a trace come to one task, which makes the rows of every table of the fold.

Where tasks reach the store they write these rows themselves, each table into its files; elsewhere Spark gets them in
one frame.
"""

from __future__ import annotations

from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .. import schema
from ..frames import mapped, slices, sql
from ..job_errors import JobFailed
from ..schema import CALL, TABLES, Table
from ..schema.kinds import StructOf, TableColumn
from ..schema.tables import STRING
from .calls import CallPairs
from .event_lines import trace_lines
from .group_facts import NEVER, WATCHED
from .heartbeats import Heartbeats
from .settled import CARRIED
from .task_files import TableFiles
from .trace_fold import fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ..frames import Frame
    from .group_facts import Row

COLUMNS = (
    *("trace_id", "seq", "source", "wall_us", "group_us", "kind"),
    *("node", "conn_id", "correlation_id", "api", "api_version"),
    *("client_id", "principal", "client_software", "client_version"),
    *("group_id", "member_id", "instance_id", "generation"),
    *("state_from", "state_to", "change", "cause", "reason", "client_reason", "timer", "error", "error_code"),
    *("rule_id", "count", "body"),
)
"""The columns of silver/event that the fold reads."""

COLUMNS_OF_CALLS = (*COLUMNS, "synthetic")
"""Those columns, and the one that only the calls have."""

TRACE_NAMES = ("run_id", "test_id", "cluster", "home")
"""The columns of a row that are those of its trace in silver/trace."""

NAMED = "named"
"""The kind of the row that brings the names of a trace into the fold, before its events."""

BEFORE_ALL = -(2**62)
"""The `seq` of that row."""

ORDER = ("trace_id", "seq")

PART_ROWS = 100_000
"""Number of events of a trace that are in memory before its regular heartbeats are left out."""

HEARTBEATS = "heartbeats"
"""The part of silver/call with the heartbeats, which queries for other APIs skip."""

BATCH_ROWS = 10_000
"""The largest number of rows of a table that become a batch at once."""

FOLDED: tuple[Table, ...] = (
    *(schema.GROUP, schema.MEMBER, schema.MEMBER_SPAN, schema.ASSIGNMENT, schema.ROUND, schema.ARRIVAL, schema.MOVE),
    *(schema.REBALANCE, schema.MEMBER_DOWNTIME, schema.PARTITION_GAP, schema.STATE_TIME, schema.COMMIT),
    *(schema.FENCING, schema.DELIVERY, schema.DEAD_LETTER, schema.TASK, schema.TRANSACTION, schema.VERDICT),
    *(schema.GROUP_STATE, schema.CLIENT_JOIN, CALL),
)
"""The tables that the fold makes."""

FOLD = Table(
    "silver",
    "fold",
    "The rows of every table that the fold makes, each in the column of its table.",
    (),
    tuple(TableColumn(table.name, StructOf(table.stored)) for table in FOLDED),
)
"""The result of the fold in one frame."""

WRITTEN = Table("silver", "written", "", (), (TableColumn("table_name", STRING),))
"""The result of a task that writes the rows itself: the tables that have some."""


def _as_events(**columns: str) -> str:
    return ", ".join(f"{columns.get(name, 'NULL')} AS {name}" for name in (*COLUMNS_OF_CALLS, *TRACE_NAMES))


EVENTS = " UNION ALL ".join(
    f"SELECT {columns} FROM {rows}"  # noqa: S608 - our own names
    for columns, rows in (
        (_as_events(**{name: name for name in COLUMNS_OF_CALLS}), "silver.event"),
        (
            _as_events(trace_id="trace_id", seq=f"{BEFORE_ALL}", kind=f"'{NAMED}'", **{n: n for n in TRACE_NAMES}),
            "silver.trace",
        ),
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
"""The events, the names of traces, the ends of logs, and the states of groups that go on."""


class FoldFailed(JobFailed):
    """A trace whose events cannot be followed; `job_errors` finds it in Spark's text by this name."""


def fold_input(event: Frame, trace: Frame, group_state: Frame) -> Any:  # noqa: ANN401 - a Frame
    """Return the rows that `fold_partition` needs, in no order.

    A log that goes on has its new events only, and the states of its groups.
    """
    return sql(EVENTS, silver_event=event, silver_group_state=group_state, silver_trace=trace)


def folded(rows: Frame) -> Any:  # noqa: ANN401 - a Frame
    """Return the rows of all tables: a column for each table, and in each row one that is not null."""
    # groupBy would give a worker all events of a trace at once; sorted partitions arrive in batches
    return mapped(rows, _in_columns, FOLD, ORDER)


def unfolded(table: Table, fold_: Frame) -> Any:  # noqa: ANN401 - a Frame
    """Return the rows of one table as the store has them."""
    if isinstance(fold_, pa.Table):
        chunks = fold_[table.name].drop_null().chunks
        return pa.Table.from_batches(map(pa.RecordBatch.from_struct_array, chunks), table.stored_arrow)
    return fold_.where(fold_[table.name].isNotNull()).select(f"{table.name}.*")


def write_folded(rows: Frame, folders: Mapping[str, str]) -> Any:  # noqa: ANN401 - a Frame
    """Write the rows of some tables into folders, by `Table.name`. Return WRITTEN."""
    return mapped(rows, partial(write_partition, folders), WRITTEN, ORDER)


def write_partition(folders: Mapping[str, str], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Fold a partition, and write the rows of some tables into folders. Return a batch of WRITTEN."""
    files = TableFiles(folders)
    for table, rows, part in fold_partition(batches):
        files.add(table.name, rows, part)
    yield pa.RecordBatch.from_pydict({"table_name": files.close()}, WRITTEN.arrow)


def _in_columns(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Fold a partition. Return rows in the column of their table, not too many: the other columns take memory, too."""
    for table, rows, _ in fold_partition(batches):
        for batch in rows.to_batches(max_chunksize=BATCH_ROWS):
            one = batch.to_struct_array()
            columns = [one if each.name == table.name else pa.nulls(len(one), each.type) for each in FOLD.arrow]
            yield pa.RecordBatch.from_arrays(columns, schema=FOLD.arrow)


def fold_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Table, pa.Table, str]]:
    """Fold each trace of a partition that is in the order of ORDER.

    Returns rows of a table as the store has them, and HEARTBEATS if they are such calls, else an empty text.
    """
    schemas = {table.path: table.stored_arrow for table in FOLDED}
    for trace_id, found in groupby(slices(batches, "trace_id"), key=itemgetter(0)):
        of_trace = (each for _, each in found)
        first = next(of_trace)
        (names,) = first.slice(0, 1).select(TRACE_NAMES).to_pylist()
        events = chain((first.slice(1),), of_trace)
        try:
            for table, rows, part in _trace_rows(schemas, trace_id, _parts(events)):
                yield table, _as_stored(schemas[table.path], rows, names), part
        except (MemoryError, OSError):
            # the machine's limits, not the events
            raise
        except Exception as error:
            raise FoldFailed(
                f"the events of trace {trace_id} cannot be followed ({error!r}). Remove its file if it is damaged, else"
                " report this; nothing is loaded"
            ) from error


def _parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Return a trace in parts of at least PART_ROWS events, but for the last one."""
    part: list[pa.RecordBatch] = []
    for each in batches:
        part.append(each)
        if sum(map(len, part)) >= PART_ROWS:
            yield pa.Table.from_batches(part)
            part = []
    if part:
        yield pa.Table.from_batches(part)


def _trace_rows(
    schemas: Mapping[str, pa.Schema], trace_id: str, parts: Iterable[pa.Table]
) -> Iterator[tuple[Table, pa.Table, str]]:
    """Return the rows of each table, once or several times, and the part of the table to which they belong."""
    calls, heartbeats, events = CallPairs(), Heartbeats(), []
    for part in parts:
        if not len(part):
            # a trace of these homes without new events
            return
        yield from _both(calls.answered(part))
        events.append(heartbeats.shortened(part.select(COLUMNS)))
    yield from _both(calls.unanswered())
    waiting: dict[str, list[Row]] = {}
    for path, rows in fold(trace_id, list(trace_lines(pa.concat_tables(events)))):
        its_rows = waiting.setdefault(path, [])
        its_rows.extend(rows)
        if len(its_rows) >= BATCH_ROWS:
            yield TABLES[path], pa.Table.from_pylist(waiting.pop(path), schemas[path]), ""
    for path, its_rows in waiting.items():
        if its_rows:
            yield TABLES[path], pa.Table.from_pylist(its_rows, schemas[path]), ""


def _both(calls: tuple[pa.Table, pa.Table]) -> Iterator[tuple[Table, pa.Table, str]]:
    for rows, part in zip(calls, ("", HEARTBEATS), strict=True):
        if len(rows):
            yield CALL, rows, part


def _as_stored(schema: pa.Schema, rows: pa.Table, names: Row) -> pa.Table:
    """Return rows with the names of their trace."""
    columns = [
        pa.array([names[each.name]] * len(rows), each.type) if each.name in names else rows[each.name]
        for each in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
