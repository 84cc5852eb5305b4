"""Online migration between classic and consumer groups, and classic members of consumer groups (KIP-848)."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from scenes.migrations import ALL, HALF, OTHER_HALF, SCENES, MigrationPlay, assigned, owning

from koordinator.emulator.core.groups.facts import StateChanged
from koordinator.emulator.core.groups.records import offsets_partition
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def play() -> MigrationPlay:
    return MigrationPlay()


def of_policy(policy: str, **settings: Any) -> MigrationPlay:
    return MigrationPlay(group_consumer_migration_policy=policy, **settings)


class TestUpgrade:
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

    @pytest.mark.parametrize("length", [b"\xff\xff\xff\xff", b"\x7f\0\0\0", b"\0\0\0\2\0", b"\0\0\0\1\0\x09"])
    @pytest.mark.parametrize(
        ("release", "error"), [("4.3", Error.UNKNOWN_SERVER_ERROR), ("4.4", Error.GROUP_ID_NOT_FOUND)]
    )
    def test_before_4_4_an_impossible_length_is_an_unexpected_error(
        self, length: bytes, release: str, error: Error
    ) -> None:
        play = MigrationPlay(kafka_version=release)
        subscription = b"\0\1\0\0\0\1\0\1t\xff\xff\xff\xff" + length
        m = play.new_id(protocols=(("range", subscription),))
        play.join(m, protocols=(("range", subscription),))
        play.settle()
        play.sync(1, m, {m: b""})
        response = play.heart("A", 0, topics=["t"], owned={}, timeout=30_000)
        assert response.error_code == error
        assert (response.error_message is None) is (error is Error.UNKNOWN_SERVER_ERROR)

    def test_a_successor_keeps_what_its_classic_predecessor_was_to_give_up(self) -> None:
        play = of_policy("upgrade")
        joined = play.join("", "i1", version=7, protocols=owning())
        play.settle()
        m = joined.response.member_id
        play.sync(1, m, {m: assigned(ALL)}, instance_id="i1")
        assert play.subscribe("A") == (2, {})
        again = play.join(m, "i1", version=7, protocols=owning(*ALL))
        assert again.response.generation_id == 1
        assert play.beat("A", -1) == (-1, None)
        assert play.subscribe("B", inst="i1") == (3, {"t": list(ALL)})

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

    def test_3_9_migrates_no_group_by_default(self) -> None:
        play = MigrationPlay(
            kafka_version="3.9",
            group_coordinator_new_enable=True,
            group_coordinator_rebalance_protocols="classic,consumer",
        )
        play.classic()
        response = play.heart("A", 0, topics=["t"], owned={}, timeout=30_000, version=0)
        assert Error(response.error_code) is Error.GROUP_ID_NOT_FOUND
        assert play.listed() == ("classic", "Stable")

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

    def test_a_refused_join_undoes_no_conversion_that_is_being_written(self, play: MigrationPlay) -> None:
        play.classic()
        play.writes = None
        joined = play.start_heart("A", 0, topics=["t"], owned={}, timeout=30_000)
        refused = play.start_heart("A", 9, owned={})
        assert refused.error is Error.FENCED_MEMBER_EPOCH
        play.complete_writes()
        play.writes = Error.NONE
        assert joined.response.member_epoch == 2
        assert play.listed() == ("consumer", "Reconciling")

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


def fetched(play: MigrationPlay) -> list[tuple[int, int]]:
    """Return the stable offset and the error of two partitions."""
    return [(row[0], row[3]) for row in play.fetch(("t", 0), ("t", 1), stable=True).values()]


class TestClassicMembers:
    def test_a_member_with_a_target_may_take_the_place_of_a_static_one(self, play: MigrationPlay) -> None:
        assert play.subscribe("A") == (2, {"t": ALL})
        play.join("", "i-n", version=7, protocols=owning())
        assert play.beat("A", 2) == (2, {"t": HALF})
        assert play.subscribe("A", ["t", "u"], inst="i-n", assignor="uniform") == (4, {"u": [0, 1]})
        former = "the partitions of its former target count as assigned"
        assert play.targets() == {"A": {"t": OTHER_HALF, "u": [0, 1]}}, former

    def test_a_join_with_timeout_minus_1_leaves_that_of_the_member(self, play: MigrationPlay) -> None:
        assert play.subscribe("A", inst="i") == (2, {"t": ALL})
        before = play.appended[-1].records[0].value.rebalance_timeout_ms
        assert play.join("", "i", version=7, protocols=owning(), rebalance=-1).error is Error.NONE
        written = [each.value for each in play.appended[-1].records if hasattr(each.value, "rebalance_timeout_ms")]
        assert {value.rebalance_timeout_ms for value in written} == {before} == {30_000}

    def test_pending_offsets_of_a_forgotten_group_stay_unstable(self, play: MigrationPlay) -> None:
        assert play.subscribe("A") == (2, {"t": ALL})
        assert play.commit_errors(2, "A", offsets={("t", 1): 7}, version=9) == [0]
        assert play.txn_errors({("t", 0): 5}, generation=2, member_id="A") == [0]
        play.heart("A", -1)
        assert play.join("nobody", version=7, protocols=owning()).error is Error.UNKNOWN_MEMBER_ID
        partition = play.appended[-1].partition
        assert fetched(play) == [(-1, Error.UNSTABLE_OFFSET_COMMIT), (-1, 0)]
        assert play.fetch_as(None, -1, ("t", 1)) == 7
        assert play.listed() == ("consumer", "Empty")
        of_partition = (name for at in count() if offsets_partition(name := f"g{at}", 50) == partition)
        play.commit(group=(other := next(of_partition)))
        assert play.fetch_as(None, -1, ("t", 1)) == -1, "the partition was written to"
        assert [row.group_id for row in play.list_groups()] == [other]

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

    def test_one_that_gives_partitions_up_at_the_epoch_of_the_target_is_told_to_rejoin(self) -> None:
        play = MigrationPlay(group_consumer_assignment_interval_ms=3_000)
        m = play.classic()
        play.subscribe("A")
        play.rejoin(m, *ALL)
        half = play.sync_as(1, m)
        assert play.rejoin(m, *half) == (2, "range")
        changed = play.join(m, version=7, protocols=owning(*half, topic="u"))
        assert (changed.response.generation_id, play.shape()) == (2, ("Assigning", 3, 2))
        assert play.heartbeat(2, m) is Error.REBALANCE_IN_PROGRESS

    def test_g140_an_instance_id_alone_can_leave(self, play: MigrationPlay) -> None:
        play.subscribe("P", inst="i1")
        assert play.leave_errors(("X", "i1"), ("", "i9")) == [Error.FENCED_INSTANCE_ID, Error.UNKNOWN_MEMBER_ID]
        left = play.leave(("", "i1"))
        assert [(row.member_id, row.error_code) for row in left.members] == [("", 0)]

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


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_a_scene_of_migration_is_played_as_on_a_broker(
    play: MigrationPlay, scene: Callable[[MigrationPlay], None]
) -> None:
    scene(play)


@pytest.mark.parametrize(
    ("release", "error"),
    [("4.3", Error.UNKNOWN_SERVER_ERROR), ("4.4", Error.INCONSISTENT_GROUP_PROTOCOL)],
)
@pytest.mark.parametrize("subscription", [b"", b"\0", b"\0\1\x7f\0\0\0", b"\0\1\0\0\0\1\0\1t", b"\xff\xff" + bytes(8)])
def test_an_unreadable_subscription_is_refused_as_the_release_does(
    release: str, error: Error, subscription: bytes
) -> None:
    play = MigrationPlay(kafka_version=release)
    play.subscribe("A")
    assert play.join("X", version=7, protocols=(("range", subscription),)).error is error


def test_g129_a_downgrade_is_one_batch(play: MigrationPlay) -> None:
    play.classic()
    play.subscribe("A")
    play.beat("A", -1)
    assert play.record_types() == [-8, -8, -7, -7, -6, -5, -5, -4, -3, 2]
