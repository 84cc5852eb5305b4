"""Healthy puppets behave like Java's consumer."""

from __future__ import annotations

from scenes.puppet_scene import HEARTBEAT_MS, SESSION_MS, PuppetScene


def test_a_single_puppet_gets_all_partitions_and_sends_heartbeats() -> None:
    scene = PuppetScene()
    assert scene.puppet("one", joins=False).state == "out"
    scene.perform("one", "join")
    assert scene.state("one") == "stable"
    assert scene.holds("one") == {"one": [0, 1, 2, 3]}
    scene.wait(10 * SESSION_MS)
    assert scene.members() == {"one"}
    assert len(scene.events("request", api="Heartbeat")) == 10 * SESSION_MS // HEARTBEAT_MS


def test_the_timeout_of_join_group_covers_the_rebalance_timeout() -> None:
    scene = PuppetScene()
    scene.puppet("silent", behaviour="silent", session_timeout_ms=55_000, rebalance_timeout_ms=60_000)
    scene.puppet("two", rebalance_timeout_ms=60_000)
    scene.wait(55_000)
    assert scene.state("two") == "stable"
    assert len(scene.events("request", api="FindCoordinator", client_id="two")) == 1


def test_a_member_rejoins_after_a_heartbeat_reports_a_rebalance() -> None:
    scene = PuppetScene()
    scene.puppet("one")
    scene.puppet("two")
    assert scene.state("two") == "joining"
    scene.wait(HEARTBEAT_MS)
    assert scene.holds("one", "two") == {"one": [0, 1], "two": [2, 3]} or scene.holds("one", "two") == {
        "one": [2, 3],
        "two": [0, 1],
    }
    assert scene.group().generation == 2
    assert scene.is_settled()
