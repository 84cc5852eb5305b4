"""What a test does to a streams group without a request: rebalances, ended sessions, frozen groups."""

from __future__ import annotations

import pytest
from scenes.streams_play import ALL, StreamsPlay

from koordinator.emulator.core import overrides
from koordinator.wire.errors import Error


def test_a_forced_rebalance_raises_the_epoch_and_a_heartbeat_computes_the_target(play: StreamsPlay) -> None:
    play.come("A")
    play.written()
    play.override(lambda store, group: overrides.force_rebalance(store, group, "test"))
    assert play.written() == [[17]]
    assert play.shape() == ("Assigning", 3, 2)
    assert play.beat("A", 2) == (3, None)
    assert play.shape() == ("Stable", 3, 3)


def test_a_group_without_members_cannot_be_forced_to_rebalance(play: StreamsPlay) -> None:
    play.come("A")
    play.beat("A", -1)
    with pytest.raises(ValueError, match="group 'g' is Empty: only a group with members can be forced to rebalance"):
        play.override(lambda store, group: overrides.force_rebalance(store, group, "test"))


def test_a_session_may_end_at_once(play: StreamsPlay) -> None:
    play.come("A")
    member = play.streams_group().members["A"]
    play.override(lambda store, group: overrides.expire_session(store, group, member))
    assert play.beat("A", 2)[0] == Error.UNKNOWN_MEMBER_ID


def test_a_frozen_group_holds_what_would_change_it(play: StreamsPlay) -> None:
    play.come("A")
    play.override(overrides.freeze)
    assert play.beat("A", 2) == (2, None)
    held = [play.start_join("B"), play.start("A", -1), play.join("", version=3)]
    play.wait(100_000)
    assert not any(each.responses for each in held)
    play.override(overrides.thaw)
    assert [each.response.error_code for each in held[:2]] == [Error.NONE, Error.NONE]
    assert held[0].response.member_epoch == 3
    assert play.beat("B", 3) == (4, ALL)
