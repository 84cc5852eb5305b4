"""Failed writes to `__consumer_offsets`: the error each client gets, and the state that is restored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from builders.requests import CHANGED
from scenes.play import Play

from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from koordinator.emulator.core.groups.classic.group import ClassicGroup

A = ("t", 0)

OF_A_GROUP = [
    (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.COORDINATOR_NOT_AVAILABLE),
    (Error.NOT_ENOUGH_REPLICAS, Error.COORDINATOR_NOT_AVAILABLE),
    (Error.REQUEST_TIMED_OUT, Error.COORDINATOR_NOT_AVAILABLE),
    (Error.NOT_LEADER_OR_FOLLOWER, Error.NOT_COORDINATOR),
    (Error.KAFKA_STORAGE_ERROR, Error.NOT_COORDINATOR),
    (Error.MESSAGE_TOO_LARGE, Error.UNKNOWN_SERVER_ERROR),
    (Error.RECORD_LIST_TOO_LARGE, Error.UNKNOWN_SERVER_ERROR),
    (Error.INVALID_FETCH_SIZE, Error.UNKNOWN_SERVER_ERROR),
    (Error.POLICY_VIOLATION, Error.POLICY_VIOLATION),
]
FAILURE = Error.NOT_ENOUGH_REPLICAS


@pytest.mark.parametrize(("failure", "expected"), OF_A_GROUP)
def test_parked_syncs_get_the_error_and_a_rebalance_starts(play: Play, failure: Error, expected: Error) -> None:
    a, b = play.unsynced_pair()
    play.writes = failure
    joins = [play.sync(2, b), play.sync(2, a, {a: b"a2", b: b"b2"})]
    assert [(sent.error, sent.response.assignment) for sent in joins] == [(expected, b"")] * 2
    assert play.heartbeat(2, a) is play.heartbeat(2, b) is Error.REBALANCE_IN_PROGRESS
    assert {member.member_assignment for member in play.describe().members} == {b""}
    play.writes = Error.NONE
    assert play.join(b).parked
    assert play.join(a).response.generation_id == 3


def test_a_second_write_of_an_assignment_is_ignored_after_the_first_failed(play: Play) -> None:
    a, _ = play.unsynced_pair()
    play.writes = None
    play.sync(2, a)
    play.sync(2, a)
    play.complete_writes(FAILURE)
    assert play.state() == "PreparingRebalance"


@pytest.mark.parametrize(("failure", "expected"), OF_A_GROUP)
def test_a_returned_static_member_is_reported_and_nothing_changes(play: Play, failure: Error, expected: Error) -> None:
    p, q = play.static_pair()
    play.writes = failure
    refused = play.join("", "i1", protocols=CHANGED, session=20_000, rebalance=90_000, version=9).response
    assert (refused.error_code, refused.member_id, refused.generation_id) == (expected, "", 2)
    assert (refused.leader, refused.protocol_type, refused.protocol_name) == (p, "consumer", "range")
    group: ClassicGroup = play.group()
    member = group.members[p]
    assert (member.protocols[0][1] != CHANGED[0][1], member.session_timeout_ms, member.rebalance_timeout_ms) == (
        True,
        10_000,
        30_000,
    )
    assert (group.leader_id, group.static_members, group.awaiting_join) == (p, {"i1": p, "i2": q}, 0)
    assert group.timers[member.session] == play.now + 10_000
    assert play.heartbeat(2, p, "i1") is play.heartbeat(2, q, "i2") is Error.NONE
    assert play.sync(2, p, instance_id="i1").response.assignment == b"p2"


def test_a_static_member_that_returned_twice_has_its_latest_id(play: Play) -> None:
    play.static_member()
    play.writes = None
    first, second = play.join("", "i1"), play.join("", "i1")
    assert (first.error, second.parked) == (Error.FENCED_INSTANCE_ID, True)
    play._perform(play.coordinator.appended(play.now, play.in_flight.pop(0).token, FAILURE))
    play.complete_writes()
    assert list(play.group().members) == [second.response.member_id]


def test_a_failed_replacement_fences_the_parked_sync_of_the_new_id(play: Play) -> None:
    p, q = play.static_pair()
    play.writes = None
    back = play.join("", "i2")
    play.join(p, "i1")
    q2 = back.response.member_id
    assert (play.state(), back.response.generation_id) == ("CompletingRebalance", 3)
    waiting = play.sync(3, q2, instance_id="i2")
    play.complete_writes(FAILURE)
    assert waiting.error is Error.FENCED_INSTANCE_ID
    assert play.heartbeat(3, q, "i2") is Error.NONE
    assert play.heartbeat(3, q2, "i2") is Error.FENCED_INSTANCE_ID


def test_a_rebalance_that_overtakes_the_write_answers_the_join_once(play: Play) -> None:
    p, _ = play.static_pair()
    play.writes = None
    back = play.join("", "i2")
    assert play.join(p, "i1").response.generation_id == back.response.generation_id == 3
    play.complete_writes()
    assert (len(back.responses), play.state()) == (1, "CompletingRebalance")


def test_a_session_that_expires_during_a_write_restarts_with_the_next_heartbeat(play: Play) -> None:
    """Kafka restarts the session before the write, and not again with the response."""
    p, _ = play.static_pair(session=6_000)
    play.writes = None
    back = play.join("", "i2", session=6_000)
    assert play.keep_alive(10_000, (2, p, "i1")) is Error.NONE
    play.complete_writes()
    assert back.response.generation_id == 2
    assert play.keep_alive(10_000, (2, p, "i1")) is Error.NONE
    assert play.heartbeat(2, back.response.member_id, "i2") is Error.NONE
    assert play.keep_alive(6_000, (2, p, "i1")) is Error.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(("failure", "expected"), OF_A_GROUP)
def test_a_group_whose_first_write_fails_is_removed(failure: Error, expected: Error) -> None:
    play = Play(group_initial_rebalance_delay_ms=3_000)
    play.writes = failure
    refused = play.join("", version=3).response
    assert (refused.error_code, refused.member_id) == (expected, "")
    assert play.state() == "Dead"
    assert play.coordinator.deadline() is None


def test_an_id_is_handed_out_before_its_group_is_written(play: Play) -> None:
    play.writes = FAILURE
    x = play.new_id()
    assert play.join(x).error is Error.UNKNOWN_MEMBER_ID
    assert play.state() == "Dead"


@pytest.mark.parametrize("error", [Error.NONE, FAILURE])
def test_a_failed_first_write_discards_changes_by_others(error: Error) -> None:
    play = Play(group_initial_rebalance_delay_ms=1_000)
    play.writes = None
    first, second = play.new_id(), play.new_id()
    joining = [play.join(first), play.join(second)]
    play.wait(2_000)
    assert [sent.response.generation_id for sent in joining] == [1, 1]
    syncing, again = play.sync(1, second), play.join(second, protocols=CHANGED)
    assert (syncing.error, again.parked) == (Error.REBALANCE_IN_PROGRESS, True)
    play.complete_writes(error)
    if error is Error.NONE:
        assert (again.parked, play.state()) == (True, "PreparingRebalance")
    else:
        assert (again.error, again.response.member_id, play.state()) == (Error.COORDINATOR_NOT_AVAILABLE, "", "Dead")


def test_a_parked_sync_gets_the_error_of_a_failed_group_write(play: Play) -> None:
    play.writes = None
    p = play.join("", "i1")
    play.settle()
    syncing = play.sync(1, p.response.member_id)
    play.complete_writes(FAILURE)
    assert syncing.error is Error.COORDINATOR_NOT_AVAILABLE
    assert play.state() == "Dead"


@pytest.mark.parametrize("error", [Error.NONE, FAILURE])
def test_the_first_write_of_a_deleted_group_is_ignored(play: Play, error: Error) -> None:
    play.writes = None
    play.new_id()
    creation = play.in_flight.pop()
    play.writes = Error.NONE
    assert play.delete("g") == {"g": Error.NONE}
    x = play.new_id()
    play._perform(play.coordinator.appended(play.now, creation.token, error))
    assert play.join(x).parked


def test_a_simple_group_whose_first_write_fails_is_removed(play: Play) -> None:
    play.writes = FAILURE
    assert play.commit_errors() == [Error.COORDINATOR_NOT_AVAILABLE]
    assert play.state() == "Dead"


def test_a_stored_group_survives_a_failed_commit(play: Play) -> None:
    play.emptied()
    play.writes = FAILURE
    assert play.commit_errors() == [Error.COORDINATOR_NOT_AVAILABLE]
    assert play.state() == "Empty"


def test_a_failed_deletion_restores_the_whole_group(play: Play) -> None:
    a = play.stable_member()
    play.commit(1, a, offsets={A: 7})
    play.leave(a)
    emptied_at = play.group().state_changed_at
    play.wait(5_000)
    play.writes = FAILURE
    assert play.delete("g") == {"g": Error.COORDINATOR_NOT_AVAILABLE}
    assert (play.state(), play.offset(*A), play.group().generation) == ("Empty", 7, 2)
    assert play.group().state_changed_at == emptied_at
    assert play.coordinator.deadline() is not None
    play.writes = Error.NONE
    joined = play.join(play.new_id())
    play.settle()
    assert joined.response.generation_id == 3


def test_a_failed_deletion_does_not_replace_a_new_group(play: Play) -> None:
    play.commit(offsets={A: 7})
    play.writes = None
    deleting = play.start_delete("g")
    tombstones = play.in_flight.pop()
    play.writes = Error.NONE
    x = play.new_id()
    play._perform(play.coordinator.appended(play.now, tombstones.token, FAILURE))
    assert deleting.response.results[0].error_code == Error.COORDINATOR_NOT_AVAILABLE
    assert play.join(x).parked
    assert play.offset(*A) == -1


@pytest.mark.parametrize(("failure", "expected"), OF_A_GROUP)
def test_an_empty_generation_that_could_not_be_written_stays_empty(play: Play, failure: Error, expected: Error) -> None:
    a = play.stable_member()
    play.writes = failure
    answer = play.leave(a)
    assert (answer.error_code, answer.members) == (expected, ())
    assert (play.state(), play.group().generation) == ("Empty", 2)


def test_the_last_leave_is_answered_after_its_write(play: Play) -> None:
    p, q = play.static_pair()
    play.writes = None
    first, last = play.start_leave(p), play.start_leave(("", "i2"), q)
    assert (first.parked, last.parked) == (False, True)
    play.complete_writes()
    assert [(row.member_id, row.error_code) for row in last.response.members] == [("", 0), (q, Error.UNKNOWN_MEMBER_ID)]


@pytest.mark.parametrize(("failure", "expected"), OF_A_GROUP)
def test_a_failed_commit_is_reported_per_partition_and_stores_nothing(
    play: Play, failure: Error, expected: Error
) -> None:
    play.commit(offsets={A: 1})
    play.writes = failure
    errors = play.commit_errors(offsets={A: 2, ("nosuch", 0): 1, ("u", 1): 2})
    assert errors == [Error.UNKNOWN_TOPIC_OR_PARTITION, expected, expected]
    assert (play.offset(*A), play.offset("u", 1)) == (1, -1)
    assert play.fetch(A, stable=True) == {A: (1, -1, "", 0)}


@pytest.mark.parametrize(("failure", "expected"), OF_A_GROUP)
def test_a_failed_deletion_restores_the_offsets(play: Play, failure: Error, expected: Error) -> None:
    play.commit(offsets={A: 1})
    play.writes = failure
    assert play.delete_offsets(A) == (expected, [])
    assert play.offset(*A) == 1


def test_a_later_commit_wins_over_a_restored_offset(play: Play) -> None:
    play.commit(offsets={A: 1})
    play.writes = None
    play._perform(play.coordinator.topics_deleted(play.now, ["t"]))
    tombstones = play.in_flight.pop()
    play.writes = Error.NONE
    play.commit(offsets={A: 2})
    play._perform(play.coordinator.appended(play.now, tombstones.token, FAILURE))
    assert play.offset(*A) == 2
