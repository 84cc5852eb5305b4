"""What is left of a log after a crash: its batches up to the first that is not whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from koordinator.wire.primitives import Malformed
from koordinator.wire.records import check_crc, read_header

if TYPE_CHECKING:
    from koordinator.wire.records import BatchHeader

_MAGIC = 2
_MAGIC_AT = 16
_HEADER_BYTES = 61


@dataclass(frozen=True, slots=True)
class Found:
    """The batches that are good, and where they end in the file. `damage`: what is wrong behind them, "" if nothing."""

    batches: list[tuple[BatchHeader, bytes]]
    end: int
    damage: str


def read_log(data: bytes) -> Found:
    """Every batch up to the first bad one, as Kafka takes them back (`LogSegment.recover`).

    A batch is bad if it is cut off, its checksum is another one, or its offsets do not follow those before it.
    """
    batches: list[tuple[BatchHeader, bytes]] = []
    at = next_offset = 0
    while at < len(data):
        header = _batch(data, at, next_offset)
        if header is None:
            return Found(batches, at, _damage(data, at, next_offset))
        batches.append((header, data[at : at + header.size]))
        at += header.size
        next_offset = header.last_offset + 1
    return Found(batches, at, "")


def _batch(data: bytes, at: int, next_offset: int) -> BatchHeader | None:
    """The header of the batch there, if it is good."""
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
    """Whether only the last write is torn, or there is something good behind the bad."""
    bad = len(data) - at
    good = [header for start in _candidates(data, at) if (header := _batch(data, start, next_offset)) is not None]
    if not good:
        return f"the last write is torn: {bad} bytes behind offset {next_offset - 1} are cut off"
    return (
        f"damaged at byte {at}, behind offset {next_offset - 1}: {bad} bytes are cut off, and with them "
        f"{len(good)} whole batches up to offset {good[-1].last_offset}, as Kafka does"
    )


def _candidates(data: bytes, at: int) -> list[int]:
    """Where a batch might begin: its offset is small, and its magic stands in its place."""
    found = []
    magic = data.find(_MAGIC, at + 1 + _MAGIC_AT)
    while magic >= 0:
        start = magic - _MAGIC_AT
        if data[start : start + 2] == b"\0\0":
            found.append(start)
        magic = data.find(_MAGIC, magic + 1)
    return found
