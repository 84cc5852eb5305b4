"""The rows of text inputs: a reader for each file, wherever its lines are."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..frames import mapped, rows_of, slices
from ..schema import BRONZE_LINE, EVENT, HEADER, OUTCOME
from ..schema.kinds import TableColumn
from ..schema.tables import BOOL, LONG, STRING, Table
from .logs.reader import BAD, BROKERS, MARKS, OTHER_CLIENTS, LogReader
from .trace_lines import PERFETTO, SOURCE, trace_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ..frames import Frame
    from .logs.events import Event
    from .trace_lines import Row

TRACE_FILES = re.compile(r"\.jsonl(\.|$)")
"""Files with this suffix are traces; the type of other files follows from their lines."""

TRACE_LINE = rf'\s*\{{(?=.*"kind"\s*:).*"(?:seq|schema_version)"\s*:|{PERFETTO.pattern}'
"""A line of a trace in a file with another suffix; a program may log JSON, too."""

UNKNOWN = "unknown"
"""The source of a file without any known line."""

DAMAGED = "the file is cut off or damaged; replace it under a new name"

ROTATED = "(([.][0-9]{4}-[0-9]{2}-[0-9]{2}(-[0-9]{2})?)|([.][0-9]{1,3}))*([.](gz|zst|zstd|bz2|lz4|snappy|deflate))?$"
"""The suffixes that rotation and compression add to a file name."""

PLACE = ("source_file", "ingest_id", "block_start", "row_id")
"""The position of a row in the input."""

ROWS = Table(
    "bronze",
    "row",
    "What lines became, by `part`: event, header, test, quarantine; unread, the lines of logs that were not understood;"
    " watched, the first and last time in a layout; and read, the number of lines and of ignored ones.",
    ("source_file", "block_start", "row_id"),
    tuple(
        {
            name: TableColumn(name, kind)
            for name, kind in (
                *dict.fromkeys(("source_file", "ingest_id"), STRING).items(),
                *dict.fromkeys(("block_start", "row_id", "n", "ignored"), LONG).items(),
                *dict.fromkeys(("part", "raw", "reject_reason", "detail"), STRING).items(),
                *dict.fromkeys(("unread", "text", "example", "layout"), STRING).items(),
                *dict.fromkeys(("first", "is_known"), BOOL).items(),
                *((each.name, each.kind) for table in (EVENT, HEADER, OUTCOME) for each in table.definitions),
            )
        }.values()
    ),
)
"""The rows of all inputs. `first` is false for further events of the same line of a log."""

BATCH_ROWS = 10_000

Earlier = dict[tuple[str, int], tuple[int, int | None]]
"""The last `seq` and group time of each trace and broker."""


@dataclass(frozen=True, slots=True)
class FileTypes:
    """The types of files that are not traces: the `source` of each, and the client of lines without a mark, if any."""

    by_file: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)
    cluster: str | None = None
    """The cluster of the brokers' logs; without it each log is a cluster of its own."""
    time_zone: str = "UTC"
    """The zone of times that name none."""
    earlier: Earlier = field(default_factory=dict)
    """The last events before the lines of files that continue."""

    def trace_ids(self, source_file: str, source: str) -> dict[bool, str]:
        """Return the trace of a log for the lines of brokers and of clients, which in a broker's log have their own."""
        stem = stem_of(source_file)
        if source not in BROKERS:
            return dict.fromkeys((True, False), md5(stem))
        return {True: md5(stem if self.cluster is None else f"cluster {self.cluster}"), False: md5(f"{stem} clients")}


def md5(text: str) -> str:
    """Return the hash of a text, which is an id."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def stem_of(source_file: str) -> str:
    """Return a file name without the suffixes of rotation and compression; the parts of one log share it."""
    return re.sub(ROTATED, "", source_file)


def file_types(lines: Frame, sources: Iterable[str]) -> dict[str, tuple[str, str | None]]:
    """Return the source and the client of each file that is not a trace; the rotated files of a log count as one.

    The source is that of the first mark that matches any line. `client` is that of a client's lines without a mark.
    """
    others = [name for name in sources if not TRACE_FILES.search(name)]
    if not others:
        return {}
    ranks: dict[str, list[int]] = {}
    of_trace, unknown = len(MARKS), len(MARKS) + 1
    for row in rows_of(mapped(lines, file_ranks, _RANKS)):
        best = ranks.setdefault(stem_of(row.source_file), [unknown, unknown])
        best[:] = map(min, best, (row.block_start, row.row_id))
    names: list[str] = [*MARKS, SOURCE, UNKNOWN]
    found = {name: ranks.get(stem_of(name), [unknown, unknown]) for name in others}
    return {
        name: (names[rank], None if client == unknown else names[client])
        for name, (rank, client) in found.items()
        if rank != of_trace
    }


_RANKS = Table("bronze", "rank", "", (), BRONZE_LINE.definitions[:3])
"""A file, and the numbers of its first mark and of its client."""


def file_ranks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return for each file the number of the first mark that matches a line, and that of its client."""
    marks = [re.compile(mark) for mark in MARKS.values()]
    is_trace, unknown = re.compile(TRACE_LINE), len(marks) + 1
    clients = [number for number, name in enumerate(MARKS) if name in OTHER_CLIENTS]
    for name, part in slices(batches, "source_file"):
        if TRACE_FILES.search(name):
            continue
        rank = client = unknown
        for raw in filter(None, part["raw"].to_pylist()):
            if is_trace.match(raw):
                rank = min(rank, len(marks))
            found = [number for number, mark in enumerate(marks) if mark.search(raw)]
            rank = min([rank, *found])
            client = min([client, *(number for number in clients if number in found)])
        yield pa.RecordBatch.from_pylist([dict(zip(_RANKS.names, (name, rank, client), strict=True))], _RANKS.arrow)


