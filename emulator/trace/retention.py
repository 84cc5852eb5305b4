"""The messages that the trace retains, and their weight: the ring is bounded in bytes.

An event keeps its message until it leaves the ring. Only the scalar fields remain of messages without a body in their
line (Fetch, Produce, …), and of messages above BODY_BYTES_MAX: a JoinGroup of 100 MB must not occupy memory for one
line.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, TypeVar

from koordinator.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from koordinator.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from koordinator.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from koordinator.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from koordinator.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from koordinator.wire.messages.share_group_heartbeat import ShareGroupHeartbeatResponse
from koordinator.wire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from koordinator.wire.messages.sync_group import SyncGroupRequest
from koordinator.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

from .events import RequestReceived, ResponseSent
from .messages import BODY_BYTES_MAX, WITH_BODY

if TYPE_CHECKING:
    from koordinator.wire.messages.consumer_group_heartbeat import TopicPartitions
    from koordinator.wire.messages.share_group_heartbeat import TopicPartitions as SharePartitions
    from koordinator.wire.schema import Message

    from .events import TraceEvent

SMALL_BYTES = 512
"""Messages up to this size are retained whole."""

HEADER_BYTES = 61
"""The size of the header of a batch."""

ELEMENT_BYTES = 200
"""The estimated memory of an array element besides its bytes."""

MESSAGE_BYTES = 100
"""The estimated size of a message without elements."""

EXCHANGED = (RequestReceived, ResponseSent)
"""Most events, which have their weight. As a constant, because a union would be made for each call."""

M = TypeVar("M", bound="Message")


def retain(message: M, size: int, client_id: str) -> tuple[M, int]:
    """Return the retained form of a message of `size` bytes, and its estimated memory in bytes."""
    if size <= SMALL_BYTES:
        return message, size
    if size <= BODY_BYTES_MAX and type(message) in WITH_BODY:
        return message, size + ELEMENT_BYTES * _elements(message)
    texts = (getattr(message, field.name) for field in fields(message))
    weight = SMALL_BYTES + len(client_id) + sum(len(text) for text in texts if isinstance(text, str))
    return _scalars(message), weight


def estimate_size(message: Message) -> int:
    """Return the estimated size of a message that is never encoded: a puppet's request or response."""
    return MESSAGE_BYTES + ELEMENT_BYTES * _elements(message)


def _scalars(message: M) -> M:
    values = {field.name: getattr(message, field.name) for field in fields(message)}
    scalars = {name: value for name, value in values.items() if not isinstance(value, tuple | list | bytes)}
    if isinstance(message, OffsetFetchRequest) and len(message.groups) == 1:
        scalars["groups"] = (OffsetFetchRequestGroup(group_id=message.groups[0].group_id),)
    elif isinstance(message, ProduceRequest) and message.transactional_id is not None:
        scalars["topic_data"] = _producer_of(message)
    return type(message)(**scalars)


def _producer_of(message: ProduceRequest) -> tuple[TopicProduceData, ...]:
    """Return the header of the first batch, which names the producer; the batches of a request have one producer."""
    for topic in message.topic_data:
        for part in topic.partition_data:
            if part.records:
                header = PartitionProduceData(index=part.index, records=part.records[:HEADER_BYTES])
                return (TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=(header,)),)
    return ()


def weight(event: TraceEvent) -> int:
    """Return the estimated memory of an event that has no weight, in bytes, without the constant part."""
    inner = getattr(event, "key", getattr(event, "call", None))
    return _texts(event) + (_texts(inner) if inner is not None else 0)


def _texts(record: object) -> int:
    size = 0
    # a loop takes half the time of a sum over generators; this runs for every event
    for name in getattr(record, "__slots__", ()):
        value = getattr(record, name)
        if isinstance(value, str):
            size += len(value)
        elif isinstance(value, tuple):
            size += ELEMENT_BYTES * len(value)
    return size


def _elements(message: Message) -> int:
    match message:
        case JoinGroupRequest():
            return len(message.protocols)
        case SyncGroupRequest():
            return len(message.assignments)
        case JoinGroupResponse() | LeaveGroupRequest() | LeaveGroupResponse():
            return len(message.members)
        case OffsetCommitRequest() | OffsetCommitResponse() | TxnOffsetCommitRequest() | TxnOffsetCommitResponse():
            return sum(1 + len(topic.partitions) for topic in message.topics)
        case ConsumerGroupHeartbeatRequest():
            return len(message.subscribed_topic_names or ()) + sum(map(_rows, message.topic_partitions or ()))
        case ShareFetchRequest() | ShareAcknowledgeRequest():
            rows = [row for topic in message.topics for row in topic.partitions]
            return sum(1 + len(row.acknowledgement_batches) for row in rows)
        case ShareFetchResponse():
            return sum(1 + len(row.acquired_records) for topic in message.responses for row in topic.partitions)
        case ConsumerGroupHeartbeatResponse() | ShareGroupHeartbeatResponse():
            return 0 if message.assignment is None else sum(map(_rows, message.assignment.topic_partitions))
        case StreamsGroupHeartbeatRequest() | StreamsGroupHeartbeatResponse():
            tasks = [*(message.active_tasks or ()), *(message.standby_tasks or ())]
            return sum(1 + len(row.partitions) for row in tasks)
        case _:
            return 0


def _rows(topic: TopicPartitions | SharePartitions) -> int:
    return 1 + len(topic.partitions)
