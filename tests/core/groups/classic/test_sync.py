"""SyncGroup: every member gets its part of the leader's assignment, or none does (KIP-559, KAFKA-12890)."""

from __future__ import annotations

from typing import Any

import pytest
from scenes.play import Play

from koordinator.emulator.core.groups.facts import Superseded
from koordinator.emulator.core.timers import PendingSyncExpiry
from koordinator.wire.errors import Error
from koordinator.wire.messages.offsets_topic import GroupMetadataValue


def test_a_follower_that_syncs_first_is_parked_until_the_leader_does(play: Play) -> None:
    a, b = play.unsynced_pair()
    follower = play.sync(2, b)
    assert follower.parked
    leader = play.sync(2, a, {a: b"a2", b: b"b2"})
    assert (leader.response.assignment, follower.response.assignment) == (b"a2", b"b2")
    assert play.state() == "Stable"


def test_a_follower_that_syncs_later_gets_its_assignment_at_once(play: Play) -> None:
    a, b = play.unsynced_pair()
    play.sync(2, a, {a: b"a2", b: b"b2"})
    play.wait(1_000)
    assert play.sync(2, b).response.assignment == b"b2"


def test_a_member_without_an_assignment_gets_empty_bytes(play: Play) -> None:
    a, b = play.unsynced_pair()
    assert play.sync(2, a, {a: b"a2"}).response.assignment == b"a2"
    late = play.sync(2, b)
    assert (late.error, late.response.assignment) == (Error.NONE, b"")


def test_an_assignment_for_a_stranger_is_ignored(play: Play) -> None:
    a, b = play.unsynced_pair()
    play.sync(2, a, {a: b"a2", b: b"b2", "ghost": b"z"})
    assert {row.member_id: row.member_assignment for row in play.describe().members} == {a: b"a2", b: b"b2"}


def test_only_the_leader_assigns(play: Play) -> None:
    a, b = play.unsynced_pair()
    follower = play.sync(2, b, {a: b"mine", b: b"mine"})
    assert follower.parked
    assert play.sync(2, a, {b: b"b2"}).response.assignment == b""
    assert follower.response.assignment == b"b2"


def test_a_stable_group_ignores_assignments_even_of_the_leader(play: Play) -> None:
    a, b = play.stable_pair()
    assert play.sync(2, a, {a: b"other", b: b"other"}).response.assignment == b"a2"
    assert play.sync(2, b).response.assignment == b"b2"


@pytest.mark.parametrize(
    ("generation", "member", "group", "error"),
    [
        (1, "b", "g", Error.ILLEGAL_GENERATION),
        (3, "b", "g", Error.ILLEGAL_GENERATION),
        (2, "ghost", "g", Error.UNKNOWN_MEMBER_ID),
        (2, "b", "unknown", Error.UNKNOWN_MEMBER_ID),
        (2, "b", "", Error.INVALID_GROUP_ID),
    ],
)
def test_a_sync_of_a_stranger_or_of_another_generation_is_refused(
    play: Play, generation: int, member: str, group: str, error: Error
) -> None:
    _, b = play.unsynced_pair()
    refused = play.sync(generation, b if member == "b" else member, group=group)
    assert (refused.error, refused.response.assignment) == (error, b"")


def test_membership_is_checked_before_the_generation(play: Play) -> None:
    play.unsynced_pair()
    assert play.sync(9, "ghost").error is Error.UNKNOWN_MEMBER_ID


def test_a_sync_in_a_join_phase_gets_rebalance_in_progress(play: Play) -> None:
    a, b = play.stable_pair()
    play.join(a)
    refused = play.sync(2, b)
    assert (refused.error, refused.response.assignment) == (Error.REBALANCE_IN_PROGRESS, b"")


