"""Kafka Connect workers as puppets (KIP-415)."""

from __future__ import annotations

import pytest
from scenes.puppet_scene import HEARTBEAT_MS, SESSION_MS, PuppetScene

CONNECTORS = {"mirror": 4}


def worker(scene: PuppetScene, name: str, **options: object) -> None:
    scene.puppet(name, protocol_type="connect", topics=CONNECTORS, **options)


def tasks(scene: PuppetScene, *names: str) -> list[tuple[str, int]]:
    """Return the tasks of all workers."""
    held = [scene.describe(name).assignment for name in names]
    return sorted((connector, task) for holds in held for connector, ran in holds.items() for task in ran)


EVERYTHING = [("mirror", -1), ("mirror", 0), ("mirror", 1), ("mirror", 2), ("mirror", 3)]


def test_workers_share_connectors_and_tasks() -> None:
    scene = PuppetScene()
    worker(scene, "w1")
    assert tasks(scene, "w1") == EVERYTHING
    worker(scene, "w2")
    scene.wait(3 * HEARTBEAT_MS)
    assert scene.is_settled()
    assert scene.group().protocol_type == "connect"
    assert scene.group().protocol_name == "sessioned"
    assert tasks(scene, "w1", "w2") == EVERYTHING
    assert tasks(scene, "w2")


def test_the_tasks_of_a_lost_worker_are_reassigned_after_the_delay() -> None:
    scene = PuppetScene()
    worker(scene, "w1", scheduled_rebalance_max_delay_ms=60_000)
    worker(scene, "w2", scheduled_rebalance_max_delay_ms=60_000)
    scene.wait(3 * HEARTBEAT_MS)
    lost = tasks(scene, "w2")
    scene.perform("w2", "stop")
    scene.wait(SESSION_MS + HEARTBEAT_MS)
    assert scene.members() == {"w1"}
    assert sorted(tasks(scene, "w1") + lost) == EVERYTHING
    scene.wait(60_000)
    assert tasks(scene, "w1") == EVERYTHING


def test_a_worker_that_returns_within_the_delay_gets_its_tasks_back() -> None:
    scene = PuppetScene()
    worker(scene, "w1", scheduled_rebalance_max_delay_ms=60_000)
    worker(scene, "w2", scheduled_rebalance_max_delay_ms=60_000)
    scene.wait(3 * HEARTBEAT_MS)
    lost, kept = tasks(scene, "w2"), tasks(scene, "w1")
    scene.perform("w2", "stop")
    scene.wait(SESSION_MS + HEARTBEAT_MS)
    scene.perform("w2", "join")
    scene.wait(60_000 + HEARTBEAT_MS)
    assert scene.is_settled()
    assert (tasks(scene, "w1"), tasks(scene, "w2")) == (kept, lost)


def test_eager_workers_stop_all_tasks_during_a_rejoin() -> None:
    scene = PuppetScene()
    worker(scene, "w1", behaviour="eager_only")
    worker(scene, "w2", behaviour="eager_only")
    scene.wait(3 * HEARTBEAT_MS)
    assert scene.group().protocol_name == "default"
    assert tasks(scene, "w1", "w2") == EVERYTHING
    revoked = scene.events("puppet", puppet="w1", change="revoked")
    assert revoked[0]["body"]["holds"] == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"protocol_type": "connect", "topics": ["mirror"]},
            "topics of a connect puppet must map connectors to numbers",
        ),
        (
            {"protocol_type": "connect", "topics": CONNECTORS, "protocols": ("range",)},
            "protocol 'range' is not known; k",
        ),
        ({"topics": CONNECTORS}, "task counts in topics and scheduled_rebalance_max_delay_ms need type 'connect'"),
        ({"scheduled_rebalance_max_delay_ms": 5}, "need type 'connect'"),
    ],
)
def test_arguments_of_the_other_protocol_type_are_refused(options: dict[str, object], message: str) -> None:
    scene = PuppetScene()
    with pytest.raises(ValueError, match=message):
        scene.puppet("one", **options)
