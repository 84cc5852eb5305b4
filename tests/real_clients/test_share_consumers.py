"""confluent-kafka's ShareConsumer (KIP-932): deliveries, acknowledgements, locks, and what ends them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from clients.consumers import PATIENCE_S
from clients.share_groups import configure
from clients.transactional import transactional
from confluent_kafka import AcknowledgeType, KafkaException, Message, ShareConsumer

from koordinator.client.connection import Deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from koordinator import Cluster

SETTINGS = {"group.share.heartbeat.interval.ms": 100}

pytestmark = pytest.mark.koordinator(topics={"t": 1}, config=SETTINGS)

POLL_S = 0.1

ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT

INVALID_RECORD_STATE = 121


class Sharer:
    """A share consumer; `told` has what its callback was told: offsets, and the number of the error."""

    def __init__(self, settings: dict[str, object], topic: str) -> None:
        self.consumer = ShareConsumer(settings)
        self.told: list[tuple[set[int], int | None]] = []
        self.consumer.set_acknowledgement_commit_callback(self._note)
        self.consumer.subscribe([topic])

    def _note(self, offsets: dict[object, set[int]], error: KafkaException | None) -> None:
        number = None if error is None else error.args[0].code()
        self.told.extend((set(each), number) for each in offsets.values())

    def take(self) -> list[Message]:
        """Poll until there are records; return them."""
        return take_any(self)[1]

    def poll(self) -> list[Message]:
        """Poll once."""
        messages = list(self.consumer.poll(POLL_S))
        assert all(message.error() is None for message in messages)
        return messages

    def poll_until(self, condition: Callable[[], bool]) -> None:
        """Poll until the condition holds; there are no records meanwhile."""
        deadline = Deadline(PATIENCE_S)
        while not condition():
            assert deadline.left()
            assert not self.poll()

    def answer(self, messages: Iterable[Message], how: AcknowledgeType = ACCEPT) -> list[int | None]:
        """Acknowledge records and wait for the broker; return the error of each partition."""
        for message in messages:
            self.consumer.acknowledge(message, how)
        results = self.consumer.commit_sync(PATIENCE_S).values()
        return [None if error is None else error.args[0].code() for error in results]


def take_any(*sharers: Sharer) -> tuple[Sharer, list[Message]]:
    """Poll in turn until a consumer has records; return it with them."""
    deadline = Deadline(PATIENCE_S)
    while True:
        for sharer in sharers:
            if taken := sharer.poll():
                return sharer, taken
        assert deadline.left(), "no records"


class Sharers:
    """The share consumers of group g."""

    def __init__(self, cluster: Cluster, stack: ExitStack) -> None:
        self._cluster, self._stack = cluster, stack

    def join(self, mode: str = "explicit", topic: str = "t") -> Sharer:
        """Start a consumer of a topic; it is closed after the test."""
        settings: dict[str, object] = {
            "bootstrap.servers": self._cluster.bootstrap_servers,
            "group.id": "g",
            "share.acknowledgement.mode": mode,
        }
        sharer = Sharer(settings, topic)
        self._stack.callback(sharer.consumer.close)
        return sharer


@pytest.fixture
def sharers(koordinator: Cluster) -> Iterator[Sharers]:
    """Return the consumers of group g, which reads from the earliest record."""
    with ExitStack() as stack:
        made = Sharers(koordinator, stack)
        configure(koordinator, "g", share_auto_offset_reset="earliest")
        yield made


def seen(messages: Iterable[Message]) -> list[tuple[bytes, int]]:
    """Return the values of records with their delivery counts."""
    return [(value, message.delivery_count()) for message in messages if isinstance(value := message.value(), bytes)]


def test_the_next_poll_accepts_what_the_last_one_returned(koordinator: Cluster, sharers: Sharers) -> None:
    koordinator.produce("t", [b"a", b"b"])
    one = sharers.join("implicit")
    assert seen(one.take()) == [(b"a", 1), (b"b", 1)]
    one.poll_until(lambda: one.told == [({0, 1}, None)])
    one.consumer.close()
    koordinator.produce("t", [b"c"])
    assert seen(sharers.join().take()) == [(b"c", 1)]


def test_two_consumers_share_a_partition_and_no_record_is_delivered_twice(
    koordinator: Cluster, sharers: Sharers
) -> None:
    one, two = sharers.join(), sharers.join()
    group = koordinator.group("g")
    for sharer in (one, two):
        sharer.poll_until(lambda: [each.assignment for each in group.members] == [{"t": [0]}] * 2)
    koordinator.produce("t", [b"a", b"b"])
    quick, first = take_any(one, two)
    koordinator.produce("t", [b"c", b"d"])
    other = two if quick is one else one
    second = other.take()
    assert (seen(first), seen(second)) == ([(b"a", 1), (b"b", 1)], [(b"c", 1), (b"d", 1)])
    assert (quick.answer(first), other.answer(second)) == ([None], [None])


def test_a_released_record_is_delivered_again_with_a_higher_count(koordinator: Cluster, sharers: Sharers) -> None:
    koordinator.produce("t", [b"a", b"b", b"c"])
    one = sharers.join()
    a, b, c = one.take()
    one.consumer.acknowledge(a, ACCEPT)
    one.consumer.acknowledge(c, ACCEPT)
    assert one.answer([b], RELEASE) == [None]
    again = one.take()
    assert seen(again) == [(b"b", 2)]
    assert one.answer(again) == [None]


def test_a_rejected_record_is_never_delivered_again(koordinator: Cluster, sharers: Sharers) -> None:
    koordinator.produce("t", [b"a", b"b"])
    one = sharers.join()
    a, b = one.take()
    one.consumer.acknowledge(b, RELEASE)
    assert one.answer([a], REJECT) == [None]
    again = one.take()
    assert seen(again) == [(b"b", 2)]
    one.answer(again)
    koordinator.produce("t", [b"c"])
    assert seen(sharers.join().take()) == [(b"c", 1)]


def test_a_record_at_the_limit_of_deliveries_is_archived(koordinator: Cluster, sharers: Sharers) -> None:
    configure(koordinator, "g", share_delivery_count_limit=3)
    koordinator.produce("t", [b"poison"])
    one = sharers.join()
    for count in (1, 2, 3):
        taken = one.take()
        assert seen(taken) == [(b"poison", count)]
        assert one.answer(taken, RELEASE) == [None]
    koordinator.produce("t", [b"next"])
    assert seen(one.take()) == [(b"next", 1)]


def test_a_record_is_delivered_to_another_consumer_when_its_lock_expires(
    koordinator: Cluster, sharers: Sharers
) -> None:
    configure(koordinator, "g", share_record_lock_duration_ms=1_000)
    koordinator.produce("t", [b"a"])
    slow = sharers.join()
    late = slow.take()
    other = sharers.join()
    again = other.take()
    assert seen(again) == [(b"a", 2)]
    assert slow.answer(late) == [INVALID_RECORD_STATE]
    assert slow.told == [({0}, INVALID_RECORD_STATE)]
    assert (other.answer(again), other.told) == ([None], [({0}, None)])


def test_a_consumer_that_closes_releases_its_records(koordinator: Cluster, sharers: Sharers) -> None:
    koordinator.produce("t", [b"a", b"b", b"c"])
    one = sharers.join()
    one.consumer.acknowledge(one.take()[1])
    one.consumer.close()
    assert one.told == [({1}, None)]
    assert seen(sharers.join().take()) == [(b"a", 2), (b"c", 2)]


def test_a_new_group_begins_at_the_end_by_default(koordinator: Cluster, sharers: Sharers) -> None:
    configure(koordinator, "g", share_auto_offset_reset="latest")
    koordinator.produce("t", [b"old"])
    one = sharers.join()
    one.poll_until(lambda: any(event.get("api") == "ShareFetch" for event in koordinator.group("g").events()))
    koordinator.produce("t", [b"new"])
    assert seen(one.take()) == [(b"new", 1)]


def test_a_read_committed_group_gets_records_of_committed_transactions_only(
    koordinator: Cluster, sharers: Sharers
) -> None:
    configure(koordinator, "g", share_isolation_level="read_committed")
    producer = transactional("confluent-kafka", koordinator.bootstrap_servers, "x")
    for value, is_commit in ((b"first", True), (b"never", False), (b"last", True)):
        producer.begin()
        producer.send("t", value)
        (producer.commit if is_commit else producer.abort)()
    producer.close()
    one = sharers.join("implicit")
    taken = one.take()
    while len(taken) < 2:
        taken += one.take()
    assert seen(taken) == [(b"first", 1), (b"last", 1)]


@pytest.mark.koordinator(topics={"t": 1}, config=SETTINGS, brokers=2)
def test_records_are_delivered_by_a_new_leader_from_where_the_group_was(koordinator: Cluster, sharers: Sharers) -> None:
    koordinator.produce("t", [b"a", b"b"])
    one = sharers.join()
    a, b = one.take()
    one.answer([a])
    leader = koordinator.leader("t", 0)
    assert leader is not None
    koordinator.move_leader("t", 0, to=3 - leader.id)
    # the old leader has forgotten the locks: b is acknowledged too late
    assert one.answer([b]) != [None]
    again = one.take()
    assert seen(again) == [(b"b", 1)]
    assert one.answer(again) == [None]


@pytest.mark.koordinator(topics={"t": 1}, config=SETTINGS, brokers=2)
def test_a_consumer_goes_on_when_its_group_coordinator_moves(koordinator: Cluster, sharers: Sharers) -> None:
    koordinator.produce("t", [b"a"])
    one, group = sharers.join(), koordinator.group("g")
    taken, epoch = one.take(), group.epoch
    coordinator = koordinator.coordinator("g")
    assert coordinator is not None
    koordinator.move_coordinator("g", to=3 - coordinator.id)
    assert one.answer(taken) == [None]
    koordinator.produce("t", [b"b"])
    assert seen(one.take()) == [(b"b", 1)]
    assert group.epoch == epoch
