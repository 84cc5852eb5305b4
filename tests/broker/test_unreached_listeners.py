"""Clients that never reach the advertised address of their coordinator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from brokers.cluster import GROUP, Nodes, joining

from koordinator.emulator.broker.unreached_listeners import REPEAT_MS, WAIT_MS, WATCH_MS, UnreachedListeners
from koordinator.wire.messages.delete_groups import DeleteGroupsRequest
from koordinator.wire.messages.describe_groups import DescribeGroupsRequest
from koordinator.wire.messages.fetch import FetchRequest
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.metadata import MetadataRequest
from koordinator.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

if TYPE_CHECKING:
    from koordinator.wire.apis import Message

FETCH = FetchRequest(max_wait_ms=0, topics=())
FIND = FindCoordinatorRequest(coordinator_keys=(GROUP,))


def look_up_twice(nodes: Nodes, client_id: str = "c") -> None:
    """Look up the coordinator, and again, as a client does that cannot connect to it."""
    peer = nodes.connect()
    nodes.ask(peer, FIND, 4, client_id=client_id)
    nodes.wait(REPEAT_MS)
    nodes.ask(peer, FIND, 4, client_id=client_id)


@pytest.fixture
def nodes() -> Nodes:
    nodes = Nodes(1)
    nodes.runtime.unreached_listeners = UnreachedListeners(nodes.runtime, nodes.logged.append)
    return nodes


def test_a_client_that_never_reaches_its_coordinator_is_one_line_with_the_remedy(nodes: Nodes) -> None:
    look_up_twice(nodes, client_id="svc-1")
    nodes.wait(WAIT_MS - REPEAT_MS - 1)
    assert nodes.logged == []
    nodes.wait(1)
    (line,) = nodes.logged
    assert line.startswith(
        f"client 'svc-1' (/127.0.0.1) got the address 127.0.0.1:9092 for the coordinator of group '{GROUP}', and "
        "sent FindCoordinator in the 5 s since"
    )
    assert "--advertised PLAINTEXT=HOST:PORT" in line
    assert "KOORDINATOR_ADVERTISED" in line


def test_the_line_says_what_the_client_sent_instead(nodes: Nodes) -> None:
    peer = nodes.connect()
    nodes.ask(peer, FIND, 4)
    nodes.ask(peer, MetadataRequest(), 9)
    nodes.wait(REPEAT_MS)
    nodes.ask(peer, FIND, 4)
    nodes.wait(WAIT_MS)
    (line,) = nodes.logged
    assert "and sent Metadata and FindCoordinator in the 5 s since. If it cannot reach that address" in line


def test_a_client_that_tries_to_connect_for_longer_is_reported_when_it_looks_up_again(nodes: Nodes) -> None:
    peer = nodes.connect()
    nodes.ask(peer, FIND, 4)
    nodes.wait(WATCH_MS - 2_000)
    assert nodes.logged == []
    nodes.ask(peer, FIND, 4)
    nodes.wait(1)
    assert "FindCoordinator in the 33 s since" in nodes.logged[0]


def test_a_client_that_does_not_look_up_its_coordinator_again_is_not_reported(nodes: Nodes) -> None:
    peer = nodes.connect()
    nodes.ask(peer, FIND, 4)
    nodes.ask(peer, FindCoordinatorRequest(coordinator_keys=("another",)), 4)
    for _ in range(WATCH_MS // WAIT_MS):
        nodes.ask(peer, MetadataRequest(), 9)
        nodes.wait(WAIT_MS)
    assert nodes.logged == []
    assert not nodes.runtime.tickers


def test_lookups_that_a_client_repeats_while_it_starts_are_not_reported(nodes: Nodes) -> None:
    nodes.ask(nodes.connect(), FIND, 4)
    nodes.wait(REPEAT_MS - 1)
    peer = nodes.connect()
    nodes.ask(peer, FIND, 4)
    for _ in range(WATCH_MS // REPEAT_MS):
        nodes.ask(peer, MetadataRequest(), 9)
        nodes.wait(REPEAT_MS)
    assert nodes.logged == []


def test_an_address_that_a_client_of_the_same_host_reached_is_not_reported(nodes: Nodes) -> None:
    works = nodes.connect()
    nodes.ask(works, FIND, 4, client_id="works")
    nodes.ask(works, joining("one"), 5, client_id="works")
    look_up_twice(nodes)
    nodes.wait(WAIT_MS)
    assert nodes.logged == []
    nodes.runtime.advertise(1, "PLAINTEXT", "elsewhere", 5)
    nodes.ask(nodes.connect(), FIND, 4, client_id="works")
    nodes.ask(works, HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="one"), 3, client_id="works")
    look_up_twice(nodes)
    nodes.wait(WAIT_MS)
    assert "elsewhere:5" in nodes.logged[0]


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (DescribeGroupsRequest(groups=(GROUP,)), 5),
        (DeleteGroupsRequest(groups_names=(GROUP,)), 2),
        (OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=GROUP),)), 8),
    ],
)
def test_an_admin_client_that_names_the_group_on_an_older_connection_has_arrived(
    nodes: Nodes, request_: Message, version: int
) -> None:
    older, newer = nodes.connect(), nodes.connect()
    nodes.ask(newer, FIND, 4)
    nodes.ask(newer, FIND, 4)
    nodes.ask(older, request_, version)
    nodes.wait(WAIT_MS)
    assert nodes.logged == []


def test_repeated_lookups_on_new_connections_are_no_arrival(nodes: Nodes) -> None:
    for _ in range(3):
        peer = nodes.connect()
        nodes.ask(peer, MetadataRequest(), 9)
        nodes.ask(peer, FIND, 4)
        nodes.runtime.disconnected(nodes.now, peer.number)
        nodes.wait(REPEAT_MS)
    nodes.wait(WAIT_MS)
    assert len(nodes.logged) == 1


def test_each_address_is_reported_once(nodes: Nodes) -> None:
    for client in ("a", "b"):
        look_up_twice(nodes, client)
    nodes.wait(WAIT_MS)
    look_up_twice(nodes, "c")
    nodes.wait(WAIT_MS)
    assert len(nodes.logged) == 1
    nodes.runtime.advertise(1, "PLAINTEXT", "elsewhere", 5)
    look_up_twice(nodes, "d")
    nodes.wait(WAIT_MS)
    assert "elsewhere:5" in nodes.logged[1]


def test_a_client_that_joins_has_arrived(nodes: Nodes) -> None:
    look_up_twice(nodes)
    nodes.ask(nodes.connect(), joining("one"), 5)
    nodes.wait(WAIT_MS)
    assert nodes.logged == []


def test_a_connected_client_of_the_same_name_does_not_hide_a_missing_one(nodes: Nodes) -> None:
    there, seeking = nodes.connect(), nodes.connect()
    nodes.ask(there, joining("one"), 5)
    for _ in range(2):
        nodes.ask(seeking, FindCoordinatorRequest(coordinator_keys=("another",)), 4)
        nodes.ask(there, FETCH, 4)
        nodes.ask(there, HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="one"), 3)
        nodes.wait(WAIT_MS // 2)
    assert len(nodes.logged) == 1


def test_a_client_that_continues_on_another_connection_has_arrived(nodes: Nodes) -> None:
    there, asking = nodes.connect(), nodes.connect()
    nodes.ask(there, joining("one"), 5)
    nodes.ask(asking, FIND, 4)
    nodes.ask(asking, FIND, 4)
    nodes.ask(there, HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="one"), 3)
    nodes.wait(WAIT_MS)
    assert nodes.logged == []


def test_a_client_that_fetches_has_arrived(nodes: Nodes) -> None:
    look_up_twice(nodes)
    nodes.ask(nodes.connect(), FETCH, 4)
    nodes.wait(WAIT_MS)
    assert nodes.logged == []


def test_a_client_that_only_lists_topics_is_not_watched(nodes: Nodes) -> None:
    nodes.ask(nodes.connect(), MetadataRequest(), 9)
    assert not nodes.runtime.tickers
    nodes.wait(WAIT_MS)
    assert nodes.logged == []


def test_a_node_that_is_paused_is_not_reached_for_another_reason(nodes: Nodes) -> None:
    look_up_twice(nodes)
    nodes.do(nodes.runtime.pause_node, 1)
    nodes.wait(WAIT_MS)
    assert nodes.logged == []


def test_a_client_with_a_newer_address_is_not_missing_at_the_old_one(nodes: Nodes) -> None:
    look_up_twice(nodes)
    nodes.runtime.advertise(1, "PLAINTEXT", "elsewhere", 5)
    nodes.wait(WAIT_MS)
    assert nodes.logged == []


def test_watching_ends_when_all_clients_arrived(nodes: Nodes) -> None:
    nodes.ask(nodes.connect(), FIND, 4)
    assert nodes.runtime.tickers
    nodes.ask(nodes.connect(), joining("one"), 5)
    assert not nodes.runtime.tickers
