"""The differences between the old and the new group coordinator, on every supported broker."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest
from builders.requests import CHANGED
from scenes.dialects import AWAY, BROKERS, FAILURE, On, T, U, by_broker, old_and_new, on_broker, send_away

from koordinator.emulator.config.settings import RELEASES
from koordinator.emulator.core.dialect import Dialect
from koordinator.wire.errors import Error
from koordinator.wire.messages.offsets_topic import GroupMetadataValue

if TYPE_CHECKING:
    from scenes.play import Play


def test_every_release_has_a_dialect_and_one_has_two() -> None:
    dialects = {broker: on_broker(broker)().coordinator.store.dialect for broker in BROKERS}
    assert dialects["4.4"] == Dialect()
    assert {each.partition(" ")[0] for each in BROKERS} == set(RELEASES)
    assert len(set(dialects.values())) == len(BROKERS)


def test_every_behaviour_differs_somewhere() -> None:
    dialects = [on_broker(broker)().coordinator.store.dialect for broker in BROKERS]
    for each in dataclasses.fields(Dialect):
        assert len({getattr(dialect, each.name) for dialect in dialects}) > 1, each.name


@old_and_new(Error.REBALANCE_IN_PROGRESS, Error.COORDINATOR_LOAD_IN_PROGRESS)
def test_sync_while_loading(on: On, seen: Error) -> None:
    play = on()
    a = play.stable_member()
    send_away(play, Error.COORDINATOR_LOAD_IN_PROGRESS)
    assert play.sync(1, a).error is seen


@old_and_new(old=True, new=False)
@pytest.mark.parametrize("reason", AWAY)
def test_a_join_at_the_wrong_node_echoes_its_id(on: On, *, seen: bool, reason: Error) -> None:
    play = on()
    a = play.stable_member()
    send_away(play, reason)
    refused = play.join(a).response
    assert (refused.error_code, refused.member_id) == (reason, a if seen else "")


@old_and_new(old=False, new=True)
@pytest.mark.parametrize("reason", AWAY)
def test_the_session_timeout_is_checked_before_the_coordinator(on: On, *, seen: bool, reason: Error) -> None:
    play = on()
    send_away(play, reason)
    refused = play.join("ghost", session=1_800_001).response
    assert (refused.error_code, refused.member_id) == (Error.INVALID_SESSION_TIMEOUT if seen else reason, "ghost")


@old_and_new(["h"], [])
def test_listing_while_one_partition_is_loaded(on: On, seen: list[str]) -> None:
    play = on()
    play.stable_member()
    play.stable_member(group="h")
    send_away(play, Error.COORDINATOR_LOAD_IN_PROGRESS)
    answer = play.list_groups(version=2)
    assert answer.error_code == Error.COORDINATOR_LOAD_IN_PROGRESS
    assert [group.group_id for group in answer.groups] == seen


@old_and_new(old=0, new=1)
def test_a_group_made_by_a_join_is_written(on: On, seen: int) -> None:
    play = on(group_initial_rebalance_delay_ms=3_000)
    play.join("", version=3)
    records = [record for append in play.appended for record in append.records]
    assert len(records) == seen
    for record in records:
        value = record.value
        assert isinstance(value, GroupMetadataValue)
        assert (value.protocol_type, value.generation, value.protocol, value.leader, value.members) == (
            ("", 0, None, None, ())
        )


@old_and_new("Empty", "Dead")
def test_a_new_group_is_visible_before_it_is_in_the_log(on: On, seen: str) -> None:
    play = on()
    play.writes = None
    x = play.new_id()
    play.commit(group="h")
    assert (play.state(), play.state("h")) == (seen, seen)
    assert play.list_groups(version=2).groups == () if seen == "Dead" else len(play.listed()) == 2
    play.complete_writes()
    assert (play.state(), play.state("h"), len(play.listed())) == ("Empty", "Empty", 2)
    assert play.join(x).parked


@old_and_new("Empty", "Dead")
def test_a_failed_first_commit_removes_the_simple_group(on: On, seen: str) -> None:
    play = on()
    play.writes = FAILURE
    assert play.commit_errors() == [Error.COORDINATOR_NOT_AVAILABLE]
    assert play.state() == seen


@old_and_new(old=False, new=True)
def test_the_last_leave_waits_for_the_log(on: On, *, seen: bool) -> None:
    play = on()
    a, b = play.stable_pair()
    play.writes = None
    assert not play.start_leave(b).parked
    leaving = play.start_leave(a)
    assert leaving.parked is seen
    play.complete_writes(FAILURE)
    assert leaving.response.error_code == (Error.COORDINATOR_NOT_AVAILABLE if seen else Error.NONE)
    assert play.state() == "Empty"


@old_and_new(old=False, new=True)
def test_deleting_a_group_waits_for_the_log(on: On, *, seen: bool) -> None:
    play = on()
    play.commit(offsets={T: 7})
    play.writes = None
    deleting = play.start_delete("g", "unknown")
    assert deleting.parked is seen
    play.complete_writes(FAILURE)
    expected = Error.COORDINATOR_NOT_AVAILABLE if seen else Error.NONE
    assert [row.error_code for row in deleting.response.results] == [expected, Error.GROUP_ID_NOT_FOUND]
    assert (play.state(), play.offset(*T)) == (("Empty", 7) if seen else ("Dead", -1))


@old_and_new(old=False, new=True)
def test_deleting_offsets_waits_for_the_log(on: On, *, seen: bool) -> None:
    play = on()
    play.commit(offsets={T: 7, U: 8})
    play.writes = FAILURE
    expected = (Error.COORDINATOR_NOT_AVAILABLE, []) if seen else (Error.NONE, [Error.NONE])
    assert play.delete_offsets(T) == expected
    assert (play.offset(*T), play.offset(*U)) == (7 if seen else -1, 8)


@by_broker({"2.8": False, "3.9 NEW": True})
def test_kip_447_stable_offsets_wait_for_a_commit_that_is_being_written(on: On, *, seen: bool) -> None:
    play = on()
    play.commit(offsets={T: 1, U: 1})
    play.writes = None
    play.commit(offsets={T: 2})
    sent = play.start_fetch("g", partitions=[("t", 0), ("u", 0)], version=7)
    assert sent.parked is seen
    play.complete_writes()
    rows = [(topic.partitions[0].committed_offset, topic.partitions[0].error_code) for topic in sent.response.topics]
    assert rows == [(2, Error.NONE) if seen else (-1, Error.UNSTABLE_OFFSET_COMMIT), (1, Error.NONE)]
    assert play.fetch(T, stable=True) == {T: (2, -1, "", 0)}


@pytest.mark.parametrize(
    ("failure", "old", "new"),
    [
        (Error.REQUEST_TIMED_OUT, Error.REBALANCE_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE),
        (
            Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            Error.COORDINATOR_NOT_AVAILABLE,
            Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ),
        (Error.NOT_ENOUGH_REPLICAS, Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_NOT_AVAILABLE),
        (Error.NOT_LEADER_OR_FOLLOWER, Error.NOT_COORDINATOR, Error.NOT_COORDINATOR),
        (Error.MESSAGE_TOO_LARGE, Error.UNKNOWN_SERVER_ERROR, Error.UNKNOWN_SERVER_ERROR),
        (Error.POLICY_VIOLATION, Error.POLICY_VIOLATION, Error.POLICY_VIOLATION),
    ],
)
@old_and_new("old", "new")
def test_the_error_when_an_assignment_cannot_be_written(
    on: On, seen: str, failure: Error, old: Error, new: Error
) -> None:
    play = on()
    a, _ = play.unsynced_pair()
    play.writes = failure
    assert play.sync(2, a).error is {"old": old, "new": new}[seen]


@pytest.mark.parametrize(
    ("failure", "old", "new"),
    [
        (Error.REQUEST_TIMED_OUT, Error.REQUEST_TIMED_OUT, Error.COORDINATOR_NOT_AVAILABLE),
        (
            Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            Error.COORDINATOR_NOT_AVAILABLE,
            Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ),
        (Error.NOT_ENOUGH_REPLICAS, Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_NOT_AVAILABLE),
        (Error.KAFKA_STORAGE_ERROR, Error.NOT_COORDINATOR, Error.NOT_COORDINATOR),
        (Error.MESSAGE_TOO_LARGE, Error.INVALID_COMMIT_OFFSET_SIZE, Error.UNKNOWN_SERVER_ERROR),
        (Error.RECORD_LIST_TOO_LARGE, Error.INVALID_COMMIT_OFFSET_SIZE, Error.UNKNOWN_SERVER_ERROR),
        (Error.INVALID_FETCH_SIZE, Error.INVALID_COMMIT_OFFSET_SIZE, Error.UNKNOWN_SERVER_ERROR),
        (Error.POLICY_VIOLATION, Error.POLICY_VIOLATION, Error.POLICY_VIOLATION),
    ],
)
@old_and_new("old", "new")
def test_the_error_when_offsets_cannot_be_written(on: On, seen: str, failure: Error, old: Error, new: Error) -> None:
    play = on()
    play.writes = failure
    assert play.commit_errors() == [{"old": old, "new": new}[seen]]


@old_and_new(old=1, new=2)
def test_the_removal_of_a_simple_group_is_written(on: On, seen: int) -> None:
    play = on()
    play.commit()
    play.delete("g")
    assert [record.value for record in play.appended[-1].records] == [None] * seen


@old_and_new(old=0, new=1)
def test_the_removal_of_a_group_at_generation_0_is_written(on: On, seen: int) -> None:
    play = on(offsets_retention_check_interval_ms=60_000)
    play.new_id(session=1_800_000)
    written = len(play.appended)
    play.wait(60_000)
    assert play.state() == "Dead"
    assert len(play.appended) - written == seen


@old_and_new(Error.NONE, Error.UNKNOWN_MEMBER_ID)
def test_a_sync_to_a_stable_group_restarts_the_session(on: On, seen: Error) -> None:
    play = on()
    a = play.stable_member(session=6_000)
    play.wait(4_000)
    assert play.sync(1, a).response.assignment == b"a1"
    play.wait(4_000)
    assert play.heartbeat(1, a) is seen


@by_broker({"2.8": Error.INCONSISTENT_GROUP_PROTOCOL, "3.9 NEW": Error.REBALANCE_IN_PROGRESS})
def test_kip_559_a_sync_that_names_a_protocol_before_the_group_has_one(on: On, seen: Error) -> None:
    play = on(group_initial_rebalance_delay_ms=3_000)
    x = play.new_id()
    play.join(x)
    assert play.sync(0, x, version=5, protocol_type="consumer", protocol_name="range").error is seen
    assert play.sync(0, x).error is Error.REBALANCE_IN_PROGRESS


@by_broker({"3.9 OLD": Error.ILLEGAL_GENERATION, "3.9 NEW": Error.GROUP_ID_NOT_FOUND})
def test_kip_848_a_members_commit_to_a_group_that_is_not_there(on: On, seen: Error) -> None:
    play = on()
    assert play.commit_errors(0, "ghost", version=9) == [seen]
    assert play.commit_errors(0, "ghost", version=8) == [Error.ILLEGAL_GENERATION]
    assert play.state() == "Dead"


@old_and_new(Error.REBALANCE_IN_PROGRESS, Error.NONE)
def test_a_batch_of_leaves_is_evaluated_after_each_member(on: On, seen: Error) -> None:
    play = on()
    a, b, c = play.stable_trio()
    leader, follower = play.join(a), play.join(c)
    assert leader.parked
    assert play.leave_errors(b, c) == [Error.NONE, Error.NONE]
    assert leader.response.generation_id == 4
    assert follower.error is (Error.UNKNOWN_MEMBER_ID if seen is Error.NONE else Error.NONE)
    assert play.heartbeat(4, a) is seen


@old_and_new("as it was", "PreparingRebalance")
@pytest.mark.parametrize("state", ["Stable", "CompletingRebalance"])
def test_kip_394_a_pending_member_leaves(on: On, seen: str, state: str) -> None:
    play = on()
    play.stable_member() if state == "Stable" else play.unsynced_pair()
    assert play.leave_errors(play.new_id()) == [Error.NONE]
    assert play.state() == (state if seen == "as it was" else seen)


@by_broker({"2.4": 2})
def test_kip_394_a_join_phase_ends_when_the_last_pending_member_leaves(on: On, seen: int) -> None:
    play = on()
    a = play.stable_member()
    x = play.new_id()
    waiting = play.join(a)
    assert waiting.parked
    assert play.leave_errors(x) == [Error.NONE]
    assert waiting.response.generation_id == seen


@old_and_new(old=3_000, new=6_000)
def test_kip_134_the_initial_delay_of_a_later_join_phase_is_extended(on: On, seen: int) -> None:
    play = on(group_initial_rebalance_delay_ms=3_000)
    a = play.new_id()
    play.join(a)
    play.wait(3_000)
    play.leave(a)
    joins = [play.join("", version=3)]
    play.wait(1_000)
    joins.append(play.join("", version=3))
    assert seconds_until_answered(play, joins) == seen // 1_000 - 1
    assert {sent.response.generation_id for sent in joins} == {3}


@by_broker({"2.4": 5})
def test_kip_134_the_first_initial_delay_of_a_group_is_extended(on: On, seen: int) -> None:
    play = on(group_initial_rebalance_delay_ms=3_000)
    joins = [play.join("", version=3)]
    play.wait(1_000)
    joins.append(play.join("", version=3))
    assert seconds_until_answered(play, joins) == seen


@old_and_new(old=3, new=1)
def test_kip_134_the_initial_delay_ends_with_the_last_id_that_is_waited_for(on: On, seen: int) -> None:
    play = on(group_initial_rebalance_delay_ms=3_000)
    play.new_id(session=1_000)
    assert seconds_until_answered(play, [play.join("", version=3)]) == seen


def seconds_until_answered(play: Play, joins: list[Any]) -> int:
    """Return how long all of them are parked, in seconds."""
    for seconds in range(60):
        if not any(sent.parked for sent in joins):
            return seconds
        play.wait(1_000)
    raise AssertionError("not answered within a minute")


@pytest.mark.parametrize(
    ("one", "other", "old", "new"),
    [
        ("range", "roundrobin", "roundrobin", "range"),
        ("range", "sticky", "range", "sticky"),
        ("range", "cooperative-sticky", "cooperative-sticky", "range"),
        ("roundrobin", "sticky", "roundrobin", "sticky"),
        ("roundrobin", "cooperative-sticky", "cooperative-sticky", "roundrobin"),
        ("sticky", "cooperative-sticky", "cooperative-sticky", "sticky"),
    ],
)
@pytest.mark.parametrize("leader_likes", ["one", "other"])
@old_and_new("old", "new")
def test_a_tie_of_the_vote_is_broken_by_the_order_of_a_hash_table(
    on: On, seen: str, leader_likes: str, one: str, other: str, old: str, new: str
) -> None:
    """The winner depends on the names alone, not on the voters or the time."""
    play = on()
    protocols = [((one, b""), (other, b"")), ((other, b""), (one, b""))]
    leading, following = protocols if leader_likes == "one" else protocols[::-1]
    p = play.join("", "i1", protocols=leading)
    play.settle()
    second = play.join("", "i2", protocols=following)
    first = play.join(p.response.member_id, "i1", protocols=leading)
    chosen = {"old": old, "new": new}[seen]
    assert first.response.protocol_name == second.response.protocol_name == chosen


@old_and_new({b""}, {b"a2", b"b2"})
def test_the_assignments_of_a_group_that_rebalances_are_shown(on: On, seen: set[bytes]) -> None:
    play = on()
    _, b = play.stable_pair()
    assert {member.member_assignment for member in play.describe().members} == {b"a2", b"b2"}
    play.join(b, protocols=CHANGED)
    assert {member.member_assignment for member in play.describe().members} == seen


@old_and_new("Dead", "Empty")
def test_an_empty_group_is_removed_with_its_last_offset(on: On, seen: str) -> None:
    play = on()
    play.commit(offsets={T: 1, U: 2})
    assert play.delete_offsets(T) == (Error.NONE, [Error.NONE])
    assert play.state() == "Empty"
    assert play.delete_offsets(U) == (Error.NONE, [Error.NONE])
    assert play.state() == seen


@old_and_new("Dead", "Empty")
def test_deleting_a_topic_removes_empty_groups_without_offsets(on: On, seen: str) -> None:
    play = on()
    play.emptied()
    play.commit(offsets={T: 1, U: 2}, group="two")
    play.stable_member(group="members")
    play._perform(play.coordinator.topics_deleted(play.now, ["t"]))
    assert (play.state(), play.state("two"), play.state("members")) == (seen, "Empty", "Stable")
    assert (play.offset(*T, group="two"), play.offset(*U, group="two")) == (-1, 2)
