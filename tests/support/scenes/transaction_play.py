"""A transaction coordinator played directly, with writes and markers at hand."""

from __future__ import annotations

import uuid
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from builders import requests

from koordinator.emulator.config.settings import Settings
from koordinator.emulator.core.cluster import ClusterState
from koordinator.emulator.core.data.topic import TRANSACTIONS_TOPIC
from koordinator.emulator.core.effects import AppendTransaction, Call, Failed, Reply, SendRequest
from koordinator.emulator.core.transactions.coordinator import TransactionCoordinator
from koordinator.wire.apis import REQUEST_KEYS
from koordinator.wire.errors import Error
from koordinator.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from koordinator.wire.messages.describe_transactions import DescribeTransactionsRequest, TransactionState
from koordinator.wire.messages.end_txn import EndTxnRequest
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest
from koordinator.wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from koordinator.emulator.core.effects import Effect

LEADER_EPOCH = 5
"""The leader epoch of every partition of `__transaction_state`: the epoch of its coordinator."""

PENDING = object()
"""Stands for the response of a parked request."""


class TransactionPlay:
    """A coordinator of every partition, with topic `t` (two partitions).

    Writes succeed at once unless `writes` is another error, or None to keep them; markers are written at once unless
    `markers` is None, or an error that the leader answers.
    """

    def __init__(self, **settings: Any) -> None:
        self.now = 1_700_000_000_000
        chosen = replace(Settings(), transaction_abort_timed_out_transaction_cleanup_interval_ms=1_000, **settings)
        self.cluster = ClusterState("cluster", chosen, uuid.uuid4)
        self.cluster.register(1, "localhost", 9092)
        self.cluster.create_topic("t", 2)
        self.cluster.internal_topic()
        self.coordinator = TransactionCoordinator(self.now, self.cluster, chosen)
        self.writes: Error | None = Error.NONE
        self.markers: Error | None = Error.NONE
        self.kept_writes: deque[int] = deque()
        self.kept_markers: deque[SendRequest] = deque()
        self.records: list[AppendTransaction] = []
        self.sent: list[SendRequest] = []
        self.effects: list[Effect] = []
        self._replies: dict[int, Any] = {}
        self._number = 0
        epochs = self.cluster.planned_topic(TRANSACTIONS_TOPIC).epochs
        epochs[:] = [LEADER_EPOCH] * len(epochs)
        for partition in range(len(epochs)):
            self._take(self.coordinator.begin_load(self.now, partition))
            self._take(self.coordinator.loaded(self.now, partition, []))

    def send(self, request: Any, version: int) -> Any:
        """Serve a request; return its response or PENDING."""
        self._number += 1
        call = Call(1, self._number, REQUEST_KEYS[type(request)], version, "client", "/127.0.0.1")
        self._take([*self.coordinator.tick(self.now), *self.coordinator.handle(self.now, call, request)])
        return self.response(self._number)

    def response(self, number: int) -> Any:
        """Return the response to the request with this number, or PENDING."""
        return self._replies.get(number, PENDING)

    @property
    def last(self) -> Any:
        """The response to the latest request, or PENDING."""
        return self.response(self._number)

    def init(
        self, producer_id: int = -1, epoch: int = -1, *, tid: str = "x", version: int = 4, timeout: int = 60_000
    ) -> Any:
        """Send InitProducerId; return (error, producer id, epoch)."""
        request = InitProducerIdRequest(
            transactional_id=tid, transaction_timeout_ms=timeout, producer_id=producer_id, producer_epoch=epoch
        )
        response = self.send(request, version)
        return response if response is PENDING else (response.error_code, response.producer_id, response.producer_epoch)

    def init_until_served(self) -> Any:
        """Send InitProducerId until it gets another answer than 51."""
        for _ in range(3):
            response = self.init()
            if response[0] != Error.CONCURRENT_TRANSACTIONS:
                return response
        raise AssertionError("InitProducerId was refused with 51 three times")

    def add(self, producer_id: int, epoch: int, *partitions: tuple[str, int], tid: str = "x", version: int = 3) -> Any:
        """Send AddPartitionsToTxn of a client; return the errors by partition."""
        request = requests.add_partitions_to_txn((tid, producer_id, epoch), partitions)
        response = self.send(request, version)
        if response is PENDING:
            return response
        return {
            (topic.name, row.partition_index): row.partition_error_code
            for topic in response.results_by_topic_v3_and_below
            for row in topic.results_by_partition
        }

    def add_offsets(self, producer_id: int, epoch: int, group: str = "g", *, tid: str = "x", version: int = 3) -> Any:
        """Send AddOffsetsToTxn; return the error."""
        request = AddOffsetsToTxnRequest(
            transactional_id=tid, producer_id=producer_id, producer_epoch=epoch, group_id=group
        )
        response = self.send(request, version)
        return response if response is PENDING else response.error_code

    def end(self, producer_id: int, epoch: int, *, commit: bool, tid: str = "x", version: int = 3) -> Any:
        """Send EndTxn; return the error, from v5 on (error, producer id, epoch)."""
        request = EndTxnRequest(transactional_id=tid, producer_id=producer_id, producer_epoch=epoch, committed=commit)
        response = self.send(request, version)
        if response is PENDING:
            return response
        if version < 5:
            return response.error_code
        return response.error_code, response.producer_id, response.producer_epoch

    def describe(self, tid: str = "x") -> TransactionState:
        """Send DescribeTransactions for one id; return its row."""
        (row,) = self.send(DescribeTransactionsRequest(transactional_ids=(tid,)), 0).transaction_states
        assert isinstance(row, TransactionState)
        return row

    @property
    def state(self) -> str:
        """The state of `x`."""
        return self.describe().transaction_state

    def begun(self, *, timeout: int = 60_000) -> int:
        """Initialize `x` and add t-0; return the producer id (X1 of the scenarios)."""
        _, producer_id, epoch = self.init(timeout=timeout)
        assert self.add(producer_id, epoch, ("t", 0)) == {("t", 0): 0}
        assert isinstance(producer_id, int)
        return producer_id

    def advance(self, ms: int) -> None:
        """Let time pass, firing each timer at its own deadline."""
        self.now += ms
        self._take(self.coordinator.tick(self.now))

    def complete_write(self, error: Error = Error.NONE) -> None:
        """Complete the oldest kept write."""
        self._take(self.coordinator.appended(self.now, self.kept_writes.popleft(), error))

    def answer_markers(self, error: Error = Error.NONE, others: Mapping[tuple[str, int], Error] | None = None) -> None:
        """Answer the oldest kept WriteTxnMarkers with this error for each partition, or with another one."""
        self._answer(self.kept_markers.popleft(), error, others)

    def lose_markers(self) -> None:
        """Let the oldest kept WriteTxnMarkers fail to reach its broker."""
        self._take(self.coordinator.answered(self.now, self.kept_markers.popleft().token, None))

    def _answer(self, sent: SendRequest, error: Error, others: Mapping[tuple[str, int], Error] | None = None) -> None:
        assert isinstance(sent.request, WriteTxnMarkersRequest)
        rows = tuple(
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=tuple(
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=tuple(
                            WritableTxnMarkerPartitionResult(
                                partition_index=at, error_code=(others or {}).get((topic.name, at), error)
                            )
                            for at in topic.partition_indexes
                        ),
                    )
                    for topic in marker.topics
                ),
            )
            for marker in sent.request.markers
        )
        self._take(self.coordinator.answered(self.now, sent.token, WriteTxnMarkersResponse(markers=rows)))

    def _take(self, effects: list[Effect]) -> None:
        self.effects += effects
        for effect in effects:
            match effect:
                case Reply(call, response):
                    self._replies[call.correlation_id] = response
                case AppendTransaction(token):
                    self.records.append(effect)
                    if self.writes is None:
                        self.kept_writes.append(token)
                    else:
                        self._take(self.coordinator.appended(self.now, token, self.writes))
                case Failed(error):
                    raise error
                case SendRequest():
                    self.sent.append(effect)
                    if self.markers is None:
                        self.kept_markers.append(effect)
                    else:
                        self._answer(effect, self.markers)
                case _:
                    pass
