"""Share groups: records that ten members acquire and acknowledge, beside kfake and Kafka; growth with many held."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measuring import processes
from measuring.rows import Row

from koordinator.client.connection import Address, BrokerConnection, Deadline
from koordinator.client.errors import ClientError
from koordinator.wire.errors import Error
from koordinator.wire.messages import share_fetch as fetching
from koordinator.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from koordinator.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from koordinator.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from measuring.processes import Server

PART = "share groups"
PARTITIONS, MEMBERS = 10, 10
RECORDS = 100_000
BATCH = 500
VALUE = b"v" * 100
ACCEPT = 1
LIMIT_S = 120
IN_FLIGHT = (10, 10_000)
GROWTH_TARGET = 2.0
LOCKS = (
    *("--config", "group.share.max.partition.max.record.locks=10000"),
    *("--config", "group.share.partition.max.record.locks=10000"),
)
"""Kafka's highest limit, so that records in flight do not keep others from being acquired."""

SUPPORT = Path(__file__).parents[2] / "tests" / "support"

GROUP_RESOURCE = 32

LOADING = (Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR)
"""The errors of a broker that has just started."""

Held = tuple[int, int, int]
"""Partition, first and last offset."""


def rows(*, quick: bool) -> list[Row]:
    """Return a row for 100,000 records of ten members, and one for the growth with 10,000 records in flight."""
    records, rounds = (2_000, 1) if quick else (RECORDS, 3)
    kfake = "not built for a quick run" if quick else processes.kfake_program()
    ours = [_worked(_emulator, records) for _ in range(rounds)]
    theirs: list[tuple[float, float]] = []
    if isinstance(kfake, Path):
        start = partial(processes.Server, str(kfake), str(PARTITIONS))
        try:
            theirs = [_worked(start, records) for _ in range(rounds)]
        except (AssertionError, ClientError) as error:
            kfake = f"not comparable: {str(error).partition(': ')[2]}"
    cpu_us, seconds = min(used for used, _ in ours), min(each for _, each in ours)
    few, many = (10, 1_000) if quick else IN_FLIGHT
    grown = {
        count: min(_worked(_emulator, records // 2, in_flight=count)[0] for _ in range(rounds)) for count in (few, many)
    }
    growth = grown[many] / grown[few]
    kafka = None if quick else _records_of_kafka_per_s(records)
    return [
        _beside(records, (cpu_us, seconds), theirs, kfake),
        Row(
            part=PART,
            work=f"{records:,} records, acquired and acknowledged by {MEMBERS} members",
            measured=f"{records / seconds:,.0f} a second",
            beside="Apache Kafka" if kafka is None else f"Apache Kafka {kafka:,.0f}",
            result="skipped: not for a quick run" if kafka is None else f"{records / seconds / kafka:.2f} times",
            target="for comparison",
            met=None,
            figures={"records_per_s": records / seconds, "kafka_records_per_s": kafka},
        ),
        Row(
            part=PART,
            work=f"growth of the processor time of a record, {few:,} to {many:,} records in flight",
            measured=f"{grown[many]:.1f} µs",
            beside=f"itself {grown[few]:.1f} µs",
            result=f"{growth:.2f} times",
            target=f"at most {GROWTH_TARGET:.0f} times",
            met=growth <= GROWTH_TARGET,
            figures={"cpu_us": {str(count): each for count, each in grown.items()}, "growth": growth},
        ),
    ]


def _beside(records: int, ours: tuple[float, float], theirs: Sequence[tuple[float, float]], kfake: Path | str) -> Row:
    cpu_us, seconds = ours
    kfake_us = min((used for used, _ in theirs), default=None)
    return Row(
        part=PART,
        work=f"processor time of each of {records:,} records, acquired and acknowledged by {MEMBERS} members",
        measured=f"{cpu_us:.1f} µs",
        beside="kfake" if kfake_us is None else f"kfake: {kfake_us:.1f} µs",
        result=f"skipped: {kfake}" if kfake_us is None else f"{cpu_us / kfake_us:.2f} times its time",
        target="for comparison",
        met=None,
        figures={"cpu_us": cpu_us, "records_per_s": records / seconds, "kfake_cpu_us": kfake_us},
    )


def _emulator() -> Server:
    return processes.emulator("--topic", f"t:{PARTITIONS}", *LOCKS)


def _worked(start: Callable[[], Server], records: int, in_flight: int = 0) -> tuple[float, float]:
    """Return the server's processor time per record in microseconds, and the seconds, while members take records.

    Another member holds records `in_flight`, at the beginning of every partition.
    """
    with start() as server, ExitStack() as stack:
        links = [stack.enter_context(closing(_link(server.port))) for _ in range(MEMBERS + 1)]
        holder, *members = (_Member(link, f"member-{number}") for number, link in enumerate(links))
        for member in (holder, *members) if in_flight else members:
            member.join()
        held = 0
        if in_flight:
            _produce(links[0], in_flight // PARTITIONS)
            held = holder.hold(in_flight // PARTITIONS * PARTITIONS)
        _produce(links[0], records // PARTITIONS)
        server.rest()
        used = server.processor_s()
        seconds = _taken_s(members, records // PARTITIONS * PARTITIONS, held)
        return (server.processor_s() - used) / records * 1e6, seconds


def _taken_s(members: Sequence[_Member], records: int, held: int = 0) -> float:
    """Return the seconds in which members acquire and acknowledge all records, while others are held."""
    begun, left = time.perf_counter(), records
    while left:
        if time.perf_counter() > begun + LIMIT_S:
            raise TimeoutError(f"{left} records are not acknowledged, {held} are in flight")
        left -= sum(member.work() for member in members)
    for member in members:
        member.work()
    return time.perf_counter() - begun


def _records_of_kafka_per_s(records: int) -> float | None:
    """Return the records that members of the newest Apache Kafka acknowledge; None without Java and Maven."""
    if not (shutil.which("java") and shutil.which("mvn")):
        return None
    sys.path.insert(0, str(SUPPORT))
    from brokers.real_kafka import RealKafka  # noqa: PLC0415 - only where there is Java

    with tempfile.TemporaryDirectory() as folder, RealKafka(Path(folder)) as broker, ExitStack() as stack:
        broker.create_topic("t", PARTITIONS)
        links = [stack.enter_context(closing(_link(broker.address.port))) for _ in range(MEMBERS)]
        members = [_Member(link, f"member-{number}") for number, link in enumerate(links)]
        # a broker loads partitions after its answer, and would begin at their ends
        earliest = AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")
        group = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name="bench", configs=(earliest,))
        links[0].send(IncrementalAlterConfigsRequest(resources=(group,)), 1, IncrementalAlterConfigsResponse)
        for member in members:
            member.join()
        _produce(links[0], records // PARTITIONS)
        return records / _taken_s(members, records // PARTITIONS * PARTITIONS)


def _link(port: int) -> BrokerConnection:
    return BrokerConnection(Address("127.0.0.1", port), Deadline(LIMIT_S), "bench")


class _Member:
    """A member that acknowledges the records of a fetch with its next one, as consumers do by default."""

    def __init__(self, link: BrokerConnection, name: str) -> None:
        self._link, self._name = link, name
        self._epoch = 0
        self._held: list[Held] = []
        self._topic_id: Any = None

    def join(self) -> None:
        """Join, and fetch until all partitions are loaded: they then begin at their ends."""
        epoch, until = 0, time.monotonic() + LIMIT_S
        while self._topic_id is None:
            answer = self._link.send(
                ShareGroupHeartbeatRequest(
                    group_id="bench",
                    member_id=self._name,
                    member_epoch=epoch,
                    subscribed_topic_names=None if epoch else ("t",),
                ),
                1,
                ShareGroupHeartbeatResponse,
            )
            if answer.error_code not in LOADING:
                assert not answer.error_code, answer
                epoch = answer.member_epoch
            if answer.assignment is not None and answer.assignment.topic_partitions:
                self._topic_id = answer.assignment.topic_partitions[0].topic_id
            if time.monotonic() > until:
                raise TimeoutError("no partition is assigned")
        while self._fetch(0)[1] < PARTITIONS:
            if time.monotonic() > until:
                raise TimeoutError("the partitions are not loaded")

    def hold(self, records: int) -> int:
        """Acquire records, and keep them; return their number."""
        held: list[Held] = []
        until = time.monotonic() + LIMIT_S
        while sum(last - first + 1 for _, first, last in held) < records:
            self._held = []
            held += self._fetch(BATCH)[0]
            if time.monotonic() > until:
                raise TimeoutError("the records to hold are not acquired")
        self._held = []
        return records

    def work(self) -> int:
        """Fetch, and acknowledge the records of the fetch before; return the number of acquired records."""
        self._held, _ = self._fetch(BATCH)
        return sum(last - first + 1 for _, first, last in self._held)

    def _fetch(self, records: int) -> tuple[list[Held], int]:
        """Return the acquired records, and the number of partitions without an error."""
        batches: dict[int, list[fetching.AcknowledgementBatch]] = {}
        for number, first, last in self._held:
            batch = fetching.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=(ACCEPT,))
            batches.setdefault(number, []).append(batch)
        numbers = batches if self._epoch else range(PARTITIONS)
        partitions = tuple(
            fetching.FetchPartition(partition_index=number, acknowledgement_batches=tuple(batches.get(number, ())))
            for number in numbers
        )
        request = fetching.ShareFetchRequest(
            group_id="bench",
            member_id=self._name,
            share_session_epoch=self._epoch,
            max_wait_ms=10,
            min_bytes=1,
            max_bytes=1 << 26,
            max_records=max(records, 1),
            batch_size=BATCH,
            topics=(fetching.FetchTopic(topic_id=self._topic_id, partitions=partitions),) if partitions else (),
        )
        answer = self._link.send(request, 1, fetching.ShareFetchResponse)
        assert not answer.error_code, Error(answer.error_code)
        self._epoch += 1
        found = [row for topic in answer.responses for row in topic.partitions]
        assert not any(row.acknowledge_error_code for row in found), found
        acquired = [
            (row.partition_index, each.first_offset, each.last_offset) for row in found for each in row.acquired_records
        ]
        failed = sum(bool(row.error_code) for row in found)
        return acquired, PARTITIONS - failed


def _produce(link: BrokerConnection, count: int) -> None:
    """Write this many records to every partition."""
    for begin in range(0, count, BATCH):
        batch = write_batch([Record(timestamp=0, value=VALUE)] * min(BATCH, count - begin))
        data = tuple(PartitionProduceData(index=number, records=batch) for number in range(PARTITIONS))
        request = ProduceRequest(acks=-1, topic_data=(TopicProduceData(name="t", partition_data=data),))
        answer = link.send(request, 9, ProduceResponse)
        assert not any(row.error_code for row in answer.responses[0].partition_responses), answer
