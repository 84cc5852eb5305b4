"""The three clients behind one interface: consume a topic as a member of a group until stopped.

Each reports its observations (`Report`), commits the records it has reported, and raises the client's own errors as
`GaveUpError` with the client's own name for them. Settings that members of a group must share (the assignor, the
timeouts) are the same for all three; everything else keeps the client's default. Java's client is `java/Member.java`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable

POLL_MS = 100
"""The length of a poll, and so the delay before a member notices a stop."""

BATCH = 500
"""The most records in a commit."""

COMMIT_S = 0.5
"""The commit interval of a kafka-python member without new records."""


@dataclass(frozen=True)
class Membership:
    """The member's identity and group. `instance_id` None: a dynamic member.

    `protocol`: an assignor of the classic protocol, or "consumer" (KIP-848), which only confluent-kafka and Java know;
    kafka-python and aiokafka use "range".
    """

    bootstrap_servers: str
    topic: str
    group_id: str
    client_id: str
    instance_id: str | None
    session_timeout_ms: int
    heartbeat_interval_ms: int
    protocol: str = "range"

    def settings(self) -> dict[str, str | int]:
        """Return the settings under Kafka's names, for confluent-kafka and Java. A consumer group has its own times."""
        settings: dict[str, str | int] = {
            "bootstrap.servers": self.bootstrap_servers,
            "client.id": self.client_id,
            "group.id": self.group_id,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
        }
        if self.protocol == "consumer":
            settings["group.protocol"] = "consumer"
        else:
            settings["partition.assignment.strategy"] = self.protocol
            settings["session.timeout.ms"] = self.session_timeout_ms
            settings["heartbeat.interval.ms"] = self.heartbeat_interval_ms
        if self.instance_id is not None:
            settings["group.instance.id"] = self.instance_id
        return settings


class Report(Protocol):
    """Receives a member's observations."""

    def assigned(self, partitions: Iterable[int]) -> None:
        """Handle the assign callback."""

    def revoked(self, partitions: Iterable[int]) -> None:
        """Handle the revoke (or lost) callback."""

    def consumed(self, records: Iterable[tuple[int, int]]) -> None:
        """Handle delivered records, as (partition, offset)."""

    def refused(self, error: str) -> None:
        """Handle a commit rejected because of a rebalance; the records will be delivered again."""


