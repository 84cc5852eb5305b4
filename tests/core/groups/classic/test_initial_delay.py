"""KIP-134: the first rebalance of an empty group waits for more members."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from scenes.play import Exchange, Play

from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from koordinator.wire.messages.join_group import JoinGroupResponse

DELAY = 3_000


@pytest.fixture
def play() -> Play:
    return Play(group_initial_rebalance_delay_ms=DELAY)


def answered_at(play: Play, arrivals: list[int], *, rebalance: int = 30_000) -> list[int]:
    """Return when joins sent at these times are answered, in ms; all in one generation."""
    start = play.now
    joins: list[Exchange[JoinGroupResponse]] = []
    at: dict[int, int] = {}
    for now in range(0, 20_001, 100):
        play.wait(start + now - play.now)
        if now in arrivals:
            joins.append(play.join("", version=3, rebalance=rebalance))
        for number, sent in enumerate(joins):
            if not sent.parked:
                at.setdefault(number, now)
    assert len({sent.response.generation_id for sent in joins}) == 1
    (leader,) = [sent.response for sent in joins if sent.response.members]
    assert len(leader.members) == len(arrivals)
    return [at[number] for number in range(len(arrivals))]


@pytest.mark.parametrize(
    ("rebalance", "arrivals", "end"),
    [
        (30_000, [0], 3_000),
        (30_000, [0, 2_000], 6_000),
        (30_000, [0, 2_000, 5_000], 9_000),
        (7_000, [0, 1_000, 4_000, 6_500], 7_000),
        (1_000, [0], 3_000),
        (3_000, [0, 1_000], 3_000),
    ],
)
def test_a_delay_with_a_new_member_is_extended_up_to_the_rebalance_timeout(
    play: Play, rebalance: int, arrivals: list[int], end: int
) -> None:
    assert answered_at(play, arrivals, rebalance=rebalance) == [end] * len(arrivals)


def test_members_of_a_later_rebalance_do_not_extend_the_next_delay(play: Play) -> None:
    first = play.join("", version=3)
    play.wait(DELAY)
    play.sync(1, first.response.member_id)
    # the second one joins a running join phase
    others = [play.join("", version=3), play.join("", version=3)]
    play.join(first.response.member_id)
    play.leave(*(sent.response.member_id for sent in [first, *others]))
    assert play.state() == "Empty"
    assert answered_at(play, [0]) == [DELAY]


def test_a_group_that_became_empty_has_an_initial_delay_again(play: Play) -> None:
    """The old coordinator extends the delay only at generation 0."""
    sent = play.join("", version=3)
    play.wait(DELAY)
    play.sync(1, sent.response.member_id)
    play.leave(sent.response.member_id)
    assert play.state() == "Empty"
    assert answered_at(play, [0, 1_000]) == [6_000, 6_000]


def test_a_repeated_join_does_not_extend_the_delay(play: Play) -> None:
    a = play.new_id()
    first = play.join(a)
    play.wait(1_000)
    second = play.join(a)
    play.wait(2_000)
    assert (first.parked, second.response.generation_id) == (True, 1)


def test_a_pending_id_neither_extends_nor_blocks_the_delay(play: Play) -> None:
    joining = play.join(play.new_id())
    play.wait(1_000)
    play.new_id()
    play.wait(2_000)
    assert joining.response.generation_id == 1


def test_the_delay_does_not_end_when_all_members_joined(play: Play) -> None:
    a, b = play.new_id(), play.new_id()
    joins = [play.join(a)]
    play.wait(100)
    joins.append(play.join(b))
    play.wait(2_899)
    assert all(sent.parked for sent in joins)
    play.wait(3_001)
    assert [sent.response.generation_id for sent in joins] == [1, 1]


def test_the_delay_does_not_end_when_all_members_leave(play: Play) -> None:
    a = play.new_id()
    joining = play.join(a)
    play.wait(1_000)
    assert play.leave_errors(a) == [Error.NONE]
    assert (joining.error, joining.response.member_id) == (Error.UNKNOWN_MEMBER_ID, "")
    play.wait(1_999)
    assert play.state() == "PreparingRebalance"
    play.wait(1)
    assert play.state() == "Empty"
    following = play.join(play.new_id())
    play.wait(DELAY)
    assert following.response.generation_id == 2


def test_an_expired_pending_id_ends_the_delay_if_no_other_member_is_missing(play: Play) -> None:
    """New coordinator: a timer that removes a member may end the initial delay early, a leave may not."""
    joining = play.join(play.new_id())
    play.new_id(session=1_000)
    play.wait(999)
    assert joining.parked
    play.wait(1)
    assert joining.response.generation_id == 1


def test_without_a_delay_a_join_still_parks_for_an_instant() -> None:
    play = Play(group_initial_rebalance_delay_ms=0)
    joining = play.join("", version=3)
    assert joining.parked
    assert play.coordinator.deadline() == play.now
    play.settle()
    assert joining.response.generation_id == 1


def test_a_member_of_the_last_interval_extends_the_next_delay_once(play: Play) -> None:
    """A flag that is never cleared: in Kafka, too, it extends the group's next initial delay."""
    first = play.join("", version=3, rebalance=3_000)
    play.wait(1_000)
    second = play.join("", version=3, rebalance=3_000)
    play.wait(2_000)
    play.leave(first.response.member_id, second.response.member_id)
    assert play.state() == "Empty"
    assert answered_at(play, [0]) == [6_000]
    assert play.group().new_member_added is False
