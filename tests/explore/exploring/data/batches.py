"""Batches for Produce: good ones, and those with one thing wrong."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from builders.damaged_batches import (
    ATTRIBUTES,
    BASE_OFFSET,
    COUNT,
    HEADER_ENDS,
    LAST_DELTA,
    LENGTH,
    MAGIC,
    MAX_TIMESTAMP,
    SEQUENCE,
    patched,
    with_body,
)
from builders.damaged_messages import WRAPPER_DAMAGES

from koordinator.wire.compression import Codec, compress
from koordinator.wire.message_sets import write_message_set
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    from collections.abc import Callable

START_MS = time.time_ns() // 1_000_000
"""Times are relative to the start of the program: both sides get the same bytes."""

DAY_MS = 86_400_000
STAMPS = {"now": START_MS - 60_000, "past": START_MS - 2 * DAY_MS, "future": START_MS + 2 * DAY_MS}

PRODUCER_ID = 900_001
"""Brokers accept a producer id that they did not give."""


@dataclass(frozen=True)
class Batch:
    """The description of a batch: the same bytes on both sides.

    Attributes:
        damage: a name of DAMAGES or MESSAGE_DAMAGES, or "".
        codec: a name of compression.type.
        count: of records.
        stamp: of the first record, a name of STAMPS or "none".
        step_ms: from each record to the next.
        keys: one letter for each record's key; a space is a null.
        size: of each value; -1 is null.
        producer: epoch and base sequence of an idempotent producer.
        magic: of the messages.
    """

    damage: str = ""
    codec: str = "none"
    count: int = 1
    stamp: str = "now"
    step_ms: int = 1
    keys: str = "k"
    size: int = 3
    producer: tuple[int, int] | None = None
    magic: int = 2

    def records(self) -> list[Record]:
        """Return the records."""
        return [
            Record(
                offset=at,
                timestamp=-1 if self.stamp == "none" else STAMPS[self.stamp] + at * self.step_ms,
                key=None if (key := self.keys[at % len(self.keys)]) == " " else key.encode(),
                value=None if self.size < 0 else b"v" * self.size,
                headers=(("h", b"1"),) if self.magic == 2 and at == 1 else (),
            )
            for at in range(self.count)
        ]

    def data(self) -> bytes | None:
        """Return the bytes."""
        if self.damage == "null":
            return None
        # those that replace the records do so without a codec
        codec = Codec.NONE if self.damage in BODY_DAMAGES else Codec[self.codec.upper()]
        if self.magic < 2:
            messages = write_message_set(self.records(), self.magic, codec)
            return MESSAGE_DAMAGES[self.damage](messages) if self.damage else messages
        epoch, sequence = self.producer or (-1, -1)
        batch = write_batch(
            self.records(),
            compression=None if codec is Codec.NONE else codec.name.lower(),
            producer_id=PRODUCER_ID if self.producer else -1,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        return DAMAGES[self.damage](batch) if self.damage else batch


OLD_DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "crc": lambda batch: batch[:-1] + b"x",
    "truncated": lambda batch: batch[:-1],
    "bytes after": lambda batch: batch + b"zz",
    "half a batch after": lambda batch: batch + batch[:-1],
    "two": lambda batch: batch + batch,
    "length 5": lambda batch: batch[:LENGTH] + b"\0\0\0\5" + batch[LENGTH + 4 :],
    "length -1": lambda batch: batch[:LENGTH] + b"\xff\xff\xff\xff" + batch[LENGTH + 4 :],
    "magic 3": lambda batch: batch[:MAGIC] + b"\3" + batch[MAGIC + 1 :],
}
"""Those that messages of every magic can have."""

MESSAGE_DAMAGES = {**OLD_DAMAGES, **WRAPPER_DAMAGES}
"""Those of a compressed message of magic 0 or 1."""

BODY_DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "no records": lambda batch: with_body(b"", batch),
    "records end early": lambda batch: with_body(batch[HEADER_ENDS:-1], batch),
    "bytes after records": lambda batch: with_body(batch[HEADER_ENDS:] + b"zz", batch),
    "length of a record": lambda batch: with_body(b"\x7f" + batch[HEADER_ENDS + 1 :], batch),
    "gzip of an early end": lambda batch: patched(
        with_body(compress(Codec.GZIP, batch[HEADER_ENDS:-1]), batch), ATTRIBUTES, ">h", 1
    ),
    "gzip with an end cut off": lambda batch: patched(
        with_body(compress(Codec.GZIP, batch[HEADER_ENDS:])[:-3], batch), ATTRIBUTES, ">h", 1
    ),
    "not gzip": lambda batch: patched(batch, ATTRIBUTES, ">h", 1),
    "not lz4": lambda batch: patched(batch, ATTRIBUTES, ">h", 3),
    "not zstd": lambda batch: patched(batch, ATTRIBUTES, ">h", 4),
}
"""Other bytes in place of the records."""

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    **OLD_DAMAGES,
    **BODY_DAMAGES,
    "header": lambda batch: batch[:30],
    "count": lambda batch: patched(batch, COUNT, ">i", 9),
    "no count": lambda batch: patched(batch, COUNT, ">i", 0),
    "negative count": lambda batch: patched(batch, COUNT, ">i", -1),
    "last delta": lambda batch: patched(batch, LAST_DELTA, ">i", 9),
    "count and last delta": lambda batch: patched(patched(batch, COUNT, ">i", 9), LAST_DELTA, ">i", 8),
    "base offset": lambda batch: patched(batch, BASE_OFFSET, ">q", 7),
    "control": lambda batch: patched(batch, ATTRIBUTES, ">h", 0x20),
    "append time": lambda batch: patched(batch, ATTRIBUTES, ">h", 0x08),
    "unknown attribute": lambda batch: patched(batch, ATTRIBUTES, ">h", 0x100),
    "codec 5": lambda batch: patched(batch, ATTRIBUTES, ">h", 5),
    "codec 7": lambda batch: patched(batch, ATTRIBUTES, ">h", 7),
    "max timestamp": lambda batch: patched(batch, MAX_TIMESTAMP, ">q", 999),
    "max timestamp -1": lambda batch: patched(batch, MAX_TIMESTAMP, ">q", -1),
    "sequence -2": lambda batch: patched(batch, SEQUENCE, ">i", -2),
}
