"""The trace as the topic `__koordinator_trace`, for whoever follows it with a Kafka client.

A record of its one partition is a line of the trace; its offset is the line's `seq`. The log is the trace's ring: it
begins with the header, wherever that is, and when events fall off the ring its start moves on. Nothing is kept twice:
a line is rendered when somebody fetches it. Reading it is not an event, or there would be no end to it.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING
from uuid import UUID

from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from koordinator.wire.messages.fetch import FetchResponse
from koordinator.wire.messages.list_offsets import ListOffsetsRequest
from koordinator.wire.messages.metadata import MetadataRequest
from koordinator.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from koordinator.wire.records import Record, write_batch

from ..core.data.log import PartitionLog
from ..core.data.topic import TRACE_TOPIC, Topic

if TYPE_CHECKING:
    from koordinator.wire.apis import Message

    from ..core.cluster import ClusterState
    from .trace import Trace

TRACE_TOPIC_ID = UUID("00000000-0000-4000-8000-7472616365ff")
"""The same in every cluster: ids that are drawn come in an order that a seed repeats."""

LINES_AT_ONCE = 500
"""The most lines one fetch brings: rendering them keeps everybody else waiting."""

LINE_BYTES = 300
"""A line, roughly: how long it is is known when it is rendered."""

READERS = frozenset(
    {
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.METADATA,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    }
)
"""The APIs with which a topic is read, and with which who reads it looks for those who lead it."""


class TraceLog(PartitionLog):
    """The trace's ring as the log of a partition, which nobody appends to."""

    tells_of_growth = False

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        super().__init__()
        self.begin_epoch(0)

    @property
    def start(self) -> int:
        """The offset of the header, before the oldest event that is kept."""
        return self._trace.begins_at

    @start.setter
    def start(self, offset: int) -> None:
        """It is where the trace begins."""

    @property
    def end(self) -> int:
        """The `seq` of the event to come."""
        return self._trace.last_seq + 1

    @end.setter
    def end(self, offset: int) -> None:
        """It is where the trace ends."""

    def readable_bytes(self, offset: int, bytes_max: int) -> int:
        """How many bytes a read from `offset` would bring, roughly."""
        return max(LINE_BYTES, min((self.end - offset) * LINE_BYTES, bytes_max)) if offset < self.end else 0

    def read(self, offset: int, bytes_max: int, *, first_whole: bool) -> bytes:
        """One batch, of as many lines as fit in `bytes_max`; with `first_whole` of one line at least."""
        records: list[Record] = []
        size = 0
        for wall_us, line in islice(self._trace.lines_from(offset), LINES_AT_ONCE):
            value = line.encode()
            size += len(value)
            if size > bytes_max and (records or not first_whole):
                break
            records.append(Record(timestamp=wall_us // 1000, value=value))
        if not records:
            return b""
        return write_batch(records, base_offset=offset, partition_leader_epoch=self.epoch_at(offset))

    def first_at_or_after(self, timestamp: int) -> tuple[int, int] | None:
        """The offset and time of the first event not older than `timestamp`; None if there is none."""
        times = ((seq, wall_us // 1000) for seq, wall_us in self._trace.times())
        return next((found for found in times if found[1] >= timestamp), None)

    def with_greatest_timestamp(self) -> tuple[int, int] | None:
        """The offset and time of the newest event."""
        newest = max((wall_us for _, wall_us in self._trace.times()), default=None)
        return None if newest is None else self.first_at_or_after(newest // 1000)


def trace_topic(trace: Trace, cluster: ClusterState) -> Topic:
    """The topic, led by one of the brokers that are registered."""
    nodes = tuple(cluster.brokers)
    leader = min((node_id for node_id in nodes if cluster.is_up(node_id)), default=-1)
    return Topic(TRACE_TOPIC, TRACE_TOPIC_ID, [TraceLog(trace)], [nodes], [leader], [0])


def reads_trace(message: Message) -> bool:
    """Whether a request, or the answer to a Fetch, is about the trace alone."""
    match message:
        case FetchResponse():
            named = {topic.topic or topic.topic_id for topic in message.responses}
        case MetadataRequest():
            named = {topic.name or topic.topic_id for topic in message.topics or ()}
        case ListOffsetsRequest() | DescribeTopicPartitionsRequest():
            named = {topic.name for topic in message.topics}
        case OffsetForLeaderEpochRequest():
            named = {topic.topic for topic in message.topics}
        case _:
            return False
    return bool(named) and named <= {TRACE_TOPIC, TRACE_TOPIC_ID}
