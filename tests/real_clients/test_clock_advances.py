"""Days, minutes and sessions pass under real consumers with their default settings, each in less than a second.

Their sessions last 45 s, they beat every 3 s, and a rebalance waits 5 minutes for them.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import pytest
from clients.consumers import PATIENCE_S, wait_settled
from confluent_kafka import Consumer, TopicPartition

from koordinator.emulator.control.inspect.events import Events
from koordinator.emulator.control.time.clocks import Clocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator import Cluster, Group
    from koordinator.handles.clocks import Fired

pytestmark = pytest.mark.koordinator(topics={"t": 4, "u": 1})

AT_ONCE_S = 40.0
"""Less than the shortest time that a lever skips, with room for a busy machine."""

SESSION_MS, REBALANCE_MS = 45_000, 300_000


class Client(Protocol):
    """A consumer with default settings."""

    def subscribe(self, topic: str) -> None: ...
    def assign(self, topic: str) -> None: ...
    def poll(self) -> None: ...
    def owns(self) -> int: ...
    def commit(self, topic: str, offset: int) -> None: ...
    def committed(self, topic: str) -> int | None: ...
    def close(self) -> None: ...


class KafkaPython:
    def __init__(self, bootstrap_servers: str) -> None:
        # importing it warns
        import kafka  # noqa: PLC0415

        self._kafka = kafka
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap_servers, group_id="g", enable_auto_commit=False
        )

    def subscribe(self, topic: str) -> None:
        self._consumer.subscribe([topic])
        # before the first poll: see docs/clients.md
        self._consumer.partitions_for_topic(topic)

    def assign(self, topic: str) -> None:
        self._consumer.assign([self._kafka.TopicPartition(topic, 0)])

    def poll(self) -> None:
        self._consumer.poll(timeout_ms=100)

    def owns(self) -> int:
        return len(self._consumer.assignment())

    def commit(self, topic: str, offset: int) -> None:
        position = self._kafka.OffsetAndMetadata(offset, "", -1)
        self._consumer.commit({self._kafka.TopicPartition(topic, 0): position})

    def committed(self, topic: str) -> int | None:
        return self._consumer.committed(self._kafka.TopicPartition(topic, 0))  # type: ignore[no-any-return]

    def close(self) -> None:
        self._consumer.close()


class Confluent:
    def __init__(self, bootstrap_servers: str) -> None:
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap_servers, "group.id": "g", "enable.auto.commit": False}
        )

    def subscribe(self, topic: str) -> None:
        # with a callback it revokes and rejoins only while it is polled
        self._consumer.subscribe([topic], on_revoke=lambda *_: None)

    def assign(self, topic: str) -> None:
        self._consumer.assign([TopicPartition(topic, 0)])

    def poll(self) -> None:
        self._consumer.poll(0.1)

    def owns(self) -> int:
        return len(self._consumer.assignment())

    def commit(self, topic: str, offset: int) -> None:
        self._consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)

    def committed(self, topic: str) -> int | None:
        (row,) = self._consumer.committed([TopicPartition(topic, 0)], timeout=PATIENCE_S)
        return row.offset if row.offset >= 0 else None

    def close(self) -> None:
        # librdkafka once did not return from it
        closing = threading.Thread(target=self._consumer.close, daemon=True)
        closing.start()
        closing.join(PATIENCE_S)
        assert not closing.is_alive(), f"the consumer has not closed within {PATIENCE_S:g} s"


CLIENTS: dict[str, Callable[[str], Client]] = {"kafka-python": KafkaPython, "confluent-kafka": Confluent}


class Polled:
    """A member that its own thread polls until `rest`."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._ends = threading.Event()
        self._jobs: queue.Queue[Callable[[], None]] = queue.Queue()
        self._polled = threading.Condition()
        self._owns = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ends.is_set():
            self.client.poll()
            with self._polled:
                self._owns = self.client.owns()
                self._polled.notify_all()
            while not self._jobs.empty():
                try:
                    self._jobs.get()()
                finally:
                    self._jobs.task_done()

    def wait_until_it_owns(self, partitions: int) -> None:
        """Wait until the client has this number of partitions."""
        with self._polled:
            assert self._polled.wait_for(lambda: self._owns == partitions, PATIENCE_S)

    def commit(self, topic: str, offset: int) -> None:
        """Commit between two polls."""
        self._jobs.put(lambda: self.client.commit(topic, offset))
        self._jobs.join()

    def rest(self) -> None:
        """Stop polling; heartbeats continue."""
        self._ends.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


Join = Callable[[], Polled]


