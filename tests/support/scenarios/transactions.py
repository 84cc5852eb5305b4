"""Commits within a transaction (KIP-98, KIP-447)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.wire.errors import Error
from koordinator.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from koordinator.wire.messages.end_txn import EndTxnRequest
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest
from koordinator.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from scenarios.answers import PendingRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scenarios.answers import Partition
    from scenarios.player import Player


TIMEOUT_S = 60

TRANSACTION = 1
"""The key type of transactional ids in FindCoordinator."""

AGAIN = {
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.NOT_COORDINATOR,
    Error.CONCURRENT_TRANSACTIONS,
}
"""Errors that call for a retry."""


class TransactionalCommit(PendingRequest[TxnOffsetCommitResponse]):
    def expect(self, error: int = 0) -> TxnOffsetCommitResponse:
        """Expect this error for every named partition."""
        answer = self.answer()
        found = {row.error_code for topic in answer.topics for row in topic.partitions}
        assert found == {error}, f"{self} was answered with {found}, expected {error}"
        return answer


class Transaction:
    """An open transaction of its own producer, which commits offsets of the play's group."""

    def __init__(self, play: Player) -> None:
        self._play = play
        name = f"{play.g}.{play.target.seconds}"
        # the first lookup creates the transaction topic
        self._ask(FindCoordinatorRequest(key=name, key_type=TRANSACTION), 1)
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=TIMEOUT_S * 1000)
        answer = self._ask(request, 1)
        self._producer: dict[str, Any] = {
            "transactional_id": name,
            "producer_id": answer.producer_id,
            "producer_epoch": answer.producer_epoch,
        }
        self._ask(AddOffsetsToTxnRequest(**self._producer, group_id=play.g), 1)

    def commit(
        self,
        generation: int,
        member_id: str,
        offsets: Mapping[Partition, int] | None = None,
        instance_id: str | None = None,
        *,
        version: int = 3,
    ) -> TransactionalCommit:
        """TxnOffsetCommit: (gen, id), t-0=1 by default. Versions up to 2 name no member."""
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in (offsets or {("t", 0): 1}).items():
            row = TxnOffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=""
            )
            topics.setdefault(topic, []).append(row)
        member: dict[str, Any] = {
            "generation_id_or_member_epoch": generation,
            "member_id": member_id,
            "group_instance_id": instance_id,
        }
        rows = (TxnOffsetCommitRequestTopic(name=name, partitions=tuple(each)) for name, each in topics.items())
        request = TxnOffsetCommitRequest(
            **self._producer,
            **(member if version >= 3 else {}),
            group_id=self._play.g,
            topics=tuple(rows),
        )
        return self._play.begin(TransactionalCommit, request, version)

    def end(self, *, committed: bool = True) -> None:
        """Commit or abort."""
        self._ask(EndTxnRequest(**self._producer, committed=committed), 1)

    def _ask(self, request: Any, version: int) -> Any:
        """Send a request, and retry while another transaction completes."""
        limit = self._play.target.seconds + 100
        while (answer := self._play.ask(request, version).unrecorded()).error_code in AGAIN:
            assert self._play.target.seconds < limit, f"still {Error(answer.error_code).name}: {request}"
            self._play.wait(1)
        assert answer.error_code == Error.NONE, answer
        return answer
