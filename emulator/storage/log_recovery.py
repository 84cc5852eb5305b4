"""Recovery of a partition's log file after a crash: the batches before the first invalid one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.primitives import Malformed
from koordinator.wire.records import check_crc, read_header
from koordinator.wire.values import value

if TYPE_CHECKING:
    from koordinator.wire.records import BatchHeader

_MAGIC = 2
_MAGIC_AT = 16
_HEADER_BYTES = 61


@value
class RecoveredLog:
    """The valid batches and the file position of their end; `damage` describes the rest, "" if there is none."""

    batches: list[tuple[BatchHeader, bytes]]
    end: int
    damage: str


def read_log(data: bytes) -> RecoveredLog:
    """Return every batch before the first invalid one, as `LogSegment.recover` does.

    A batch is invalid if it is truncated, its checksum does not match, or its offsets do not follow the previous batch.
    """
    batches: list[tuple[BatchHeader, bytes]] = []
    at = next_offset = 0
    while at < len(data):
        header = _valid_header(data, at, next_offset)
        if header is None:
            return RecoveredLog(batches, at, _damage(data, at, next_offset))
        batches.append((header, data[at : at + header.size]))
        at += header.size
        next_offset = header.last_offset + 1
    return RecoveredLog(batches, at, "")


def _valid_header(data: bytes, at: int, next_offset: int) -> BatchHeader | None:
    if len(data) - at < _HEADER_BYTES or data[at + _MAGIC_AT] != _MAGIC:
        return None
    view = memoryview(data)
    try:
        header = read_header(view[at : at + _HEADER_BYTES])
    except Malformed:
        return None
    if header.size > len(data) - at or header.base_offset < next_offset or header.last_offset_delta < 0:
        return None
    return header if check_crc(view[at : at + header.size]) else None


def _damage(data: bytes, at: int, next_offset: int) -> str:
    """Describe the invalid tail; valid batches after it mean damage, not a torn write."""
    discarded = len(data) - at
    starts = _possible_starts(data, at)
    valid = [header for start in starts if (header := _valid_header(data, start, next_offset)) is not None]
    if not valid:
        return f"the last write is torn: {discarded} bytes behind offset {next_offset - 1} are cut off"
    return (
        f"damaged at byte {at}, behind offset {next_offset - 1}: {discarded} bytes are cut off, and with them "
        f"{len(valid)} whole batches up to offset {valid[-1].last_offset}, as Kafka does"
    )


def _possible_starts(data: bytes, at: int) -> list[int]:
    """Return positions that may start a batch: a small base offset, and the magic byte in its place."""
    starts = []
    magic = data.find(_MAGIC, at + 1 + _MAGIC_AT)
    while magic >= 0:
        start = magic - _MAGIC_AT
        if data[start : start + 2] == b"\0\0":
            starts.append(start)
        magic = data.find(_MAGIC, magic + 1)
    return starts
