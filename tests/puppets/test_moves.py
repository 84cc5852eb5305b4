"""Puppets follow their coordinator wherever it goes."""

from __future__ import annotations

import pytest
from brokers.cluster import GROUP
from scenes.puppet_scene import BEAT_MS, SESSION_MS, Show

from koordinator.emulator.control.puppets.connection import REQUEST_TIMEOUT_MS, RETRY_BACKOFF_MS


def other(show: Show) -> int:
    """A node that does not coordinate the group."""
    now = show.runtime.cluster.coordinator_of(GROUP)
    return next(node for node, state in show.runtime.states.items() if node != now and state == "up")


def formed(nodes: int = 2) -> Show:
    """Two static puppets in a stable group."""
    show = Show(nodes)
    show.puppet("one", instance_id="1")
    show.puppet("two", instance_id="2")
    show.wait(BEAT_MS)
    assert show.is_settled()
    return show


def test_a_puppet_finds_its_coordinator_by_asking() -> None:
    show = Show(3)
    show.puppet("one")
    assert show.state("one") == "stable"
    asked = show.events("request", api="FindCoordinator")
    assert asked[0]["node"] == 1
    assert show.events("request", api="JoinGroup")[0]["node"] == show.runtime.cluster.coordinator_of(GROUP)


def test_a_coordinator_that_moves_is_followed_without_a_rebalance() -> None:
    show = formed()
    there = other(show)
    show.do(show.runtime.move_coordinator, GROUP, there)
    show.wait(10 * SESSION_MS)
    assert show.events("response", error="NOT_COORDINATOR")
    assert show.events("request", api="Heartbeat")[-1]["node"] == there
    assert show.group().generation == 2
    assert show.members() == {"one", "two"}


def test_a_coordinator_that_is_killed_is_followed_to_where_its_groups_are() -> None:
    show = formed()
    show.do(show.runtime.kill_node, show.runtime.cluster.coordinator_of(GROUP))
    show.wait(10 * SESSION_MS)
    assert show.is_settled()
    assert show.group().generation == 2
    assert show.members() == {"one", "two"}


def test_who_joins_while_the_coordinator_moves_joins_at_the_next_one() -> None:
    show = formed()
    show.puppet("three", instance_id="3")
    assert show.state("three") == "joining"
    show.do(show.runtime.move_coordinator, GROUP, other(show))
    show.wait(2 * BEAT_MS)
    assert show.is_settled()
    assert show.members() == {"one", "two", "three"}


def test_a_coordinator_that_is_loading_is_waited_for() -> None:
    show = formed()
    show.do(show.runtime.move_coordinator, GROUP, other(show), 3_000)
    show.puppet("three", instance_id="3")
    show.wait(2_999)
    assert show.events("response", error="COORDINATOR_LOAD_IN_PROGRESS")
    assert show.state("three") == "joining"
    show.wait(2 * BEAT_MS)
    assert show.is_settled()
    assert show.members() == {"one", "two", "three"}


def test_nodes_that_disagree_about_the_coordinator_are_asked_again_and_again_but_not_without_a_pause() -> None:
    show = formed()
    there = other(show)
    for node in (1, 2):
        show.runtime.override_coordinator(node, GROUP, there)
    show.tell("one", "stop")
    show.tell("one", "join")
    asked = len(show.events("request", api="FindCoordinator"))
    show.wait(1_000)
    # librdkafka #3396
    assert len(show.events("request", api="FindCoordinator")) - asked == 1_000 // RETRY_BACKOFF_MS
    for node in (1, 2):
        show.runtime.override_coordinator(node, GROUP, None)
    show.wait(RETRY_BACKOFF_MS + BEAT_MS)
    assert show.state("one") == "stable"


def test_a_node_that_does_not_answer_is_given_up_and_another_one_is_asked() -> None:
    show = Show(2)
    show.coordinator(2)
    show.do(show.runtime.move_coordinator, GROUP, 2)
    show.do(show.runtime.pause_node, 1)
    show.puppet("one")
    show.wait(REQUEST_TIMEOUT_MS + RETRY_BACKOFF_MS - 1)
    assert show.state("one") == "joining"
    show.wait(1)
    assert show.state("one") == "stable"


def test_a_puppet_that_is_not_answered_for_a_session_looks_for_its_coordinator_anew() -> None:
    show = formed(3)
    before = show.runtime.cluster.coordinator_of(GROUP)
    show.do(show.runtime.pause_node, before)
    found = len(show.events("request", api="FindCoordinator"))
    show.wait(SESSION_MS + 2 * BEAT_MS)
    assert len(show.events("request", api="FindCoordinator")) > found or show.runtime.states[1] == "paused"
    show.do(show.runtime.resume_node, before)
    show.wait(REQUEST_TIMEOUT_MS + 5 * BEAT_MS)
    assert show.is_settled()
    assert show.members() == {"one", "two"}


def test_a_manual_puppet_whose_connection_ends_says_so_by_its_state() -> None:
    show = Show(2)
    show.puppet("one")
    show.puppet("by hand", behaviour="manual", instance_id="2")
    assert show.state("by hand") == "joining"
    show.do(show.runtime.kill_node, show.runtime.cluster.coordinator_of(GROUP))
    show.wait(1)
    assert show.state("by hand") == "out"
    show.wait(BEAT_MS)
    show.tell("by hand", "join")
    show.wait(BEAT_MS)
    assert show.state("by hand") == "joined"


def test_a_static_leader_that_is_back_assigns_nothing_and_watches_its_topics_again() -> None:
    show = formed()
    show.tell("one", "stop")
    show.tell("one", "join")
    # KIP-814
    assert show.look("one")["is_leader"]
    assert show.events("response", api="JoinGroup")[-1]["body"]["skip_assignment"]
    assert "body" not in show.events("request", api="SyncGroup")[-1]
    assert show.group().generation == 2
    show.runtime.cluster.grow_topic(show.runtime.cluster.topics["t"], 6)
    show.wait(3 * BEAT_MS)
    assert show.holds("one", "two") == {"one": [0, 1, 2], "two": [3, 4, 5]}


def test_what_has_grown_while_a_static_leader_was_away_is_nobodys_until_the_next_rebalance() -> None:
    show = formed()
    show.tell("one", "stop")
    show.runtime.cluster.grow_topic(show.runtime.cluster.topics["t"], 5)
    show.tell("one", "join")
    show.wait(10 * SESSION_MS)
    assert show.holds("one", "two") == {"one": [0, 1], "two": [2, 3]}
    show.tell("one", "join")
    show.wait(2 * BEAT_MS)
    assert show.holds("one", "two") == {"one": [0, 1, 2], "two": [3, 4]}


@pytest.mark.parametrize("protocol", ["range", "cooperative-sticky"])
def test_a_leader_that_finds_its_topics_grown_has_the_group_assign_anew(protocol: str) -> None:
    show = Show()
    show.puppet("one", instance_id="1", protocols=(protocol,))
    show.puppet("two", instance_id="2", protocols=(protocol,))
    show.wait(3 * BEAT_MS)
    topics = show.runtime.cluster.topics
    show.runtime.cluster.grow_topic(topics["t"], 6)
    show.runtime.create_topic(show.now, "u", 1)
    show.wait(3 * BEAT_MS)
    assert show.is_settled()
    held = [show.look(name)["assignment"] for name in ("one", "two")]
    assert sorted(each for holds in held for each in holds["t"]) == [0, 1, 2, 3, 4, 5]
    assert [holds["u"] for holds in held if "u" in holds] == [[0]]
