"""Real consumers while the cluster restarts on its data directory: the group does not rebalance."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from clients.consumers import KINDS, PATIENCE_S, Members, wait_settled, wait_until

from koordinator import Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from koordinator import Cluster

SESSION_MS = 30_000


def state_of(cluster: Cluster) -> tuple[str, int, dict[str, Any]]:
    group = cluster.group("g").describe()
    return group.state, group.generation, {member.member_id: member.assignment for member in group.members}


@pytest.fixture
def running(caplog: pytest.LogCaptureFixture) -> Iterator[list[Cluster]]:
    """Clusters that stop after the members, which cannot close without a cluster."""
    # the log record of a failed connection attempt refers to its socket, which kafka-python does not close
    caplog.set_level(logging.CRITICAL + 1, logger="kafka")
    clusters: list[Cluster] = []
    yield clusters
    for cluster in clusters:
        cluster.stop()


def test_three_clients_static_and_dynamic_go_on_without_a_rebalance(tmp_path: Path, running: list[Cluster]) -> None:
    settings = {"group.initial.rebalance.delay.ms": 1_000}
    cluster = Emulator({"t": 6}, settings, data_dir=tmp_path).start()
    running.append(cluster)
    port = int(cluster.bootstrap_servers.rpartition(":")[2])
    with Members(cluster) as join:
        # one static member of each client, and a dynamic member
        members = [join(kind, instance=f"static-{kind}", session_timeout_ms=SESSION_MS) for kind in KINDS]
        members.append(join("confluent-kafka", session_timeout_ms=SESSION_MS))
        for member in members:
            wait_until("four members", lambda member=member: 1 <= len(member.assignment) <= 2, member)  # type: ignore[misc]
        cluster.group("g").wait_stable(members=4, timeout=PATIENCE_S)
        wait_settled(cluster.group("g"))
        before, callbacks = state_of(cluster), [len(member.callbacks) for member in members]
        cluster.stop()
        restarted = Emulator(port=port, data_dir=tmp_path).start()
        running.append(restarted)
        beaten: set[object] = set()

        def all_beat() -> bool:
            for event in restarted.events(group="g"):
                if event["kind"] == "response" and event["api"] == "Heartbeat":
                    assert not event.get("error_code"), event
                    beaten.add(event.get("member_id"))
            return len(beaten) == 4

        wait_until("heartbeats of all", all_beat, *members)
        assert state_of(restarted) == before
        assert [len(member.callbacks) for member in members] == callbacks
        changes = [event["cause"] for event in restarted.events(group="g") if event["kind"] == "state"]
        assert changes == ["loaded"]
