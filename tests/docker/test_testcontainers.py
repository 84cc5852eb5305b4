"""The class for users of testcontainers in compose/README.md: testcontainers itself, on a fake engine."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from brokers.docker_cli import ROOT
from brokers.http_server import Serving
from brokers.port_forwarder import MappedPort

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "for tests"

core = pytest.importorskip("testcontainers.core.container", reason="testcontainers is one of the extra dev")


@pytest.fixture
def ports(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[int, int]]:
    """The mapped ports of a container on an engine that has only this one; its server runs in this process."""
    from testcontainers.core.config import ConnectionMode  # noqa: PLC0415 - skipped without testcontainers

    with Serving(token=TOKEN, topics={"orders": 1}) as served, MappedPort() as kafka:
        mapped = {9092: kafka.port, 9080: int(served.url.rpartition(":")[2])}
        container = SimpleNamespace(
            id="a1b2c3", short_id="a1b2", status="running", reload=lambda: None, remove=lambda **_: None
        )
        client = SimpleNamespace(
            client=SimpleNamespace(close=lambda: None),
            create=lambda *_, **__: container,
            start=lambda _: None,
            host=lambda: "127.0.0.1",
            port=lambda _, port: mapped[port],
            get_connection_mode=lambda: ConnectionMode.docker_host,
        )
        monkeypatch.setattr(core, "DockerClient", lambda: client)
        monkeypatch.setattr(core.c, "ryuk_disabled", True)
        yield mapped


@pytest.mark.slow
def test_the_documented_class_advertises_the_mapped_port(ports: dict[int, int]) -> None:
    text = (ROOT / "compose" / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```py\n(from testcontainers.*?)^```", text, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(block, names)  # noqa: S102 - our own documentation
    with names["KoordinatorContainer"]().with_env("KOORDINATOR_TOPIC", "orders:1") as container:
        assert container.ports == {"9092": None, "9080": None}
        assert container.env == {"KOORDINATOR_CONTROL_TOKEN": TOKEN, "KOORDINATOR_TOPIC": "orders:1"}
        assert container.cluster.bootstrap_servers == f"127.0.0.1:{ports[9092]}"
