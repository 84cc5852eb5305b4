"""The cost of an advance: its due events, not its days, and never another client's time."""

from __future__ import annotations

import socket
import struct
import threading
import time
from typing import TYPE_CHECKING

import pytest

from koordinator import Simulation, faults

if TYPE_CHECKING:
    from koordinator import Cluster, Group

LIMIT_S = 60.0

HELLO = struct.pack(">ihhih", 10, 18, 0, 1, -1)
"""ApiVersions in version 0."""


def stable(cluster: Cluster) -> Group:
    """Return a stable group of one puppet."""
    group = cluster.group("g")
    group.create_puppet("a", topics=["t"]).join()
    return group.wait_stable(members=1)


def heartbeats(group: Group) -> int:
    """Return the number of heartbeats in the trace."""
    return sum(line["kind"] == "request" and line["api"] == "Heartbeat" for line in group.events())


@pytest.mark.koordinator(topics={"t": 1})
def test_faults_of_other_groups_and_apis_do_not_bring_heartbeats_back(koordinator: Cluster) -> None:
    group = stable(koordinator)
    of_others = koordinator.hold("Heartbeat", group="other-*", optional=True)
    with of_others, koordinator.hold("LeaveGroup", optional=True):
        rule = koordinator.add_rule("OffsetCommit", faults.error("NOT_COORDINATOR"))
        before = heartbeats(group)
        assert group.advance("7d") == []
        assert heartbeats(group) - before < 10
        rule.remove()


@pytest.mark.koordinator(topics={"t": 1})
def test_a_rule_on_heartbeats_of_the_group_sees_each_of_them(koordinator: Cluster) -> None:
    group = stable(koordinator)
    rule = koordinator.add_rule("Heartbeat", faults.error("UNKNOWN_MEMBER_ID"), group="g*", nth=10_000)
    before = heartbeats(group)
    group.advance("1m")
    rule.remove()
    assert heartbeats(group) - before >= 30


@pytest.mark.koordinator(topics={"t": 1})
def test_without_any_node_a_clock_just_moves_and_the_puppets_return_with_a_node(koordinator: Cluster) -> None:
    group = stable(koordinator)
    (node,) = koordinator.nodes.values()
    node.kill()
    before, began = group.now_ms, time.process_time()
    assert group.advance("7d") == []
    assert group.now_ms - before >= 7 * 86_400_000
    assert time.process_time() - began < 1
    node.start()
    group.wait_stable(members=1)


@pytest.mark.koordinator(topics={"t": 1})
def test_other_clients_are_served_during_a_long_advance(koordinator: Cluster) -> None:
    group = stable(koordinator)
    host, _, port = koordinator.bootstrap_servers.rpartition(":")
    advance = threading.Thread(target=group.advance, args=("28d",))
    answers = 0
    with socket.create_connection((host, int(port)), LIMIT_S) as client:
        advance.start()
        while advance.is_alive():
            client.sendall(HELLO)
            assert client.recv(65536)
            answers += 1
    advance.join(LIMIT_S)
    # one turn of 10 ms between two of them, and 4,032 checks of offsets
    assert answers > 2


def test_a_puppet_that_waits_for_a_response_costs_no_heartbeats() -> None:
    with Simulation(topics={"t": 1}) as cluster:
        group = cluster.group("g")
        group.create_puppet("a", topics=["t"], group_protocol="consumer").join()
        group.wait_stable(members=1)
        cluster.hold("ConsumerGroupHeartbeat", group="g")
        group.advance("5s", keep_alive="none")
        began = time.process_time()
        group.advance("30d", keep_alive="none")
        assert time.process_time() - began < 4
