"""KIP-389: group.max.size, with the rule of KAFKA-9885."""

from __future__ import annotations

import pytest
from builders.requests import CHANGED
from scenes.play import Play

from koordinator.emulator.core.timers import PendingMemberExpiry
from koordinator.wire.errors import Error


@pytest.mark.parametrize("version", [3, 5])
def test_a_full_group_rejects_joins_and_issues_no_id(version: int) -> None:
    play = Play(group_max_size=1)
    a = play.stable_member()
    refused = play.join("", version=version).response
    assert (refused.error_code, refused.member_id, refused.generation_id) == (Error.GROUP_MAX_SIZE_REACHED, "", -1)
    assert play.heartbeat(1, a) is Error.NONE


def test_the_last_free_place_can_be_taken() -> None:
    play = Play(group_max_size=2)
    play.stable_pair()
    assert play.join("").error is Error.GROUP_MAX_SIZE_REACHED


def test_members_of_a_full_group_may_rejoin() -> None:
    play = Play(group_max_size=2)
    a, b = play.stable_pair()
    changed = play.join(b, protocols=CHANGED)
    assert play.join(a).response.generation_id == changed.response.generation_id == 3


def test_a_full_group_is_full_before_the_assignment_as_well() -> None:
    play = Play(group_max_size=2)
    play.unsynced_pair()
    assert play.join("").error is Error.GROUP_MAX_SIZE_REACHED


def test_pending_ids_do_not_count() -> None:
    play = Play(group_max_size=2)
    play.stable_member()
    assert len({play.new_id(version=4) for _ in range(5)}) == 5


def test_an_empty_group_hands_out_ids_without_limit_and_rejects_the_surplus() -> None:
    play = Play(group_max_size=2, group_initial_rebalance_delay_ms=1_000)
    ids = [play.new_id() for _ in range(3)]
    joins = [play.join(each) for each in ids]
    assert (joins[2].error, joins[2].response.member_id) == (Error.GROUP_MAX_SIZE_REACHED, "")
    play.wait(2_000)
    assert [sent.response.generation_id for sent in joins[:2]] == [1, 1]


def test_a_group_that_was_full_and_is_empty_has_room() -> None:
    play = Play(group_max_size=1)
    play.emptied()
    joined = play.join(play.new_id())
    play.settle()
    assert joined.response.generation_id == 3


def test_a_static_member_that_returns_to_a_full_group_is_refused() -> None:
    """Without its id it counts as a new member, although it would replace one."""
    play = Play(group_max_size=1)
    p = play.static_member()
    refused = play.join("", "i1").response
    assert (refused.error_code, refused.member_id) == (Error.GROUP_MAX_SIZE_REACHED, "")
    assert play.heartbeat(1, p, "i1") is Error.NONE


def test_a_refused_id_is_forgotten_and_the_join_phase_goes_on_until_its_timer() -> None:
    """The old coordinator would end the phase at once."""
    play = Play(group_max_size=2)
    a = play.stable_member(session=60_000)
    b, c = play.new_id(session=60_000), play.new_id(session=60_000)
    joining = [play.join(b, session=60_000), play.join(a, session=60_000)]
    assert all(sent.parked for sent in joining)
    assert play.join(c).error is Error.GROUP_MAX_SIZE_REACHED
    assert PendingMemberExpiry(c) not in play.group().timers
    play.wait(29_999)
    assert all(sent.parked for sent in joining)
    play.wait(1)
    assert [sent.response.generation_id for sent in joining] == [2, 2]
    assert play.join(c).error is Error.GROUP_MAX_SIZE_REACHED


def test_kafka_9885_parked_joins_count_and_later_ones_are_rejected() -> None:
    play = Play(group_max_size=2)
    a, b = play.stable_pair(session=60_000)
    joining = [play.join(b, session=60_000, protocols=CHANGED), play.join("", version=3, session=60_000)]
    assert play.join(a, session=60_000).error is Error.GROUP_MAX_SIZE_REACHED
    assert play.heartbeat(2, a) is Error.UNKNOWN_MEMBER_ID
    assert all(sent.parked for sent in joining)
    # the next event does: a parked member joins again, and then no member is missing
    assert play.join(b, session=60_000).response.generation_id == joining[1].response.generation_id == 3


def test_sync_heartbeat_and_commit_of_members_of_a_full_group_go_on() -> None:
    play = Play(group_max_size=1)
    a = play.stable_member()
    assert play.sync(1, a).error is Error.NONE
    assert play.heartbeat(1, a) is Error.NONE
    assert play.commit_errors(1, a) == [Error.NONE]
