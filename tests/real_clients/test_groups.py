"""Consumers of the real clients in groups: every assignor, static and dynamic, one client and several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from clients.consumers import ASSIGNORS, KINDS, Member, Members, assignor_settings, wait_settled, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator import Cluster, Group

pytestmark = pytest.mark.koordinator(topics={"t": 6})

PARTITIONS = frozenset(("t", number) for number in range(6))

STATIC = ("one", "two", "three")
DYNAMIC = (None, None, None)
"""The instance ids of three members."""

EACH_ASSIGNOR = [(kind, assignor) for kind in KINDS for assignor in ASSIGNORS[kind]]


def is_shared(*members: Member) -> bool:
    """Return whether each partition has exactly one owner and no member is idle."""
    owned = [partition for member in members for partition in member.assignment]
    return len(owned) == len(PARTITIONS) and set(owned) == PARTITIONS and all(member.assignment for member in members)


def wait_shared(group: Group, *members: Member, size: int | None = None) -> None:
    """Wait until the members share the topic and the coordinator has the same assignment."""
    wait_until("the topic is shared", lambda: is_shared(*members), *members)
    group.wait_stable(members=size or len(members))

    def agree() -> bool:
        assigned = sorted(tuple(held.get("t", ())) for held in group.assignment.values())
        owned = sorted(tuple(sorted(number for _, number in member.assignment)) for member in members)
        # between two cooperative rebalances they agree, too, on a partition that nobody owns
        return assigned == owned and is_shared(*members)

    if size is None:
        wait_until("members and coordinator agree", agree, *members)


def produce(cluster: Cluster, values: Iterable[int]) -> list[bytes]:
    """Write records to all partitions in turn and return their values."""
    texts = [str(value) for value in values]
    for number, text in enumerate(texts):
        cluster.produce("t", {"value": text, "partition": number % 6})
    return [text.encode() for text in texts]


def wait_consumed(values: Iterable[bytes], *members: Member) -> None:
    """Wait until a member has received each of the values."""
    expected = set(values)
    wait_until(
        f"{len(expected)} records consumed",
        lambda: expected <= {value for member in members for value in member.values},
        *members,
    )


def ends(cluster: Cluster) -> dict[tuple[str, int], int]:
    found = dict.fromkeys(PARTITIONS, 0)
    for record in cluster.records("t"):
        found["t", record.partition] += 1
    return found


@pytest.mark.parametrize("names", [DYNAMIC, STATIC], ids=["dynamic", "static"])
@pytest.mark.parametrize(("kind", "assignor"), EACH_ASSIGNOR)
def test_members_come_and_go_and_every_record_is_consumed(
    koordinator: Cluster, join: Members, kind: str, assignor: str, names: tuple[str | None, ...]
) -> None:
    group = koordinator.group("g")

    def member(instance: str | None) -> Member:
        return join(kind, instance=instance, **assignor_settings(kind, assignor))

    early = produce(koordinator, range(30))
    one = member(names[0])
    wait_shared(group, one)
    wait_consumed(early, one)
    assert group.protocol == assignor
    two = member(names[1])
    wait_shared(group, one, two)
    before = {each: each.assignment for each in (one, two)}
    three = member(names[2])
    wait_shared(group, one, two, three)
    if "sticky" in assignor:
        assert all(each.assignment < held for each, held in before.items()), "who was there keeps what it can"
    # only the owner receives the records of a partition
    owners = {partition: each for each in (one, two, three) for partition in each.assignment}
    seen = {each: len(each.records) for each in owners.values()}
    late = produce(koordinator, range(100, 130))
    wait_consumed(late, one, two, three)
    for each, count in seen.items():
        assert {owners[topic, number] for topic, number, *_ in each.records[count:]} <= {each}
        each.commit()
    assert group.offsets == ends(koordinator)
    wait_settled(group)
    generation = group.generation
    two.close()
    if names == STATIC:
        # the member did not leave: its partitions stay assigned
        two = member(names[1])
        wait_shared(group, one, two, three)
        assert group.generation == generation
    else:
        wait_shared(group, one, three)
        assert group.generation > generation
    last = produce(koordinator, range(200, 230))
    wait_consumed(last, *({one, two, three} if names == STATIC else {one, three}))


@pytest.mark.parametrize("names", [DYNAMIC, STATIC], ids=["dynamic", "static"])
def test_the_three_clients_share_a_group(koordinator: Cluster, join: Members, names: tuple[str | None, ...]) -> None:
    group = koordinator.group("g")
    early = produce(koordinator, range(60))
    members: dict[str, Member] = {}

    def member(kind: str) -> Member:
        # by default aiokafka offers another assignor than the others prefer
        return join(kind, instance=names[KINDS.index(kind)], **assignor_settings(kind, "range"))

    for kind in KINDS:
        members[kind] = member(kind)
        wait_shared(group, *members.values())
    assert group.protocol == "range"
    wait_consumed(early, *members.values())
    assert all(len(member.assignment) == 2 for member in members.values())
    # the others rebalance when the leader leaves
    for kind in KINDS:
        members.pop(kind).close()
        if names == DYNAMIC:
            wait_shared(group, *members.values())
        members[kind] = member(kind)
        wait_shared(group, *members.values())
    late = produce(koordinator, range(100, 160))
    wait_consumed(late, *members.values())
    for each in members.values():
        each.commit()
    assert group.offsets == ends(koordinator)


def test_the_three_clients_share_a_group_with_their_default_settings(koordinator: Cluster, join: Members) -> None:
    group = koordinator.group("g")
    # by default clients start at the end of the log at the time of the lookup
    commit_zero(koordinator)
    members = [join.default(kind) for kind in KINDS]
    wait_shared(group, *members)
    # aiokafka offers no other assignor
    assert group.protocol == "roundrobin"
    values = produce(koordinator, range(60))
    wait_consumed(values, *members)
    for member in members:
        member.close()
    # each client commits when it closes
    assert group.offsets == ends(koordinator)
    assert group.state == "Empty"


@pytest.mark.parametrize("kind", KINDS)
def test_members_work_with_the_default_settings_of_their_client(koordinator: Cluster, join: Members, kind: str) -> None:
    group = koordinator.group("g")
    commit_zero(koordinator)
    early = produce(koordinator, range(30))
    one = join.default(kind)
    wait_consumed(early, one)
    two = join.default(kind)
    wait_shared(group, one, two)
    late = produce(koordinator, range(100, 130))
    wait_consumed(late, one, two)
    one.close()
    wait_shared(group, two)
    two.close()
    assert group.offsets == ends(koordinator)


def commit_zero(cluster: Cluster) -> None:
    from confluent_kafka import Consumer, TopicPartition  # noqa: PLC0415

    outsider = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g"})
    outsider.commit(offsets=[TopicPartition(topic, number, 0) for topic, number in PARTITIONS], asynchronous=False)
    outsider.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_consumer_goes_on_where_the_group_has_committed(koordinator: Cluster, join: Members, kind: str) -> None:
    early = produce(koordinator, range(30))
    first = join(kind)
    wait_consumed(early, first)
    first.commit()
    assert koordinator.group("g").offsets == ends(koordinator)
    first.close()
    late = produce(koordinator, range(100, 112))
    second = join(kind)
    wait_consumed(late, second)
    assert sorted(second.values) == sorted(late)


@pytest.mark.parametrize("kind", KINDS)
def test_a_consumer_without_commits_starts_from_the_reset_policy(
    koordinator: Cluster, join: Members, kind: str
) -> None:
    values = produce(koordinator, range(30))
    no_commit: dict[str, Any] = {"enable_auto_commit": False}
    first = join(kind, **no_commit)
    wait_consumed(values, first)
    first.close()
    assert koordinator.group("g").offsets == {}
    second = join(kind, **no_commit)
    wait_consumed(values, second)


# not kafka-python: its leader fetches metadata of the other topic only now, see `patient_poll_ms`
@pytest.mark.parametrize("kind", ["confluent-kafka", "aiokafka"])
def test_members_with_different_topics_get_only_their_own(koordinator: Cluster, join: Members, kind: str) -> None:
    koordinator.create_topic("other", 2)
    one, two = join(kind, topics=["t"]), join(kind, topics=["other"])
    wait_until(
        "each has its topic",
        lambda: one.assignment == PARTITIONS and two.assignment == {("other", 0), ("other", 1)},
        one,
        two,
    )
    koordinator.group("g").wait_stable(members=2)


@pytest.mark.parametrize("kind", KINDS)
def test_an_idle_group_stays_as_it_is(koordinator: Cluster, join: Members, kind: str) -> None:
    group = koordinator.group("g")
    one, two = join(kind), join(kind)
    wait_shared(group, one, two)
    wait_settled(group)
    generation = group.generation
    beats = count_beats(group)
    wait_until("ten heartbeats", lambda: count_beats(group) >= beats + 10, one, two)
    assert group.generation == generation
    assert group.state == "Stable"


def count_beats(group: Group) -> int:
    return sum(event.get("api") == "Heartbeat" and event["kind"] == "response" for event in group.events())
