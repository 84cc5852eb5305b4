"""Real consumers with `group.protocol=consumer` (KIP-848): they join, share, commit, return and leave."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition

from koordinator.client.connection import Deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from koordinator import Cluster

SETTINGS = {"group.consumer.heartbeat.interval.ms": 100, "group.consumer.assignment.interval.ms": 0}

pytestmark = pytest.mark.koordinator(topics={"t": 4}, config=SETTINGS)

WAIT_S = 30
POLL_S = 0.05


class Members:
    """The consumers of group g, polled in turn."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.all: list[Consumer] = []

    def join(self, instance_id: str | None = None) -> Consumer:
        """Start a consumer of topic t."""
        settings = {
            "bootstrap.servers": self._cluster.bootstrap_servers,
            "group.id": "g",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        consumer = Consumer({**settings, **({"group.instance.id": instance_id} if instance_id else {})})
        self.all.append(consumer)
        consumer.subscribe(["t"])
        return consumer

    def leave(self, consumer: Consumer) -> None:
        """Close a consumer."""
        self.all.remove(consumer)
        consumer.close()

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Poll every consumer until the condition holds."""
        deadline = Deadline(WAIT_S)
        while not condition():
            assert deadline.left(), [assigned(consumer) for consumer in self.all]
            for consumer in self.all:
                consumer.poll(POLL_S)


def assigned(consumer: Consumer) -> set[int]:
    """Return the partitions of a consumer."""
    return {each.partition for each in consumer.assignment()}


@pytest.fixture
def members(koordinator: Cluster) -> Iterator[Members]:
    """Return the consumers of group g; the rest is closed after the test."""
    with ExitStack() as stack:
        made = Members(koordinator)
        stack.callback(lambda: [made.leave(consumer) for consumer in list(made.all)])
        yield made


def test_consumers_share_the_partitions_and_take_over_those_of_one_that_leaves(members: Members) -> None:
    first = members.join()
    members.wait_until(lambda: len(assigned(first)) == 4)
    second = members.join()
    members.wait_until(lambda: len(assigned(first)) == len(assigned(second)) == 2)
    assert assigned(first) | assigned(second) == {0, 1, 2, 3}
    members.leave(second)
    members.wait_until(lambda: len(assigned(first)) == 4)


def test_offsets_are_committed_with_the_epoch_and_read_by_the_next_member(members: Members) -> None:
    first = members.join()
    members.wait_until(lambda: len(assigned(first)) == 4)
    first.commit(offsets=[TopicPartition("t", 0, 2)], asynchronous=False)
    members.leave(first)
    second = members.join()
    members.wait_until(lambda: len(assigned(second)) == 4)
    (committed,) = second.committed([TopicPartition("t", 0)], WAIT_S)
    assert committed.offset == 2


def test_a_static_consumer_returns_to_its_partitions(members: Members) -> None:
    static, other = members.join("i1"), members.join()
    members.wait_until(lambda: len(assigned(static)) == len(assigned(other)) == 2)
    before, others = assigned(static), assigned(other)
    members.leave(static)
    back = members.join("i1")
    members.wait_until(lambda: bool(assigned(back)))
    assert (assigned(back), assigned(other)) == (before, others)


def test_the_clock_of_a_consumer_group_can_be_advanced(koordinator: Cluster, members: Members) -> None:
    first = members.join()
    members.wait_until(lambda: len(assigned(first)) == 4)
    group = koordinator.group("g")
    (fired,) = group.advance(60, keep_alive="none")
    assert fired.kind == "session"
    assert (group.state, group.members) == ("Dead", [])