class GaveUpError(Exception):
    """The client stops with an error. `name` is the client's own name for it."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name
        self.text = text


def kafka_python(membership: Membership, report: Report, stop: threading.Event) -> None:
    """Consume with kafka-python 3.

    Observed behaviour: a static member sends no LeaveGroup on close. Fenced by a heartbeat, it just stops sending
    heartbeats, and `poll` continues as if nothing had happened; the error surfaces at the next commit. Therefore this
    member commits regularly even without new records, as it would with `enable_auto_commit`.

    It looks up the partitions before its first poll. Otherwise kafka-python 3.0.12 joins before it knows them and joins
    again afterwards; if a poll ends during that second join, it ignores the outcome and owns nothing.
    """
    from kafka import ConsumerRebalanceListener, KafkaConsumer  # noqa: PLC0415 - a process loads its own client only
    from kafka.coordinator.assignors.range import RangePartitionAssignor  # noqa: PLC0415
    from kafka.errors import CommitFailedError, KafkaError, RebalanceInProgressError  # noqa: PLC0415

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            report.assigned(partition.partition for partition in assigned)

        def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            report.revoked(partition.partition for partition in revoked)

    consumer = KafkaConsumer(
        bootstrap_servers=membership.bootstrap_servers,
        client_id=membership.client_id,
        group_id=membership.group_id,
        group_instance_id=membership.instance_id,
        session_timeout_ms=membership.session_timeout_ms,
        heartbeat_interval_ms=membership.heartbeat_interval_ms,
        partition_assignment_strategy=[RangePartitionAssignor],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    try:
        consumer.subscribe([membership.topic], listener=Listener())
        consumer.partitions_for_topic(membership.topic)
        committed_at = time.monotonic()
        while not stop.is_set():
            batches = consumer.poll(timeout_ms=POLL_MS)
            report.consumed((record.partition, record.offset) for batch in batches.values() for record in batch)
            if consumer.assignment() and (batches or time.monotonic() - committed_at > COMMIT_S):
                committed_at = time.monotonic()
                try:
                    consumer.commit()
                except (CommitFailedError, RebalanceInProgressError) as error:
                    report.refused(str(error))
    except KafkaError as error:
        raise GaveUpError(type(error).__name__, str(error)) from error
    finally:
        consumer.close()


def confluent(membership: Membership, report: Report, stop: threading.Event) -> None:
    """Consume with confluent-kafka, which is librdkafka.

    It commits what it has reported before it gives partitions up, so that their next owner repeats nothing.

    A static member sends no LeaveGroup on close. Fencing reaches a poll as the error `_FATAL`; only its text names the
    cause.
    """
    from confluent_kafka import Consumer, KafkaError, KafkaException  # noqa: PLC0415

    consumer = Consumer(membership.settings())
    rebalancing = {KafkaError.REBALANCE_IN_PROGRESS, KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID}
    delivered: list[tuple[int, int]] = []

    def commit() -> None:
        report.consumed(delivered)
        delivered.clear()
        try:
            consumer.commit(asynchronous=False)
        except KafkaException as exception:
            code = exception.args[0].code()
            if code in rebalancing:
                report.refused(exception.args[0].str())
            elif code != KafkaError._NO_OFFSET:  # noqa: SLF001 - everything is committed
                raise

    def give_up(_: Consumer, partitions: Iterable[Any]) -> None:
        commit()
        report.revoked(partition.partition for partition in partitions)

    try:
        consumer.subscribe(
            [membership.topic],
            on_assign=lambda _, partitions: report.assigned(partition.partition for partition in partitions),
            on_revoke=give_up,
        )
        while not stop.is_set():
            # one by one: a callback within `consume` would come between the delivery of a batch and its report
            message = consumer.poll(POLL_MS / 1000)
            if message is not None:
                error = message.error()
                if error is None:
                    delivered.append((message.partition(), message.offset()))  # type: ignore[arg-type]
                elif error.code() != KafkaError.REBALANCE_IN_PROGRESS:  # after which librdkafka joins again
                    raise GaveUpError(error.name(), error.str())
            if message is None or len(delivered) >= BATCH:
                commit()
    except KafkaException as exception:
        raise GaveUpError(exception.args[0].name(), exception.args[0].str()) from exception
    finally:
        consumer.close()


def aiokafka(membership: Membership, report: Report, stop: threading.Event) -> None:
    """Consume with aiokafka, in its own event loop.

    A static member sends no LeaveGroup on close. It names its instance only in JoinGroup and SyncGroup (its Heartbeat
    is v1), so a broker cannot fence it, and a displaced aiokafka member takes its place back. It has no names for the
    errors 81 and 82 either.
    """
    import asyncio  # noqa: PLC0415

    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener  # noqa: PLC0415
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor  # noqa: PLC0415
    from aiokafka.errors import CommitFailedError, KafkaError  # noqa: PLC0415

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            report.assigned(partition.partition for partition in assigned)

        def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            report.revoked(partition.partition for partition in revoked)

    async def run() -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=membership.bootstrap_servers,
            client_id=membership.client_id,
            group_id=membership.group_id,
            group_instance_id=membership.instance_id,
            session_timeout_ms=membership.session_timeout_ms,
            heartbeat_interval_ms=membership.heartbeat_interval_ms,
            partition_assignment_strategy=[RangePartitionAssignor],
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        consumer.subscribe([membership.topic], listener=Listener())
        try:
            await consumer.start()
            while not stop.is_set():
                batches = await consumer.getmany(timeout_ms=POLL_MS)
                report.consumed((record.partition, record.offset) for batch in batches.values() for record in batch)
                if batches:
                    try:
                        await consumer.commit()
                    except CommitFailedError as error:
                        report.refused(str(error))
        finally:
            await consumer.stop()

    try:
        asyncio.run(run())
    except KafkaError as error:
        raise GaveUpError(type(error).__name__, str(error)) from error


CLIENTS: dict[str, Callable[[Membership, Report, threading.Event], None]] = {
    "kafka-python": kafka_python,
    "confluent-kafka": confluent,
    "aiokafka": aiokafka,
}
