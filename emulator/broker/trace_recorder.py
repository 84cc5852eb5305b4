"""The trace recorder of a node: writes requests, responses and other events of the broker into the trace."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.describe_cluster import DescribeClusterRequest
from koordinator.wire.messages.fetch import FetchResponse
from koordinator.wire.messages.metadata import MetadataResponse
from koordinator.wire.messages.produce import ProduceRequest, ProduceResponse
from koordinator.wire.primitives import Malformed
from koordinator.wire.records import read_header

from ..trace.events import ResponseSent
from ..trace.messages import error_of
from ..trace.retention import ELEMENT_BYTES, SMALL_BYTES, retain
from ..trace.topic import READER_APIS, reads_trace
from .refused_features import refusal_of

if TYPE_CHECKING:
    from koordinator.wire.apis import Message

    from ..core.node import NodeCore
    from ..trace.events import RequestReceived, TraceEvent
    from ..trace.trace import Trace
    from .connections import Connection
    from .interceptor import Respond

BASE_OFFSET_BYTES = 8
"""The size of a batch's first field, its base offset."""

FETCH, PRODUCE, NONE = ApiKey.FETCH, ApiKey.PRODUCE, Error.NONE
"""Module constants, because the lookup costs more than the comparison."""


class TraceRecorder:
    """Writes the events of a node into the trace."""

    def __init__(self, node: NodeCore, trace: Trace) -> None:
        self._node_id = node.node_id
        self._cluster = node.cluster
        self._clocks = node.cluster.clocks
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
        reason: str,
    ) -> None:
        """Record a response; `rendered` is its shape for the version of the request, `reason` that of a refusal.

        A Fetch is recorded only now, and only if it returns records, an error or a preferred replica, or is throttled;
        empty ones are counted. Requests that read the trace itself are not recorded.
        """
        body: dict[str, object] | None = {"message": reason} if reason else None
        if received.call.api_key == FETCH:
            if isinstance(response, FetchResponse) and _is_empty(response) and not response.throttle_time_ms:
                peer.empty_fetches += 1
                return
            if self.is_of_trace_reader(peer, response):
                return
            if isinstance(response, FetchResponse):
                body = self._fetched(received.request, response)
            self._trace.add(received.received_us, received, self._node_id)
        elif received.call.api_key == PRODUCE:
            refusal = refusal_of(response)
            body = {"message": refusal} if refusal else self._appended(received.request, response)
        elif received.call.api_key in READER_APIS and self.is_of_trace_reader(peer, received.request):
            return
        elif isinstance(response, MetadataResponse):
            body = _refused(response)
        now_us = self._trace.now_us()
        error_number = error_of(response)
        # most messages are small, and a call would take longer than this
        message, weight = (response, size) if size <= SMALL_BYTES else retain(response, size, peer.client_id)
        # the event holds its request as well, which may have left the ring buffer
        rows = sum(len(rows) for rows in body.values() if isinstance(rows, list)) if body else 0
        weight += received.weight + ELEMENT_BYTES * rows + len(reason)
        error = Error(error_number) if error_number else NONE
        error_code = error_number if rendered is response else error_of(rendered)
        group_now, latency_us = self.group_now(now, received.group_id), now_us - received.received_us
        answered = ResponseSent(
            received, message, error, error_code, group_now, latency_us, peer.empty_fetches, size, weight
        )
        if body:
            answered = replace(answered, body=body)
        if step is not None and step.rule_id is not None:
            answered = replace(answered, rule_id=step.rule_id, synthetic=step.synthetic)
        peer.empty_fetches = 0
        self._trace.add(now_us, answered, self._node_id)

    def _fetched(self, request: Message, response: FetchResponse) -> dict[str, object]:
        """Return the offset ranges of a Fetch; the log knows them, so records are not decoded.

        With `read_committed` return the aborted transactions, too, and with racks the preferred replicas.
        """
        ranges: list[list[object]] = []
        aborted: list[list[object]] = []
        preferred: list[list[object]] = []
        for row in response.responses:
            topic = self._cluster.topics.find(row.topic) if row.topic else self._cluster.topics.find_id(row.topic_id)
            if topic is None:
                continue
            for partition in row.partitions:
                records = partition.records
                log = topic.log(partition.partition_index) if records else None
                if log is not None and records:
                    begin = int.from_bytes(records[:BASE_OFFSET_BYTES], "big")
                    ranges.append([topic.name, partition.partition_index, begin, log.end_of(begin, len(records))])
                if partition.preferred_read_replica >= 0:
                    preferred.append([topic.name, partition.partition_index, partition.preferred_read_replica])
                aborted += [
                    [topic.name, partition.partition_index, each.producer_id, each.first_offset]
                    for each in partition.aborted_transactions or ()
                ]
        body: dict[str, object] = {"fetched": ranges} if ranges else {}
        if preferred:
            body["preferred"] = preferred
        return {**body, "aborted": aborted} if getattr(request, "isolation_level", 0) else body

    def _appended(self, request: Message, response: Message) -> dict[str, object] | None:
        """Return the producer of a transactional Produce and the base offsets of its batches; None for garbage."""
        if not isinstance(request, ProduceRequest) or request.transactional_id is None:
            return None
        batches = [part.records for topic in request.topic_data for part in topic.partition_data if part.records]
        if not batches or not isinstance(response, ProduceResponse):
            return None
        try:
            header = read_header(batches[0])
        except Malformed:
            return None
        topics = [
            (self._cluster.topics.find(row.name) if row.name else self._cluster.topics.find_id(row.topic_id), row)
            for row in response.responses
        ]
        return {
            "transactional_id": request.transactional_id,
            "producer_id": header.producer_id,
            "producer_epoch": header.producer_epoch,
            "appended": [
                [topic.name, part.index, part.base_offset]
                for topic, row in topics
                for part in row.partition_responses
                if topic is not None and part.base_offset >= 0
            ],
        }


def _refused(response: MetadataResponse) -> dict[str, object] | None:
    """Return the names of topics with an error, and that error; None if there are none."""
    errors = [[row.name or str(row.topic_id), Error(row.error_code).name] for row in response.topics if row.error_code]
    return {"errors": errors} if errors else None


def _is_empty(response: FetchResponse) -> bool:
    return response.error_code == 0 and not any(
        partition.records or partition.error_code or partition.preferred_read_replica >= 0
        for topic in response.responses
        for partition in topic.partitions
    )
