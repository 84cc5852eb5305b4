"""The consumer protocol inside JoinGroup metadata and SyncGroup assignments, versions 0-3, never flexible.

The blob starts with its int16 version. New versions only append fields, so a newer version is read as the newest
supported one, and the rest is ignored (as in Kafka's ConsumerProtocol). The group coordinator reads only the topics of
a subscription.

v1 owned_partitions (KIP-429) | v2 generation_id of the owned partitions (KIP-792) | v3 rack_id (KIP-881)
"""

import struct
from io import BytesIO

from ..codec import decode_versioned, encode_versioned
from ..primitives import InvalidLength, Malformed
from ..schema import array, binary, entity, int32, message, string

_VERSION_BYTES = 2

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


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """Return the subscription in JoinGroup metadata. Raises Malformed."""
    return decode_versioned(ConsumerProtocolSubscription, data)


def read_topics(data: bytes) -> tuple[str, ...]:
    """Return the subscribed topics in JoinGroup metadata, as Kafka's coordinator reads them.

    It reads the fields of version 0, whatever the version. Bytes that are not UTF-8 are replaced, which is the name of
    no topic. Raises Malformed if the data end within a number, and InvalidLength where Kafka raises an exception that
    its coordinator does not expect (`ClassicGroup.computeSubscribedTopics`).
    """
    io = BytesIO(data)

    def length(code: str, *, nullable: bool = False) -> int:
        number = io.read(struct.calcsize(code))
        if len(number) < struct.calcsize(code):
            raise Malformed(f"{len(data)} bytes are too few for a subscription")
        (value,) = struct.unpack(code, number)
        if value > len(data) - io.tell() or (value < 0 and not nullable):
            raise InvalidLength(f"the length {value} at byte {io.tell()} of {len(data)} in a subscription")
        return int(value)

    io.seek(_VERSION_BYTES)
    topics = tuple(io.read(length(">h")).decode(errors="replace") for _ in range(length(">i")))
    length(">i", nullable=True)  # of the user data
    return topics


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """Return the assignment in a SyncGroup blob. Raises Malformed."""
    return decode_versioned(ConsumerProtocolAssignment, data)


def write_subscription(subscription: ConsumerProtocolSubscription, version: int = NEWEST) -> bytes:
    """Return the JoinGroup metadata of a subscription, without fields that are newer than `version`."""
    return encode_versioned(subscription, version)


def write_assignment(assignment: ConsumerProtocolAssignment, version: int = NEWEST) -> bytes:
    """Return the SyncGroup blob of an assignment."""
    return encode_versioned(assignment, version)
