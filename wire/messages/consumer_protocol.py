"""The consumer protocol inside JoinGroup metadata and SyncGroup assignments, versions 0-3, never flexible.

The blob starts with its int16 version. New versions only append fields, so a newer version is read as the newest
supported one, and the rest is ignored (as in Kafka's ConsumerProtocol). The group coordinator reads only the topics of
a subscription.

v1 owned_partitions (KIP-429) | v2 generation_id of the owned partitions (KIP-792) | v3 rack_id (KIP-881)
"""

import struct
from typing import TypeVar

from ..codec import decode, encode
from ..primitives import Malformed
from ..schema import array, binary, entity, int32, message, string

NEWEST = 3
"""The newest supported version of subscription and assignment."""


@entity
class TopicPartition:
    """Partitions of one topic."""

    topic: str = string()
    partitions: tuple[int, ...] = array(int32)


@message(key=None, versions="0-3", flexible="none")
class ConsumerProtocolSubscription:
    """The subscribed topics, and (v1+) the owned partitions of generation_id (v2+, or -1)."""

    topics: tuple[str, ...] = array(string)
    user_data: bytes | None = binary(nullable="0+", default=None)
    owned_partitions: tuple[TopicPartition, ...] = array(TopicPartition, "1+", ignorable=True)
    generation_id: int = int32("2+", default=-1, ignorable=True)
    rack_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)


@message(key=None, versions="0-3", flexible="none")
class ConsumerProtocolAssignment:
    """The assigned partitions of a member."""

    assigned_partitions: tuple[TopicPartition, ...] = array(TopicPartition)
    user_data: bytes | None = binary(nullable="0+", default=None)


_Blob = TypeVar("_Blob", ConsumerProtocolSubscription, ConsumerProtocolAssignment)


def read_subscription(data: bytes, newest: int = NEWEST) -> ConsumerProtocolSubscription:
    """Return the subscription in JoinGroup metadata. Raises Malformed.

    With newest=0 only the prefix that every version has is looked at (topics and user_data), which is
    all that Kafka's coordinator parses: a later field that is damaged then does no harm.
    """
    return _read(ConsumerProtocolSubscription, data, newest)


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """Return the assignment in a SyncGroup blob. Raises Malformed."""
    return _read(ConsumerProtocolAssignment, data, NEWEST)


def write_subscription(subscription: ConsumerProtocolSubscription, version: int = NEWEST) -> bytes:
    """Return the JoinGroup metadata of a subscription, without fields that are newer than `version`."""
    return struct.pack(">h", version) + encode(subscription, version)


def write_assignment(assignment: ConsumerProtocolAssignment, version: int = NEWEST) -> bytes:
    """Return the SyncGroup blob of an assignment."""
    return struct.pack(">h", version) + encode(assignment, version)


def _read(cls: type[_Blob], data: bytes, newest: int) -> _Blob:
    if len(data) < struct.calcsize(">h"):
        raise Malformed(f"{len(data)} bytes are too few for the version of a {cls.__name__}")
    (version,) = struct.unpack_from(">h", data)
    if version < 0:
        raise Malformed(f"{cls.__name__} has the version {version}")
    return decode(cls, min(version, newest), data[2:])
