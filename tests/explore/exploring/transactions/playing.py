"""Play one sequence to a broker at an address; an outcome has the response and everything that it changed."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from builders import requests

from exploring.transactions.sight import Sight
from koordinator.client.errors import ClientError, ConnectionLost
from koordinator.wire.errors import Error
from koordinator.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    delete_groups,
    end_txn,
    find_coordinator,
    init_producer_id,
    list_transactions,
)
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from exploring.transactions.steps import Sequence, Step
    from koordinator.client.connection import Address

READY_S = 300
SETTLE_S = 8.0
"""The limit of waits for markers and timeouts; a transaction that is still in Prepare… then is stuck."""

STUCK_S = 0.1
"""The limit of later waits in a sequence with a stuck transaction."""

LOOK_EVERY = 3
"""Every third outcome has all that the step may have changed; the others have the answer and the transactions."""

POLL_S = 0.005
"""The first interval of polls; later ones are longer, up to POLL_MAX_S, because a stuck sequence polls for seconds."""

POLL_MAX_S = 0.2
TIMEOUT_MS = 900_000
"""The largest timeout that a broker allows: nothing times out while a sequence waits for others."""

SHORT_TIMEOUT_MS = 300
"""A transaction with this timeout is over before the next step, however slow the machine is."""

SESSION_MS = 1_800_000

AGAIN = {
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.NOT_COORDINATOR,
    Error.UNKNOWN_TOPIC_OR_PARTITION,
    Error.LEADER_NOT_AVAILABLE,
    Error.NOT_LEADER_OR_FOLLOWER,
}
TRANSACTION = 1
NOBODY = (-1, -1)

Identity = tuple[int, int]


class Playing(Sight):
    """A sequence at a broker. `prefix` makes its names unique there; `outcomes` are equal for equal brokers."""

    def __init__(self, sequence: Sequence, address: Address, prefix: str) -> None:
        ids = f"{prefix}.x", f"{prefix}.x" if sequence.shares_id else f"{prefix}.y"
        super().__init__(address, f"{prefix}.t", f"{prefix}.g", ids)
        self.sequence = sequence
        self.is_patient = False
        self.topics = (self.topic,)
        self.outcomes: list[object] = []
        self._identities: tuple[list[Identity], list[Identity]] = ([], [])
        self._sequences: dict[tuple[Identity, int], int] = {}
        self._member = ""
        self._is_stuck = False

    # -- the course ------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Wait until the topic and both coordinators answer, and let the member join."""
        self.wait_ready()
        if not self.sequence.has_member:
            return
        joining = requests.join_group(
            self.group, session_ms=SESSION_MS, rebalance_ms=SESSION_MS, protocols=(("range", b""),)
        )
        joined = self._ask(joining, 3)
        self._member = joined.member_id
        plan = {self._member: b""}
        syncing = requests.sync_group(self.group, joined.generation_id, self._member, plan)
        assert self._ask(syncing, 3).error_code == Error.NONE

    def wait_ready(self) -> None:
        """Wait until the partitions, the transaction coordinator and the group coordinator serve requests."""
        self.close()
        # the coordinator sends the markers of a stuck transaction again
        self._is_stuck = False
        limit = time.monotonic() + READY_S
        while True:
            with suppress(ClientError):
                for transactional_id in self.ids:
                    self._ask(find_coordinator.FindCoordinatorRequest(key=transactional_id, key_type=TRANSACTION), 2)
                self._ask(find_coordinator.FindCoordinatorRequest(key=self.group), 2)
                errors = {each.error_code for each in self._described()}
                # the log may be readable before its coordinator has loaded; this changes nothing
                ends = (end_txn.EndTxnRequest(transactional_id=each, producer_id=-1) for each in self.ids)
                errors |= {self._ask(each, 1).error_code for each in ends}
                errors |= {error for error, _ in self._latest(0)} | {error for error, _ in self._offsets(stable=False)}
                if not errors & AGAIN:
                    return
            assert time.monotonic() < limit, f"{self.topic} is not ready"
            time.sleep(0.05)

    def play(self, begin: int, end: int) -> None:
        """Perform these steps."""
        for step in self.sequence.steps[begin:end]:
            try:
                result = self._perform(step)
            except ConnectionLost:
                self.close()
                result = "closed the connection"
            outcome = {"answer": self._plain(result), "transactions": self._settled()}
            if len(self.outcomes) % LOOK_EVERY == 0:
                outcome |= self._sight()
            self.outcomes.append(outcome)

    def _perform(self, step: Step) -> object:
        operation: Callable[..., object] = getattr(self, step.name)
        return operation(**dict(step.arguments))

    def finish(self) -> None:
        """Add what consumers read."""
        fetched = {f"fetch {level}": self._plain(self._fetched(level)) for level in (0, 1)}
        self.outcomes.append(fetched | self._sight())
        self.close()

    def _settled(self) -> list[object]:
        """Wait for markers under way and for short timeouts; return the states of the transactional ids."""
        limit = time.monotonic() + (STUCK_S if self._is_stuck else SETTLE_S)
        pause = POLL_S
        while True:
            rows = self._described()
            is_stuck = any(
                row.transaction_state.startswith("Prepare")
                or (row.transaction_state == "Ongoing" and row.transaction_timeout_ms == SHORT_TIMEOUT_MS)
                for row in rows
            )
            if not is_stuck or time.monotonic() > limit:
                break
            time.sleep(pause)
            pause = min(2 * pause, POLL_MAX_S)
        self._is_stuck |= is_stuck
        return [
            (
                row.error_code,
                row.transaction_state,
                row.transaction_timeout_ms,
                row.transaction_start_time_ms > 0,
                row.producer_id if row.error_code else self._name(row.producer_id),
                row.producer_epoch,
                # the partition of the group's offsets depends on its name
                [sorted(topic.partitions) for topic in row.topics if topic.topic == self.topic],
                sum(len(topic.partitions) for topic in row.topics if topic.topic != self.topic),
            )
            for row in rows
        ]

    def _plain(self, value: object) -> object:
        if isinstance(value, (tuple, list)):
            return [self._plain(each) for each in value]
        return int(value) if isinstance(value, Error) else value

    # -- requests --------------------------------------------------------------------------------------------

    def _identity(self, slot: int, who: str) -> Identity:
        known = self._identities[slot]
        if who == "nobody" or not known:
            return NOBODY
        producer_id, epoch = known[-2] if who == "previous" and len(known) > 1 else known[-1]
        if who == "next epoch":
            return producer_id, epoch + 1
        return (producer_id + 100_000 if who == "another id" else producer_id), epoch

    def _named(self, slot: int, who: str) -> dict[str, Any]:
        producer_id, epoch = self._identity(slot, who)
        return {"transactional_id": self.ids[slot], "producer_id": producer_id, "producer_epoch": epoch}

    def init(self, slot: int, who: str, version: int, timeout_ms: int = TIMEOUT_MS) -> object:
        """InitProducerId."""
        producer_id, epoch = self._identity(slot, who) if version >= 3 else NOBODY
        request = init_producer_id.InitProducerIdRequest(
            transactional_id=self.ids[slot],
            transaction_timeout_ms=timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        while (answer := self._ask(request, version)).error_code == Error.COORDINATOR_LOAD_IN_PROGRESS:
            # the broker is fetching producer ids
            time.sleep(POLL_S)
        if not answer.error_code:
            # a low id must be told from the number 0 of a row without one
            self._names.setdefault(answer.producer_id, f"P{len(self._names)}")
            self._identities[slot].append((answer.producer_id, answer.producer_epoch))
        return answer.error_code, self._name(answer.producer_id), answer.producer_epoch

    def add(self, slot: int, who: str, partitions: tuple[int, ...], version: int) -> object:
        """AddPartitionsToTxn of a client."""
        producer = (self.ids[slot], *self._identity(slot, who))
        request = requests.add_partitions_to_txn(producer, [(self.topic, at) for at in partitions])
        topics = self._ask(request, version).results_by_topic_v3_and_below
        return sorted(
            (row.partition_index, row.partition_error_code) for each in topics for row in each.results_by_partition
        )

    def verify(self, slot: int, who: str, is_verify_only: bool) -> object:  # noqa: FBT001 - by name
        """AddPartitionsToTxn of a broker."""
        topic = add_partitions_to_txn.AddPartitionsToTxnTopic(name=self.topic, partitions=(0, 1))
        row = add_partitions_to_txn.AddPartitionsToTxnTransaction(
            **self._named(slot, who), verify_only=is_verify_only, topics=(topic,)
        )
        answer = self._ask(add_partitions_to_txn.AddPartitionsToTxnRequest(transactions=(row,)), 4)
        results = [result for each in answer.results_by_transaction for result in each.topic_results]
        return answer.error_code, sorted(
            (row.partition_index, row.partition_error_code) for each in results for row in each.results_by_partition
        )

    def add_offsets(self, slot: int, who: str, version: int) -> object:
        """AddOffsetsToTxn."""
        request = add_offsets_to_txn.AddOffsetsToTxnRequest(**self._named(slot, who), group_id=self.group)
        return self._ask(request, version).error_code

    def end(self, slot: int, who: str, is_commit: bool, version: int) -> object:  # noqa: FBT001 - by name
        """EndTxn."""
        answer = self._ask(end_txn.EndTxnRequest(**self._named(slot, who), committed=is_commit), version)
        if version < 5:
            return answer.error_code
        if not answer.error_code:
            self._names.setdefault(answer.producer_id, f"P{len(self._names)}")
            self._identities[slot].append((answer.producer_id, answer.producer_epoch))
        return answer.error_code, self._name(answer.producer_id), answer.producer_epoch

    def produce(
        self,
        slot: int,
        who: str,
        partition: int,
        sequence: str,
        tid: str,
        is_transactional: bool,  # noqa: FBT001
        version: int,
    ) -> object:
        """Produce one record of a producer."""
        identity = self._identity(slot, who)
        following = self._sequences.get((identity, partition), 0)
        number = {"next": following, "last": max(following - 1, 0), "gap": following + 5, "zero": 0}[sequence]
        transactional_id = {"own": self.ids[slot], "other": f"{self.ids[slot]}.other", "none": None}[tid]
        batch = write_batch(
            [Record(timestamp=time.time_ns() // 1_000_000, value=b"v")],
            producer_id=identity[0],
            producer_epoch=identity[1],
            base_sequence=number if identity != NOBODY else -1,
            is_transactional=is_transactional,
        )
        answer = self._produced(partition, batch, transactional_id, version)
        if answer[0] == Error.NONE:
            self._sequences[identity, partition] = max(number + 1, following)
        return answer

    def plain_produce(self, partition: int) -> object:
        """Produce one record without a producer id."""
        batch = write_batch([Record(timestamp=time.time_ns() // 1_000_000, value=b"v")])
        return self._produced(partition, batch, None, 8)

    def _produced(self, partition: int, batch: bytes, transactional_id: str | None, version: int) -> tuple[int, int]:
        request = requests.produce(self.topic, {partition: batch}, transactional_id)
        (row,) = self._ask(request, version).responses[0].partition_responses
        return row.error_code, row.base_offset

    def commit_offsets(self, slot: int, who: str, partition: int, offset: int, member: str, version: int) -> object:
        """TxnOffsetCommit."""
        producer = (self.ids[slot], *self._identity(slot, who))
        generation, member_id = self._membership(member if version >= 3 else "none")
        request = requests.txn_offset_commit(
            producer, self.group, {(self.topic, partition): offset}, generation, member_id
        )
        return self._ask(request, version).topics[0].partitions[0].error_code

    def plain_commit(self, partition: int, offset: int, member: str) -> object:
        """OffsetCommit."""
        request = requests.offset_commit(self.group, {(self.topic, partition): offset}, *self._membership(member))
        return self._ask(request, 7).topics[0].partitions[0].error_code

    def _membership(self, member: str) -> tuple[int, str]:
        return {"none": (-1, ""), "member": (1, self._member), "old generation": (0, self._member), "ghost": (1, "g")}[
            member
        ]

    def delete_offsets(self) -> object:
        """OffsetDelete of partition 0."""
        answer = self._ask(requests.offset_delete(self.group, [(self.topic, 0)]), 0)
        return answer.error_code, [row.error_code for each in answer.topics for row in each.partitions]

    def delete_group(self) -> object:
        """DeleteGroups."""
        answer = self._ask(delete_groups.DeleteGroupsRequest(groups_names=(self.group,)), 2)
        return answer.results[0].error_code

    def write_marker(self, slot: int, who: str, partition: int, is_commit: bool, version: int) -> object:  # noqa: FBT001
        """WriteTxnMarkers of an administrator."""
        producer_id, epoch = self._identity(slot, who)
        request = requests.write_txn_markers(producer_id, epoch, [(self.topic, partition)], commit=is_commit)
        answer = self._ask(request, version)
        return [row.error_code for each in answer.markers for topic in each.topics for row in topic.partitions]

    def list_transactions(self, states: tuple[str, ...]) -> object:
        """ListTransactions, of the sequence's own ids."""
        answer = self._ask(list_transactions.ListTransactionsRequest(state_filters=states), 0)
        own = sorted(
            (row.transactional_id.rpartition(".")[2], row.transaction_state)
            for row in answer.transaction_states
            if row.transactional_id in self.ids
        )
        return answer.error_code, answer.unknown_state_filters, own

    def time_out(self, slot: int) -> object:
        """Begin a transaction that times out, like all later ones of this id, before the next step."""
        answers = [self.init(slot, "nobody", 4, SHORT_TIMEOUT_MS)]
        self._settled()
        return [*answers, self.init(slot, "nobody", 4, SHORT_TIMEOUT_MS), self.add(slot, "current", (0,), 3)]
