"""A change of coordinator: a group keeps exactly what was written (KIP-345)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from builders.requests import CHANGED, RANGE
from scenes.play import Play

from koordinator.emulator.core.groups.facts import StateChanged
from koordinator.emulator.core.groups.records import CoordinatorRecord
from koordinator.wire.errors import Error
from koordinator.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from koordinator.wire.messages.offsets_topic import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    read_value,
    write_value,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

BOTH = (*RANGE, ("roundrobin", b"rr"))


def partition(play: Play) -> int:
    return play.coordinator.store.partition_of("g")


def log(play: Play) -> list[CoordinatorRecord]:
    """Return the records of group g's partition, oldest first."""
    return [record for each in play.appended if each.partition == partition(play) for record in each.records]


def resign(play: Play) -> None:
    play._perform(play.coordinator.unload(play.now, partition(play)))


def load(play: Play, records: Iterable[CoordinatorRecord] | None = None) -> None:
    at = partition(play)
    play._perform(play.coordinator.begin_load(play.now, at))
    play._perform(play.coordinator.loaded(play.now, at, log(play) if records is None else records))


def reload(play: Play) -> None:
    resign(play)
    load(play)


@pytest.fixture(params=["4.4", "3.9"])
def play(request: pytest.FixtureRequest) -> Play:
    return Play(kafka_version=request.param)


class TestLoading:
    def test_a_stable_group_continues_unchanged(self, play: Play) -> None:
        a, b = play.stable_pair()
        before = play.describe()
        reload(play)
        assert (play.heartbeat(2, a), play.heartbeat(2, b)) == (Error.NONE, Error.NONE)
        assert play.sync(2, a).response.assignment == b"a2"
        assert play.sync(2, b).response.assignment == b"b2"
        assert play.describe() == before

    def test_a_generation_that_was_not_written_is_lost_with_its_new_members(self, play: Play) -> None:
        a, b = play.stable_pair()
        c, generation = play.joined_by(a, b)
        reload(play)
        assert play.heartbeat(generation, c) is Error.UNKNOWN_MEMBER_ID
        assert play.join(c).error is Error.UNKNOWN_MEMBER_ID
        assert play.heartbeat(generation, a) is Error.ILLEGAL_GENERATION
        assert play.heartbeat(generation - 1, a) is Error.NONE

    def test_a_pending_id_is_forgotten(self, play: Play) -> None:
        pending = play.new_id()
        reload(play)
        assert play.join(pending).error is Error.UNKNOWN_MEMBER_ID

    def test_only_the_selected_protocol_is_loaded_so_that_a_rejoin_rebalances(self, play: Play) -> None:
        a, b = play.stable_pair(protocols=BOTH)
        assert not play.join(b, protocols=BOTH).parked
        reload(play)
        assert play.join(b, protocols=BOTH).parked
        assert play.heartbeat(2, a) is Error.REBALANCE_IN_PROGRESS

    def test_with_a_single_protocol_an_unchanged_rejoin_is_answered_at_once(self, play: Play) -> None:
        _, b = play.stable_pair()
        reload(play)
        assert play.join(b).response.generation_id == 2

    def test_every_member_gets_a_full_session(self, play: Play) -> None:
        a, b = play.stable_pair(session=10_000)
        play.wait(9_000)
        reload(play)
        play.wait(9_999)
        assert play.heartbeat(2, a) is Error.NONE
        play.wait(1)
        assert play.heartbeat(2, a) is Error.REBALANCE_IN_PROGRESS, "the other one has been silent"
        assert play.heartbeat(2, b) is Error.UNKNOWN_MEMBER_ID

    def test_offsets_are_as_they_were_committed(self, play: Play) -> None:
        a = play.stable_member()
        play.commit(1, a, offsets={("t", 0): 5, ("t", 1): 7}, metadata="m", leader_epoch=3)
        play.commit(1, a, offsets={("t", 0): 6})
        before = play.fetch()
        reload(play)
        assert play.fetch() == before
        assert before["t", 1] == (7, 3, "m", 0)

    def test_offsets_without_a_group_are_a_simple_group(self, play: Play) -> None:
        play.commit(offsets={("t", 0): 42})
        reload(play)
        described = play.describe()
        assert (described.group_state, described.protocol_type) == ("Empty", "")
        assert play.commit_errors() == [Error.NONE]
        assert play.offset("t", 0) == 1

    def test_a_deleted_group_is_not_loaded(self, play: Play) -> None:
        play.emptied()
        play.commit(offsets={("t", 0): 1})
        assert play.delete("g") == {"g": Error.NONE}
        reload(play)
        assert play.state() == "Dead"
        assert play.fetch() == {}

    def test_an_empty_group_keeps_its_generation(self, play: Play) -> None:
        play.emptied()
        reload(play)
        assert play.state() == "Empty"
        again = play.join(play.new_id())
        play.settle()
        assert again.response.generation_id == 3

    def test_the_subscriptions_of_a_group_are_known(self, play: Play) -> None:
        a = play.stable_member(protocols=CHANGED)
        play.commit(1, a, offsets={("t", 0): 1, ("u", 0): 1})
        reload(play)
        assert play.delete_offsets(("u", 0)) == (Error.NONE, [Error.GROUP_SUBSCRIBED_TO_TOPIC])

    def test_the_trace_records_that_the_group_was_loaded(self, play: Play) -> None:
        play.stable_member()
        reload(play)
        causes = [fact.cause for fact in play.facts_of(StateChanged)][-2:]
        assert causes == ["unloaded", "loaded"]


