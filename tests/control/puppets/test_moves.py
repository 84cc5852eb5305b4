"""Puppets follow a coordinator that moves."""

from __future__ import annotations

import pytest
from brokers.cluster import GROUP
from scenes.puppet_scene import HEARTBEAT_MS, SESSION_MS, PuppetScene

from koordinator.emulator.control.puppets.connection import REQUEST_TIMEOUT_MS, RETRY_BACKOFF_MS


def other(scene: PuppetScene) -> int:
    """Return a node that does not coordinate the group."""
    now = scene.runtime.cluster.coordinator_of(GROUP)
    return next(node for node, state in scene.runtime.states.items() if node != now and state == "up")


def formed(nodes: int = 2) -> PuppetScene:
    """Create two static puppets in a stable group."""
    scene = PuppetScene(nodes)
    scene.puppet("one", instance_id="1")
    scene.puppet("two", instance_id="2")
    scene.wait(HEARTBEAT_MS)
    assert scene.is_settled()
    return scene


def test_a_puppet_looks_up_its_coordinator() -> None:
    scene = PuppetScene(3)
    scene.puppet("one")
    assert scene.state("one") == "stable"
    requests = scene.events("request", api="FindCoordinator")
    assert requests[0]["node"] == 1
    assert scene.events("request", api="JoinGroup")[0]["node"] == scene.runtime.cluster.coordinator_of(GROUP)


def test_puppets_follow_a_moved_coordinator_without_a_rebalance() -> None:
    scene = formed()
    there = other(scene)
    scene.do(scene.runtime.move_coordinator, GROUP, there)
    scene.wait(10 * SESSION_MS)
    assert scene.events("response", error="NOT_COORDINATOR")
    assert scene.events("request", api="Heartbeat")[-1]["node"] == there
    assert scene.group().generation == 2
    assert scene.members() == {"one", "two"}


def test_puppets_follow_the_failover_of_a_killed_coordinator() -> None:
    scene = formed()
    scene.do(scene.runtime.kill_node, scene.runtime.cluster.coordinator_of(GROUP))
    scene.wait(10 * SESSION_MS)
    assert scene.is_settled()
    assert scene.group().generation == 2
    assert scene.members() == {"one", "two"}


def test_a_join_during_a_coordinator_move_completes_at_the_new_coordinator() -> None:
    scene = formed()
    scene.puppet("three", instance_id="3")
    assert scene.state("three") == "joining"
    scene.do(scene.runtime.move_coordinator, GROUP, other(scene))
    scene.wait(2 * HEARTBEAT_MS)
    assert scene.is_settled()
    assert scene.members() == {"one", "two", "three"}


def test_puppets_wait_for_a_loading_coordinator() -> None:
    scene = formed()
    scene.do(scene.runtime.move_coordinator, GROUP, other(scene), 3_000)
    scene.puppet("three", instance_id="3")
    scene.wait(2_999)
    assert scene.events("response", error="COORDINATOR_LOAD_IN_PROGRESS")
    assert scene.state("three") == "joining"
    scene.wait(2 * HEARTBEAT_MS)
    assert scene.is_settled()
    assert scene.members() == {"one", "two", "three"}


def test_lookups_back_off_while_nodes_disagree_about_the_coordinator() -> None:
    scene = formed()
    there = other(scene)
    for node in (1, 2):
        scene.runtime.override_coordinator(node, GROUP, there)
    scene.perform("one", "stop")
    scene.perform("one", "join")
    requests = len(scene.events("request", api="FindCoordinator"))
    scene.wait(1_000)
    # librdkafka #3396
    assert len(scene.events("request", api="FindCoordinator")) - requests == 1_000 // RETRY_BACKOFF_MS
    for node in (1, 2):
        scene.runtime.override_coordinator(node, GROUP, None)
    scene.wait(RETRY_BACKOFF_MS + HEARTBEAT_MS)
    assert scene.state("one") == "stable"


