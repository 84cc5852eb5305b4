"""The rows of logs: a `LogReader` reads each file, wherever Spark has its lines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from ..bronze.lines import stem
from ..frames import computed, mapped, select_schema
from ..schema import EVENT, HEADER, UNREAD
from .logs.reader import BAD, BROKERS, LogReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame

    from .logs.events import Event

Row = dict[str, Any]

Earlier = dict[tuple[str, int], tuple[int, int | None]]
"""The last `seq` and group time of each trace and broker."""

STRING, LONG, BOOL = StringType(), LongType(), BooleanType()

_PLACE = {"source_file": STRING, "ingest_id": STRING, "block_start": LONG, "row_id": LONG}

_EVENT, _UNREAD, _WATCHED = "event", "unread", "watched"
"""The kinds of rows: events and bad lines; lines that were not understood; the first and last time in a layout."""

_COLUMNS = {
    **dict.fromkeys(("part", "raw", "reject_reason", "detail"), STRING),
    **dict.fromkeys(("unread", "text", "example", "layout", "cluster"), STRING),
    "first": BOOL,
    "is_known": BOOL,
    "n": LONG,
    "watched_us": LONG,
}

_ROWS = StructType([*(StructField(name, kind) for name, kind in (_PLACE | _COLUMNS).items()), *EVENT.columns.fields])

BATCH_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class LogRows:
    """The rows of logs.

    `events` have the columns of silver/event and the position of their line. A line may have several events, or none;
    `first` is false for further ones. A line of the group coordinator or a client that cannot be read gets a
    `reject_reason` (one of schema.REASONS) and a `detail`. `unread` has the columns of bronze/unread but the batch,
    `header` those of silver/header.
    """

    events: DataFrame
    unread: DataFrame
    header: DataFrame


def read_logs(
    lines: DataFrame, time_zone: str = "UTC", earlier: DataFrame | None = None, *, small: bool = False
) -> LogRows:
    """Read lines of bronze/line with `trace_id`, `cluster`, `source` and `client`. Their times are in `time_zone`.

    `source` is the type of a file, and `client` that of its lines without a mark, if any. `earlier` has the last events
    before the lines of files that continue: `trace_id`, `of_node`, `last_seq`, `last_group_us`. The driver reads and
    keeps `small` logs.
    """
    last = {} if earlier is None else {(row[0], row[1]): (row[2], row[3]) for row in earlier.collect()}
    # the lines of clients in the log of a broker are a log of their own
    lines = lines.withColumn("clients_trace", F.md5(F.concat(stem(F.col("source_file")), F.lit(" clients"))))
    names = (*_PLACE, "raw", "source", "client", "trace_id", "clients_trace", "cluster")
    placed = lines.select(*names).repartition("source_file")
    run = partial(_read_partition, to_arrow_schema(_ROWS, timezone="UTC"), time_zone, last)
    in_order = placed.sortWithinPartitions("source_file", "block_start", "row_id")
    rows = mapped(in_order, run, _ROWS, small=small)
    if not small:
        # Spark would read the files again in every step that follows
        rows = computed(rows)
    return LogRows(
        rows.where(F.col("part") == _EVENT).select(*_PLACE, "raw", "reject_reason", "detail", "first", *EVENT.names),
        select_schema(rows.where(F.col("part") == _UNREAD).drop("kind").withColumnRenamed("unread", "kind"), UNREAD),
        _header(rows.where(F.col("part") == _WATCHED)),
    )


def _header(watched: DataFrame) -> DataFrame:
    """Return silver/header: the times of the first and the last line in the layouts of known lines."""
    same = Window.partitionBy("trace_id", "layout")
    own = watched.withColumn("is_known", F.max("is_known").over(same)).where("is_known")
    return select_schema(own, HEADER)


def _read_partition(
    result: pa.Schema, time_zone: str, earlier: Earlier, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Read each file of a partition that is sorted by file and line."""
    for _, parts in groupby(_slices(batches), key=itemgetter(0)):
        rows = _file_rows((part for _, part in parts), time_zone, earlier)
        while part := list(islice(rows, BATCH_ROWS)):
            yield pa.RecordBatch.from_pylist(part, result)


def _slices(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Return each file's part of each batch."""
    for batch in batches:
        runs, start = pc.run_end_encode(batch["source_file"]), 0
        for name, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            yield name, batch.slice(start, end - start)
            start = end


def _file_rows(parts: Iterator[pa.RecordBatch], time_zone: str, earlier: Earlier) -> Iterator[Row]:
    part = next(parts)
    first = part.slice(0, 1).to_pylist()[0]
    file = {name: first[name] for name in ("source_file", "ingest_id")}
    traces = {True: first["trace_id"], False: first["trace_id" if first["source"] not in BROKERS else "clients_trace"]}
    reader = LogReader(time_zone, first["client"], _of_file(earlier, traces) if first["block_start"] else None)
    waiting: list[tuple[Row, Event]] = []
    columns = ([each[name].to_pylist() for name in ("raw", "block_start", "row_id")] for each in chain((part,), parts))
    for raw, block_start, row_id in chain.from_iterable(zip(*each, strict=True) for each in columns):
        found = reader.read(raw)
        if not found.events and found.unread != BAD:
            continue
        place = file | {"part": _EVENT, "raw": raw, "block_start": block_start, "row_id": row_id}
        if found.unread == BAD:
            trace_id = traces[found.source in BROKERS]
            yield place | {
                "source": found.source,
                "trace_id": trace_id,
                "reject_reason": BAD,
                "detail": found.detail,
                "first": True,
            }
        for at, event in enumerate(found.events):
            row = place | event | {"trace_id": traces[event["source"] in BROKERS], "first": not at}
            if row.get("group_id") is None:
                waiting.append((row, event))
            else:
                yield row
    yield from (row | {"group_id": reader.group_of(event)} for row, event in waiting)
    for each in reader.unread:
        counted = {"part": _UNREAD, "unread": each.kind, "text": each.text, "example": each.example, "n": each.n}
        yield file | counted
    trace = {name: first[name] for name in ("trace_id", "source", "cluster")} | {"part": _WATCHED}
    for layout, is_known, begin_us, end_us in reader.watched():
        times = {"wall_us": begin_us, "watched_us": end_us}
        yield file | trace | times | {"layout": layout, "is_known": is_known}


def _of_file(earlier: Earlier, traces: Mapping[bool, str]) -> dict[tuple[bool, int], tuple[int, int | None]]:
    """Return the last events of the brokers, or the clients, that a file may continue."""
    return {
        (is_broker, node): last
        for (trace_id, node), last in earlier.items()
        for is_broker, of in traces.items()
        if of == trace_id
    }
