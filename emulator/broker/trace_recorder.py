"""What the broker ring of a node tells the trace."""

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
"""Topic, partition, the first offset and the one after the last."""

BASE_OFFSET_BYTES = 8
"""A batch begins with the offset of its first record."""

FETCH, NONE = ApiKey.FETCH, Error.NONE
"""Looked up once, because it is the dearest part of a comparison."""


class TraceRecorder:
    """Writes into the trace what happens at a node."""

    def __init__(self, node: NodeCore, trace: Trace) -> None:
        self._node_id = node.node_id
        self._cluster = node.cluster
        self._clocks = node.cluster.group_clocks
        self._trace = trace

    def note(self, happening: TraceEvent) -> None:
        """Something has happened, now."""
        self._trace.add(self._trace.now_us(), happening, self._node_id)

    def group_now(self, now: int, group_id: str | None) -> int:
        """What time it is for a group; for none, and for one without a clock of its own, the node's."""
        clock = self._clocks.get(group_id) if group_id is not None else None
        # `clock.read(now)`, without the call
        return now if clock is None else clock.origin + now if clock.pace else clock.origin

    @staticmethod
    def is_of_reader(peer: Connection, message: Message) -> bool:
        """Whether a request, or the answer to a Fetch, only serves to read the trace: then it is no event."""
        if isinstance(message, DescribeClusterRequest):
            # with which Java's admin client, and so Spark, begins anew each time
            return peer.follows_trace
        reads = reads_trace(message)
        peer.follows_trace = peer.follows_trace or reads
        return reads

    def answered(  # noqa: PLR0913, PLR0917 - what is known of an answer
        self,
        now: int,
        peer: Connection,
        asked: RequestReceived,
        response: Message,
        rendered: Message,
        size: int,
        step: Respond | None,
    ) -> None:
        """A request has been answered: with `response`, which for the version that asked was `rendered`.

        A Fetch is noted only now, and only if it brings something; the others are counted. Nothing is noted of who
        reads the trace itself.
        """
        fetched: tuple[Fetched, ...] = ()
        if asked.call.api_key == FETCH:
            if isinstance(response, FetchResponse) and _brings_nothing(response):
                peer.empty_fetches += 1
                return
            if self.is_of_reader(peer, response):
                return
            if isinstance(response, FetchResponse):
                fetched = self._fetched(response)
            self._trace.add(asked.received_us, asked, self._node_id)
        elif asked.call.api_key in READER_APIS and self.is_of_reader(peer, asked.request):
            return
        now_us = self._trace.now_us()
        error_number = error_of(response)
        message, weight = retain(response, size, peer.client_id)
        # the request is the event's as well: the other one may have fallen off the ring
        weight += asked.weight + ELEMENT_BYTES * len(fetched)
        error = Error(error_number) if error_number else NONE
        error_code = error_number if rendered is response else error_of(rendered)
        group_now, latency_us = self.group_now(now, asked.group_id), now_us - asked.received_us
        answered = ResponseSent(
            asked, message, error, error_code, group_now, latency_us, peer.empty_fetches, size, weight
        )
        if fetched:
            answered = replace(answered, fetched=fetched)
        if step is not None and step.rule_id is not None:
            answered = replace(answered, rule_id=step.rule_id, synthetic=step.synthetic)
        peer.empty_fetches = 0
        self._trace.add(now_us, answered, self._node_id)

    def _fetched(self, response: FetchResponse) -> tuple[Fetched, ...]:
        """What a Fetch brings: the log knows it, without a look into the records."""
        found = []
        for topic in response.responses:
            known = self._cluster.topic(topic.topic) if topic.topic else self._cluster.topic_by_id(topic.topic_id)
            if known is None:
                continue
            for row in topic.partitions:
                log = known.log(row.partition_index) if row.records else None
                if log is not None and row.records:
                    begin = int.from_bytes(row.records[:BASE_OFFSET_BYTES], "big")
                    found.append((known.name, row.partition_index, begin, log.end_of(begin, len(row.records))))
        return tuple(found)


def _brings_nothing(response: FetchResponse) -> bool:
    return response.error_code == 0 and not any(
        partition.records or partition.error_code for topic in response.responses for partition in topic.partitions
    )
