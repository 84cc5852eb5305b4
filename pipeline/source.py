"""Traces as a data source of Spark's own: files, and the trace of an emulator that runs, followed as it grows.

    from koordinator.pipeline.source import KoordinatorSource

    spark.dataSource.register(KoordinatorSource)
    events = spark.read.format("koordinator").load("traces")
    growing = spark.readStream.format("koordinator").option("bootstrap.servers", "127.0.0.1:9092").load()

Both have the columns of silver/event, and beside the events a row for each header and each end of a test, whose `body`
is the line: what is written to Parquet of them is an input of the pipeline. A line that is none of a trace ends the
reading; `koordinator-pipeline run` puts it aside instead. Files are read as Python sees them, on every executor.
"""

from __future__ import annotations

import hashlib
import json
import re
from glob import glob
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition, SimpleDataSourceStreamReader

import koordinator
from koordinator.client.admin import Admin
from koordinator.client.link import Address, Deadline, Link
from koordinator.client.logs import read_from
from koordinator.client.offsets import leaders
from koordinator.client.problems import ClientError, Refusal

from .bronze.lines import ROTATED
from .schema import EVENT
from .silver.trace_rows import NAMES, RENAMED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql.types import StructType

    from koordinator.wire.records import Record

TRACE_TOPIC = "__koordinator_trace"
"""In which an emulator serves its trace."""

FILES = "**/*.jsonl*"
"""What is read of a folder: traces, compressed or not."""

ANSWER_S = 20.0
"""How long an emulator may take for one answer."""

Offset = dict[str, Any]
"""How far a trace was read: the `trace_id`, and the `offset` of the line to come."""


class KoordinatorSource(DataSource):
    """The format `koordinator`.

    Reading wants a `path`: a file, a folder, or a pattern; files that end in .gz or .zst are unpacked. A stream wants
    `bootstrap.servers`, as Kafka's clients do.
    """

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "koordinator"

    def schema(self) -> StructType:
        """The columns, if the reader does not name some of them."""
        return EVENT.columns

    def reader(self, schema: StructType) -> DataSourceReader:
        """For `spark.read`. Raises ValueError without a path."""
        return _Files(self._option("path"), schema.fieldNames())

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:  # noqa: N802 - Spark's name
        """For `spark.readStream`. Raises ValueError without bootstrap servers, or with an address that is none."""
        return _Follower(_addresses(self._option("bootstrap.servers")), schema.fieldNames())

    def _option(self, name: str) -> str:
        value = self.options.get(name)
        if not value:
            raise ValueError(f"format koordinator: option {name!r} is missing")
        return str(value)


class _File(InputPartition):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class _Files(DataSourceReader):
    def __init__(self, path: str, names: Sequence[str]) -> None:
        self._path = path
        self._names = names

    def partitions(self) -> Sequence[InputPartition]:
        """One for each file. Raises ValueError if there is none."""
        root = self._path.removeprefix("file://")
        found = sorted(map(str, Path(root).glob(FILES))) if Path(root).is_dir() else sorted(glob(root))  # noqa: PTH207
        if not found:
            raise ValueError(f"format koordinator: {self._path}: no file of this name, or no folder with {FILES} in it")
        return [_File(path) for path in found]

    def read(self, partition: InputPartition) -> Iterator[tuple[object, ...]]:
        """The rows of a file. Raises ValueError for a line that is none of a trace."""
        assert isinstance(partition, _File), "as planned above"
        trace_id = hashlib.md5(_stem(partition.path).encode(), usedforsecurity=False).hexdigest()
        with BufferedReader(pa.input_stream(partition.path, compression="detect")) as packed:
            for number, raw in enumerate(packed, 1):
                if raw.strip():
                    yield _row(raw, f"{partition.path}: line {number}", trace_id, self._names)


