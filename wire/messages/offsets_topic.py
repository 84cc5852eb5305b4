"""The records of classic groups in __consumer_offsets.

Key and value each start with an int16 version. The version of the key is also the type of the record: 0 and 1 are
committed offsets (of one format; 1 is written), 2 is a group. A null value is a tombstone.

* OffsetCommitValue: v1 expire_timestamp (v1 only) | v3 leader_epoch (KIP-320) | v4 topic_id, flexible (KAFKA-19141)
* GroupMetadataValue: v1 rebalance_timeout | v2 current_state_timestamp |
  v3 group_instance_id (KIP-345) | v4 flexible

Values are written in version 3, except offsets with an expiry time of their own (version 1, OffsetCommit v2-4) and
offsets with a topic id (version 4).
"""

from typing import TypeVar
from uuid import UUID

from ..codec import decode, encode_versioned, read_version
from ..primitives import ZERO_UUID, Malformed
from ..schema import array, binary, entity, int32, int64, message, string, uuid_


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


_Value = TypeVar("_Value", OffsetCommitValue, GroupMetadataValue)


def write_key(key: OffsetCommitKey | GroupMetadataKey) -> bytes:
    """Return the key of a record, in Kafka's version."""
    version = 2 if isinstance(key, GroupMetadataKey) else 1
    return encode_versioned(key, version)


def read_key(data: bytes) -> OffsetCommitKey | GroupMetadataKey | None:
    """Return the key of a record; None for record types of other groups. Raises Malformed."""
    match version := read_version(data):
        case 0 | 1:
            return decode(OffsetCommitKey, version, data[2:])
        case 2:
            return decode(GroupMetadataKey, version, data[2:])
        case _:
            return None


def write_value(value: OffsetCommitValue | GroupMetadataValue) -> bytes:
    """Return the value of a record, in Kafka's version."""
    version = 3
    if isinstance(value, OffsetCommitValue):
        version = 1 if value.expire_timestamp != -1 else 4 if value.topic_id != ZERO_UUID else 3
    return encode_versioned(value, version)


def read_value(cls: type[_Value], data: bytes) -> _Value:
    """Return the value of a record of any supported version. Raises Malformed."""
    version = read_version(data)
    if not 0 <= version <= 4:  # noqa: PLR2004 - the versions declared above
        raise Malformed(f"{cls.__name__} has the version {version}")
    return decode(cls, version, data[2:])
