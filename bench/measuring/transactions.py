"""Transactions: commits per second of one producer, beside other brokers; growth with open transactions."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Producer
from measuring import processes
from measuring.rows import Row

from koordinator.client.connection import Address, BrokerConnection, Deadline
from koordinator.wire.errors import Error
from koordinator.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from koordinator.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    from collections.abc import Callable

PART = "transactions"
SUPPORT = Path(__file__).parents[2] / "tests" / "support"
LIMIT_S = 60
COMMITS = 200
OPEN = (10, 1_000)
RATIO_TARGET = 0.5
GROWTH_TARGET = 2.0
TRANSACTION = 1


def rows(*, quick: bool) -> list[Row]:
    """Return a row for commits of librdkafka's producer, and one for the growth with open transactions."""
    rounds, commits = (1, 5) if quick else (3, COMMITS)
    ours = theirs = 0.0
    kafka = None if quick else _commits_of_kafka_per_s(commits)
    for _ in range(rounds):
        with processes.emulator("--topic", "t:1") as server:
            ours = max(ours, _commits_per_s(server.port, commits))
        with processes.mock() as server:
            theirs = max(theirs, _commits_per_s(server.port, commits))
    few, many = (2, 20) if quick else OPEN
    seconds = {count: min(_commit_s(count, commits) for _ in range(rounds)) for count in (few, many)}
    growth = seconds[many] / seconds[few]
    return [
        Row(
            part=PART,
            work="begin, one record, commit (confluent-kafka)",
            measured=f"{ours:,.0f} a second",
            beside=f"librdkafka's mock {theirs:,.0f}" + (f", Apache Kafka {kafka:,.0f}" if kafka else ""),
            result=f"{ours / theirs:.2f} times",
            target=f"at least {RATIO_TARGET} times",
            met=ours >= RATIO_TARGET * theirs,
            figures={"commits_per_s": ours, "mock_commits_per_s": theirs, "kafka_commits_per_s": kafka},
        ),
        Row(
            part=PART,
            work=f"growth of the time per commit, {few:,} to {many:,} other open transactions",
            measured=f"{seconds[many] * 1e6:,.0f} µs",
            beside=f"itself {seconds[few] * 1e6:,.0f} µs",
            result=f"{growth:.2f} times",
            target=f"at most {GROWTH_TARGET:.0f} times",
            met=growth <= GROWTH_TARGET,
            figures={"seconds": {str(count): each for count, each in seconds.items()}, "growth": growth},
        ),
    ]


def _commits_of_kafka_per_s(count: int) -> float | None:
    """Return the commits of the newest Apache Kafka; None without Java and Maven, which fetches it."""
    if not (shutil.which("java") and shutil.which("mvn")):
        return None
    sys.path.insert(0, str(SUPPORT))
    from brokers.real_kafka import RealKafka  # noqa: PLC0415 - only where there is Java

    with tempfile.TemporaryDirectory() as folder, RealKafka(Path(folder)) as broker:
        broker.create_topic("t")
        return _commits_per_s(broker.address.port, count)


def _commits_per_s(port: int, count: int) -> float:
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "transactional.id": "bench", "linger.ms": 0})
    producer.init_transactions(LIMIT_S)
    begun = 0.0
    for number in range(count + 1):
        producer.begin_transaction()
        producer.produce("t", b"v", partition=0)
        producer.commit_transaction(LIMIT_S)
        if not number:
            # the first transaction looks the coordinator and the leader up
            begun = time.perf_counter()
    return count / (time.perf_counter() - begun)


def _commit_s(open_transactions: int, count: int) -> float:
    """Return the seconds of a Produce and its EndTxn while others have a transaction open in the same partition."""
    with (
        processes.emulator("--topic", "t:1") as server,
        closing(BrokerConnection(Address("127.0.0.1", server.port), Deadline(LIMIT_S), "1")) as link,
    ):
        link.deadline = Deadline(2 * LIMIT_S)
        for number in range(open_transactions):
            _Producer(link, f"open {number}").produce()
        producer = _Producer(link, "bench")
        producer.produce()
        producer.commit()
        begun = time.perf_counter()
        for _ in range(count):
            producer.produce()
            producer.commit()
        return (time.perf_counter() - begun) / count


class _Producer:
    def __init__(self, link: BrokerConnection, transactional_id: str) -> None:
        self._link, self._id = link, transactional_id
        _until_served(
            lambda: (
                link.send(
                    FindCoordinatorRequest(key=transactional_id, key_type=TRANSACTION), 2, FindCoordinatorResponse
                ).error_code
            )
        )
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=600_000)
        _until_served(lambda: self._init(request))

    def _init(self, request: InitProducerIdRequest) -> int:
        answer = self._link.send(request, 4, InitProducerIdResponse)
        self._identity = answer.producer_id, answer.producer_epoch
        return answer.error_code

    def produce(self) -> None:
        producer_id, epoch = self._identity
        batch = write_batch(
            [Record(timestamp=0, value=b"v")],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=0,
            is_transactional=True,
        )
        data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=batch),))
        request = ProduceRequest(transactional_id=self._id, acks=-1, topic_data=(data,))
        _until_served(
            lambda: self._link.send(request, 12, ProduceResponse).responses[0].partition_responses[0].error_code
        )

    def commit(self) -> None:
        producer_id, epoch = self._identity
        request = EndTxnRequest(
            transactional_id=self._id, producer_id=producer_id, producer_epoch=epoch, committed=True
        )
        answer = self._link.send(request, 5, EndTxnResponse)
        assert not answer.error_code, answer
        self._identity = answer.producer_id, answer.producer_epoch


AGAIN = {Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS, Error.CONCURRENT_TRANSACTIONS}


def _until_served(error_of: Callable[[], int]) -> None:
    until = time.monotonic() + LIMIT_S
    while (error := error_of()) in AGAIN:
        if time.monotonic() > until:
            raise TimeoutError(f"still refused with {Error(error).name}")
    assert not error, Error(error).name