class _Follower(SimpleDataSourceStreamReader):
    """Reads the topic with our own client, over one connection: each would be an event that has to be read again."""

    def __init__(self, bootstrap: Sequence[Address], names: Sequence[str]) -> None:
        self._bootstrap = bootstrap
        self._names = names
        self._link: Link | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """The beginning of whatever trace there is."""
        return {"trace_id": "", "offset": 0}

    def read(self, start: Offset) -> tuple[Iterator[tuple[object, ...]], Offset]:
        """All that there is after `start`; of an emulator that was started anew, its trace from the beginning."""
        found = self._lines(start["offset"])
        if found and start["trace_id"] not in ("", _trace_id(found[0])):
            found = self._lines(0)
        if not found:
            return iter(()), start
        return self._rows(found), {"trace_id": _trace_id(found[-1]), "offset": found[-1].offset + 1}

    def readBetweenOffsets(self, start: Offset, end: Offset) -> Iterator[tuple[object, ...]]:  # noqa: N802 - likewise
        """A batch that was planned before Spark was ended. Raises ValueError if the emulator has it no more."""
        first = start["offset"] if start["trace_id"] in ("", end["trace_id"]) else 0
        found = [each for each in self._lines(first) if each.offset < end["offset"]]
        if not found or _trace_id(found[-1]) != end["trace_id"] or found[-1].offset + 1 != end["offset"]:
            raise ValueError(
                f"{TRACE_TOPIC}: the lines up to {end['offset']} of trace {end['trace_id']} are gone:"
                " follow it with a new checkpoint"
            )
        return self._rows(found)

    def stop(self) -> None:
        """Close the connection, if there is one."""
        if self._link is not None:
            self._link.close()
            self._link = None

    def _rows(self, found: Sequence[Record]) -> Iterator[tuple[object, ...]]:
        # Spark copies the iterator, which a generator does not allow
        place = f"{TRACE_TOPIC}: offset "
        return iter([_row(each.value or b"", f"{place}{each.offset}", "", self._names) for each in found])

    def _lines(self, offset: int) -> list[Record]:
        """Raises ClientError where nobody answers; a connection that is lost is made anew, once."""
        for is_last in (self._link is None, True):
            try:
                if self._link is None:
                    self._link = self._connected()
                self._link.deadline = Deadline(ANSWER_S)
                found = read_from(self._link, (TRACE_TOPIC, 0), offset)
                if not isinstance(found, Refusal):
                    return found
                error = ClientError(f"{TRACE_TOPIC}: {found}")
            except ClientError as lost:
                error = lost
            self.stop()
            if is_last:
                raise error
        raise AssertionError("the last try returns or raises")

    def _connected(self) -> Link:
        """To whoever leads the topic."""
        with Admin(self._bootstrap, ANSWER_S, koordinator.__version__) as admin:
            leader = leaders(admin.topics([TRACE_TOPIC]), [(TRACE_TOPIC, 0)])[TRACE_TOPIC, 0]
        if leader is None:
            raise ClientError(f"{self._bootstrap[0]}: there is no topic {TRACE_TOPIC}: this is no koordinator")
        if isinstance(leader, Refusal):
            raise ClientError(f"{TRACE_TOPIC}: {leader}")
        return Link(leader.address, Deadline(ANSWER_S), koordinator.__version__)


def _addresses(servers: str) -> tuple[Address, ...]:
    found = []
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isdecimal():
            raise ValueError(f"bootstrap.servers {servers!r}: {server.strip()!r} is not host:port")
        found.append(Address(host.removeprefix("[").removesuffix("]"), int(port)))
    return tuple(found)


def _stem(path: str) -> str:
    # as Spark writes it: file:/folder/name
    return re.sub(ROTATED, "", f"file:{Path(path).resolve().as_uri().removeprefix('file://')}")


def _trace_id(record: Record) -> str:
    return str(json.loads(record.value or b"{}").get("trace_id", ""))


def _row(raw: bytes, place: str, trace_id: str, names: Sequence[str]) -> tuple[object, ...]:
    """A line in the columns asked for, as `silver.trace_rows` has them."""
    try:
        line = json.loads(raw)
    except ValueError:
        line = None
    if not isinstance(line, dict) or "kind" not in line:
        raise ValueError(f"{place}: a JSON object with a kind is wanted, as every line of a trace is")
    is_event = line["kind"] not in ("header", "test")
    body = json.dumps(line["body"], separators=(",", ":")) if "body" in line else None
    said = {
        "source": "koordinator",
        "trace_id": line.get("trace_id") or trace_id,
        "name": next((line[name] for name in NAMES.values() if name in line), None),
        "body": body if is_event else raw.decode().rstrip("\r\n"),
    }
    return tuple(said[name] if name in said else line.get(RENAMED.get(name, name)) for name in names)
