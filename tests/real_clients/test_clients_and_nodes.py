"""Real consumers while their coordinator fails or moves: groups do not rebalance within the session timeout.

The new coordinator loads the generation from `__consumer_offsets` and restarts the sessions (KIP-345, "static
membership survives a coordinator change"; the same holds for dynamic members). Clients notice only that the coordinator
is another broker; librdkafka #3396 and kafka-python #1134 report clients that failed to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from clients.consumers import KINDS, Member, Members, assignor_settings, wait_settled, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from koordinator import Cluster, Group
    from koordinator.handles.nodes import Node

pytestmark = pytest.mark.koordinator(
    topics={"t": 6}, brokers=3, config={"default.replication.factor": 3, "offsets.topic.num.partitions": 3}
)

SESSION_MS = 20_000

BEATS = 6
"""Successful heartbeats that prove that a group continues."""

INSTANCES = [pytest.param(("a", "b"), id="static"), pytest.param((None, None), id="dynamic")]


def beats(group: Group) -> int:
    """Return the number of successful heartbeats."""
    return sum(
        event["kind"] == "response" and event.get("api") == "Heartbeat" and not event.get("error_code")
        for event in group.events()
    )


def stable(cluster: Cluster, join: Members, kind: str, instances: tuple[str | None, ...]) -> tuple[Member, ...]:
    """A stable group of consumers with one assignor that send heartbeats."""
    settings: dict[str, Any] = {"session_timeout_ms": SESSION_MS, **assignor_settings(kind, "range")}
    members = tuple(join(kind, instance=instance, goes_on=True, **settings) for instance in instances)
    wait_until("all own something", lambda: [len(each.assignment) for each in members] == [3, 3], *members)
    wait_settled(cluster.group("g"))
    return members


def goes_on(group: Group, members: tuple[Member, ...]) -> None:
    """Wait for successful heartbeats of every member."""
    before = beats(group)
    wait_until("heartbeats that go well", lambda: beats(group) >= before + BEATS, *members)


def coordinator(cluster: Cluster) -> Node:
    node = cluster.coordinator("g")
    assert node is not None
    return node


def moved(cluster: Cluster) -> None:
    cluster.move_coordinator("g", to=coordinator(cluster).id % 3 + 1)


def moved_with_a_load_window(cluster: Cluster) -> None:
    cluster.move_coordinator("g", to=coordinator(cluster).id % 3 + 1, load=1)


def stopped_and_started(cluster: Cluster) -> None:
    node = coordinator(cluster)
    node.stop()
    node.start()
    assert coordinator(cluster).id != node.id


def killed(cluster: Cluster) -> None:
    coordinator(cluster).kill()


def paused(cluster: Cluster) -> None:
    node = coordinator(cluster)
    node.pause()
    before = of_node(node, cluster.group("g").events())
    # wait out the time in which the group cannot do anything; clients may look for the coordinator at other nodes
    assert not cluster._port.wait_until(
        lambda: of_node(node, cluster._port.served.trace.events(group="g")) > before, 2, "test"
    )
    node.resume()


def of_node(node: Node, events: Iterable[Mapping[str, object]]) -> int:
    """Return the number of events at a node."""
    return sum(event.get("node") == node.id for event in events)


@pytest.mark.parametrize("instances", INSTANCES)
@pytest.mark.parametrize("happens", [moved, moved_with_a_load_window, stopped_and_started, killed, paused])
@pytest.mark.parametrize("kind", KINDS)
def test_no_member_rebalances(
    koordinator: Cluster,
    join: Members,
    kind: str,
    happens: Callable[[Cluster], None],
    instances: tuple[str | None, ...],
) -> None:
    group = koordinator.group("g")
    members = stable(koordinator, join, kind, instances)
    before, callbacks = group.describe(), [list(member.callbacks) for member in members]
    happens(koordinator)
    goes_on(group, members)
    koordinator.produce("t", *({"partition": partition, "value": "after"} for partition in range(6)))
    wait_until("its records come", lambda: sum(member.values.count(b"after") for member in members) == 6, *members)
    for member in members:
        member.commit()
    assert group.describe() == before
    assert [member.callbacks for member in members] == callbacks
    assert sum(group.offsets.values()) == 6


@pytest.mark.parametrize("kind", KINDS)
def test_a_node_that_leads_only_partitions_makes_no_rebalance_either(
    koordinator: Cluster, join: Members, kind: str
) -> None:
    group = koordinator.group("g")
    members = stable(koordinator, join, kind, ("a", "b"))
    before = group.describe()
    node = next(node for node in koordinator.nodes.values() if node.id != coordinator(koordinator).id)
    node.stop()
    koordinator.produce("t", *({"partition": partition, "value": "after"} for partition in range(6)))
    wait_until("its records come", lambda: sum(member.values.count(b"after") for member in members) == 6, *members)
    node.start()
    goes_on(group, members)
    assert group.describe() == before
