"""Members of Java's client and of franz-go with the consumer protocol (KIP-848): share, return, follow, migrate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from clients.consumers import PATIENCE_S
from clients.line_clients import TOOLS, LineClients

from koordinator.client.connection import Deadline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator import Cluster, Group

SETTINGS = {"group.consumer.heartbeat.interval.ms": 100, "group.consumer.assignment.interval.ms": 0}

pytestmark = pytest.mark.koordinator(topics={"t": 4}, config=SETTINGS)

KINDS = [pytest.param(kind, marks=pytest.mark.needs(TOOLS[kind])) for kind in ("java", "franz-go")]

DYNAMIC = "-"


@pytest.fixture(params=KINDS)
def members(request: pytest.FixtureRequest, koordinator: Cluster) -> Iterator[LineClients]:
    """Return the members of group g; they are judged at the end."""
    with LineClients(request.param, koordinator.bootstrap_servers, "joining") as members:
        yield members
        # a busy machine delays heartbeats, which are due ten times a second here
        koordinator.group("g").assert_conformant(ignore=["C04"])


@pytest.fixture
def group(koordinator: Cluster) -> Group:
    return koordinator.group("g")


def join(
    members: LineClients, *names: str, protocol: str = "consumer", instance: str = DYNAMIC, topic: str = "t"
) -> None:
    for name in names:
        members.ask("join", name, "g", protocol, instance, topic)


def owned(members: LineClients, name: str, count: int) -> set[str]:
    return set(members.ask("owned", name, count).split())


def test_members_share_the_partitions_and_take_over_those_of_one_that_leaves(
    members: LineClients, group: Group
) -> None:
    join(members, "a")
    assert owned(members, "a", 4) == {"t-0", "t-1", "t-2", "t-3"}
    join(members, "b")
    assert len(owned(members, "a", 2) | owned(members, "b", 2)) == 4
    join(members, "c", "d")
    group.wait_stable(members=4, all_owned=True)
    for name in "abcd":
        owned(members, name, 1)
    for name in "bcd":
        members.ask("leave", name)
    owned(members, "a", 4)
    assert group.type == "consumer"


def test_offsets_are_committed_with_the_epoch(members: LineClients, group: Group) -> None:
    join(members, "a")  # alone: a second member's join raises the epoch, which the first hears of in a heartbeat
    members.ask("commit", "a", *min(owned(members, "a", 4)).split("-"), 2)
    assert list(group.offsets.values()) == [2]
    group.assert_request("OffsetCommit", error="NONE", generation=group.members[0].epoch)


@pytest.mark.parametrize("members", [KINDS[0]], indirect=True)
def test_a_static_member_of_java_returns_to_its_partitions(members: LineClients, group: Group) -> None:
    join(members, "static", instance="i1")
    join(members, "other")
    before, others = owned(members, "static", 2), owned(members, "other", 2)
    group.wait_stable(members=2, all_owned=True)
    members.ask("leave", "static")
    join(members, "back", instance="i1")
    assert (owned(members, "back", 2), owned(members, "other", 2)) == (before, others)


@pytest.mark.parametrize("members", [KINDS[1]], indirect=True)
def test_a_static_member_of_franz_go_can_return_after_its_session_only(members: LineClients, group: Group) -> None:
    """It leaves without its instance id."""
    join(members, "static", instance="i1")
    owned(members, "static", 4)
    members.ask("leave", "static")
    group.assert_request("ConsumerGroupHeartbeat", error="INVALID_REQUEST", timeout=PATIENCE_S)
    join(members, "back", instance="i1")
    group.assert_request("ConsumerGroupHeartbeat", error="UNRELEASED_INSTANCE_ID", timeout=PATIENCE_S)
    group.expire_session("i1")
    owned(members, "back", 4)


def test_a_pattern_is_resolved_by_the_coordinator_and_sees_new_topics(
    members: LineClients, koordinator: Cluster, group: Group
) -> None:
    pytest.importorskip("re2", reason="google-re2 has no wheel here")
    koordinator.create_topic("x-a", 2)
    join(members, "a", topic="^x-.*")
    owned(members, "a", 2)
    koordinator.create_topic("x-b", 1)
    group.advance(11)
    assert owned(members, "a", 3) == {"x-a-0", "x-a-1", "x-b-0"}
    group.assert_request("ConsumerGroupHeartbeat", error="NONE")


def test_a_slow_revocation_delays_only_the_partitions_that_move(members: LineClients, group: Group) -> None:
    join(members, "slow")
    owned(members, "slow", 4)
    members.ask("block", "slow")
    join(members, "other")
    deadline = Deadline(PATIENCE_S)
    while not any(member.pending_revocation for member in group.members):
        assert deadline.left(), group.describe()
        owned(members, "other", 0)
    assert group.state == "Reconciling"
    members.ask("free", "slow")
    assert len(owned(members, "slow", 2) | owned(members, "other", 2)) == 4
    group.wait_stable(members=2, all_owned=True).assert_owned_exactly_once()


@pytest.mark.koordinator(topics={"t": 4}, config=SETTINGS, brokers=2)
def test_nobody_rejoins_when_the_coordinator_moves(members: LineClients, koordinator: Cluster, group: Group) -> None:
    join(members, "a", "b")
    before = owned(members, "a", 2), owned(members, "b", 2)
    epoch = group.wait_stable(members=2, all_owned=True).epoch
    coordinator = koordinator.coordinator("g")
    assert coordinator is not None
    koordinator.move_coordinator("g", to=3 - coordinator.id)
    for name, partitions in zip("ab", before, strict=True):  # Java's client leaves silently while it looks for the node
        members.ask("commit", name, *min(partitions).split("-"), 1)
    assert (group.epoch, owned(members, "a", 2), owned(members, "b", 2)) == (epoch, *before)
    members.ask("leave", "b")
    owned(members, "a", 4)
    assert group.epoch == epoch + 1


@pytest.mark.parametrize("there", ["consumer", "classic"])
def test_a_rolling_change_of_the_protocol_keeps_every_partition_owned(
    members: LineClients, group: Group, there: str
) -> None:
    here = "classic" if there == "consumer" else "consumer"
    join(members, "a", "b", protocol=here)
    group.wait_stable(members=2, all_owned=True)
    assert group.type == here
    for old, new in (("a", "c"), ("b", "d")):
        join(members, new, protocol=there)
        group.wait_stable(members=3, all_owned=True)
        members.ask("leave", old)
        group.wait_stable(members=2, all_owned=True)
    assert len(owned(members, "c", 2) | owned(members, "d", 2)) == 4
    assert group.type == there
