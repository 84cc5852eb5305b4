"""Unusual values: one field of a request becomes null, empty, negative, extreme or repeated."""

from __future__ import annotations

from dataclasses import is_dataclass, replace
from typing import TYPE_CHECKING, Any

from exploring.fields.requests import OTHER_GROUP, UNKNOWN_ID, Known
from koordinator.wire.messages.join_group import JoinGroupRequest
from koordinator.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from koordinator.wire.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic
from koordinator.wire.primitives import ZERO_UUID
from koordinator.wire.schema import FieldSpec, Kind, fields_of

if TYPE_CHECKING:
    import random

BITS = {Kind.INT8: 8, Kind.INT16: 16, Kind.INT32: 32, Kind.INT64: 64}
TEXTS = ("", " ", OTHER_GROUP, "nosuch", "é", Known.LONG_TEXT, "range")

FIXED = {
    "acks": (1, -2, 2, 32_767, -32_768),
    "transaction_timeout_ms": (0, -1, -(1 << 31), 900_001, (1 << 31) - 1),
    "require_stable": (True, False),
    # a fetch without a wait may find its share partition locked by the one before
    "max_wait_ms": (300,),
    "min_bytes": (1,),
}
"""The values of fields whose others would make a comparison depend on times: acks 0 has no response."""

LATE = ("rebalance_timeout_ms", "session_timeout_ms")
"""Fields without small values: requests would be answered at any time."""

ONCE = {
    (JoinGroupRequest, "protocols"),
    (WritableTxnMarker, "topics"),
    (WritableTxnMarkerTopic, "partition_indexes"),
}
"""Arrays whose rows are not repeated: Kafka never answers then, which is a known difference (docs/fidelity.md)."""

NAMED = {(TxnOffsetCommitRequest, "transactional_id")}
"""Fields that are not empty: a broker lets the requests of several sequences with one id fail at random."""

NAMES = {"group_id", "groups", "groups_names", "group_ids", "transactional_id", "v3_and_below_transactional_id"}
"""Fields whose values must belong to one sequence."""


def changed(message: Any, version: int, chance: random.Random) -> Any:
    """Return the message with an unusual value in one place."""
    specs = {name: spec for name, spec in fields_of(type(message)).items() if version in spec.versions}
    if not specs:
        return message
    name, spec = chance.choice(list(specs.items()))
    value = getattr(message, name)
    rows = value if isinstance(value, tuple) else (value,)
    if rows and is_dataclass(rows[0]) and chance.random() < 0.65:
        at = chance.randrange(len(rows))
        row = changed(rows[at], version, chance)
        return replace(message, **{name: row if value is rows[at] else (*rows[:at], row, *rows[at + 1 :])})
    values = _values(name, spec, value, version, repeats=(type(message), name) not in ONCE)
    if (type(message), name) in NAMED:
        values.remove("")
    return replace(message, **{name: chance.choice(values)})


def _values(name: str, spec: FieldSpec, value: Any, version: int, *, repeats: bool) -> list[Any]:
    nothing = [None] if version in spec.nullable else []
    if spec.is_array:
        rows = value or ()
        repeated = [rows + rows[:1], rows + rows[-1:], rows[:1] * 3] if rows and repeats else []
        return [(), *repeated, *repeated, *nothing, *[(*rows[:-1], each) for each in _elements(name, spec)]]
    return nothing + _scalars(name, spec)


def _elements(name: str, spec: FieldSpec) -> list[Any]:
    """Return unusual elements of an array of scalars."""
    return _scalars(name, spec) if isinstance(spec.type, Kind) else []


def _scalars(name: str, spec: FieldSpec) -> list[Any]:
    if name in FIXED:
        return list(FIXED[name])
    match spec.type:
        case Kind.STRING:
            return ["", OTHER_GROUP, "nosuch"] if name in NAMES else list(TEXTS)
        case Kind.BYTES | Kind.RECORDS:
            return [b"", b"\xff", b"\0\1\xff\xff\xff\xff\0\0\0\0"]
        case Kind.UUID:
            return [ZERO_UUID, UNKNOWN_ID]
        case Kind.BOOLEAN:
            return [True, False]
        case Kind() if spec.type in BITS:
            highest = (1 << (BITS[spec.type] - 1)) - 1
            return [-1, -2, 0, -highest - 1, highest, *([] if name in LATE else [1, 2])]
    return []
