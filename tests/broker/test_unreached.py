"""Clients that are told where their group is and never come there."""

from __future__ import annotations

import pytest
from brokers.cluster import GROUP, Nodes, joining

from koordinator.emulator.broker.unreached_listeners import WAIT_MS, UnreachedListeners
from koordinator.wire.messages.fetch import FetchRequest
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.metadata import MetadataRequest

FETCH = FetchRequest(max_wait_ms=0, topics=())
FIND = FindCoordinatorRequest(coordinator_keys=(GROUP,))


@pytest.fixture
def nodes() -> Nodes:
    nodes = Nodes(1)
    nodes.runtime.unreached_listeners = UnreachedListeners(nodes.runtime, nodes.logged.append)
    return nodes


def test_who_was_told_of_a_coordinator_and_stays_away_is_one_line_with_the_remedy(nodes: Nodes) -> None:
    nodes.ask(nodes.connect(), FIND, 4, client_id="svc-1")
    nodes.wait(WAIT_MS - 1)
    assert nodes.logged == []
    nodes.wait(1)
    (line,) = nodes.logged
    assert line.startswith("client 'svc-1' (/127.0.0.1) was told that its group is at 127.0.0.1:9092, and has not come")
    assert "--advertised PLAINTEXT=HOST:PORT" in line
    assert "KOORDINATOR_ADVERTISED" in line


def test_who_goes_on_asking_on_new_connections_has_not_arrived(nodes: Nodes) -> None:
    for _ in range(3):
        peer = nodes.connect()
        nodes.ask(peer, MetadataRequest(), 9)
        nodes.ask(peer, FIND, 4)
        nodes.runtime.disconnected(nodes.now, peer.number)
    nodes.wait(WAIT_MS)
    assert len(nodes.logged) == 1


def test_it_is_said_once_for_each_address(nodes: Nodes) -> None:
    for client in ("a", "b"):
        nodes.ask(nodes.connect(), FIND, 4, client_id=client)
    nodes.wait(WAIT_MS)
    nodes.ask(nodes.connect(), FIND, 4, client_id="c")
    nodes.wait(WAIT_MS)
    assert len(nodes.logged) == 1
    nodes.runtime.advertise(1, "PLAINTEXT", "elsewhere", 5)
    nodes.ask(nodes.connect(), FIND, 4, client_id="d")
    nodes.wait(WAIT_MS)
    assert "elsewhere:5" in nodes.logged[1]


def test_who_joins_its_group_has_arrived(nodes: Nodes) -> None:
    nodes.ask(nodes.connect(), FIND, 4)
    nodes.ask(nodes.connect(), joining("one"), 5)
    nodes.wait(WAIT_MS)
    assert nodes.logged == []


def test_another_client_of_the_same_name_that_is_there_does_not_hide_who_is_not(nodes: Nodes) -> None:
    there, seeking = nodes.connect(), nodes.connect()
    nodes.ask(there, joining("one"), 5)
    nodes.ask(seeking, FindCoordinatorRequest(coordinator_keys=("another",)), 4)
    for _ in range(2):
        nodes.ask(there, FETCH, 4)
        nodes.ask(there, HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="one"), 3)
        nodes.wait(WAIT_MS // 2)
    assert len(nodes.logged) == 1


def test_who_asked_on_another_connection_and_goes_on_with_its_group_is_there(nodes: Nodes) -> None:
    there, asking = nodes.connect(), nodes.connect()
    nodes.ask(there, joining("one"), 5)
    nodes.ask(asking, FIND, 4)
    nodes.ask(there, HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="one"), 3)
    nodes.wait(WAIT_MS)
    assert nodes.logged == []


def test_who_fetches_without_naming_its_group_is_there(nodes: Nodes) -> None:
    nodes.ask(nodes.connect(), FIND, 4)
    nodes.ask(nodes.connect(), FETCH, 4)
    nodes.wait(WAIT_MS)
    assert nodes.logged == []


def test_who_only_lists_topics_is_not_waited_for(nodes: Nodes) -> None:
    nodes.ask(nodes.connect(), MetadataRequest(), 9)
    assert not nodes.runtime.tickers
    nodes.wait(WAIT_MS)
    assert nodes.logged == []


def test_who_asks_once_and_goes_has_given_up(nodes: Nodes) -> None:
    peer = nodes.connect()
    nodes.ask(peer, FIND, 4)
    nodes.runtime.disconnected(nodes.now, peer.number)
    nodes.wait(WAIT_MS)
    assert nodes.logged == []


def test_a_node_that_is_paused_is_not_reached_for_another_reason(nodes: Nodes) -> None:
    nodes.ask(nodes.connect(), FIND, 4)
    nodes.do(nodes.runtime.pause_node, 1)
    nodes.wait(WAIT_MS)
    assert nodes.logged == []


def test_who_is_told_another_address_meanwhile_is_not_missed_at_the_old_one(nodes: Nodes) -> None:
    nodes.ask(nodes.connect(), FIND, 4)
    nodes.runtime.advertise(1, "PLAINTEXT", "elsewhere", 5)
    nodes.wait(WAIT_MS)
    assert nodes.logged == []


def test_nothing_is_watched_when_everybody_has_arrived(nodes: Nodes) -> None:
    nodes.ask(nodes.connect(), FIND, 4)
    assert nodes.runtime.tickers
    nodes.ask(nodes.connect(), joining("one"), 5)
    assert not nodes.runtime.tickers