def test_a_lookup_timeout_moves_to_the_next_node() -> None:
    scene = PuppetScene(2)
    scene.coordinator(2)
    scene.do(scene.runtime.move_coordinator, GROUP, 2)
    scene.do(scene.runtime.pause_node, 1)
    scene.puppet("one")
    scene.wait(REQUEST_TIMEOUT_MS + RETRY_BACKOFF_MS - 1)
    assert scene.state("one") == "joining"
    scene.wait(1)
    assert scene.state("one") == "stable"


def test_a_puppet_rediscovers_its_coordinator_after_a_silent_session() -> None:
    scene = formed(3)
    before = scene.runtime.cluster.coordinator_of(GROUP)
    scene.do(scene.runtime.pause_node, before)
    lookups = len(scene.events("request", api="FindCoordinator"))
    scene.wait(SESSION_MS + 2 * HEARTBEAT_MS)
    assert len(scene.events("request", api="FindCoordinator")) > lookups or scene.runtime.states[1] == "paused"
    scene.do(scene.runtime.resume_node, before)
    scene.wait(REQUEST_TIMEOUT_MS + 5 * HEARTBEAT_MS)
    assert scene.is_settled()
    assert scene.members() == {"one", "two"}


def test_a_disconnect_resets_the_state_of_a_manual_puppet() -> None:
    scene = PuppetScene(2)
    scene.puppet("one")
    scene.puppet("by hand", behaviour="manual", instance_id="2")
    assert scene.state("by hand") == "joining"
    scene.do(scene.runtime.kill_node, scene.runtime.cluster.coordinator_of(GROUP))
    scene.wait(1)
    assert scene.state("by hand") == "out"
    scene.wait(HEARTBEAT_MS)
    scene.perform("by hand", "join")
    scene.wait(HEARTBEAT_MS)
    assert scene.state("by hand") == "joined"


def test_a_returned_static_leader_skips_the_assignment_and_watches_its_topics() -> None:
    scene = formed()
    scene.perform("one", "stop")
    scene.perform("one", "join")
    # KIP-814
    assert scene.describe("one").is_leader
    assert scene.events("response", api="JoinGroup")[-1]["body"]["skip_assignment"]
    assert "body" not in scene.events("request", api="SyncGroup")[-1]
    assert scene.group().generation == 2
    scene.runtime.cluster.grow_topic(scene.runtime.cluster.topics["t"], 6)
    scene.wait(3 * HEARTBEAT_MS)
    assert scene.holds("one", "two") == {"one": [0, 1, 2], "two": [3, 4, 5]}


def test_partitions_added_during_the_absence_of_a_static_leader_stay_unassigned() -> None:
    scene = formed()
    scene.perform("one", "stop")
    scene.runtime.cluster.grow_topic(scene.runtime.cluster.topics["t"], 5)
    scene.perform("one", "join")
    scene.wait(10 * SESSION_MS)
    assert scene.holds("one", "two") == {"one": [0, 1], "two": [2, 3]}
    scene.perform("one", "join")
    scene.wait(2 * HEARTBEAT_MS)
    assert scene.holds("one", "two") == {"one": [0, 1, 2], "two": [3, 4]}


@pytest.mark.parametrize("protocol", ["range", "cooperative-sticky"])
def test_a_leader_rejoins_when_its_topics_grow(protocol: str) -> None:
    scene = PuppetScene()
    scene.puppet("one", instance_id="1", protocols=(protocol,))
    scene.puppet("two", instance_id="2", protocols=(protocol,))
    scene.wait(3 * HEARTBEAT_MS)
    topics = scene.runtime.cluster.topics
    scene.runtime.cluster.grow_topic(topics["t"], 6)
    scene.runtime.create_topic("u", 1)
    scene.wait(3 * HEARTBEAT_MS)
    assert scene.is_settled()
    held = [scene.describe(name).assignment for name in ("one", "two")]
    assert sorted(each for holds in held for each in holds["t"]) == [0, 1, 2, 3, 4, 5]
    assert [holds["u"] for holds in held if "u" in holds] == [[0]]
