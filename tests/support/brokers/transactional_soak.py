"""A transactional producer of the soak: it remembers the outcomes of its transactions, and judges the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from builders import requests

from brokers.soak_client import PAUSE_S, SoakClient
from koordinator.emulator.storage.data_dir import LOG
from koordinator.emulator.storage.log_recovery import read_log
from koordinator.wire.control_records import read_marker
from koordinator.wire.errors import Error
from koordinator.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from koordinator.wire.messages.end_txn import EndTxnRequest
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest
from koordinator.wire.records import Record, read_records, write_batch

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from brokers.soak import Figures, Lives
    from koordinator.client.connection import BrokerConnection
    from koordinator.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
    from koordinator.wire.messages.produce import ProduceRequest

TOPIC = "x"
TRANSACTION = 1
CONTROL = 0x20

AGAIN = {
    Error.CONCURRENT_TRANSACTIONS,
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.NOT_COORDINATOR,
    Error.UNSTABLE_OFFSET_COMMIT,
}


class TransactionalProducer(SoakClient):
    """A producer of one partition of topic x; odd numbers use transaction version 2 (KIP-890).

    A record and an offset of its own group belong to each transaction. One whose EndTxn has no response may have either
    outcome.
    """

    def __init__(self, number: int, chance: random.Random, figures: Figures, lives: Lives) -> None:
        super().__init__(f"producer-{number}", figures, lives)
        self.number, self.chance = number, chance
        self.is_bumping = number % 2 == 1
        self.identity, self.sequence, self.count = (-1, -1), 0, 0
        self.committed: set[bytes] = set()
        self.aborted: set[bytes] = set()
        self.offset, self.unsure_offset = -1, -1

    def _live(self, link: BrokerConnection) -> None:
        self._init(link)
        self._look(link)
        while not self.lives.over.is_set():
            self._transact(link)

    def _init(self, link: BrokerConnection) -> None:
        self._ask(link, FindCoordinatorRequest(key=self.name, key_type=TRANSACTION), 2)
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=60_000)
        while (answer := self._ask(link, request, 4)).error_code in AGAIN:
            self.lives.over.wait(PAUSE_S)
        assert not answer.error_code, answer
        self.identity, self.sequence = (answer.producer_id, answer.producer_epoch), 0

    @property
    def _named(self) -> dict[str, Any]:
        return {
            "transactional_id": self.name,
            "producer_id": self.identity[0],
            "producer_epoch": self.identity[1],
        }

    def _transact(self, link: BrokerConnection) -> None:
        self.count += 1
        value = b"%d/%d" % (self.number, self.count)
        # until EndTxn is sent, only an abort is possible
        self.aborted.add(value)
        if not self.is_bumping:
            self._add(link)
        self._produce(link, value)
        self._commit_offset(link)
        is_commit = self.chance.random() < 0.7
        if is_commit:
            self.aborted.remove(value)
            self.unsure_offset = self.count
        request = EndTxnRequest(**self._named, committed=is_commit)
        answer = self._ask(link, request, 5 if self.is_bumping else 3)
        assert not answer.error_code, answer
        if is_commit:
            self.committed.add(value)
            self.offset = self.count
            self.figures.transactions += 1
        if self.is_bumping:
            self.identity, self.sequence = (answer.producer_id, answer.producer_epoch), 0

    def _add(self, link: BrokerConnection) -> None:
        producer_id, epoch = self.identity
        request = requests.add_partitions_to_txn((self.name, producer_id, epoch), [(TOPIC, self.number)])
        while (error := self._added(link, request)) in AGAIN:
            self.lives.over.wait(PAUSE_S)
        assert not error, Error(error)
        answer = self._ask(link, AddOffsetsToTxnRequest(**self._named, group_id=self.name), 3)
        assert not answer.error_code, answer

    def _added(self, link: BrokerConnection, request: AddPartitionsToTxnRequest) -> int:
        (topic,) = self._ask(link, request, 3).results_by_topic_v3_and_below
        return int(topic.results_by_partition[0].partition_error_code)

    def _produce(self, link: BrokerConnection, value: bytes) -> None:
        batch = write_batch(
            [Record(timestamp=0, value=value)],
            producer_id=self.identity[0],
            producer_epoch=self.identity[1],
            base_sequence=self.sequence,
            is_transactional=True,
        )
        request = requests.produce(TOPIC, {self.number: batch}, self.name)
        version = 12 if self.is_bumping else 9
        while (error := self._produced(link, request, version)) in AGAIN:
            self.lives.over.wait(PAUSE_S)
        assert not error, Error(error)
        self.sequence += 1

    def _produced(self, link: BrokerConnection, request: ProduceRequest, version: int) -> int:
        return int(self._ask(link, request, version).responses[0].partition_responses[0].error_code)

    def _commit_offset(self, link: BrokerConnection) -> None:
        request = requests.txn_offset_commit((self.name, *self.identity), self.name, {(TOPIC, self.number): self.count})
        answer = self._ask(link, request, 5 if self.is_bumping else 3)
        assert not answer.topics[0].partitions[0].error_code, answer

    def _look(self, link: BrokerConnection) -> None:
        """Check after a restart: the offset is that of the last commit, or of the one without a response."""
        request = requests.offset_fetch(7, self.name, [(TOPIC, self.number)], stable=True)
        while (row := self._ask(link, request, 7).topics[0].partitions[0]).error_code in AGAIN:
            self.lives.over.wait(PAUSE_S)
        if row.committed_offset not in {self.offset, self.unsure_offset}:
            self.figures.lost.append(
                f"{self.name} in life {self.lives.number}: offset {row.committed_offset}, committed {self.offset}"
            )
        self.offset = self.unsure_offset = row.committed_offset

    def judge(self, directory: Path) -> list[str]:
        """Return what is wrong in the log, as a read_committed consumer sees it."""
        found = read_log((directory / f"{TOPIC}-{self.number}" / LOG).read_bytes())
        assert not found.damage
        visible: set[bytes] = set()
        open_values: dict[int, list[bytes]] = {}
        for header, batch in found.batches:
            marker = read_marker(batch) if header.attributes & CONTROL else None
            if marker is None:
                open_values.setdefault(header.producer_id, []).extend(
                    record.value or b"" for record in read_records(batch)
                )
            else:
                values = open_values.pop(header.producer_id, [])
                visible.update(values if marker.is_commit else ())
        return [
            *(f"{self.name}: committed record {value!r} is lost" for value in sorted(self.committed - visible)),
            *(f"{self.name}: aborted record {value!r} is visible" for value in sorted(self.aborted & visible)),
        ]