def read_lines(lines: Frame, types: FileTypes) -> Any:  # noqa: ANN401 - a Frame
    """Return ROWS of the lines of traces, and of logs in the order of each file."""
    return mapped(lines, partial(read_partition, types), ROWS, PLACE[0:1] + PLACE[2:] if types.by_file else ())


def read_partition(types: FileTypes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return ROWS of the lines of a partition, which has the lines of a log in order."""
    for name, parts in groupby(slices(batches, "source_file"), key=itemgetter(0)):
        read = _log_rows if name in types.by_file else _trace_rows
        rows = read(types, name, (part for _, part in parts))
        while batch := list(islice(rows, BATCH_ROWS)):
            yield pa.RecordBatch.from_pylist(batch, ROWS.arrow)


def _placed(source: str, parts: Iterable[pa.RecordBatch], read: Callable[[str, Row], Iterable[Row]]) -> Iterator[Row]:
    """Return the rows of each line with its place, and the number of lines in each part of a file."""
    seen: dict[int | None, Row] = {}
    for part in parts:
        for line in part.select([*PLACE, "raw"]).to_pylist():
            raw = line.pop("raw")
            block = seen.setdefault(
                line["block_start"], line | {"part": "read", "source": source, "n": 0, "ignored": 0}
            )
            block["n"] += 1
            is_ignored = True
            if raw is None:
                is_ignored, block["source"] = False, None
                yield line | {"part": "quarantine", "reject_reason": "bad_file", "detail": DAMAGED, "first": True}
            for row in () if raw is None else read(raw, line):
                is_ignored = False
                yield line | row | ({"raw": raw} if row["part"] == "quarantine" else {})
            block["ignored"] += is_ignored
    yield from seen.values()


def _trace_rows(_: FileTypes, name: str, parts: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    own = md5(stem_of(name))

    def read(raw: str, _: Row) -> Iterable[Row]:
        row = trace_row(raw, own)
        return () if row["part"] == "ignored" else (row | {"first": True},)

    return _placed(SOURCE, parts, read)


def _log_rows(types: FileTypes, name: str, parts: Iterator[pa.RecordBatch]) -> Iterator[Row]:
    first = next(parts)
    file, continues = {"source_file": name, "ingest_id": first["ingest_id"][0].as_py()}, first["block_start"][0].as_py()
    source, client = types.by_file[name]
    traces = types.trace_ids(name, source)
    reader = LogReader(types.time_zone, client, _of_file(types.earlier, traces) if continues else None)
    waiting: list[tuple[Row, Event]] = []

    def read(raw: str, place: Row) -> Iterable[Row]:
        found = reader.read(raw)
        if found.unread == BAD:
            reason = {"part": "quarantine", "reject_reason": BAD, "detail": found.detail}
            yield reason | {"source": found.source, "trace_id": traces[found.source in BROKERS], "first": True}
        for at, event in enumerate(found.events):
            row = event | {"part": "event", "trace_id": traces[event["source"] in BROKERS], "first": not at}
            if row.get("group_id") is None:
                waiting.append((place | row, event))
                row = {"part": ""}
            yield row

    yield from (row for row in _placed(source, chain((first,), parts), read) if row["part"])
    yield from (row | {"group_id": reader.group_of(event)} for row, event in waiting)
    for each in reader.unread:
        counted = {"part": "unread", "unread": each.kind, "text": each.text, "example": each.example, "n": each.n}
        yield file | counted
    trace = file | {"part": "watched", "trace_id": traces[True], "source": source}
    trace["cluster"] = types.cluster if source in BROKERS else None
    for layout, is_known, begin_us, end_us in reader.watched():
        yield trace | {"layout": layout, "is_known": is_known, "wall_us": begin_us, "watched_us": end_us}


def _of_file(earlier: Earlier, traces: Mapping[bool, str]) -> dict[tuple[bool, int], tuple[int, int | None]]:
    """Return the last events of the brokers, or the clients, that a file may continue."""
    return {
        (is_broker, node): last
        for (trace_id, node), last in earlier.items()
        for is_broker, of in traces.items()
        if of == trace_id
    }
