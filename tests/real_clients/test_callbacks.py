"""The effect of an exception in a rebalance callback, as docs/clients.md describes it."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from koordinator import Cluster

pytestmark = pytest.mark.koordinator(topics={"t": 2})

POLLS = 400
"""The limit of polls, with room for a busy machine."""


def config(cluster: Cluster, kind: str, assignor: Any) -> dict[str, Any]:
    return cluster.client_config(
        kind, group_id="g", client_id="m", enable_auto_commit=False, partition_assignment_strategy=assignor
    )


def test_kafka_python_cannot_commit_in_a_callback(koordinator: Cluster) -> None:
    import kafka  # noqa: PLC0415
    from kafka.coordinator.assignors.range import RangePartitionAssignor  # noqa: PLC0415

    committed: list[str] = []

    class Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: set[Any]) -> None:
            if revoked and not committed:
                try:
                    consumer.commit()
                except RuntimeError as error:
                    committed.append(str(error))
                    raise

        def on_partitions_assigned(self, assigned: set[Any]) -> None:
            pass

    def poll_until(members: int) -> None:
        for _ in range(POLLS):
            consumer.poll(timeout_ms=50)
            group = koordinator.group("g")
            # the group is stable before the consumer has its partitions
            if group.state == "Stable" and len(group.members) == members and consumer.assignment():
                return

    with closing(kafka.KafkaConsumer(**config(koordinator, "kafka-python", [RangePartitionAssignor]))) as consumer:
        consumer.subscribe(["t"], listener=Listener())
        consumer.partitions_for_topic("t")
        poll_until(members=1)
        koordinator.group("g").create_puppet("peer").join()
        with pytest.raises(kafka.errors.KafkaError, match="User rebalance callback throws an error"):
            poll_until(members=2)
        assert "Cannot block on net.run() from the IO thread itself" in committed[0]
        # the client reports this until the callback no longer raises
        poll_until(members=2)
    koordinator.group("g").assert_left("m", timeout=60)


def test_confluent_kafka_raises_callback_errors_in_poll(koordinator: Cluster) -> None:
    import confluent_kafka  # noqa: PLC0415

    def on_assign(_consumer: object, _partitions: object) -> None:
        raise LookupError("from the callback")

    def poll() -> None:
        for _ in range(POLLS):
            consumer.poll(0.05)

    consumer = confluent_kafka.Consumer(config(koordinator, "confluent-kafka", "range"))
    consumer.subscribe(["t"], on_assign=on_assign)
    with pytest.raises(LookupError, match="from the callback"):
        poll()
    consumer.close()


def test_confluent_kafka_does_not_mix_eager_and_cooperative_assignors(koordinator: Cluster) -> None:
    import confluent_kafka  # noqa: PLC0415

    with pytest.raises(confluent_kafka.KafkaException, match=r"online migration .* is not supported"):
        confluent_kafka.Consumer(config(koordinator, "confluent-kafka", "cooperative-sticky,range"))


def test_aiokafka_goes_on_when_a_callback_raises(koordinator: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    import aiokafka  # noqa: PLC0415
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor  # noqa: PLC0415

    class Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_revoked(self, revoked: set[Any]) -> None:
            pass

        async def on_partitions_assigned(self, _: set[Any]) -> None:
            raise LookupError("from the callback")

    async def consume() -> set[Any]:
        consumer = aiokafka.AIOKafkaConsumer(**config(koordinator, "aiokafka", [RangePartitionAssignor]))
        consumer.subscribe(["t"], listener=Listener())
        try:
            await consumer.start()
            return set(consumer.assignment())
        finally:
            await consumer.stop()

    assert len(asyncio.run(consume())) == 2
    assert "from the callback" in caplog.text
