"""The trace recorder of a node: writes requests, responses and other events of the broker into the trace."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.describe_cluster import DescribeClusterRequest
from koordinator.wire.messages.fetch import FetchResponse

from ..trace.events import ResponseSent
from ..trace.messages import error_of
from ..trace.retention import ELEMENT_BYTES, retain
from ..trace.topic import READER_APIS, reads_trace

if TYPE_CHECKING:
    from koordinator.wire.apis import Message

    from ..core.node import NodeCore
    from ..trace.events import RequestReceived, TraceEvent
    from ..trace.trace import Trace
    from .connections import Connection
    from .interceptor import Respond

Fetched = tuple[str, int, int, int]
"""Topic, partition, first offset, and the offset after the last record."""

BASE_OFFSET_BYTES = 8
"""The size of a batch's first field, its base offset."""

FETCH, NONE = ApiKey.FETCH, Error.NONE
"""Module constants, because the lookup costs more than the comparison."""


class TraceRecorder:
    """Writes the events of a node into the trace."""

    def __init__(self, node: NodeCore, trace: Trace) -> None:
        self._node_id = node.node_id
        self._cluster = node.cluster
        self._clocks = node.cluster.group_clocks
        self._trace = trace

    def note(self, event: TraceEvent) -> None:
        """Record an event with the current time."""
        self._trace.add(self._trace.now_us(), event, self._node_id)

    def group_now(self, now: int, group_id: str | None) -> int:
        """Return the group's time; without a group or a group clock, the node's."""
        clock = self._clocks.get(group_id) if group_id is not None else None
        # `clock.read(now)`, inlined
        return now if clock is None else clock.origin + now if clock.pace else clock.origin

    @staticmethod
    def is_of_trace_reader(peer: Connection, message: Message) -> bool:
        """Return whether a request, or the response to a Fetch, serves only to read the trace and is not recorded."""
        if isinstance(message, DescribeClusterRequest):
            # Java's admin client, and so Spark, repeats it before every read
            return peer.follows_trace
        reads = reads_trace(message)
        peer.follows_trace = peer.follows_trace or reads
        return reads

    def answered(  # noqa: PLR0913, PLR0917 - all parts of a response
        self,
        now: int,
        peer: Connection,
        received: RequestReceived,
        response: Message,
        rendered: Message,
        size: int,
        step: Respond | None,
    ) -> None:
        """Record a response; `rendered` is its shape for the version of the request.

        A Fetch is recorded only now, and only if it returns records or an error; empty ones are counted. Requests that
        read the trace itself are not recorded.
        """
        fetched: tuple[Fetched, ...] = ()
        if received.call.api_key == FETCH:
            if isinstance(response, FetchResponse) and _is_empty(response):
                peer.empty_fetches += 1
                return
            if self.is_of_trace_reader(peer, response):
                return
            if isinstance(response, FetchResponse):
                fetched = self._fetched(response)
            self._trace.add(received.received_us, received, self._node_id)
        elif received.call.api_key in READER_APIS and self.is_of_trace_reader(peer, received.request):
            return
        now_us = self._trace.now_us()
        error_number = error_of(response)
        message, weight = retain(response, size, peer.client_id)
        # the event holds its request as well, which may have left the ring buffer
        weight += received.weight + ELEMENT_BYTES * len(fetched)
        error = Error(error_number) if error_number else NONE
        error_code = error_number if rendered is response else error_of(rendered)
        group_now, latency_us = self.group_now(now, received.group_id), now_us - received.received_us
        answered = ResponseSent(
            received, message, error, error_code, group_now, latency_us, peer.empty_fetches, size, weight
        )
        if fetched:
            answered = replace(answered, fetched=fetched)
        if step is not None and step.rule_id is not None:
            answered = replace(answered, rule_id=step.rule_id, synthetic=step.synthetic)
        peer.empty_fetches = 0
        self._trace.add(now_us, answered, self._node_id)

    def _fetched(self, response: FetchResponse) -> tuple[Fetched, ...]:
        """Return the offset ranges of a Fetch; the log knows them, so records are not decoded."""
        ranges = []
        for row in response.responses:
            topic = self._cluster.topic(row.topic) if row.topic else self._cluster.topic_by_id(row.topic_id)
            if topic is None:
                continue
            for partition in row.partitions:
                records = partition.records
                log = topic.log(partition.partition_index) if records else None
                if log is not None and records:
                    begin = int.from_bytes(records[:BASE_OFFSET_BYTES], "big")
                    ranges.append((topic.name, partition.partition_index, begin, log.end_of(begin, len(records))))
        return tuple(ranges)


def _is_empty(response: FetchResponse) -> bool:
    return response.error_code == 0 and not any(
        partition.records or partition.error_code for topic in response.responses for partition in topic.partitions
    )
