"""Scenes of online migration, for the core and for a running broker (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read_assignment,
    write_assignment,
    write_subscription,
)
from koordinator.wire.messages.list_groups import ListGroupsRequest
from scenes.consumer_play import ConsumerPlay

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HALF, OTHER_HALF, ALL = [0, 1], [2, 3], [0, 1, 2, 3]


def assigned(partitions: Sequence[int], user_data: bytes | None = None) -> bytes:
    rows = (TopicPartition(topic="t", partitions=tuple(partitions)),) if partitions else ()
    return write_assignment(ConsumerProtocolAssignment(assigned_partitions=rows, user_data=user_data), 1)


def owning(*partitions: int, name: str = "range", topic: str = "t") -> tuple[tuple[str, bytes], ...]:
    rows = (TopicPartition(topic="t", partitions=partitions),) if partitions else ()
    return ((name, write_subscription(ConsumerProtocolSubscription(topics=(topic,), owned_partitions=rows), 1)),)


class MigrationPlay(ConsumerPlay):
    """Classic members and members of the consumer protocol in one group."""

    def classic(self, partitions: Sequence[int] = ALL, **join: Any) -> str:
        """Form a Stable classic group of one member with these partitions, at generation 1; return its id."""
        member_id = self.new_id(protocols=owning(), **join)
        joined = self.join(member_id, protocols=owning(), **join)
        self.settle()
        assert joined.response.generation_id == 1
        self.sync(1, member_id, {member_id: assigned(partitions)})
        return member_id

    def classic_in_consumer_group(self, **join: Any) -> str:
        """Let A join a new group, then a classic member; return its id. It has not synced."""
        assert self.subscribe("A") == (2, {"t": ALL})
        member_id = self.new_id(version=7, protocols=owning(), **join)
        assert self.rejoin(member_id, **join) == (3, "range")
        return member_id

    def settled(self, **join: Any) -> str:
        """Share the topic between A and a classic member in generation 3; return the id."""
        member_id = self.classic_in_consumer_group(**join)
        self.sync_as(3, member_id)
        assert self.beat("A", 2) == (2, {"t": HALF})
        assert self.beat("A", 2, owned={"t": HALF}) == (3, None)
        self.rejoin(member_id, **join)
        assert self.sync_as(3, member_id) == OTHER_HALF
        return member_id

    def rejoin(self, member_id: str, *owned: int, **join: Any) -> Any:
        """Join and return the generation and the protocol name, or the error."""
        sent = self.join(member_id, version=7, protocols=owning(*owned), **join)
        if sent.error is not Error.NONE:
            return sent.error
        assert (sent.response.leader, sent.response.members) == ("", ())
        return sent.response.generation_id, sent.response.protocol_name

    def sync_as(self, generation: int, member_id: str, **fields: Any) -> Any:
        """Sync and return the partitions of t, or the error."""
        sent = self.sync(
            generation, member_id, version=5, **{"protocol_type": "consumer", "protocol_name": "range", **fields}
        )
        if sent.error is not Error.NONE:
            return sent.error
        decoded = read_assignment(sent.response.assignment)
        assert decoded.user_data is None
        return [partition for row in decoded.assigned_partitions for partition in sorted(row.partitions)]

    def listed(self) -> tuple[str, str]:
        """Return the type and the state of the group in ListGroups."""
        (row,) = self.list_groups()
        return row.group_type, row.group_state

    def list_groups(self) -> Any:
        """Return the rows of ListGroups."""
        return self.send(ListGroupsRequest(), 5).response.groups


def g119_a_classic_member_gives_its_half_up_in_two_rounds(play: MigrationPlay) -> None:
    m = play.classic()
    assert play.subscribe("A") == (2, {})
    assert play.rejoin(m, *ALL) == (1, "range")
    half = play.sync_as(1, m)
    assert len(half) == 2
    assert play.heartbeat(1, m) is Error.REBALANCE_IN_PROGRESS
    assert play.rejoin(m, *half) == (2, "range")
    assert play.sync_as(2, m) == half
    assert play.heartbeat(2, m) is Error.NONE
    assert play.beat("A", 2) == (2, {"t": [each for each in ALL if each not in half]})


def g120_a_join_is_answered_at_once(play: MigrationPlay) -> None:
    m = play.classic_in_consumer_group()
    assert len(m) == 22
    assert play.sync_as(3, m) == []
    assert play.heartbeat(3, m) is Error.NONE
    assert play.beat("A", 2) == (2, {"t": HALF})
    assert play.beat("A", 2, owned={"t": HALF}) == (3, None)
    assert play.heartbeat(3, m) is Error.REBALANCE_IN_PROGRESS
    assert play.rejoin(m) == (3, "range")
    assert play.sync_as(3, m) == OTHER_HALF


def g135_a_heartbeat_converts_it(play: MigrationPlay) -> None:
    m = play.settled()
    assert play.beat(m, 3, timeout=30_000, topics=["t"], owned={}) == (3, {"t": OTHER_HALF})
    assert {member.member_type for member in play.described().members} == {1}
    assert play.heartbeat(3, m) is Error.UNKNOWN_MEMBER_ID


def g138_its_commits_fail_with_illegal_generation(play: MigrationPlay) -> None:
    m = play.settled()
    t0 = {("t", 0): 5}
    assert play.commit_as(m, 3, t0) == [Error.NONE]
    assert play.commit_as(m, 2, t0) == [Error.ILLEGAL_GENERATION]
    assert play.commit_as(m, 4, t0) == [Error.ILLEGAL_GENERATION]
    assert play.commit_as(m, 3, t0, version=7) == [Error.NONE]
    assert play.fetch_as(m, 2) is Error.ILLEGAL_GENERATION


def g129_the_group_is_classic_again_when_only_classic_members_are_left(play: MigrationPlay) -> None:
    m = play.classic()
    play.subscribe("A")
    play.rejoin(m, *ALL)
    half = play.sync_as(1, m)
    play.rejoin(m, *half)
    play.sync_as(2, m)
    assert play.beat("A", -1) == (-1, None)
    assert play.listed() == ("classic", "PreparingRebalance")
    assert play.heartbeat(2, m) is Error.REBALANCE_IN_PROGRESS
    joined = play.join(m, version=7, protocols=owning())
    assert (joined.response.generation_id, joined.response.leader) == (3, m)
    assert [member.member_id for member in joined.response.members] == [m]
    assert play.described().error_code == Error.GROUP_ID_NOT_FOUND
    play.sync(3, m, {m: assigned(ALL)})
    assert play.heartbeat(3, m) is Error.NONE


def g137_a_static_joiner_replaces_the_last_member_without_a_rebalance(play: MigrationPlay) -> None:
    play.subscribe("P", inst="i1")
    joined = play.join("", "i1", version=7, protocols=owning())
    assert (joined.error, joined.response.generation_id, len(joined.response.member_id)) == (Error.NONE, 2, 22)
    assert play.listed() == ("classic", "Stable")
    synced = play.sync(2, joined.response.member_id, instance_id="i1")
    (row,) = read_assignment(synced.response.assignment).assigned_partitions
    assert sorted(row.partitions) == ALL
    assert play.beat("P", 2, inst="i1") is Error.GROUP_ID_NOT_FOUND


def g128_a_leave_group_may_cause_it(play: MigrationPlay) -> None:
    m = play.settled()
    n = play.join("", "i-n", version=7, protocols=owning()).response.member_id
    assert play.leave_errors(m, "nobody", "A") == [0, Error.UNKNOWN_MEMBER_ID, 0]
    assert play.listed() == ("classic", "PreparingRebalance")
    assert n


def g117_an_empty_consumer_group_becomes_a_new_classic_group(play: MigrationPlay) -> None:
    play.subscribe("A")
    play.commit_as("A", 2, {("t", 0): 42})
    play.beat("A", -1)
    member_id = play.new_id(version=7, protocols=owning())
    assert len(member_id) > len("-") + 36, "<client id>-<uuid>"
    joined = play.join(member_id, version=7, protocols=owning())
    play.settle()
    assert joined.response.generation_id == 1
    assert play.listed()[0] == "classic"
    assert play.fetch_as(None, -1) == 42


def a_member_that_does_not_subscribe_is_refused(play: MigrationPlay) -> None:
    play.subscribe("A")
    sent = play.join("X", version=7, protocols=(("range", b"\x00"),))
    assert sent.error is Error.INCONSISTENT_GROUP_PROTOCOL, "in 4.4; before, -1"
    assert [member.member_id for member in play.described().members] == ["A"]


SCENES: list[Callable[[MigrationPlay], None]] = [
    g119_a_classic_member_gives_its_half_up_in_two_rounds,
    g120_a_join_is_answered_at_once,
    g135_a_heartbeat_converts_it,
    g138_its_commits_fail_with_illegal_generation,
    g129_the_group_is_classic_again_when_only_classic_members_are_left,
    g137_a_static_joiner_replaces_the_last_member_without_a_rebalance,
    g128_a_leave_group_may_cause_it,
    g117_an_empty_consumer_group_becomes_a_new_classic_group,
    a_member_that_does_not_subscribe_is_refused,
]
"""Scenes whose expectations are the answers alone."""
