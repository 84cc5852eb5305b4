"""A Spark data source for traces: files, and the live trace of a running emulator.

    from koordinator.pipeline.source import KoordinatorSource

    spark.dataSource.register(KoordinatorSource)
    events = spark.read.format("koordinator").load("traces")
    growing = spark.readStream.format("koordinator").option("bootstrap.servers", "127.0.0.1:9092").load()

Both have the columns of silver/event. Each header and each test outcome is a row, too, with the line in `body`; so the
Parquet files of such a frame are a valid input of the pipeline. An invalid line raises an error here, while
`koordinator-pipeline run` quarantines it. Every executor reads files through its own file system.
"""

from __future__ import annotations

import json
from glob import glob
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition, SimpleDataSourceStreamReader

import koordinator
from koordinator.client.admin import Admin
from koordinator.client.connection import Address, BrokerConnection, Deadline
from koordinator.client.errors import ClientError, Failure
from koordinator.client.logs import read_from
from koordinator.client.offsets import leaders
from koordinator.client.security import ConnectionSecurity, properties

from .schema import EVENT
from .silver.line_rows import md5, stem_of
from .silver.trace_lines import trace_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql.types import StructType

    from koordinator.wire.records import Record

TRACE_TOPIC = "__koordinator_trace"
"""The topic in which an emulator serves its trace."""

FILES = "**/*.jsonl*"
"""The trace files of a folder, compressed or not."""

RESPONSE_TIMEOUT_S = 20.0
"""Seconds to wait for one response of an emulator."""

Offset = dict[str, Any]
"""Position in a trace: the `trace_id`, and the `offset` of the next line."""


class KoordinatorSource(DataSource):
    """The format `koordinator`.

    A batch read needs the option `path`: a file, a folder, or a pattern; files that end in .gz or .zst are
    decompressed. A stream needs `bootstrap.servers`, like Kafka's clients, and takes their settings of TLS and SASL, as
    options or from a properties file, `command.config`.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "koordinator"

    def schema(self) -> StructType:
        """Return the columns, unless the reader selects some of them."""
        return EVENT.columns

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of `spark.read`. Raises ValueError without a path."""
        return _FileReader(self._option("path"), schema.fieldNames())

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of `spark.readStream`. Raises ValueError for missing or invalid servers or settings.

        Raises OSError if `command.config` cannot be read.
        """
        path = self.options.get("command.config")
        settings = properties(Path(path).read_text(encoding="utf-8")) if path else {}
        security = ConnectionSecurity.of({**settings, **self.options})
        return _TopicReader(_addresses(self._option("bootstrap.servers")), security, schema.fieldNames())

    def _option(self, name: str) -> str:
        value = self.options.get(name)
        if not value:
            raise ValueError(f"format koordinator: option {name!r} is missing")
        return str(value)


class _FileReader(DataSourceReader):
    def __init__(self, path: str, names: Sequence[str]) -> None:
        self._path = path
        self._names = names

    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition for each file. Raises ValueError if there is none."""
        root = self._path.removeprefix("file://")
        paths = sorted(map(str, Path(root).glob(FILES))) if Path(root).is_dir() else sorted(glob(root))  # noqa: PTH207
        if not paths:
            raise ValueError(f"format koordinator: {self._path}: no such file, and no folder that contains {FILES}")
        return [InputPartition(path) for path in paths]

    def read(self, partition: InputPartition) -> Iterator[tuple[object, ...]]:
        """Yield the rows of a file. Raises ValueError for a line that is not part of a trace."""
        path = partition.value
        # the form in which Spark writes paths: file:/folder/name
        trace_id = md5(stem_of(f"file:{Path(path).resolve().as_uri().removeprefix('file://')}"))
        with BufferedReader(pa.input_stream(path, compression="detect")) as packed:
            for number, raw in enumerate(packed, 1):
                if raw.strip():
                    yield _row(raw, f"{path}: line {number}", trace_id, self._names)


