"""The trace as the topic `__koordinator_trace`, for Kafka clients.

Each record of its single partition is a line of the trace; the record's offset is the line's `seq`. The log is a view
of the ring: it starts with the header, and its start advances when the ring drops events. A fetch renders the lines
that it returns. Reading the topic adds no events, which would never end.
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
from ..core.data.topic import TRACE_TOPIC, TopicState

if TYPE_CHECKING:
    from koordinator.wire.apis import Message

    from ..core.cluster import ClusterState
    from .trace import Trace

TRACE_TOPIC_ID = UUID("00000000-0000-4000-8000-7472616365ff")
"""A constant: drawing an id would change the ids that a seed yields."""

LINES_PER_FETCH = 500
"""The limit on lines in one fetch: rendering them delays all other clients."""

LINE_BYTES = 300
"""The estimated size of a line; only rendering it gives the exact size."""

READER_APIS = frozenset(
    {
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.METADATA,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    }
)
"""The APIs that consumers use to read a topic and to find its leader."""


class TraceLog(PartitionLog):
    """The trace's ring as a read-only partition log."""

    reports_appends = False

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        super().__init__()
        self.begin_epoch(0)

    @property
    def start(self) -> int:
        """The offset of the header, before the oldest event in the ring."""
        return self._trace.first_number

    @start.setter
    def start(self, offset: int) -> None:
        """Ignore the value: the ring decides."""

    @property
    def end(self) -> int:
        """The `seq` of the next event."""
        return self._trace.last_seq + 1

    @end.setter
    def end(self, offset: int) -> None:
        """Ignore the value: the ring decides."""

    @property
    def last_stable_offset(self) -> int:
        """The end: no transaction writes here."""
        return self.end

    def upper_bound(self, offset: int, size: int) -> int:
        """Return the end, which bounds every read."""
        del offset, size
        return self.end

    def readable_bytes(self, offset: int, bytes_max: int, before: int | None = None) -> int:
        """Return the estimated size of a read from `offset`."""
        del before
        return max(LINE_BYTES, min((self.end - offset) * LINE_BYTES, bytes_max)) if offset < self.end else 0

    def read(self, offset: int, bytes_max: int, *, first_whole: bool, before: int | None = None) -> bytes:
        """Return one batch of lines of at most `bytes_max` bytes; with `first_whole` at least one line."""
        del before
        records: list[Record] = []
        size = 0
        for wall_us, line in islice(self._trace.lines_from(offset), LINES_PER_FETCH):
            value = line.encode()
            size += len(value)
            if size > bytes_max and (records or not first_whole):
                break
            records.append(Record(timestamp=wall_us // 1000, value=value))
        if not records:
            return b""
        return write_batch(records, base_offset=offset, partition_leader_epoch=self.epoch_at(offset))

    def first_at_or_after(self, timestamp: int) -> tuple[int, int] | None:
        """Return the offset and time of the first event at or after `timestamp` (ms); None if there is none."""
        times = ((seq, wall_us // 1000) for seq, wall_us in self._trace.times())
        return next((entry for entry in times if entry[1] >= timestamp), None)

    def max_timestamp_record(self) -> tuple[int, int] | None:
        """Return the offset and time of the newest event."""
        newest = max((wall_us for _, wall_us in self._trace.times()), default=None)
        return None if newest is None else self.first_at_or_after(newest // 1000)


def trace_topic(trace: Trace, cluster: ClusterState) -> TopicState:
    """Return the topic, led by a registered broker."""
    nodes = tuple(cluster.brokers)
    leader = min((node_id for node_id in nodes if cluster.brokers.is_up(node_id)), default=-1)
    return TopicState(TRACE_TOPIC, TRACE_TOPIC_ID, [TraceLog(trace)], [nodes], [leader], [0])


def reads_trace(message: Message) -> bool:
    """Return whether a request, or a Fetch response, names only the trace topic."""
    match message:
        case FetchResponse():
            topics = {topic.topic or topic.topic_id for topic in message.responses}
        case MetadataRequest():
            topics = {topic.name or topic.topic_id for topic in message.topics or ()}
        case ListOffsetsRequest() | DescribeTopicPartitionsRequest():
            topics = {topic.name for topic in message.topics}
        case OffsetForLeaderEpochRequest():
            topics = {topic.topic for topic in message.topics}
        case _:
            return False
    return bool(topics) and topics <= {TRACE_TOPIC, TRACE_TOPIC_ID}
