"""KoordinatorContainer with mapped ports, which no private engine offers: a fake engine."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from brokers.http_server import Serving
from brokers.port_forwarder import MappedPort

from koordinator.handles import docker as fixture
from koordinator.handles.docker import INSIDE, KoordinatorContainer

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "made by the container"


class PlayedContainer:
    """A fake container with mapped ports; its server runs in this process."""

    name = "played"
    status = "running"

    def __init__(self, kafka_port: int, control_port: int) -> None:
        ports = {"9092/tcp": [{"HostPort": str(kafka_port)}], "9080/tcp": [{"HostPort": str(control_port)}]}
        self.attrs: dict[str, Any] = {"NetworkSettings": {"Ports": ports}, "Config": {"Hostname": "a1b2c3"}}
        self.ended: list[str] = []

    def reload(self) -> None:
        pass

    def logs(self, **_: object) -> bytes:
        return json.dumps({"control_url": "http://0.0.0.0:9080", "control_token": TOKEN}).encode() + b"\n"

    def unpause(self) -> None:
        pass

    def stop(self, **_: object) -> None:
        self.ended.append("stop")

    def remove(self, **_: object) -> None:
        self.ended.append("remove")


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    listeners = {"INSIDE": "127.0.0.1:0"}
    with Serving(token=TOKEN, listeners=listeners, topics={"t": 1}) as served, MappedPort() as kafka:
        container = PlayedContainer(kafka.port, int(served.url.rpartition(":")[2]))
        given: dict[str, Any] = {}

        def run(image: str, command: list[str], **arguments: Any) -> PlayedContainer:
            given.update(arguments, image=image, command=command)
            return container

        containers = SimpleNamespace(run=run, list=lambda **_: [])
        monkeypatch.setattr(fixture, "engine", lambda: SimpleNamespace(containers=containers, close=lambda: None))
        yield SimpleNamespace(container=container, given=given, kafka=kafka)


@pytest.mark.slow
def test_host_clients_get_the_mapped_port_and_containers_the_container_name(played: SimpleNamespace) -> None:
    with KoordinatorContainer(arguments=["--topic", "t:1"], mem_limit="256m") as container:
        assert container.bootstrap_servers == f"127.0.0.1:{played.kafka.port}"
        assert container.cluster.nodes[1].address(INSIDE) == container.internal_bootstrap_servers == "a1b2c3:9094"
    assert played.container.ended == ["stop", "remove"]


@pytest.mark.slow
def test_the_run_and_its_commit(played: SimpleNamespace) -> None:
    with KoordinatorContainer("mine", arguments=["--topic", "t:1"], environment={"KOORDINATOR_SEED": "7"}, cpus=1):
        pass
    given = played.given
    assert (given["image"], given["command"], given["cpus"]) == ("mine", ["serve", "--topic", "t:1"], 1)
    assert given["ports"] == {"9092/tcp": ("127.0.0.1", None), "9080/tcp": ("127.0.0.1", None)}
    assert given["environment"] == {"KOORDINATOR_LISTENER": "INSIDE=0.0.0.0:9094", "KOORDINATOR_SEED": "7"}


@pytest.mark.slow
def test_an_engine_elsewhere_is_where_its_ports_are(played: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://localhost:2375")
    with KoordinatorContainer() as container:
        assert container.bootstrap_servers == f"localhost:{played.kafka.port}"
    assert played.given["ports"]["9092/tcp"] == ("0.0.0.0", None)  # noqa: S104 - who is elsewhere has to reach it
