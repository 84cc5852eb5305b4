"""Auto clocks: they skip barriers that no live member can still reach, and never sessions."""

from __future__ import annotations

import pytest
from brokers.cluster import GROUP, SESSION_MS, joining, syncing
from brokers.group_broker import GroupBroker

from koordinator.wire.errors import Error


@pytest.fixture
def here() -> GroupBroker:
    return GroupBroker(group_clock="auto", group_initial_rebalance_delay_ms=3_000)


def ahead_ms(here: GroupBroker) -> int:
    return here.clocks.read(here.now, group=GROUP).ahead_ms


def test_the_auto_clock_skips_the_initial_delay_once_all_members_joined(here: GroupBroker) -> None:
    peer = here.connect(here.node)
    here.send(peer, here.request(peer, joining("a"), 5))
    here.wait(0)
    assert peer.answers()[-1][1].generation_id == 1
    assert ahead_ms(here) == 3_000


def test_a_connected_pending_member_is_waited_for(here: GroupBroker) -> None:
    handed_out = here.request_at(here.node, joining(), 5).member_id
    (connection,) = (call.connection for call in here.group.pending_members.values())
    peer = here.connect(here.node)
    here.send(peer, here.request(peer, joining("a"), 5))
    here.wait(0)
    assert (peer.answers(), list(here.group.pending_members)) == ([], [handed_out])
    here.runtime.disconnected(here.now, connection)
    here.wait(0)
    assert peer.answers()[-1][1].generation_id == 1


def test_the_auto_clock_skips_a_join_phase_when_the_missing_member_disconnected(here: GroupBroker) -> None:
    (a, b) = form(here, "a", "b")
    session = here.group.members[b].session
    left_ms = here.group.timers[session] - here.group.now
    peer = here.connect(here.node)
    here.send(peer, here.request(peer, joining("a", a), 5))
    here.wait(0)
    assert peer.answers() == []
    gone = here.group.members[b].last_call.connection
    here.runtime.disconnected(here.now, gone)
    here.wait(0)
    assert peer.answers()[-1][1].generation_id == 2
    # a static member stays; its session has not been jumped over
    assert here.group.timers[session] - here.group.clock.read(here.now) == left_ms


def test_a_connected_but_silent_member_is_not_waited_for(here: GroupBroker) -> None:
    (a, _) = form(here, "a", "b")
    here.clocks.set_mode(here.now, group=GROUP, mode="manual")
    here.wait(SESSION_MS)
    here.clocks.set_mode(here.now, group=GROUP, mode="auto")
    peer = here.connect(here.node)
    here.send(peer, here.request(peer, joining("a", a), 5))
    here.wait(0)
    assert peer.answers()[-1][1].generation_id == 2


def test_waiters_for_a_departed_leader_are_released(here: GroupBroker) -> None:
    joined = join(here, "a", "b")
    (follower,) = (member_id for member_id in joined if member_id != here.group.leader_id)
    own = here.connect(here.node)
    here.send(own, here.request(own, syncing(follower), 3))
    here.wait(0)
    assert own.answers() == []
    here.runtime.disconnected(here.now, here.group.leader.last_call.connection)
    here.wait(0)
    assert own.answers()[-1][1].error_code == Error.REBALANCE_IN_PROGRESS


def test_sessions_are_never_jumped_over(here: GroupBroker) -> None:
    form(here, "a")
    before = ahead_ms(here)
    here.disconnect_all()
    here.wait(SESSION_MS - 1)
    assert (ahead_ms(here), len(here.group.members)) == (before, 1)
    here.wait(1)
    assert not here.group.members


def test_the_auto_clock_skips_nothing_for_an_idle_group(here: GroupBroker) -> None:
    form(here, "a", "b")
    here.disconnect_all()
    before = ahead_ms(here)
    here.verbs.rebalance(here.now, group=GROUP)
    here.wait(0)
    assert (ahead_ms(here), here.group.state.value) == (before, "PreparingRebalance")


def test_a_loaded_member_is_waited_for_during_its_session(here: GroupBroker) -> None:
    (a, _) = form(here, "a", "b")
    here.do(here.runtime.move_coordinator, GROUP, 3 - here.node)
    here.node = 3 - here.node
    peer = here.connect(here.node)
    here.verbs.rebalance(here.now, group=GROUP)
    here.send(peer, here.request(peer, joining("a", a), 5))
    here.wait(0)
    assert peer.answers() == []


def test_a_frozen_group_waits(here: GroupBroker) -> None:
    here.verbs.freeze(here.now, group=GROUP, state="PreparingRebalance")
    peer = here.connect(here.node)
    here.send(peer, here.request(peer, joining("a"), 5))
    here.wait(1_000)
    assert (peer.answers(), ahead_ms(here)) == ([], 0)


def test_the_trace_says_that_the_clock_has_moved_itself(here: GroupBroker) -> None:
    form(here, "a")
    moves = [line for line in here.trace.events(group=GROUP) if line["kind"] == "clock"]
    assert [(line["cause"], line["mode"]) for line in moves][-1] == ("auto", "auto")


def test_other_groups_do_not_jump() -> None:
    here = GroupBroker(group_initial_rebalance_delay_ms=3_000)
    here.clocks.set_mode(here.now, group="another", mode="auto")
    peer = here.connect(here.node)
    here.send(peer, here.request(peer, joining("a"), 5))
    here.wait(0)
    assert (peer.answers(), ahead_ms(here)) == ([], 0)


def join(here: GroupBroker, *instances: str) -> list[str]:
    """All join, then the clock begins to jump; their ids."""
    here.clocks.set_mode(here.now, group=GROUP, mode="real")
    for instance in instances:
        here.at[instance] = peer = here.connect(here.node)
        here.send(peer, here.request(peer, joining(instance), 5))
    here.clocks.set_mode(here.now, group=GROUP, mode="auto")
    here.wait(0)
    return [here.at[instance].answers()[-1][1].member_id for instance in instances]


def form(here: GroupBroker, *instances: str) -> list[str]:
    """A stable group; the ids of its members."""
    ids = join(here, *instances)
    for member_id in sorted(ids, key=lambda each: each != here.group.leader_id):
        assert here.request_at(here.node, syncing(member_id), 3).error_code == 0
    return ids