class _TopicReader(SimpleDataSourceStreamReader):
    """Reads the trace topic over one connection of koordinator's own client.

    A Kafka consumer would add its requests to the trace that it reads.
    """

    def __init__(self, bootstrap: Sequence[Address], security: ConnectionSecurity, names: Sequence[str]) -> None:
        self._bootstrap = bootstrap
        self._security = security
        self._names = names
        self._link: BrokerConnection | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return the beginning of any trace."""
        return {"trace_id": "", "offset": 0}

    def read(self, start: Offset) -> tuple[Iterator[tuple[object, ...]], Offset]:
        """Return everything after `start`; if another trace has replaced it, that trace from its beginning."""
        records = self._records(start["offset"])
        if records and start["trace_id"] not in ("", _trace_id(records[0])):
            records = self._records(0)
        if not records:
            return iter(()), start
        return self._rows(records), {"trace_id": _trace_id(records[-1]), "offset": records[-1].offset + 1}

    def readBetweenOffsets(self, start: Offset, end: Offset) -> Iterator[tuple[object, ...]]:  # noqa: N802 - Spark's name
        """Read a batch again that Spark planned before it stopped. Raises ValueError if the lines no longer exist."""
        first = start["offset"] if start["trace_id"] in ("", end["trace_id"]) else 0
        records = [record for record in self._records(first) if record.offset < end["offset"]]
        if not records or _trace_id(records[-1]) != end["trace_id"] or records[-1].offset + 1 != end["offset"]:
            raise ValueError(
                f"{TRACE_TOPIC}: the lines up to {end['offset']} of trace {end['trace_id']} no longer exist:"
                " start the query with a new checkpoint"
            )
        return self._rows(records)

    def stop(self) -> None:
        """Close the connection if it is open."""
        if self._link is not None:
            self._link.close()
            self._link = None

    def _rows(self, records: Sequence[Record]) -> Iterator[tuple[object, ...]]:
        # Spark copies the iterator, which is impossible for a generator
        place = f"{TRACE_TOPIC}: offset "
        return iter([_row(record.value or b"", f"{place}{record.offset}", "", self._names) for record in records])

    def _records(self, offset: int) -> list[Record]:
        """Return the records from `offset` on; reconnect once after a lost connection. Raises ClientError."""
        for is_last_attempt in (self._link is None, True):
            try:
                if self._link is None:
                    self._link = self._connect()
                self._link.deadline = Deadline(RESPONSE_TIMEOUT_S)
                records = read_from(self._link, (TRACE_TOPIC, 0), offset)
                if not isinstance(records, Failure):
                    return records
                error = ClientError(f"{TRACE_TOPIC}: {records}")
            except ClientError as lost:
                error = lost
            self.stop()
            if is_last_attempt:
                raise error
        raise AssertionError("the last attempt returns or raises")

    def _connect(self) -> BrokerConnection:
        version = koordinator.__version__
        with Admin(self._bootstrap, RESPONSE_TIMEOUT_S, version, security=self._security) as admin:
            leader = leaders(admin.topics([TRACE_TOPIC]), [(TRACE_TOPIC, 0)])[TRACE_TOPIC, 0]
        if leader is None:
            raise ClientError(f"{self._bootstrap[0]}: no topic {TRACE_TOPIC}: this is not a koordinator emulator")
        if isinstance(leader, Failure):
            raise ClientError(f"{TRACE_TOPIC}: {leader}")
        return BrokerConnection(leader.address, Deadline(RESPONSE_TIMEOUT_S), version, security=self._security)


def _addresses(servers: str) -> tuple[Address, ...]:
    addresses = []
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isdecimal():
            raise ValueError(f"bootstrap.servers {servers!r}: {server.strip()!r} is not host:port")
        addresses.append(Address(host.removeprefix("[").removesuffix("]"), int(port)))
    return tuple(addresses)


def _trace_id(record: Record) -> str:
    return str(json.loads(record.value or b"{}").get("trace_id", ""))


def _row(raw: bytes, place: str, trace_id: str, names: Sequence[str]) -> tuple[object, ...]:
    """Return the values of a line for the selected columns; a header or an outcome has the line in `body`."""
    line = raw.decode(errors="replace").rstrip("\r\n")
    row = trace_row(line, trace_id)
    if "kind" not in row:
        raise ValueError(f"{place}: expected a JSON object with a key 'kind', like every line of a trace")
    if row["part"] in ("header", "test"):
        row["body"] = line
    return tuple(map(row.get, names))
