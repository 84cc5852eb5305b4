"""Leaves, static members and timeouts of consumer groups (KIP-848)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenes.consumer_play import ConsumerPlay

from koordinator.emulator.config.kafka_configs import GROUP
from koordinator.emulator.core.groups.consumer.group import ConsumerGroup
from koordinator.wire.errors import Error

MEMBERS = st.sampled_from(["A", "B"])
EPOCHS = st.sampled_from([0, 0, -1, -2, 2, None])
INSTANCES = st.sampled_from(["i1", "i2", None])


def short_sessions(timeout_ms: int) -> ConsumerPlay:
    """Return a coordinator of groups with this session timeout."""
    return ConsumerPlay(group_consumer_session_timeout_ms=timeout_ms, group_consumer_heartbeat_interval_ms=100)


HALF, OTHER_HALF, ALL = {"t": [0, 1]}, {"t": [2, 3]}, {"t": [0, 1, 2, 3]}


class TestLeaving:
    def test_g032_the_next_heartbeat_of_any_member_computes_the_target(self, play: ConsumerPlay) -> None:
        play.converge({"A": play.subscribe("A"), "B": play.subscribe("B")})
        response = play.heart("B", -1)
        assert (response.member_id, response.member_epoch, response.heartbeat_interval_ms) == ("B", -1, 0)
        assert response.assignment is None
        assert play.shape() == ("Assigning", 4, 3)
        assert play.beat("A", 3) == (4, ALL)
        assert play.beat("B", 3) is Error.UNKNOWN_MEMBER_ID

    def test_g033_an_empty_group_keeps_its_epochs(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        play.beat("A", -1)
        assert play.shape() == ("Empty", 3, 3)
        assert play.subscribe("B") == (4, ALL)

    def test_g033_before_4_4_the_last_target_of_an_empty_group_stays(self) -> None:
        play = ConsumerPlay(kafka_version="4.3")
        play.subscribe("A")
        play.beat("A", -1)
        assert (play.shape(), play.record_types()) == (("Empty", 3, 2), [-8, -7, -5, 3])

    @pytest.mark.parametrize(("release", "epoch"), [("4.0", 0), ("4.2", 1), ("4.3", 1)])
    def test_g009_a_first_member_without_topics_raises_the_epoch_in_4_2(self, release: str, epoch: int) -> None:
        play = ConsumerPlay(kafka_version=release)
        play.subscribe("A", topics=())
        assert play.shape() == ("Stable", epoch, epoch)
        assert (3 in play.record_types()) is (release == "4.2")

    def test_g143_a_leave_writes_tombstones_and_the_group(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        play.beat("A", -1)
        assert play.record_types() == [-8, -7, -5, 3, 6]

    def test_offsets_that_a_check_has_found_in_use_expire_once_the_group_is_empty(self) -> None:
        play = ConsumerPlay(offsets_retention_minutes=1, offsets_retention_check_interval_ms=1_000)
        epoch, _ = play.subscribe("A")
        play.commit_as("A", epoch, {("t", 0): 5})
        for _ in range(70):
            play.wait(1_000)
            play.beat("A", epoch)
        play.beat("A", -1)
        play.wait(2_000)
        assert "g" not in play.coordinator.store.groups

    def test_g144_a_deleted_group_leaves_tombstones(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        play.commit_as("A", 2, {("t", 0): 5})
        play.beat("A", -1)
        assert play.delete("g") == {"g": Error.NONE}
        assert play.record_types() == [-1, -6, -4, -3]

    def test_g128_leave_group_removes_members_of_the_consumer_protocol(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        play.subscribe("B")
        assert play.leave_errors("A", "nobody", "B") == [Error.NONE, Error.UNKNOWN_MEMBER_ID, Error.NONE]
        assert play.shape() == ("Empty", 4, 4)
        assert play.record_types() == [-8, -7, -5, -8, -7, -5, 3, 6]

    def test_g140_leave_group_knows_a_member_by_its_instance_id(self, play: ConsumerPlay) -> None:
        play.subscribe("P", inst="i1")
        assert play.leave_errors(("X", "i1"), ("", "i9")) == [Error.FENCED_INSTANCE_ID, Error.UNKNOWN_MEMBER_ID]
        assert play.leave_errors(("", "i1")) == [Error.NONE]


class TestStaticConsumers:
    def test_g056_g057_an_instance_id_that_is_not_released_is_refused(self, play: ConsumerPlay) -> None:
        play.subscribe("P", inst="i1")
        for member_id in ("Q", "P"):
            response = play.heart(member_id, 0, topics=["t"], owned={}, timeout=1, inst="i1")
            assert response.error_code == Error.UNRELEASED_INSTANCE_ID
            assert response.error_message == (
                f"Static member {member_id} with instance id i1 cannot join the group because the instance id is owned "
                "by P member."
            )
        assert play.beat("P", 2, inst="i1") == (2, None)

    def test_g059_a_successor_gets_the_partitions_without_a_new_epoch(self, play: ConsumerPlay) -> None:
        play.subscribe("P", inst="i1")
        assert play.beat("P", -2, inst="i1") == (-2, None)
        assert play.record_types() == [8]
        assert play.subscribe("Q", inst="i1") == (2, ALL)
        assert play.record_types() == [-8, -7, -5, 5, 7, 8, 8]
        assert play.shape() == ("Stable", 2, 2)
        response = play.heart("P", 2, inst="i1")
        assert response.error_code == Error.FENCED_INSTANCE_ID
        assert response.error_message == "Static member P with instance id i1 was fenced by member Q."
        assert play.beat("P", 2) is Error.UNKNOWN_MEMBER_ID

    def test_g060_a_member_may_return_with_its_id(self, play: ConsumerPlay) -> None:
        play.subscribe("P", inst="i1")
        play.beat("P", -2, inst="i1")
        assert play.subscribe("P", inst="i1") == (2, ALL)

    def test_g062_a_successor_may_subscribe_to_another_topic(self, play: ConsumerPlay) -> None:
        play.subscribe("P", inst="i1")
        play.beat("P", -2, inst="i1")
        assert play.subscribe("Q", ["u"], inst="i1") == (3, {"u": [0, 1]})

    def test_g063_the_session_goes_on_after_a_temporary_leave(self) -> None:
        play = short_sessions(1_000)
        play.subscribe("P", inst="i1")
        play.wait(600)
        play.beat("P", -2, inst="i1")
        play.wait(400)
        assert play.shape() == ("Empty", 3, 3)
        assert play.subscribe("Q", inst="i1") == (4, ALL)

    def test_g065_a_static_member_may_leave_like_a_dynamic_one(self, play: ConsumerPlay) -> None:
        play.subscribe("P", inst="i1")
        play.beat("P", -1)
        assert play.subscribe("Q", inst="i1") == (4, ALL)

    def test_g066_a_dynamic_member_does_not_become_static_by_a_heartbeat(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        assert play.heart("A", 2, inst="i1").error_message == "Instance id i1 is unknown."


class TestTimeouts:
    def test_g047_a_silent_member_is_removed_after_its_session(self) -> None:
        play = short_sessions(1_000)
        play.converge({"A": play.subscribe("A"), "B": play.subscribe("B")})
        play.wait(500)
        assert play.beat("A", 3) == (3, None)
        play.wait(500)
        assert play.beat("A", 3) == (4, ALL)

    def test_g054_configs_of_the_group_count_from_the_next_heartbeat_on(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        play.cluster.resource_configs[GROUP]["g"] = {
            "consumer.session.timeout.ms": "1000",
            "consumer.heartbeat.interval.ms": "200",
        }
        play.wait(1_500)
        assert play.heart("A", 2).heartbeat_interval_ms == 200
        play.wait(1_000)
        assert play.beat("A", 2) is Error.UNKNOWN_MEMBER_ID

    def test_g048_a_rejected_heartbeat_does_not_prolong_the_session(self) -> None:
        play = short_sessions(1_000)
        play.subscribe("A")
        play.wait(900)
        assert play.beat("A", 9) is Error.FENCED_MEMBER_EPOCH
        play.wait(100)
        assert play.beat("A", 9) is Error.UNKNOWN_MEMBER_ID

    def test_g050_heartbeats_do_not_stop_the_revocation_timeout(self, play: ConsumerPlay) -> None:
        play.subscribe("A", timeout=1_000)
        play.subscribe("B")
        play.beat("A", 2)
        for _ in range(4):
            play.wait(249)
            assert play.beat("A", 2, owned=ALL) == (2, None)
        play.wait(4)
        assert play.beat("A", 2) is Error.UNKNOWN_MEMBER_ID
        assert play.beat("B", 3) == (4, ALL)

    def test_g051_the_revocation_timeout_begins_when_the_member_is_told(self, play: ConsumerPlay) -> None:
        play.subscribe("A", timeout=1_000)
        play.subscribe("B")
        play.wait(1_500)
        assert play.beat("A", 2) == (2, HALF)

    def test_g053_a_newer_target_does_not_restart_the_revocation_timeout(self, play: ConsumerPlay) -> None:
        play.subscribe("A", timeout=1_000)
        play.subscribe("B")
        play.beat("A", 2)
        play.wait(600)
        play.subscribe("C")
        assert play.beat("A", 2, owned=ALL) == (2, None)
        play.wait(400)
        assert play.beat("A", 2) is Error.UNKNOWN_MEMBER_ID

    def test_an_acknowledgement_ends_the_revocation_timeout(self, play: ConsumerPlay) -> None:
        play.subscribe("A", timeout=1_000)
        play.subscribe("B")
        play.beat("A", 2)
        play.beat("A", 2, owned=HALF)
        play.wait(2_000)
        assert play.beat("A", 3) == (3, None)


class TestRecordsAndLoading:
    def test_g141_a_join_writes_its_records_in_this_order(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        assert play.record_types() == [5, 3, 7, 6, 8]
        written = len(play.appended)
        play.beat("A", 2)
        assert len(play.appended) == written

    def test_g153_g156_a_loaded_group_goes_on_as_before_with_full_sessions(self) -> None:
        play = short_sessions(2_000)
        play.converge({"A": play.subscribe("A"), "B": play.subscribe("B", inst="i1")})
        before = play.described()
        records = [record for batch in play.appended for record in batch.records]
        partition = play.consumer_group().partition
        play.wait(1_500)
        play.coordinator.unload(play.now, partition)
        assert play.beat("A", 3) is Error.NOT_COORDINATOR
        play.coordinator.begin_load(play.now, partition)
        assert play.beat("A", 3) is Error.COORDINATOR_LOAD_IN_PROGRESS
        play.coordinator.loaded(play.now, partition, records)
        assert play.described() == before
        play.wait(1_999)
        assert [play.beat("A", 3), play.beat("B", 3, inst="i1")] == [(3, None), (3, None)]

    def test_g155_a_group_without_a_record_of_its_epoch_comes_back(self, play: ConsumerPlay) -> None:
        play.subscribe("A", [])
        partition = play.consumer_group().partition
        play.coordinator.unload(play.now, partition)
        play.coordinator.begin_load(play.now, partition)
        play.coordinator.loaded(play.now, partition, play.appended[-1].records)
        assert play.shape() == ("Stable", 1, 1)
        assert play.beat("A", 1) == (1, None)

    def test_a_failed_write_changes_nothing(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        before = play.described()
        play.writes = Error.NOT_ENOUGH_REPLICAS
        assert play.subscribe("B") is Error.COORDINATOR_NOT_AVAILABLE
        assert play.described() == before
        assert play.subscribe("C", group="h") is Error.COORDINATOR_NOT_AVAILABLE
        assert "h" not in play.coordinator.store.groups

    def test_a_refused_heartbeat_removes_no_group_with_records_in_flight(self, play: ConsumerPlay) -> None:
        play.writes = None
        play.start_heart("A", 0, topics=["nope"], owned={}, timeout=30_000)
        play.start_heart("A", -1)
        assert play.beat("B", 5) is Error.UNKNOWN_MEMBER_ID
        play.complete_writes()
        assert play.shape() == ("Empty", 3, 3)

    def test_a_response_waits_for_earlier_writes_of_the_group(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        play.writes = None
        play.start_heart("B", 0, topics=["t"], owned={}, timeout=1)
        waiting = play.start_heart("B", 3)
        assert waiting.parked
        play.complete_writes()
        assert waiting.response.member_epoch == 3


class TestOffsetsAndAdmin:
    def test_g080_g083_only_the_current_epoch_commits_any_partition(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        assert play.commit_as("A", 3, {("t", 0): 1}) == [Error.STALE_MEMBER_EPOCH]
        assert play.commit_as("A", 1, {("t", 0): 1}) == [Error.STALE_MEMBER_EPOCH]
        assert play.commit_as("X", 2, {("t", 0): 1}) == [Error.UNKNOWN_MEMBER_ID]
        assert play.commit_as("", -1, {("t", 0): 1}) == [Error.UNKNOWN_MEMBER_ID]
        assert play.commit_as("A", -1, {("t", 0): 1}) == [Error.STALE_MEMBER_EPOCH]
        assert play.fetch_as(None, -1) == -1
        play.subscribe("B")
        play.beat("A", 2)
        assert play.commit_as("A", 2, {("t", 2): 3, ("t", 3): 4}) == [Error.NONE, Error.NONE]

    def test_g081_kip_1251_an_older_epoch_commits_what_it_was_given(self, play: ConsumerPlay) -> None:
        play.converge({"A": play.subscribe("A"), "B": play.subscribe("B")})
        stale = Error.STALE_MEMBER_EPOCH
        assert play.commit_as("A", 2, {("t", 0): 7}) == [Error.NONE]
        assert play.commit_as("A", 2, {("t", 3): 7}) == [stale]
        assert play.commit_as("A", 2, {("t", 0): 8, ("t", 3): 8}) == [stale, stale]
        assert play.fetch_as("A", 3) == 7

    def test_g081_before_4_3_an_older_epoch_commits_nothing(self) -> None:
        play = ConsumerPlay(kafka_version="4.0")
        play.converge({"A": play.subscribe("A"), "B": play.subscribe("B")})
        assert play.commit_as("A", 1, {("t", 0): 7}) == [Error.STALE_MEMBER_EPOCH]

    def test_g084_members_have_to_use_version_9(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        assert play.commit_as("A", 2, {("t", 0): 1}, version=8) == [Error.UNSUPPORTED_VERSION]
        assert play.commit_as("", -1, {("t", 0): 1}, version=8) == [Error.UNKNOWN_MEMBER_ID]

    def test_g087_a_fetch_needs_the_current_epoch(self, play: ConsumerPlay) -> None:
        play.converge({"A": play.subscribe("A"), "B": play.subscribe("B")})
        answers = [play.fetch_as(*each) for each in (("A", 2), ("A", 4), ("X", 3), ("", -1), ("", 3))]
        stale, unknown = Error.STALE_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID
        assert answers == [stale, stale, unknown, unknown, unknown]
        assert play.fetch_as("A", 3) == -1
        # the coordinator fails to look for a member without an id
        assert play.fetch_as(None, 3) == Error.UNKNOWN_SERVER_ERROR

    def test_g090_offsets_of_subscribed_topics_are_kept(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        play.commit_as("A", 2, {("t", 0): 1, ("u", 0): 1})
        assert play.delete_offset("t") == Error.GROUP_SUBSCRIBED_TO_TOPIC
        assert play.delete_offset("u") == Error.NONE
        play.beat("A", -1)
        assert play.delete_offset("t") == Error.NONE

    def test_g107_consumer_groups_are_listed_with_their_type(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        (row,) = play.list_groups().groups
        assert (row.protocol_type, row.group_state, row.group_type) == ("consumer", "Stable", "consumer")

    def test_the_classic_description_of_a_consumer_group_is_dead(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        row = play.describe(version=6)
        assert (row.group_state, row.error_code) == ("Dead", Error.GROUP_ID_NOT_FOUND)
        assert row.error_message == "Group g is not a classic group."

    def test_only_an_empty_group_is_deleted(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        assert play.delete("g") == {"g": Error.NON_EMPTY_GROUP}

    def test_g152_an_empty_group_goes_with_its_last_offset(self) -> None:
        play = ConsumerPlay(offsets_retention_minutes=1, offsets_retention_check_interval_ms=1_000)
        play.subscribe("A")
        play.commit_as("A", 2, {("t", 0): 1})
        play.beat("A", -1)
        play.wait(2_500)
        assert play.shape()[0] == "Empty"
        play.wait(60_000)
        assert play.described().error_code == Error.GROUP_ID_NOT_FOUND

    def test_g116_offsets_of_a_simple_group_stay(self, play: ConsumerPlay) -> None:
        assert play.commit_as("", -1, {("t", 0): 42}) == [Error.NONE]
        assert play.subscribe("A") == (2, ALL)
        assert play.record_types() == [-2, 5, 3, 7, 6, 8]
        assert play.fetch_as("A", 2) == 42


class TestInstanceIdsGivenUp:
    """A member may join under another instance id. Before 4.4 Kafka's table keeps the first one with its last owner."""

    def test_g179_since_4_4_the_id_is_free(self) -> None:
        play = moved_on("4.4")
        assert play.subscribe("C", inst="i2")[0] == 4
        assert play.heart("ghost", 3, inst="i2").error_code == Error.FENCED_INSTANCE_ID
        assert play.beat("ghost", 3, inst="i1")[0] == 4

    def test_g179_the_member_owns_both_ids(self, moved: ConsumerPlay) -> None:
        refusal = moved.heart("C", 0, topics=["t"], owned={}, timeout=1, inst="i2")
        assert refusal.error_code == Error.UNRELEASED_INSTANCE_ID
        assert moved.beat("ghost", 3, inst="i1") == (3, {"t": [2, 3]})
        assert moved.beat("ghost", 3, inst="i2") == (3, None)
        assert moved.beat("ghost", 3, inst="i1") == (3, None)

    def test_g179_nobody_joins_under_an_id_whose_last_owner_is_gone(self, moved: ConsumerPlay) -> None:
        assert moved.beat("ghost", -1, inst="i1") == (-1, None)
        gone = "Member ghost is not a member of group g."
        for member_id, epoch in (("C", 0), ("ghost", 0), ("ghost", 3), ("ghost", -1), ("ghost", -2)):
            refusal = moved.heart(member_id, epoch, topics=["t"], owned={}, timeout=1, inst="i2")
            assert (refusal.error_code, refusal.error_message) == (Error.UNKNOWN_MEMBER_ID, gone)
        assert set(moved.leave_errors(("", "i2"), ("ghost", "i2"))) == {Error.UNKNOWN_MEMBER_ID}
        # the other id is free, and a dynamic member of that name brings the first one back
        assert moved.subscribe("C", inst="i1") == (5, ALL)
        assert moved.join("", "i2").error is Error.UNKNOWN_MEMBER_ID
        assert moved.subscribe("ghost") == (6, {})
        assert moved.beat("ghost", 6, inst="i2") == (6, None)

    @pytest.mark.slow
    @given(steps=st.lists(st.tuples(MEMBERS, EPOCHS, INSTANCES), max_size=12), release=st.sampled_from(["4.3", "4.4"]))
    @settings(max_examples=60)
    def test_a_reload_restores_every_table_that_requests_have_made(
        self, steps: list[tuple[str, int | None, str | None]], release: str
    ) -> None:
        play = ConsumerPlay(kafka_version=release)
        for member_id, epoch, instance_id in steps:
            if epoch == 0:
                play.subscribe(member_id, inst=instance_id)
            elif epoch is None:
                play.join("", instance_id, version=3 if instance_id is None else 5)
                play.leave_errors((member_id, instance_id), ("", instance_id))
            else:
                play.beat(member_id, epoch, inst=instance_id)
        before = play.coordinator.group("g")
        play.reload("g")
        after = play.coordinator.group("g")
        assert isinstance(before, ConsumerGroup) == isinstance(after, ConsumerGroup)
        if isinstance(before, ConsumerGroup) and isinstance(after, ConsumerGroup):
            assert after.members.keys() == before.members.keys()
            assert after.static_members == before.static_members
            assert after.former_static_members == before.former_static_members
            assert after.held == before.held


@pytest.fixture
def moved() -> ConsumerPlay:
    """Return a coordinator of 4.3 whose member has given an instance id up."""
    return moved_on("4.3")


def moved_on(release: str) -> ConsumerPlay:
    """Return a coordinator whose member ghost of i2 has taken the place of A, and so its i1."""
    play = ConsumerPlay(kafka_version=release)
    assert play.subscribe("ghost", inst="i2") == (2, ALL)
    assert play.subscribe("A", inst="i1") == (3, {})
    assert play.beat("A", -2, inst="i1") == (-2, None)
    assert play.subscribe("ghost", inst="i1") == (3, {})
    return play