class TestStaticMembersAfterAFailover:
    def test_an_instance_is_known_and_fencing_works_at_once(self, play: Play) -> None:
        p, q = play.static_pair()
        reload(play)
        assert play.heartbeat(2, "x", "i2") is Error.FENCED_INSTANCE_ID
        assert play.heartbeat(2, q, "i2") is Error.NONE
        answer = play.join("", "i2").response
        assert (answer.generation_id, answer.leader) == (2, p)

    def test_kafka_10284_a_replaced_id_stays_replaced(self, play: Play) -> None:
        _, q = play.static_pair()
        new = play.join("", "i2").response.member_id
        reload(play)
        assert play.heartbeat(2, new, "i2") is Error.NONE
        assert play.heartbeat(2, q, "i2") is Error.FENCED_INSTANCE_ID


class TestGroupMaxSize:
    @pytest.mark.parametrize(("version", "at_once"), [("3.9", True), ("4.4", False)])
    def test_kafka_9885_a_group_loaded_over_capacity_rebalances_and_shrinks(self, version: str, at_once: bool) -> None:  # noqa: FBT001
        large = Play(kafka_version=version)
        a, b, c = large.stable_trio()
        small = Play(kafka_version=version, group_max_size=2)
        load(small, log(large))
        assert [small.heartbeat(3, each) for each in (a, b, c)] == [Error.REBALANCE_IN_PROGRESS] * 3
        first, second = small.join(a), small.join(b)
        assert first.parked
        assert second.parked
        assert small.join(c).error is Error.GROUP_MAX_SIZE_REACHED
        if not at_once:
            assert first.parked
            small.wait(30_000)
        assert first.response.generation_id == second.response.generation_id == 4
        assert {row.member_id for row in first.response.members} == {a, b}


class TestResignation:
    def test_a_parked_join_gets_not_coordinator_with_its_member_id(self, play: Play) -> None:
        a, _ = play.stable_pair()
        parked = play.join(a)
        resign(play)
        assert (parked.error, parked.response.member_id) == (Error.NOT_COORDINATOR, a)

    def test_a_parked_sync_gets_not_coordinator(self, play: Play) -> None:
        _, b = play.unsynced_pair()
        parked = play.sync(2, b)
        resign(play)
        assert (parked.error, parked.response.assignment) == (Error.NOT_COORDINATOR, b"")

    def test_writes_in_flight_get_not_coordinator_and_are_discarded(self, play: Play) -> None:
        a = play.stable_member()
        play.writes = None
        commit = play.commit(1, a)
        resign(play)
        assert [row.error_code for topic in commit.response.topics for row in topic.partitions] == [
            Error.NOT_COORDINATOR
        ]
        play.complete_writes()
        play.writes = Error.NONE
        load(play, log(play)[:-1])
        assert play.fetch(("t", 0))["t", 0][0] == -1

    def test_no_timer_of_the_group_fires_any_more(self, play: Play) -> None:
        play.stable_pair()
        resign(play)
        before = len(play.facts)
        play.wait(3_600_000)
        assert play.facts[before:] == []

    def test_unloading_keeps_groups_of_other_partitions(self, play: Play) -> None:
        play.stable_member()
        play.commit(group="elsewhere", offsets={("t", 0): 9})
        assert play.coordinator.store.partition_of("elsewhere") != partition(play)
        resign(play)
        assert play.offset("t", 0, group="elsewhere") == 9
        assert play.describe().error_code == Error.NOT_COORDINATOR


