"""Random valid requests: every API, every version, with the values most likely to hurt."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from koordinator.wire import frames
from koordinator.wire.apis import APIS
from koordinator.wire.codec import encode
from koordinator.wire.messages.consumer_protocol import ConsumerProtocolSubscription, write_subscription
from koordinator.wire.messages.produce import ProduceRequest
from koordinator.wire.primitives import ZERO_UUID
from koordinator.wire.records import Record, write_batch
from koordinator.wire.schema import FieldSpec, Kind, fields_of

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from koordinator.wire.apis import Message

TOPIC_ID = UUID(int=(1 << 127) + 5, version=4)
"""The id of no topic; `Valid` receives the id of an existing one."""

STRINGS = ("", "g", "h", "t", "u.v", "u_v", "consumer", "range", "i1", "c", "delete", "1", "2")
ODD_STRINGS = ("\0", "a\nb", "\x1b[31m", "é" * 40, "\U0001f600", "x" * 249, "x" * 250, "y" * 3000)
SUBSCRIPTION = write_subscription(ConsumerProtocolSubscription(topics=("t",)))
_BITS = {Kind.INT8: 8, Kind.INT16: 16, Kind.INT32: 32, Kind.INT64: 64}
_RECORDS = [Record(offset=0, timestamp=n, key=None, value=b"v" * n, headers=(("h", None),)) for n in range(3)]
BATCHES = (
    write_batch(_RECORDS),
    write_batch(_RECORDS, compression="gzip"),
    write_batch(_RECORDS[:1], producer_id=1, producer_epoch=0, base_sequence=0),
    write_batch(_RECORDS[:1], producer_id=1, producer_epoch=0, base_sequence=1),
    write_batch(_RECORDS[:1], is_control=True),
    struct.pack(">qiIbbq", 0, 22, 0, 1, 0, 0) + b"\xff" * 8,
)


class Valid:
    """Encodable requests from a random source."""

    def __init__(self, chance: random.Random, topic_id: UUID = TOPIC_ID) -> None:
        self._chance = chance
        self._topic_id = topic_id

    def frame(self, key: int, version: int, correlation_id: int = 1) -> bytes:
        """Return a frame with a request of this API and version."""
        client_id = self._chance.choice((None, "", "c", "c", self._string()))
        header = frames.request_header(key, version, correlation_id, client_id)
        return frames.frame(header, encode(self.request(key, version), version))

    def request(self, key: int, version: int) -> Message:
        """Return a request with random values."""
        cls = APIS[key].request
        values = self._values(cls, version)
        if cls is ProduceRequest and self._chance.random() < 0.9:
            values["acks"] = self._chance.choice((-1, 1, 0))
        return cls(**values)

    def _values(self, cls: type[Message], version: int) -> dict[str, Any]:
        return {name: self._value(spec, version) for name, spec in fields_of(cls).items() if version in spec.versions}

    def _value(self, spec: FieldSpec, version: int) -> Any:
        chance = self._chance
        if version in spec.nullable and chance.random() < 0.2:
            return None
        if spec.tag is not None and chance.random() < 0.5:
            return spec.default
        if spec.is_array:
            items = tuple(self._single(spec.type, version) for _ in range(chance.choice((0, 1, 1, 1, 2, 3))))
            # duplicates
            return items + items[:1] if chance.random() < 0.1 else items
        return self._single(spec.type, version)

    def _single(self, type_: Kind | type[Message], version: int) -> Any:
        chance = self._chance
        match type_:
            case Kind.BOOLEAN:
                return chance.random() < 0.5
            case Kind.STRING:
                return self._string()
            case Kind.BYTES:
                return chance.choice((b"", SUBSCRIPTION, SUBSCRIPTION, chance.randbytes(chance.randrange(20))))
            case Kind.RECORDS:
                return chance.choice((*BATCHES, BATCHES[0] + BATCHES[1], b""))
            case Kind.UUID:
                return chance.choice((ZERO_UUID, self._topic_id, TOPIC_ID))
            case Kind.FLOAT64:
                return chance.random()
            case Kind.UINT16 | Kind.UINT32:
                return chance.randrange(1 << 16)
            case Kind():
                return self._number(_BITS[type_])
            case _:
                return cast("Any", type_)(**self._values(type_, version))

    def _string(self) -> str:
        return self._chance.choice(STRINGS if self._chance.random() < 0.95 else ODD_STRINGS)

    def _number(self, bits: int) -> int:
        if self._chance.random() < 0.8:
            return min(self._chance.choice((-1, 0, 0, 0, 1, 1, 2, 3, 10, 100, 6000, 10_000)), 2 ** (bits - 1) - 1)
        high = 2 ** (bits - 1)
        return self._chance.choice((-high, 1 - high, -2, high - 1, high - 2, high // 2))


def served() -> Iterator[tuple[int, int]]:
    """Yield every served API key with every served version."""
    for key, api in APIS.items():
        for version in range(api.versions.min, api.versions.max + 1):
            yield key, version
