"""The consumer protocol inside JoinGroup metadata and SyncGroup assignments, versions 0-3, never flexible.

The blob starts with its int16 version. New versions only append fields, so a newer version is read as the newest
supported one, and the rest is ignored (as in Kafka's ConsumerProtocol). The group coordinator reads only the topics of
a subscription.

v1 owned_partitions (KIP-429) | v2 generation_id of the owned partitions (KIP-792) | v3 rack_id (KIP-881)
"""

from ..codec import decode_versioned, encode_versioned
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


def read_subscription(data: bytes, newest: int = NEWEST) -> ConsumerProtocolSubscription:
    """Return the subscription in JoinGroup metadata. Raises Malformed.

    With newest=0 only the fields of version 0 are read, as Kafka's coordinator does: damage in later ones does no harm.
    """
    return decode_versioned(ConsumerProtocolSubscription, data, newest)


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """Return the assignment in a SyncGroup blob. Raises Malformed."""
    return decode_versioned(ConsumerProtocolAssignment, data)


def write_subscription(subscription: ConsumerProtocolSubscription, version: int = NEWEST) -> bytes:
    """Return the JoinGroup metadata of a subscription, without fields that are newer than `version`."""
    return encode_versioned(subscription, version)


def write_assignment(assignment: ConsumerProtocolAssignment, version: int = NEWEST) -> bytes:
    """Return the SyncGroup blob of an assignment."""
    return encode_versioned(assignment, version)
