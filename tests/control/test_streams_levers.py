"""A streams group on a running emulator: its snapshot, levers, and lines of the trace (KIP-1071)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from clients.asking_client import AskingClient
from scenes.streams_play import STATEFUL, given, statuses

from koordinator import Emulator, faults
from koordinator.emulator.pages.timeline import timeline
from koordinator.wire.errors import Error
from koordinator.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator import Cluster

ALL = {"0": [0, 1, 2, 3]}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Emulator() as cluster:
        cluster.create_topic("t", 4)
        yield cluster


@pytest.fixture
def client(cluster: Cluster) -> Iterator[AskingClient]:
    host, port = cluster.bootstrap_servers.split(":")
    with AskingClient((host, int(port))) as client:
        yield client


def beat(client: AskingClient, epoch: int, **fields: Any) -> Any:
    """Send the heartbeat of member A; a join has the topology."""
    if epoch == 0:
        none = dict.fromkeys(("active_tasks", "standby_tasks", "warmup_tasks"), ())
        fields = {"topology": STATEFUL, "rebalance_timeout_ms": 10_000, "process_id": "p", **none, **fields}
    return client.ask(StreamsGroupHeartbeatRequest(group_id="g", member_id="A", member_epoch=epoch, **fields), 1)


def joined(client: AskingClient, **fields: Any) -> int:
    """Join, and send heartbeats until there are tasks; return the epoch."""
    response = beat(client, 0, **fields)
    assert statuses(response) == [(3, "Internal topics are missing: app-store-changelog")]
    while not response.active_tasks:
        response = beat(client, response.member_epoch)
        assert response.error_code == 0, response
    assert given(response.active_tasks) == ALL
    epoch: int = response.member_epoch
    return epoch


def test_a_snapshot_shows_the_input_partitions_of_tasks(cluster: Cluster, client: AskingClient) -> None:
    epoch = joined(client)
    group = cluster.group("g").describe()
    assert (group.type, group.state, group.epoch, group.protocol) == ("streams", "Stable", epoch, "sticky")
    (member,) = group.members
    assert (member.type, member.assignment, member.target) == ("streams", {"t": [0, 1, 2, 3]}, {"t": [0, 1, 2, 3]})
    assert cluster.group("g").assignment == {"A": {"t": [0, 1, 2, 3]}}


@pytest.mark.parametrize("as_if", ["poll_timeout", "session"])
def test_an_evicted_member_is_unknown(cluster: Cluster, client: AskingClient, as_if: Any) -> None:
    epoch = joined(client)
    cluster.group("g").evict("A", as_if=as_if)
    assert beat(client, epoch).error_code == Error.UNKNOWN_MEMBER_ID
    assert cluster.group("g").state == "Empty"


def test_a_static_member_leaves_for_a_while_at_a_poll_timeout(cluster: Cluster, client: AskingClient) -> None:
    epoch = joined(client, instance_id="i")
    cluster.group("g").evict("i")
    assert beat(client, epoch, instance_id="i").error_code == Error.FENCED_MEMBER_EPOCH
    assert given(beat(client, 0, instance_id="i").active_tasks) == ALL
    assert cluster.group("g").epoch == epoch


def test_another_process_fences_a_static_member(cluster: Cluster, client: AskingClient) -> None:
    epoch = joined(client, instance_id="i")
    cluster.group("g").fence("i")
    assert beat(client, epoch, instance_id="i").error_code == Error.FENCED_INSTANCE_ID
    (member,) = cluster.group("g").members
    assert (member.member_id, member.instance_id, member.assignment) == ("A-successor", "i", {"t": [0, 1, 2, 3]})
    assert cluster.group("g").epoch == epoch


def test_a_forced_rebalance_raises_the_epoch(cluster: Cluster, client: AskingClient) -> None:
    epoch = joined(client)
    cluster.group("g").rebalance()
    assert beat(client, epoch).member_epoch == epoch + 1


def test_a_rule_refuses_a_heartbeat(cluster: Cluster, client: AskingClient) -> None:
    epoch = joined(client)
    cluster.group("g").add_rule("StreamsGroupHeartbeat", faults.error("COORDINATOR_LOAD_IN_PROGRESS"), once=True)
    assert beat(client, epoch).error_code == Error.COORDINATOR_LOAD_IN_PROGRESS
    assert beat(client, epoch).error_code == Error.NONE


def test_the_trace_tells_of_targets_and_steps(cluster: Cluster, client: AskingClient) -> None:
    joined(client)
    events = cluster.group("g").events()
    text = "\n".join(timeline(events))
    assert "NotReady" in text
    bodies = [line.get("body") for line in events if line.get("api") == "StreamsGroupHeartbeat"]
    assert bodies[0] == {"topics": ["t"], "owned_tasks": {"active": {}, "standby": {}}}
    assert {"active": ALL, "standby": {}} in [body.get("tasks") for body in bodies if body]
    assert [line["state_to"] for line in events if line["kind"] == "state"][-1] == "Stable"