@pytest.mark.parametrize("generation", [1, 2])
def test_a_sync_in_an_empty_group_is_unknown_member(play: Play, generation: int) -> None:
    assert play.sync(generation, play.emptied()).error is Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    "named",
    [
        {"protocol_type": "consumer", "protocol_name": "other"},
        {"protocol_type": "other", "protocol_name": "range"},
        {"protocol_type": "consumer"},
        {"protocol_name": "range"},
    ],
    ids=["another name", "another type", "no name", "no type"],
)
def test_kip_559_a_sync_must_name_the_protocol_of_the_group(play: Play, named: dict[str, Any]) -> None:
    a, _ = play.unsynced_pair()
    assert play.sync(2, a, version=5, **named).error is Error.INCONSISTENT_GROUP_PROTOCOL


def test_kip_559_a_sync_that_names_the_protocol_has_it_confirmed(play: Play) -> None:
    a, _ = play.unsynced_pair()
    answer = play.sync(2, a, version=5, protocol_type="consumer", protocol_name="range").response
    assert (answer.error_code, answer.protocol_type, answer.protocol_name) == (0, "consumer", "range")


def test_kip_559_a_missing_name_is_refused_before_the_group_is_looked_at(play: Play) -> None:
    assert play.sync(0, "x", group="unknown", version=5).error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert play.sync(0, "x", group="", version=5).error is Error.INCONSISTENT_GROUP_PROTOCOL


def test_kip_559_before_the_first_generation_there_is_no_name_to_compare_with() -> None:
    """New coordinator; the old one refuses any name."""
    play = Play(group_initial_rebalance_delay_ms=1_000)
    a = play.new_id()
    play.join(a)
    sent = play.sync(0, a, version=5, protocol_type="consumer", protocol_name="anything")
    assert sent.error is Error.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("version", [3, 4])
def test_kip_559_before_v5_nothing_is_named(play: Play, version: int) -> None:
    a, _ = play.unsynced_pair()
    assert play.sync(2, a, version=version).error is Error.NONE


def test_a_member_with_a_parked_sync_is_alive(play: Play) -> None:
    a, b = play.unsynced_pair(session=6_000, rebalance=60_000)
    waiting = play.sync(2, b)
    play.keep_alive(20_000, (2, a))
    leader = play.sync(2, a, {a: b"a2", b: b"b2"})
    assert (leader.response.assignment, waiting.response.assignment) == (b"a2", b"b2")
    assert play.heartbeat(2, b) is Error.NONE


def test_the_session_restarts_with_the_assignment(play: Play) -> None:
    a, b = play.unsynced_pair(session=6_000, rebalance=60_000)
    play.sync(2, b)
    play.keep_alive(20_000, (2, a))
    play.sync(2, a)
    play.keep_alive(5_999, (2, a))
    assert play.heartbeat(2, a) is Error.NONE
    assert play.keep_alive(1_000, (2, a)) is Error.REBALANCE_IN_PROGRESS


def test_a_sync_in_stable_does_not_refresh_the_session(play: Play) -> None:
    """New coordinator; the old one restarts it."""
    a, b = play.stable_pair()
    play.keep_alive(8_000, (2, a))
    play.sync(2, b)
    assert play.keep_alive(2_000, (2, a)) is Error.REBALANCE_IN_PROGRESS


def test_a_second_sync_supersedes_the_parked_one(play: Play) -> None:
    a, b = play.unsynced_pair()
    first, second = play.sync(2, b), play.sync(2, b)
    play.sync(2, a, {b: b"b2"})
    assert (first.parked, second.response.assignment) == (True, b"b2")
    assert [fact.call for fact in play.facts_of(Superseded)] == [first.call]


def test_the_parked_sync_of_a_member_that_leaves_is_never_answered(play: Play) -> None:
    a, b = play.unsynced_pair()
    waiting = play.sync(2, b)
    assert play.leave_errors(b) == [Error.NONE]
    assert play.heartbeat(2, a) is Error.REBALANCE_IN_PROGRESS
    play.join(a)
    assert waiting.parked
    assert [fact.call for fact in play.facts_of(Superseded)] == [waiting.call]


HASTY: dict[str, Any] = {"session": 60_000, "rebalance": 5_000}


