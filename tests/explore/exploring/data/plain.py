"""Responses as nested dicts and lists, equal on both sides if they agree."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from exploring.data.batches import DAY_MS, START_MS
from koordinator.wire.compression import Codec
from koordinator.wire.primitives import ZERO_UUID, Malformed
from koordinator.wire.records import read_batches, read_records

if TYPE_CHECKING:
    from koordinator.wire.records import BatchHeader

TIME = re.compile(r"\d{12,}")
INVALID_VALUE = re.compile(r"(Invalid value) .*", re.DOTALL)
"""Of several invalid configs a broker names the first in the order of its definitions, which is not emulated."""

TIMES = {"timestamp", "log_append_time_ms"}
PARTITIONS = ("partitions", "partition_responses")
LEFT_OUT = {"throttle_time_ms", "brokers", "cluster_id", "node_endpoints"}
MAGIC_2 = 2
SHOWN = 20
"""The characters of a value in an outcome."""


class Names:
    """The names of ids and times in one playing."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._ids = {ZERO_UUID: "no id"}

    def learn(self, topic_id: UUID, name: str) -> None:
        """Name the id of a topic."""
        self._ids.setdefault(topic_id, f"id {len(self._ids)}, of {name}")

    def text(self, value: str) -> str:
        """Return a text without the prefix and times."""
        return INVALID_VALUE.sub(r"\1", TIME.sub("TIME", value.replace(self._prefix, "E")))

    def plain(self, value: object) -> Any:
        """Convert a message. Rows are sorted: brokers keep them in hash tables."""
        match value:
            case str():
                return self.text(value)
            case UUID():
                return self._ids.get(value, "an unknown id")
            case tuple():
                rows = [row for each in value for row in self._rows(each)]
                return sorted(rows, key=repr) if value and is_dataclass(value[0]) else rows
            case _ if is_dataclass(value):
                return {
                    each.name: self._field(each.name, getattr(value, each.name))
                    for each in fields(value)
                    if each.name not in LEFT_OUT
                }
        return value

    def _rows(self, value: object) -> list[Any]:
        """Return a row, or for a topic the rows of its partitions: a topic may have several rows."""
        row = self.plain(value)
        lists = [name for name in PARTITIONS if isinstance(row, dict) and row.get(name)]
        return [{**row, name: each} for name in lists for each in row[name]] or [row]

    def _field(self, name: str, value: Any) -> Any:
        if name in TIMES:
            return moment(value)
        if name == "session_id":
            return "a session" if value else 0
        return batches(value) if isinstance(value, bytes) else self.plain(value)


def moment(ms: int) -> int | str:
    """Return a time relative to the start of the program; one after it is that of a log."""
    if START_MS <= ms < START_MS + DAY_MS:
        return "the log's time"
    return f"start{ms - START_MS:+}" if ms > DAY_MS else ms


def batches(data: bytes) -> list[object]:
    """Return batches and their records, and the number of bytes after the last whole one.

    What follows a compressed message of magic 0 or 1 is left out, and such a message that is not the first: Java
    compresses in its own way, and a response has the size of the batches before their conversion. After compressed
    batches the number of bytes is left out: they may have been messages.
    """
    rows: list[object] = []
    size = 0
    is_compressed = False
    try:
        for header, batch in read_batches(data):
            is_compressed |= not header.has_codec(Codec.NONE)
            is_converted = is_compressed and header.magic < MAGIC_2
            if not (is_converted and rows):
                rows.append(_batch(header, batch))
            if is_converted:
                return rows
            size += len(batch)
    except Malformed:
        pass
    return rows if size == len(data) or is_compressed else [*rows, f"{len(data) - size} bytes"]


def _batch(header: BatchHeader, batch: bytes) -> object:
    try:
        records: object = [
            (
                each.offset,
                moment(each.timestamp),
                each.key,
                None if each.value is None else (len(each.value), each.value[:SHOWN]),
                each.headers,
            )
            for each in read_records(batch)
        ]
    except Malformed as error:
        records = f"unreadable: {error}"
    return (
        header.base_offset,
        header.size if header.has_codec(Codec.NONE) else None,
        header.partition_leader_epoch,
        header.magic,
        header.attributes,
        header.last_offset_delta,
        moment(header.base_timestamp),
        moment(header.max_timestamp),
        (header.producer_id, header.producer_epoch, header.base_sequence),
        header.record_count,
        records,
    )