class TestOldRecords:
    def value(self, version: int, *, instance: str | None = "i") -> GroupMetadataValue:
        member = MemberMetadata(
            member_id="m",
            group_instance_id=instance if version >= 3 else None,
            client_id="c",
            client_host="/h",
            rebalance_timeout=20_000 if version >= 1 else -1,
            session_timeout=10_000,
            subscription=RANGE[0][1],
            assignment=b"a",
        )
        return GroupMetadataValue(
            protocol_type="consumer", generation=4, protocol="range", leader="m", members=(member,)
        )

    def test_before_kip_62_the_session_timeout_is_the_rebalance_timeout(self, play: Play) -> None:
        load(play, [CoordinatorRecord(GroupMetadataKey(group="g"), self.value(0))])
        assert play.group().members["m"].rebalance_timeout_ms == 10_000

    @pytest.mark.parametrize(("version", "error"), [(2, Error.UNKNOWN_MEMBER_ID), (3, Error.NONE)])
    def test_before_kip_345_static_members_become_dynamic(self, play: Play, version: int, error: Error) -> None:
        load(play, [CoordinatorRecord(GroupMetadataKey(group="g"), self.value(version))])
        assert play.heartbeat(4, "m", "i") is error
        assert play.heartbeat(4, "m") is Error.NONE

    def test_the_last_record_of_a_key_counts(self, play: Play) -> None:
        key = OffsetCommitKey(group="g", topic="t", partition=0)
        first, last = (OffsetCommitValue(offset=each, metadata="", commit_timestamp=1) for each in (1, 2))
        load(play, [CoordinatorRecord(key, last), CoordinatorRecord(key, None), CoordinatorRecord(key, first)])
        assert play.offset("t", 0) == 1

    def test_kafka_19141_an_offset_of_another_topic_of_that_name_is_none(self) -> None:
        play = Play()
        key = OffsetCommitKey(group="g", topic="t", partition=0)
        value = OffsetCommitValue(offset=5, metadata="", commit_timestamp=1, topic_id=UUID(int=7))
        load(play, [CoordinatorRecord(key, value)])
        assert play.offset("t", 0) == 5, "who names the topic does not say which one"
        topic_id = play.cluster.topics["t"].topic_id
        row = OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=(0,))
        sent = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=(row,)),))
        ((fetched,),) = [each.partitions for each in play.send(sent, 10).response.groups[0].topics]
        assert (fetched.committed_offset, fetched.error_code) == (-1, Error.NONE)

    def test_values_written_are_read_back(self) -> None:
        value = self.value(3)
        assert read_value(GroupMetadataKey(), write_value(value)) == value


@pytest.mark.parametrize(
    ("version", "state", "error"), [("3.9", "Dead", Error.NONE), ("4.4", "", Error.NOT_COORDINATOR)]
)
def test_an_unreadable_partition_is_empty_to_old_and_not_served_by_new(version: str, state: str, error: Error) -> None:
    play = Play(kafka_version=version)
    play.stable_member()
    resign(play)
    play._perform(play.coordinator.begin_load(play.now, partition(play)))
    assert play.describe().error_code == Error.COORDINATOR_LOAD_IN_PROGRESS
    play._perform(play.coordinator.load_failed(play.now, partition(play)))
    described = play.describe()
    assert (described.group_state, described.error_code) == (state, error)
