"""Real consumers with `group.protocol=consumer` (KIP-848): they join, share, commit, return and leave."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from clients.consumers import PATIENCE_S
from confluent_kafka import Consumer, TopicPartition

from koordinator.client.admin import Admin
from koordinator.client.connection import Address, Deadline
from koordinator.client.groups import describe_groups
from koordinator.client.members import remove_members

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from koordinator import Cluster

SETTINGS = {"group.consumer.heartbeat.interval.ms": 100, "group.consumer.assignment.interval.ms": 0}

pytestmark = pytest.mark.koordinator(topics={"t": 4}, config=SETTINGS)

POLL_S = 0.05


class Members:
    """The consumers of group g, polled in turn."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.all: list[Consumer] = []

    def join(
        self,
        instance_id: str | None = None,
        *,
        protocol: str = "consumer",
        topics: str = "t",
        assignor: str = "range",
    ) -> Consumer:
        """Start a consumer of topic t, or of a pattern, with one of the two protocols."""
        settings = {
            "bootstrap.servers": self._cluster.bootstrap_servers,
            "group.id": "g",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        classic = {"heartbeat.interval.ms": 100, "session.timeout.ms": 6_000, "partition.assignment.strategy": assignor}
        classic = classic if protocol == "classic" else {}
        consumer = Consumer({**settings, **classic, **({"group.instance.id": instance_id} if instance_id else {})})
        self.all.append(consumer)
        consumer.subscribe([topics])
        return consumer

    def leave(self, consumer: Consumer) -> None:
        """Close a consumer."""
        self.all.remove(consumer)
        consumer.close()

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Poll every consumer until the condition holds."""
        deadline = Deadline(PATIENCE_S)
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
    (committed,) = second.committed([TopicPartition("t", 0)], PATIENCE_S)
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
    # its heartbeat, which is due every 100 ms, tells it to rejoin
    members.wait_until(lambda: group.epoch >= 4 and len(assigned(first)) == 4)


def test_the_handle_shows_epochs_targets_and_owners(koordinator: Cluster, members: Members) -> None:
    first = members.join()
    members.wait_until(lambda: len(assigned(first)) == 4)
    group = koordinator.group("g").wait_stable(members=1, all_owned=True)
    assert (group.type, group.epoch, group.generation, group.protocol) == ("consumer", 2, 2, "uniform")
    (member,) = group.members
    assert (member.type, member.epoch) == ("consumer", 2)
    assert member.assignment == member.target == {"t": [0, 1, 2, 3]}
    group.assert_owned_exactly_once()
    with group.expect_rebalance("member_join") as expected:
        second = members.join()
        members.wait_until(lambda: len(assigned(first)) == len(assigned(second)) == 2)
    assert (expected.rebalance.generation_before, expected.rebalance.generation) == (2, 3)
    group.wait_stable(members=2, after_generation=2).evict(group.members[0].member_id)
    members.wait_until(lambda: group.generation > 4 and len(assigned(first)) == len(assigned(second)) == 2)
    group.wait_stable(members=2)


def test_a_fenced_static_consumer_is_replaced(koordinator: Cluster, members: Members) -> None:
    first = members.join("i1")
    members.wait_until(lambda: len(assigned(first)) == 4)
    group = koordinator.group("g")
    group.fence("i1")
    (successor,) = group.members
    assert successor.member_id.endswith("-successor")
    assert successor.assignment == {"t": [0, 1, 2, 3]}


def test_a_pattern_is_resolved_and_sees_new_topics(koordinator: Cluster, members: Members) -> None:
    pytest.importorskip("re2", reason="google-re2 has no wheel here")
    koordinator.create_topic("x-a", 2)
    consumer = members.join(topics="^x-.*")
    members.wait_until(lambda: len(assigned(consumer)) == 2)
    koordinator.create_topic("x-b", 1)
    koordinator.group("g").advance(11)
    members.wait_until(lambda: len(consumer.assignment()) == 3)


@pytest.mark.parametrize("there", ["consumer", "classic"])
def test_a_rolling_change_of_the_protocol_keeps_every_partition_owned(
    koordinator: Cluster, members: Members, there: str
) -> None:
    here = "classic" if there == "consumer" else "consumer"
    group = koordinator.group("g")
    olds = [members.join(protocol=here) for _ in range(2)]
    members.wait_until(lambda: all(len(assigned(each)) == 2 for each in olds))
    assert group.type == here
    for old in olds:
        members.join(protocol=there)
        members.wait_until(lambda: [len(assigned(each)) > 0 for each in members.all].count(True) == 3)
        # librdkafka 2.16 may hang, with the GIL, if it is closed while it gives up partitions (`Consumer_rebalance_cb`)
        members.wait_until(lambda: group.describe().state == "Stable")
        members.leave(old)
        members.wait_until(lambda: sum(len(assigned(each)) for each in members.all) == 4)
    members.wait_until(lambda: sorted(len(assigned(each)) for each in members.all) == [2, 2])
    group.wait_stable(members=2, all_owned=True)
    assert group.type == there


def test_a_group_of_cooperative_librdkafka_members_that_rejoined_is_not_upgraded(
    koordinator: Cluster, members: Members
) -> None:
    group = koordinator.group("g")
    first = members.join(protocol="classic", assignor="cooperative-sticky")
    members.wait_until(lambda: len(assigned(first)) == 4)
    second = members.join(protocol="classic", assignor="cooperative-sticky")
    members.wait_until(lambda: len(assigned(first)) == len(assigned(second)) == 2 and group.state == "Stable")
    members.join()
    members.wait_until(lambda: any(event.get("error") == "GROUP_ID_NOT_FOUND" for event in group.events()))
    assert group.type == "classic"


def test_nobody_gets_a_partition_before_a_slow_member_has_given_it_up(koordinator: Cluster, members: Members) -> None:
    slow = members.join()
    members.wait_until(lambda: len(assigned(slow)) == 4)
    members.all.remove(slow)
    other, group = members.join(), koordinator.group("g")
    # the callback of a revocation runs in poll, and `slow` is not polled
    members.wait_until(lambda: any(member.pending_revocation for member in group.members))
    assert group.state == "Reconciling"
    assert (len(assigned(slow)), len(assigned(other))) == (4, 0)
    members.all.append(slow)
    members.wait_until(lambda: len(assigned(slow)) == len(assigned(other)) == 2)
    group.wait_stable(members=2, all_owned=True).assert_owned_exactly_once()


@pytest.mark.koordinator(topics={"t": 4}, config=SETTINGS, brokers=2)
def test_nobody_rejoins_when_the_coordinator_moves(koordinator: Cluster, members: Members) -> None:
    both = [members.join() for _ in range(2)]
    members.wait_until(lambda: all(len(assigned(each)) == 2 for each in both))
    group = koordinator.group("g").wait_stable(members=2)
    before, epoch = [assigned(each) for each in both], group.epoch
    coordinator = koordinator.coordinator("g")
    assert coordinator is not None
    koordinator.move_coordinator("g", to=coordinator.id % 2 + 1)
    for consumer in both:
        consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
    assert (group.epoch, [assigned(each) for each in both]) == (epoch, before)
    members.leave(both[1])
    members.wait_until(lambda: len(assigned(both[0])) == 4)
    assert group.epoch == epoch + 1


def test_the_command_line_describes_the_group_and_removes_its_members(koordinator: Cluster, members: Members) -> None:
    first = members.join()
    members.wait_until(lambda: len(assigned(first)) == 4)
    host, _, port = koordinator.bootstrap_servers.rpartition(":")
    with Admin((Address(host, int(port)),), PATIENCE_S, "1") as admin:
        (group,) = describe_groups(admin, ["g"]).successes
        assert (group.state, group.protocol, group.protocol_type) == ("Stable", "uniform", "consumer")
        (member,) = group.members
        assert member.assignment == {"t": (0, 1, 2, 3)}
        remove_members(admin, "g", None)
    # the consumer may have joined again by now
    assert koordinator.group("g").epoch > 2
