"""A healthy puppet is what Java's consumer is to its group."""

from __future__ import annotations

from scenes.puppet_scene import BEAT_MS, SESSION_MS, Show


def test_a_puppet_joins_is_assigned_everything_and_beats() -> None:
    show = Show()
    assert show.puppet("one", joins=False)["state"] == "out"
    show.tell("one", "join")
    assert show.state("one") == "stable"
    assert show.holds("one") == {"one": [0, 1, 2, 3]}
    show.wait(10 * SESSION_MS)
    assert show.members() == {"one"}
    assert len(show.events("request", api="Heartbeat")) == 10 * SESSION_MS // BEAT_MS


def test_a_join_group_is_waited_for_as_long_as_a_join_phase_may_last() -> None:
    show = Show()
    show.puppet("silent", behaviour="silent", session_timeout_ms=55_000, rebalance_timeout_ms=60_000)
    show.puppet("two", rebalance_timeout_ms=60_000)
    show.wait(55_000)
    assert show.state("two") == "stable"
    assert len(show.events("request", api="FindCoordinator", client_id="two")) == 1


def test_a_member_that_learns_of_a_rebalance_in_its_heartbeat_joins_again() -> None:
    show = Show()
    show.puppet("one")
    show.puppet("two")
    assert show.state("two") == "joining"
    show.wait(BEAT_MS)
    assert show.holds("one", "two") == {"one": [0, 1], "two": [2, 3]} or show.holds("one", "two") == {
        "one": [2, 3],
        "two": [0, 1],
    }
    assert show.group().generation == 2
    assert show.is_settled()
