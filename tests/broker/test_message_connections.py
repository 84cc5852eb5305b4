"""Connections of puppets: messages in place of bytes, otherwise like client connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from brokers.cluster import FORMING_MS, GROUP, SESSION_MS, Nodes, joining, syncing

from koordinator.emulator.broker.connections import Answer
from koordinator.wire.errors import Error
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.heartbeat import HeartbeatRequest

if TYPE_CHECKING:
    from koordinator.emulator.broker.connections import Output


def told(nodes: Nodes) -> list[tuple[int, Any]]:
    """Take the puppets' inbox: connections, each with the response or the reason for closing."""
    mail, _ = list(nodes.runtime.inbox), nodes.runtime.inbox.clear()
    return [(each.connection, each.response if isinstance(each, Answer) else each.reason) for _, each in mail]


def puppet(nodes: Nodes, node: int = 1, client_id: str = "peer") -> int:
    return nodes.runtime.connect_in_process(nodes.now, node, client_id)


def beat(member_id: str) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=member_id)


def test_puppets_and_clients_form_one_group() -> None:
    nodes = Nodes(1)
    connection = puppet(nodes)
    client = nodes.connect()
    nodes.do(nodes.runtime.send_message, connection, 7, joining("one"))
    nodes.send(client, nodes.request(client, joining("two"), 5))
    nodes.wait(2 * FORMING_MS)
    ((number, joined),) = told(nodes)
    assert number == connection < 0
    assert [member.group_instance_id for member in joined.members] == ["one", "two"]
    ours, theirs = (member.member_id for member in joined.members)
    nodes.send(client, nodes.request(client, syncing(theirs), 3))
    assignments = {each: each.encode() for each in (ours, theirs)}
    # the client's response leaves at once
    nodes.do(nodes.runtime.send_message, connection, 3, syncing(ours, assignments))
    assert client.answers()[-1][1].assignment == theirs.encode()
    assert told(nodes)[0][1].assignment == ours.encode()


def test_a_request_waits_until_those_before_it_on_its_connection_are_answered() -> None:
    nodes = Nodes(1)
    connection = puppet(nodes)
    nodes.do(nodes.runtime.send_message, connection, 5, joining("one"))
    nodes.do(nodes.runtime.send_message, connection, 3, beat("nobody"))
    assert told(nodes) == []
    nodes.wait(2 * FORMING_MS)
    first, second = told(nodes)
    assert first[1].generation_id == 1
    assert second[1].error_code == Error.UNKNOWN_MEMBER_ID


def test_the_trace_has_puppet_requests_and_responses() -> None:
    nodes = Nodes(1)
    connection = puppet(nodes, client_id="peer")
    nodes.do(nodes.runtime.send_message, connection, 4, beat("nobody"))
    lines = nodes.trace.events()
    assert [(line["kind"], line["conn_id"]) for line in lines] == [
        ("conn", connection),
        ("request", connection),
        ("response", connection),
    ]
    assert lines[1]["client_id"] == "peer"
    assert (lines[1]["api"], lines[1]["api_version"]) == ("Heartbeat", 4)
    assert lines[2]["error"] == "UNKNOWN_MEMBER_ID"


def test_a_version_the_release_does_not_serve_closes_the_connection() -> None:
    nodes = Nodes(1, kafka_version="2.4")
    connection = puppet(nodes)
    nodes.do(nodes.runtime.send_message, connection, 9, joining("one"))
    assert told(nodes) == [(connection, "JoinGroup v9: not served by Kafka 2.4, 3.9 has it: use --kafka-version 3.9")]


def test_a_node_that_goes_down_closes_the_connections_of_puppets() -> None:
    nodes = Nodes(2)
    connection = puppet(nodes)
    nodes.do(nodes.runtime.kill_node, 1)
    assert told(nodes) == [(connection, "node 1 was killed")]
    assert told_of_connecting(nodes, 1) == "node 1 is down"


def test_a_request_of_a_puppet_whose_connection_has_closed_is_dropped() -> None:
    nodes = Nodes(1, kafka_version="2.4")
    connection = puppet(nodes)
    nodes.do(nodes.runtime.send_message, connection, 9, joining("one"))
    assert len(told(nodes)) == 1, "the release does not serve this version"
    nodes.do(nodes.runtime.send_message, connection, 5, joining("one"))
    assert nodes.runtime.broker(1).send_message(nodes.now, connection, 5, joining("one")) == []
    nodes.wait(2 * FORMING_MS)
    assert told(nodes) == []
    assert GROUP not in nodes.runtime.broker(1).node.coordinator.groups


def told_of_connecting(nodes: Nodes, node: int) -> object:
    connection = puppet(nodes, node)
    ((number, reason),) = told(nodes)
    assert number == connection
    return reason


def test_a_paused_node_queues_puppet_requests_until_resumed() -> None:
    nodes = Nodes(2)
    nodes.do(nodes.runtime.pause_node, 2)
    connection = puppet(nodes, 2)
    nodes.do(nodes.runtime.send_message, connection, 4, FindCoordinatorRequest(key_type=0, coordinator_keys=(GROUP,)))
    assert told(nodes) == []
    nodes.do(nodes.runtime.resume_node, 2)
    assert told(nodes)[0][1].coordinators[0].node_id in (1, 2)


class Clock:
    """A ticker with given deadlines that records its observations."""

    def __init__(self, nodes: Nodes, *times: int) -> None:
        self.times = list(times)
        self.seen: list[tuple[int, str]] = []
        self._nodes = nodes

    def deadline(self) -> int | None:
        return self.times[0] if self.times else None

    def tick(self, now: int) -> list[Output]:
        assert now == self.times.pop(0)
        group = self._nodes.runtime.broker_of_group(GROUP).node.coordinator.groups[GROUP]  # type: ignore[union-attr]
        self.seen.append((now, group.state.value))
        return []


def test_tickers_act_in_order_with_the_timers_of_groups_which_go_first_at_equal_times() -> None:
    nodes = Nodes(2)
    node = nodes.runtime.cluster.coordinator_of(GROUP)
    if node < 0:
        nodes.coordinator(1)
        node = nodes.runtime.cluster.coordinator_of(GROUP)
    nodes.stable(node, "one")
    expiry = nodes.now + SESSION_MS
    clock = Clock(nodes, expiry - 1, expiry, expiry + 1)
    nodes.runtime.tickers[clock] = None
    nodes.wait(2 * SESSION_MS)
    assert clock.seen == [(expiry - 1, "Stable"), (expiry, "Empty"), (expiry + 1, "Empty")]


def test_overdue_timers_fire_before_a_later_request() -> None:
    nodes = Nodes(1)
    nodes.stable(1, "one")
    clock = Clock(nodes, nodes.now + 5)
    nodes.runtime.tickers[clock] = None
    peer = nodes.connect()
    nodes.now += 10
    nodes.send(peer, nodes.request(peer, beat("nobody"), 3))
    assert len(clock.seen) == 1
