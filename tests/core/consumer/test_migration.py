"""Online migration between classic and consumer groups, and classic members of consumer groups (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from scenes.consumer_play import ConsumerPlay

from koordinator.emulator.core.effects import StateChanged
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

if TYPE_CHECKING:
    from collections.abc import Sequence

HALF, OTHER_HALF, ALL = [0, 1], [2, 3], [0, 1, 2, 3]


def assigned(partitions: Sequence[int], user_data: bytes | None = None) -> bytes:
    rows = (TopicPartition(topic="t", partitions=tuple(partitions)),) if partitions else ()
    return write_assignment(ConsumerProtocolAssignment(assigned_partitions=rows, user_data=user_data), 1)


def owning(*partitions: int, name: str = "range") -> tuple[tuple[str, bytes], ...]:
    rows = (TopicPartition(topic="t", partitions=partitions),) if partitions else ()
    return ((name, write_subscription(ConsumerProtocolSubscription(topics=("t",), owned_partitions=rows), 1)),)


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
        (row,) = self.send(ListGroupsRequest(), 5).response.groups
        return row.group_type, row.group_state


@pytest.fixture
def play() -> MigrationPlay:
    return MigrationPlay()


def of_policy(policy: str, **settings: Any) -> MigrationPlay:
    return MigrationPlay(group_consumer_migration_policy=policy, **settings)


class TestUpgrade:
    def test_g119_a_classic_member_gives_its_half_up_in_two_rounds(self, play: MigrationPlay) -> None:
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

    def test_g131_the_conversion_is_written_with_the_join(self, play: MigrationPlay) -> None:
        play.classic()
        play.subscribe("A")
        assert play.record_types() == [-2, 5, 3, 7, 6, 8, 5, 3, 7, 7, 6, 8]
        member, group, _, target_epoch, current = (record.value for record in play.appended[-1].records[1:6])
        assert member.classic_member_metadata.session_timeout_ms == 10_000
        assert (group.epoch, target_epoch.assignment_epoch) == (1, 1)
        assert (current.member_epoch, current.previous_member_epoch, current.state) == (1, 1, 0)

    def test_the_trace_shows_the_conversion(self, play: MigrationPlay) -> None:
        play.classic()
        play.subscribe("A")
        changes = [(fact.before, fact.after, fact.cause) for fact in play.facts_of(StateChanged)][-3:]
        assert changes == [
            ("Stable", "Stable", "group_upgrade"),
            ("Stable", "Assigning", "member_join"),
            ("Assigning", "Reconciling", "assigned"),
        ]

    def test_g132_a_parked_join_is_told_to_rejoin(self, play: MigrationPlay) -> None:
        play.classic()
        n = play.new_id(protocols=owning())
        parked = play.join(n, protocols=owning())
        assert parked.parked
        assert play.subscribe("A") == (2, {})
        assert (parked.error, parked.response.member_id) == (Error.REBALANCE_IN_PROGRESS, n)
        assert play.rejoin(n) == (2, "range")

    def test_g134_user_data_and_malformed_assignments_forbid_it(self, play: MigrationPlay) -> None:
        m = play.new_id(protocols=owning())
        play.join(m, protocols=owning())
        play.settle()
        play.sync(1, m, {m: assigned(ALL, b"custom")})
        response = play.heart("A", 0, topics=["t"], owned={}, timeout=30_000)
        assert Error(response.error_code) is Error.GROUP_ID_NOT_FOUND
        assert response.error_message == (
            "Cannot upgrade classic group g to consumer group because an unsupported custom assignor is in use. Please "
            "refer to the documentation or switch to a default assignor before re-attempting the upgrade."
        )
        assert play.listed() == ("classic", "Stable")
        other = MigrationPlay()
        other.stable_member()
        response = other.heart("A", 0, topics=["t"], owned={}, timeout=30_000)
        assert response.error_message.endswith("because the embedded consumer protocol is malformed.")

    def test_g147_a_policy_can_disable_it(self) -> None:
        play = of_policy("disabled")
        play.classic()
        response = play.heart("A", 0, topics=["t"], owned={}, timeout=30_000)
        assert response.error_message == (
            "Cannot upgrade classic group g to consumer group because online upgrade is disabled."
        )
        assert play.subscribe("A", group="h") == (2, {"t": ALL})
        refused = play.join("", version=7, protocols=owning(), group="h")
        assert (refused.error, refused.response.member_id) == (Error.INCONSISTENT_GROUP_PROTOCOL, "")

    def test_g161_a_group_larger_than_the_limit_stays_classic(self) -> None:
        play = MigrationPlay(group_consumer_max_size=1, group_initial_rebalance_delay_ms=3_000)
        joins = [play.join(play.new_id(protocols=owning()), protocols=owning()) for _ in range(2)]
        assert play.subscribe("A") is Error.GROUP_ID_NOT_FOUND
        assert all(join.parked for join in joins)
        play.wait(6_000)
        assert [join.response.generation_id for join in joins] == [1, 1]
        assert play.subscribe("A") is Error.GROUP_ID_NOT_FOUND

    def test_g162_a_group_without_a_generation_fails_but_its_joins_are_answered(self) -> None:
        play = MigrationPlay(group_initial_rebalance_delay_ms=3_000)
        join = play.join(play.new_id(protocols=owning()), protocols=owning())
        response = play.heart("A", 0, topics=["t"], owned={}, timeout=30_000)
        assert (response.error_code, response.error_message) == (Error.UNKNOWN_SERVER_ERROR, None)
        assert join.error is Error.REBALANCE_IN_PROGRESS
        assert play.listed() == ("classic", "PreparingRebalance")

    def test_a_failed_write_leaves_the_classic_group(self, play: MigrationPlay) -> None:
        m = play.classic()
        play.writes = None
        sent = play.start_heart("A", 0, topics=["t"], owned={}, timeout=30_000)
        play.complete_writes(Error.NOT_ENOUGH_REPLICAS)
        assert sent.error is Error.COORDINATOR_NOT_AVAILABLE
        play.writes = Error.NONE
        assert play.listed() == ("classic", "Stable")
        assert play.heartbeat(1, m) is Error.NONE

    def test_offsets_and_commits_in_flight_survive(self, play: MigrationPlay) -> None:
        m = play.classic()
        assert play.commit_errors(1, m) == [Error.NONE]
        play.writes = None
        sent = play.commit(1, m, offsets={("t", 1): 7})
        joined = play.start_heart("A", 0, topics=["t"], owned={}, timeout=30_000)
        play.complete_writes()
        play.writes = Error.NONE
        assert not sent.parked
        assert not joined.parked
        assert play.fetch_as("A", 2) == 1
        assert play.fetch_as("A", 2, ("t", 1)) == 7


class TestClassicMembers:
    def test_g120_a_join_is_answered_at_once(self, play: MigrationPlay) -> None:
        m = play.classic_in_consumer_group()
        assert len(m) == 22
        assert play.sync_as(3, m) == []
        assert play.heartbeat(3, m) is Error.NONE
        assert play.beat("A", 2) == (2, {"t": HALF})
        assert play.beat("A", 2, owned={"t": HALF}) == (3, None)
        assert play.heartbeat(3, m) is Error.REBALANCE_IN_PROGRESS
        assert play.rejoin(m) == (3, "range")
        assert play.sync_as(3, m) == OTHER_HALF

    def test_g122_each_is_told_its_own_first_protocol(self, play: MigrationPlay) -> None:
        play.classic_in_consumer_group()
        n = play.join("", "i-n", version=7, protocols=owning(name="roundrobin"))
        assert n.error is Error.INCONSISTENT_GROUP_PROTOCOL
        o = play.join("", "i-o", version=7, protocols=(*owning(name="roundrobin"), *owning()))
        assert (o.error, o.response.protocol_name) == (Error.NONE, "roundrobin")

    @pytest.mark.parametrize(
        ("generation", "member", "fields", "error"),
        [
            (2, None, {}, Error.ILLEGAL_GENERATION),
            (4, None, {}, Error.ILLEGAL_GENERATION),
            (3, "nobody", {}, Error.UNKNOWN_MEMBER_ID),
            (3, "A", {}, Error.UNKNOWN_MEMBER_ID),
            (3, None, {"protocol_type": "connect"}, Error.INCONSISTENT_GROUP_PROTOCOL),
            (3, None, {"protocol_name": "x"}, Error.INCONSISTENT_GROUP_PROTOCOL),
        ],
    )
    def test_g123_syncs_and_heartbeats_are_checked(
        self, play: MigrationPlay, generation: int, member: str | None, fields: dict[str, str], error: Error
    ) -> None:
        m = play.classic_in_consumer_group()
        assert play.sync_as(generation, member or m, **fields) is error
        if not fields:
            assert play.heartbeat(generation, member or m) is error

    def test_g125_its_own_session_counts(self, play: MigrationPlay) -> None:
        m = play.settled(session=1_000)
        play.wait(1_000)
        assert play.heartbeat(3, m) is Error.UNKNOWN_MEMBER_ID
        assert [member.member_id for member in play.described().members] == ["A"]

    def test_g126_a_join_has_to_be_followed_by_a_sync(self, play: MigrationPlay) -> None:
        m = play.classic_in_consumer_group(rebalance=1_000)
        play.wait(900)
        assert play.heartbeat(3, m) is Error.NONE
        play.wait(100)
        assert play.heartbeat(3, m) is Error.UNKNOWN_MEMBER_ID

    def test_a_member_that_is_told_to_rejoin_has_its_rebalance_timeout(self, play: MigrationPlay) -> None:
        m = play.settled(rebalance=1_000)
        play.subscribe("B")
        assert play.heartbeat(3, m) is Error.REBALANCE_IN_PROGRESS
        play.wait(900)
        assert play.heartbeat(3, m) is Error.REBALANCE_IN_PROGRESS
        play.wait(100)
        assert play.heartbeat(3, m) is Error.UNKNOWN_MEMBER_ID

    def test_g135_a_heartbeat_converts_it(self, play: MigrationPlay) -> None:
        m = play.settled()
        assert play.beat(m, 3, timeout=30_000, topics=["t"], owned={}) == (3, {"t": OTHER_HALF})
        assert {member.member_type for member in play.described().members} == {1}
        assert play.heartbeat(3, m) is Error.UNKNOWN_MEMBER_ID

    def test_g138_its_commits_fail_with_illegal_generation(self, play: MigrationPlay) -> None:
        m = play.settled()
        t0 = {("t", 0): 5}
        assert play.commit_as(m, 3, t0) == [Error.NONE]
        assert play.commit_as(m, 2, t0) == [Error.ILLEGAL_GENERATION]
        assert play.commit_as(m, 4, t0) == [Error.ILLEGAL_GENERATION]
        assert play.commit_as(m, 3, t0, version=7) == [Error.NONE]
        assert play.fetch_as(m, 2) is Error.ILLEGAL_GENERATION

    def test_g140_an_instance_id_alone_can_leave(self, play: MigrationPlay) -> None:
        play.subscribe("P", inst="i1")
        assert play.leave_errors(("X", "i1"), ("", "i9")) == [Error.FENCED_INSTANCE_ID, Error.UNKNOWN_MEMBER_ID]
        left = play.leave(("", "i1"))
        assert [(row.member_id, row.error_code) for row in left.members] == [("", 0)]

    def test_a_member_that_does_not_subscribe_is_refused(self, play: MigrationPlay) -> None:
        play.subscribe("A")
        sent = play.join("X", version=7, protocols=(("range", b"\x00"),))
        assert sent.error is Error.UNKNOWN_SERVER_ERROR
        assert [member.member_id for member in play.described().members] == ["A"]

    def test_they_are_still_there_after_a_failover(self, play: MigrationPlay) -> None:
        m = play.settled()
        partition = play.coordinator.store.partition_of("g")
        records = [record for append in play.appended for record in append.records]
        play.coordinator.unload(play.now, partition)
        play.coordinator.begin_load(play.now, partition)
        play.coordinator.loaded(play.now, partition, records)
        assert play.heartbeat(3, m) is Error.NONE
        assert play.sync_as(3, m) == OTHER_HALF


class TestDowngrade:
    def test_g129_the_group_is_classic_again_when_only_classic_members_are_left(self, play: MigrationPlay) -> None:
        m = play.classic()
        play.subscribe("A")
        play.rejoin(m, *ALL)
        half = play.sync_as(1, m)
        play.rejoin(m, *half)
        play.sync_as(2, m)
        assert play.beat("A", -1) == (-1, None)
        assert play.record_types() == [-8, -8, -7, -7, -6, -5, -5, -4, -3, 2]
        assert play.listed() == ("classic", "PreparingRebalance")
        assert play.heartbeat(2, m) is Error.REBALANCE_IN_PROGRESS
        joined = play.join(m, version=7, protocols=owning())
        assert (joined.response.generation_id, joined.response.leader) == (3, m)
        assert [member.member_id for member in joined.response.members] == [m]
        assert play.described().error_code == Error.GROUP_ID_NOT_FOUND
        play.sync(3, m, {m: assigned(ALL)})
        assert play.heartbeat(3, m) is Error.NONE

    def test_g128_a_leave_group_may_cause_it(self, play: MigrationPlay) -> None:
        m = play.settled()
        n = play.join("", "i-n", version=7, protocols=owning()).response.member_id
        assert play.leave_errors(m, "nobody", "A") == [0, Error.UNKNOWN_MEMBER_ID, 0]
        assert play.listed() == ("classic", "PreparingRebalance")
        assert n

    def test_g137_a_static_joiner_replaces_the_last_member_without_a_rebalance(self, play: MigrationPlay) -> None:
        play.subscribe("P", inst="i1")
        joined = play.join("", "i1", version=7, protocols=owning())
        assert (joined.error, joined.response.generation_id, len(joined.response.member_id)) == (Error.NONE, 2, 22)
        assert play.listed() == ("classic", "Stable")
        synced = play.sync(2, joined.response.member_id, instance_id="i1")
        (row,) = read_assignment(synced.response.assignment).assigned_partitions
        assert sorted(row.partitions) == ALL
        assert play.beat("P", 2, inst="i1") is Error.GROUP_ID_NOT_FOUND

    def test_g149_with_the_policy_upgrade_the_group_stays_a_consumer_group(self) -> None:
        play = of_policy("upgrade")
        m = play.classic()
        assert play.subscribe("A") == (2, {})
        play.rejoin(m, *ALL)
        half = play.sync_as(1, m)
        assert play.rejoin(m, *half) == (2, "range")
        play.sync_as(2, m)
        play.beat("A", -1)
        assert play.listed() == ("consumer", "Assigning")
        assert play.heartbeat(2, m) is Error.NONE
        assert play.rejoin(m, *half) == (3, "range")

    @pytest.mark.parametrize(("policy", "type_"), [("downgrade", "classic"), ("disabled", "consumer")])
    def test_the_other_policies(self, policy: str, type_: str) -> None:
        play = of_policy("bidirectional")
        m = play.settled()
        play.coordinator.store.settings = of_policy(policy).settings
        play.beat("A", -1)
        assert play.listed()[0] == type_
        assert play.subscribe("B", group="h") == (2, {"t": ALL})
        refused = play.join("x", version=7, protocols=owning(), group="h").error
        assert refused is (Error.INCONSISTENT_GROUP_PROTOCOL if policy == "disabled" else Error.NONE)
        assert m

    def test_too_many_members_for_a_classic_group_stay(self) -> None:
        play = MigrationPlay(group_max_size=1)
        play.settled()
        play.join("", "i-n", version=7, protocols=owning())
        play.beat("A", -1)
        assert play.listed()[0] == "consumer"

    def test_a_failed_write_leaves_the_consumer_group(self, play: MigrationPlay) -> None:
        m = play.settled()
        play.writes = None
        left = play.start_heart("A", -1)
        play.complete_writes(Error.NOT_ENOUGH_REPLICAS)
        play.writes = Error.NONE
        assert left.error is Error.COORDINATOR_NOT_AVAILABLE
        assert play.listed()[0] == "consumer"
        assert play.heartbeat(3, m) is Error.NONE
        assert play.beat("A", 3) == (3, None)


def test_g117_an_empty_consumer_group_becomes_a_new_classic_group(play: MigrationPlay) -> None:
    play.subscribe("A")
    play.commit_as("A", 2, {("t", 0): 42})
    play.beat("A", -1)
    member_id = play.new_id(version=7, protocols=owning())
    assert member_id.startswith("c-")
    joined = play.join(member_id, version=7, protocols=owning())
    play.settle()
    assert joined.response.generation_id == 1
    assert play.listed()[0] == "classic"
    assert play.fetch_as(None, -1) == 42
