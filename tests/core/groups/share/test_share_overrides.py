"""What a test does to a share group without a request: rebalances, ended sessions, frozen groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from scenes.share_play import ALL, SharePlay

from koordinator.emulator.core import overrides
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.emulator.core.groups.group import BaseGroup
    from koordinator.emulator.core.groups.group_store import GroupStore


def override(play: SharePlay, action: Callable[[GroupStore, BaseGroup], None]) -> None:
    play._perform(play.coordinator.override(play.now, "g", action))


def test_a_forced_rebalance_raises_the_epoch_and_a_heartbeat_computes_the_target(play: SharePlay) -> None:
    play.settle_in("A")
    play.written()
    override(play, lambda store, group: overrides.force_rebalance(store, group, "test"))
    assert play.written() == [[11]]
    assert play.shape() == ("Stable", 4, 3)
    assert play.beat("A", 3) == (4, None)
    assert play.shape() == ("Stable", 4, 4)


def test_a_group_without_members_cannot_be_forced_to_rebalance(play: SharePlay) -> None:
    play.settle_in("A")
    play.beat("A", -1)
    before = play.shape()
    with pytest.raises(ValueError, match="group 'g' is Empty: only a group with members can be forced to rebalance"):
        override(play, lambda store, group: overrides.force_rebalance(store, group, "test"))
    assert play.shape() == before


def test_an_ended_session_removes_the_member(play: SharePlay) -> None:
    play.settle_in("A")
    member = play.share_group().members["A"]
    override(play, lambda store, group: overrides.expire_session(store, group, member))
    assert play.beat("A", 3)[0] is Error.UNKNOWN_MEMBER_ID
    play.wait(play.settings.group_share_session_timeout_ms)
    assert play.shape() == ("Empty", 4, 4)


def test_a_frozen_group_answers_heartbeats_that_change_nothing_and_holds_the_others(play: SharePlay) -> None:
    play.settle_in("A")
    override(play, overrides.freeze)
    assert play.beat("A", 3) == (3, None)
    held = [play.start_heart("B", 0, ["t"]), play.start_heart("A", 3, ["t", "u"]), play.start_heart("A", -1)]
    play.wait(play.settings.group_share_session_timeout_ms)
    assert [each.responses for each in held] == [[], [], []]
    assert play.shape() == ("Stable", 3, 3)
    override(play, overrides.thaw)
    assert [(each.response.error_code, each.response.member_epoch) for each in held] == [(0, 4), (0, 5), (0, -1)]
    assert [member.member_id for member in play.described().members] == ["B"]
    assert play.beat("B", 4) == (6, ALL)
