"""The records of `__share_group_state` (KIP-932).

Key and value each start with an int16 version. The version of the key is also the type of the record: 0 is a snapshot,
1 an update of it. Values have version 0, flexible; 4.2 added a tagged field. A null value after the key of a snapshot
is a tombstone.
"""

from collections.abc import Mapping
from typing import get_args
from uuid import UUID

from ..codec import decode, encode_versioned, read_version
from ..primitives import Malformed
from ..schema import array, declaration_of, int32, int64, message, string, uuid_
from .write_share_group_state import StateBatch


@message(key=None, versions="0", flexible="none")
class ShareSnapshotKey:
    """The key of a partition's state."""

    group_id: str = string()
    topic_id: UUID = uuid_()
    partition: int = int32()


@message(key=None, versions="1", flexible="none")
class ShareUpdateKey:
    """The key of a change of a partition's state."""

    group_id: str = string()
    topic_id: UUID = uuid_()
    partition: int = int32()


@message(key=None, versions="0", flexible="0+")
class ShareSnapshotValue:
    """The whole state of a partition; times are in ms.

    delivery_complete_count (since 4.2, KIP-1226) is the number of records from start_offset on that need no more
    delivery; -1 is unknown.
    """

    snapshot_epoch: int = int32()
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(tag=0, default=-1)
    create_timestamp: int = int64()
    write_timestamp: int = int64()
    state_batches: tuple[StateBatch, ...] = array(StateBatch)


@message(key=None, versions="0", flexible="0+")
class ShareUpdateValue:
    """What changed since the snapshot of this epoch; start_offset -1 is unchanged."""

    snapshot_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(tag=0, default=-1)
    state_batches: tuple[StateBatch, ...] = array(StateBatch)


Key = ShareSnapshotKey | ShareUpdateKey
Value = ShareSnapshotValue | ShareUpdateValue

VALUES: Mapping[type[Key], type[Value]] = dict(zip(get_args(Key), get_args(Value), strict=True))
"""The class of the values by the class of the keys."""

_KEYS: Mapping[int, type[Key]] = {declaration_of(cls).versions.max: cls for cls in VALUES}


def write_key(key: Key) -> bytes:
    """Return the key of a record."""
    return encode_versioned(key, declaration_of(type(key)).versions.max)


def read_key(data: bytes) -> Key | None:
    """Return the key of a record; None for an unknown type of record. Raises Malformed."""
    version = read_version(data)
    cls = _KEYS.get(version)
    return None if cls is None else decode(cls, version, data[2:])


def write_value(value: Value) -> bytes:
    """Return the value of a record."""
    return encode_versioned(value, 0)


def read_value(key: Key, data: bytes) -> Value:
    """Return the value of a record. Raises Malformed."""
    cls, version = VALUES[type(key)], read_version(data)
    if version != 0:
        raise Malformed(f"{cls.__name__} has the version {version}")
    return decode(cls, version, data[2:])
