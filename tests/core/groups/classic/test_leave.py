"""LeaveGroup: one member or several (KIP-345), and the members that stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from koordinator.emulator.core.groups.facts import MemberChanged, StateChanged
from koordinator.wire.errors import Error
from koordinator.wire.messages.leave_group import LeaveGroupRequest
from koordinator.wire.messages.offsets_topic import GroupMetadataValue

if TYPE_CHECKING:
    from scenes.play import Play


def test_an_empty_group_id_is_invalid(play: Play) -> None:
    answer = play.leave("x", group="")
    assert (answer.error_code, answer.members) == (Error.INVALID_GROUP_ID, ())


def test_in_an_unknown_group_each_member_is_unknown(play: Play) -> None:
    answer = play.leave("x", ("", "i1"), group="unknown")
    assert answer.error_code == Error.NONE
    assert [(row.member_id, row.group_instance_id, row.error_code) for row in answer.members] == [
        ("x", None, Error.UNKNOWN_MEMBER_ID),
        ("", "i1", Error.UNKNOWN_MEMBER_ID),
    ]


@pytest.mark.parametrize("member", ["a member", "a stranger"])
def test_before_v3_the_result_of_the_only_member_is_top_level(play: Play, member: str) -> None:
    a = play.stable_member()
    member_id, expected = (a, Error.NONE) if member == "a member" else ("ghost", Error.UNKNOWN_MEMBER_ID)
    assert play.send(LeaveGroupRequest(group_id="g", member_id=member_id), 2).error is expected


def test_kip_345_several_leave_at_once_each_with_its_own_result(play: Play) -> None:
    a, b = play.stable_pair()
    answer = play.leave(a, "ghost", ("", "i9"), "")
    assert answer.error_code == Error.NONE
    assert [(row.member_id, row.group_instance_id, row.error_code) for row in answer.members] == [
        (a, None, Error.NONE),
        ("ghost", None, Error.UNKNOWN_MEMBER_ID),
        ("", "i9", Error.UNKNOWN_MEMBER_ID),
        ("", None, Error.UNKNOWN_MEMBER_ID),
    ]
    assert play.heartbeat(2, b) is Error.REBALANCE_IN_PROGRESS


def test_a_second_leave_is_unknown_member(play: Play) -> None:
    _, b = play.stable_pair()
    assert play.leave_errors(b, b) == [Error.NONE, Error.UNKNOWN_MEMBER_ID]


def test_an_empty_list_is_legal_and_changes_nothing(play: Play) -> None:
    a = play.stable_member()
    answer = play.leave()
    assert (answer.error_code, answer.members) == (Error.NONE, ())
    assert play.heartbeat(1, a) is Error.NONE


def test_a_rejected_member_changes_nothing(play: Play) -> None:
    a = play.stable_member()
    assert play.leave_errors("ghost") == [Error.UNKNOWN_MEMBER_ID]
    assert play.heartbeat(1, a) is Error.NONE


def test_a_leaving_follower_rebalances_the_remaining_members(play: Play) -> None:
    a, b = play.stable_pair()
    play.leave(b)
    assert play.heartbeat(2, a) is Error.REBALANCE_IN_PROGRESS
    joined = play.join(a).response
    assert (joined.generation_id, joined.leader, [row.member_id for row in joined.members]) == (3, a, [a])


def test_a_leaving_leader_is_succeeded(play: Play) -> None:
    a, b = play.stable_pair()
    play.leave(a)
    assert play.heartbeat(2, b) is Error.REBALANCE_IN_PROGRESS
    joined = play.join(b).response
    assert (joined.generation_id, joined.leader, [row.member_id for row in joined.members]) == (3, b, [b])


def test_the_last_member_that_leaves_empties_the_group_at_once(play: Play) -> None:
    play.emptied()
    described = play.describe()
    assert (described.group_state, described.protocol_type, described.protocol_data) == ("Empty", "consumer", "")
    assert play.group().generation == 2
    assert len(play.group().timers) == 1


def test_an_empty_generation_is_written(play: Play) -> None:
    play.emptied()
    (record,) = play.appended[-1].records
    value = record.value
    assert isinstance(value, GroupMetadataValue)
    assert (value.generation, value.protocol_type, value.protocol, value.leader) == (2, "consumer", None, None)
    assert (value.members, value.current_state_timestamp) == ((), play.now)


def test_a_batch_of_leaves_is_evaluated_once(play: Play) -> None:
    assert play.leave_errors(*play.stable_trio()) == [Error.NONE] * 3
    assert play.state() == "Empty"
    joined = play.join(play.new_id())
    play.settle()
    assert joined.response.generation_id == 5


def test_a_leave_completes_the_join_phase_if_no_other_member_is_missing(play: Play) -> None:
    a, b = play.stable_pair()
    joining = play.join(a)
    play.leave(b)
    assert [row.member_id for row in joining.response.members] == [a]


def test_the_parked_join_of_a_leaving_member_is_answered(play: Play) -> None:
    a, b, _ = play.stable_trio()
    joining = play.join(b, protocols=(("range", b"new"),))
    play.leave(b)
    assert (joining.error, joining.response.member_id) == (Error.UNKNOWN_MEMBER_ID, "")
    assert play.heartbeat(3, a) is Error.REBALANCE_IN_PROGRESS


def test_before_the_assignment_a_leave_ends_parked_syncs(play: Play) -> None:
    a, b = play.unsynced_pair()
    waiting = play.sync(2, b)
    play.leave(a)
    assert waiting.error is Error.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("reason", [None, "", "the consumer is being closed"])
def test_kip_800_a_reason_changes_nothing_but_the_facts(play: Play, reason: str | None) -> None:
    a, b = play.stable_pair()
    assert [row.error_code for row in play.leave(b, reason=reason).members] == [Error.NONE]
    assert play.heartbeat(2, a) is Error.REBALANCE_IN_PROGRESS
    assert play.facts_of(StateChanged)[-1].client_reason == reason
    assert play.facts_of(MemberChanged)[-1].reason.endswith(f"client reason: {reason or 'not provided'}")
