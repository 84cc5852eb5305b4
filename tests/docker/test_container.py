"""KoordinatorContainer: real clients from outside, the same operations, faults of the container itself."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from brokers.docker_cli import WAIT_S, docker
from clients.consumers import WARNINGS_OF_CLIENTS, Members, wait_until

from koordinator.faults import error
from koordinator.handles.docker import OWNER, KoordinatorContainer, NoEngine, engine

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.needs("docker"),
    *map(pytest.mark.filterwarnings, WARNINGS_OF_CLIENTS),
]


@pytest.fixture
def join(koordinator_container: KoordinatorContainer) -> Iterator[Members]:
    with Members(koordinator_container.cluster) as members:
        yield members


@pytest.mark.parametrize("kind", ["kafka-python", "confluent-kafka"])
def test_groups_of_real_clients_from_outside(
    koordinator_container: KoordinatorContainer, join: Members, kind: str
) -> None:
    cluster = koordinator_container.cluster
    for number in range(2):
        join(kind, group=f"outside-{kind}", instance=f"i{number}")
    group = cluster.group(f"outside-{kind}").wait_stable(members=2, timeout=WAIT_S)
    assert sorted(len(owned["t"]) for owned in group.assignment.values()) == [2, 2]


def test_the_levers_are_the_same_over_http(koordinator_container: KoordinatorContainer, join: Members) -> None:
    group = koordinator_container.cluster.group("levers")
    join("confluent-kafka", group="levers", instance="one")
    group.wait_stable(members=1, timeout=WAIT_S)
    rule = group.add_rule("Heartbeat", error("REBALANCE_IN_PROGRESS"), once=True)
    before = group.generation
    group.wait_stable(members=1, timeout=WAIT_S, after_generation=before)
    assert rule.hits == 1
    group.set_clock("manual")
    assert [fired.kind for fired in group.advance("7d", keep_alive="none")].count("session") == 1


def test_a_container_that_is_paused_while_members_beat_goes_on(
    koordinator_container: KoordinatorContainer, join: Members
) -> None:
    group = koordinator_container.cluster.group("paused")
    member = join("confluent-kafka", group="paused")
    group.wait_stable(members=1, timeout=WAIT_S)
    generation, polls = group.generation, member.polls
    koordinator_container.container.pause()
    try:
        wait_until("a second of polls", lambda: member.polls > polls + 20, member)
    finally:
        koordinator_container.container.unpause()
    group.assert_request("Heartbeat", timeout=WAIT_S)
    group.wait_stable(members=1, timeout=WAIT_S)
    assert group.generation == generation


def test_sigkill_and_a_restart_on_a_volume_and_the_static_group_continues(image: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    volume = f"koordinator-test-{os.getpid()}"
    container = KoordinatorContainer(
        image,
        arguments=["--topic", "t:4"],
        environment={"KOORDINATOR_PORT": str(port), "KOORDINATOR_DATA_DIR": "/data/kept"},
        network_mode="host",
        volumes={volume: {"bind": "/data", "mode": "rw"}},
    )
    try:
        with container, Members(container.cluster) as join:
            members = [join("confluent-kafka", group="kept", instance=f"i{number}") for number in range(2)]
            before = container.cluster.group("kept").wait_stable(members=2, timeout=WAIT_S)
            generation, owned = before.generation, before.assignment
            container.cluster.produce("t", *[f"r{number}" for number in range(8)])
            container.container.kill()
            container.container.wait(timeout=WAIT_S)
            container.restart()
            after = container.cluster.group("kept").wait_stable(members=2, timeout=WAIT_S)
            assert (after.generation, after.assignment) == (generation, owned)
            for member in members:
                wait_until("records after the restart", lambda each=member: bool(each.records), member)
            assert len(container.cluster.records("t")) == 8
    finally:
        docker("volume", "rm", "-f", volume)


def test_leftovers_of_a_crashed_process_are_removed(image: str) -> None:
    crashing = (
        "import os; from koordinator.handles.docker import KoordinatorContainer;"
        f"print(KoordinatorContainer({image!r}, network_mode='host').start().container.id, flush=True); os._exit(1)"
    )
    left = subprocess.run([sys.executable, "-c", crashing], capture_output=True, text=True, timeout=120, check=False)
    number = left.stdout.strip()
    assert number, left.stderr
    assert number[:12] in docker("ps", "-q")
    with KoordinatorContainer(image, network_mode="host"):
        assert number[:12] not in docker("ps", "-aq")


def test_a_living_process_keeps_its_containers(image: str, koordinator_container: KoordinatorContainer) -> None:
    with KoordinatorContainer(image, network_mode="host") as another:
        assert another.container.labels[OWNER] == f"{socket.gethostname()}/{os.getpid()}"
        assert koordinator_container.container.id[:12] in docker("ps", "-q")


def test_no_engine_is_an_error_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(NoEngine, match="no Docker engine responds"):
        engine()