def test_kafka_12890_a_member_that_does_not_sync_in_time_is_removed(play: Play) -> None:
    a, b = play.unsynced_pair(**HASTY)
    assert play.sync(2, a).error is Error.NONE
    assert play.keep_alive(4_999, (2, a), (2, b)) is Error.NONE
    play.wait(1)
    assert play.heartbeat(2, a) is Error.REBALANCE_IN_PROGRESS
    assert play.heartbeat(2, b) is Error.UNKNOWN_MEMBER_ID
    assert [row.member_id for row in play.join(a, **HASTY).response.members] == [a]


def test_kafka_12890_a_leader_that_does_not_sync_is_out_too(play: Play) -> None:
    a, b = play.unsynced_pair(**HASTY)
    waiting = play.sync(2, b)
    play.keep_alive(5_000, (2, a))
    assert waiting.error is Error.REBALANCE_IN_PROGRESS
    assert play.heartbeat(2, a) is Error.UNKNOWN_MEMBER_ID
    joined = play.join(b, **HASTY).response
    assert (joined.generation_id, joined.leader) == (3, b)


def test_kafka_12890_a_group_without_syncs_becomes_empty(play: Play) -> None:
    play.unsynced_pair(**HASTY)
    play.wait(5_000)
    assert (play.state(), play.group().generation) == ("Empty", 3)


def test_kafka_12890_when_all_have_synced_nothing_is_left_to_expire(play: Play) -> None:
    a, b = play.stable_pair(**HASTY)
    assert PendingSyncExpiry(2) not in play.group().timers
    assert play.keep_alive(20_000, (2, a), (2, b)) is Error.NONE


def test_kafka_12890_a_follower_that_syncs_late_but_in_time_stays(play: Play) -> None:
    a, b = play.unsynced_pair(**HASTY)
    play.sync(2, a)
    play.wait(4_000)
    play.sync(2, b)
    assert play.keep_alive(10_000, (2, b), (2, a)) is Error.NONE


def test_kafka_12890_a_rebalance_ends_the_wait_for_syncs(play: Play) -> None:
    a, b = play.unsynced_pair(**HASTY)
    play.wait(4_000)
    joins = [play.join(a, **HASTY, protocols=(("range", b"new"),)), play.join(b, **HASTY)]
    assert joins[0].response.generation_id == 3
    play.wait(4_000)
    assert play.heartbeat(3, b) is Error.NONE


def test_the_assignment_is_written_before_it_is_sent(play: Play) -> None:
    a, b = play.unsynced_pair()
    play.writes = None
    joins = [play.sync(2, b), play.sync(2, a, {a: b"a2", b: b"b2"})]
    assert all(sent.parked for sent in joins)
    assert play.state() == "CompletingRebalance"
    (append,) = play.in_flight
    (record,) = append.records
    assert append.partition == 3
    assert isinstance(record.value, GroupMetadataValue)
    assert (record.value.generation, record.value.protocol, record.value.leader) == (2, "range", a)
    assert record.value.protocol_type == "consumer"
    assert {row.member_id: row.assignment for row in record.value.members} == {a: b"a2", b: b"b2"}
    play.complete_writes()
    assert [sent.response.assignment for sent in joins] == [b"b2", b"a2"]


def test_a_leader_may_sync_again_while_its_assignment_is_being_written(play: Play) -> None:
    a, b = play.unsynced_pair()
    play.writes = None
    first, second = play.sync(2, a, {b: b"first"}), play.sync(2, a, {b: b"second"})
    assert len(play.in_flight) == 2
    play.complete_writes()
    assert (first.parked, second.error) == (True, Error.NONE)
    assert play.sync(2, b).response.assignment == b"first"


def test_a_write_completed_after_the_group_moved_on_is_ignored(play: Play) -> None:
    a, b = play.unsynced_pair()
    play.writes = None
    leader = play.sync(2, a, {a: b"old", b: b"old"})
    changed = play.join(b, protocols=(("range", b"new"),))
    assert leader.error is Error.REBALANCE_IN_PROGRESS
    play.join(a)
    assert changed.response.generation_id == 3
    play.complete_writes()
    assert play.state() == "CompletingRebalance"
    assert {row.member_assignment for row in play.describe().members} == {b""}
