"""The records of __consumer_offsets: those of offsets and classic groups, and the codec of all of them.

Key and value each start with an int16 version. The version of the key is also the type of the record: 0 and 1 are
committed offsets (of one format; 1 is written), 2 is a classic group, the others belong to consumer groups
(`consumer_group_records`), share groups (`share_group_records`) and streams groups (`streams_group_records`). A null
value is a tombstone.

* OffsetCommitValue: v1 expire_timestamp (v1 only) | v3 leader_epoch (KIP-320) | v4 topic_id, flexible (KAFKA-19141)
* GroupMetadataValue: v1 rebalance_timeout | v2 current_state_timestamp |
  v3 group_instance_id (KIP-345) | v4 flexible

Values of these two are written in version 3, except offsets with an expiry time of their own (version 1, OffsetCommit
v2-4) and offsets with a topic id (version 4). Since 4.1 all other offsets are written in version 4, too.
"""

from collections.abc import Mapping
from typing import get_args
from uuid import UUID

from ..codec import decode, encode_versioned, read_version
from ..primitives import ZERO_UUID, Malformed
from ..schema import array, binary, declaration_of, entity, int32, int64, message, string, uuid_
from . import consumer_group_records, share_group_records, streams_group_records


@message(key=None, versions="0-1", flexible="none")
class OffsetCommitKey:
    """The key of a group's offset in a partition."""

    group: str = string()
    topic: str = string()
    partition: int = int32()


@message(key=None, versions="0-4", flexible="4+")
class OffsetCommitValue:
    """A committed offset with its commit time in ms; expire_timestamp -1: the broker's retention applies.

    The zero UUID stands for a topic whose id is not known.
    """

    offset: int = int64()
    leader_epoch: int = int32("3+", default=-1, ignorable=True)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64("1", default=-1, ignorable=True)
    topic_id: UUID = uuid_("4+", tag=0, ignorable=True)


@message(key=None, versions="2", flexible="none")
class GroupMetadataKey:
    """The key of a classic group."""

    group: str = string()


@entity
class MemberMetadata:
    """A member; timeouts in ms, subscription is its metadata for the selected protocol only."""

    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32("1+", default=-1, ignorable=True)
    session_timeout: int = int32()
    subscription: bytes = binary()
    assignment: bytes = binary()


@message(key=None, versions="0-4", flexible="4+")
class GroupMetadataValue:
    """A generation of a group with its members; an empty group has no protocol and no leader."""

    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable="0+")
    leader: str | None = string(nullable="0+")
    current_state_timestamp: int = int64("2+", default=-1, ignorable=True)
    members: tuple[MemberMetadata, ...] = array(MemberMetadata)


Key = (
    OffsetCommitKey
    | GroupMetadataKey
    | consumer_group_records.Key
    | share_group_records.Key
    | streams_group_records.Key
)
Value = (
    OffsetCommitValue
    | GroupMetadataValue
    | consumer_group_records.Value
    | share_group_records.Value
    | streams_group_records.Value
)

VALUES: Mapping[type[Key], type[Value]] = dict(zip(get_args(Key), get_args(Value), strict=True))
"""The class of the values by the class of the keys."""

_KEYS: Mapping[int, type[Key]] = {version: cls for cls in VALUES for version in declaration_of(cls).versions}


def write_key(key: Key) -> bytes:
    """Return the key of a record, in Kafka's version."""
    return encode_versioned(key, declaration_of(type(key)).versions.max)


def read_key(data: bytes) -> Key | None:
    """Return the key of a record; None for an unknown type of record. Raises Malformed."""
    version = read_version(data)
    cls = _KEYS.get(version)
    return None if cls is None else decode(cls, version, data[2:])


def write_value(value: Value, offset_version: int = 3) -> bytes:
    """Return the value of a record, in Kafka's version; `offset_version` is that of offsets without a topic id."""
    match value:
        case OffsetCommitValue(expire_timestamp=-1, topic_id=topic_id):
            version = offset_version if topic_id == ZERO_UUID else 4
        case OffsetCommitValue():
            version = 1
        case GroupMetadataValue():
            version = 3
        case _:
            version = 0
    return encode_versioned(value, version)


def read_value(key: Key, data: bytes) -> Value:
    """Return the value of a record of any supported version. Raises Malformed."""
    cls, version = VALUES[type(key)], read_version(data)
    if version not in declaration_of(cls).versions:
        raise Malformed(f"{cls.__name__} has the version {version}")
    return decode(cls, version, data[2:])