@pytest.fixture(params=CLIENTS)
def join(request: pytest.FixtureRequest, koordinator: Cluster) -> Iterator[Join]:
    """A function that starts a consumer of t with default settings, polled until the end of the test."""
    there: list[Polled] = []

    def begin() -> Polled:
        client = CLIENTS[request.param](koordinator.bootstrap_servers)
        client.subscribe("t")
        there.append(Polled(client))
        # clients learn their assignment a little after the group is stable
        share = 4 // len(there)
        for each in there:
            each.wait_until_it_owns(share)
        koordinator.group("g").wait_stable(members=len(there))
        return there[-1]

    yield begin
    for each in there:
        each.rest()
        each.client.close()


@pytest.fixture(params=CLIENTS)
def simple(request: pytest.FixtureRequest, koordinator: Cluster) -> Iterator[Client]:
    """A consumer with a manual assignment: its group is Empty."""
    client = CLIENTS[request.param](koordinator.bootstrap_servers)
    client.assign("t")
    yield client
    client.close()


@pytest.fixture
def group(koordinator: Cluster) -> Group:
    return koordinator.group("g")


def at_once(lever: Callable[[], list[Fired]]) -> list[Fired]:
    """Return the result of a control, which must take no real time."""
    began = time.perf_counter()
    fired = lever()
    assert time.perf_counter() - began < AT_ONCE_S
    return fired


def wait_for_heartbeat(group: Group, since: int) -> None:
    """Wait for a successful heartbeat."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        events = group._port.wait(Events.read, PATIENCE_S, group=group.id, since=since)
        if any(line["kind"] == "response" and line["api"] == "Heartbeat" and "error" not in line for line in events):
            return
        since = events[-1]["seq"]
    raise AssertionError("no heartbeat")


def test_a_session_of_45_seconds_ends_at_once(join: Join, group: Group) -> None:
    join()
    (member,) = group.members
    assert member.session_timeout_ms == SESSION_MS
    (fired,) = at_once(lambda: group.advance("45s", keep_alive="none"))
    assert (fired.kind, fired.member_id) == ("session", member.member_id)
    assert group.members == []
    # the client detects it and rejoins
    group.wait_stable(members=1, timeout=PATIENCE_S)


def test_one_session_ends_and_the_other_does_not(join: Join, group: Group) -> None:
    join()
    join()
    _, victim = group.members
    (fired,) = at_once(lambda: group.expire_session(victim.member_id))
    assert (fired.kind, fired.member_id) == ("session", victim.member_id)
    assert victim.member_id not in [member.member_id for member in group.members]
    assert len(group.members) == 1


def test_a_rebalance_timeout_of_5_minutes_is_over_at_once(join: Join, group: Group) -> None:
    join()
    straggler = join()
    waiting, late = group.members
    assert late.rebalance_timeout_ms == REBALANCE_MS
    straggler.rest()
    group.rebalance("deploy")
    fired = at_once_without(group, late.member_id)
    assert [each.kind for each in fired] == ["join"]
    assert [member.member_id for member in group.members] == [waiting.member_id]


def at_once_without(group: Group, member_id: str) -> list[Fired]:
    # measure only after the other member has noticed, which takes up to its heartbeat interval
    assert group._port.wait(Clocks.awaits_only, PATIENCE_S, group=group.id, members=[member_id])
    return at_once(group.expire_join_phase)


def test_the_offsets_of_an_empty_group_expire_after_seven_days_at_once(simple: Client, group: Group) -> None:
    simple.commit("t", 3)
    assert (simple.committed("t"), group.state) == (3, "Empty")
    assert at_once(lambda: group.advance("7d")) == []
    (fired,) = at_once(lambda: group.advance("10m"))
    assert fired.kind == "offsets"
    assert (simple.committed("t"), group.state) == (None, "Dead")


def test_the_offsets_of_an_empty_group_are_made_to_expire_at_once(simple: Client, group: Group) -> None:
    simple.commit("t", 3)
    assert [fired.kind for fired in at_once(group.expire_offsets)] == ["offsets"]
    assert simple.committed("t") is None


def test_offsets_of_an_unsubscribed_topic_expire_after_seven_days(join: Join, group: Group) -> None:
    member = join()
    member.commit("t", 1)
    member.commit("u", 2)
    before = group.describe()
    (fired,) = at_once(group.expire_offsets)
    assert fired.kind == "offsets"
    assert group.offsets == {("t", 0): 1}
    assert group.describe() == before


def test_no_connected_member_with_heartbeats_is_lost_in_seven_days(join: Join, group: Group) -> None:
    join()
    join()
    wait_settled(group)
    before = group.describe()
    since = int(str(group.events()[-1]["seq"]))
    assert at_once(lambda: group.advance("7d", keep_alive="connected")) == []
    # the member continues unaffected
    with group.assert_no_rebalance():
        wait_for_heartbeat(group, since)
    assert group.describe() == before
