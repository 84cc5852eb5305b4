"""A mapped port: clients that use it, and the log line for clients that get the wrong address."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from brokers.http_server import Serving
from brokers.port_forwarder import MappedPort
from clients.consumers import PATIENCE_S, Members
from confluent_kafka.admin import AdminClient

from koordinator.emulator.broker.unreached_listeners import WAIT_MS
from koordinator.handles.remote import Remote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator import Cluster

UNREACHABLE = ("127.0.0.3", 1)

"""Seconds until the log line, which is written after WAIT_MS."""


class Mapped:
    """A cluster behind a mapped port, and the log of its server."""

    def __init__(self, cluster: Cluster, port: MappedPort, logged: list[str]) -> None:
        self.cluster = cluster
        self.port = port
        self.logged = logged

    def lines(self) -> list[str]:
        """Return the log lines about clients that did not connect."""
        return [line for line in self.logged if "for the coordinator of group" in line]

    def line(self) -> str:
        """Wait for the only log line of this kind."""
        end = time.monotonic() + PATIENCE_S
        while not self.lines():
            assert time.monotonic() < end, self.cluster.events()
            self.cluster.nodes[1].state  # noqa: B018 - the time that a request takes
        (line,) = self.lines()
        return line


@pytest.fixture
def mapped() -> Iterator[Mapped]:
    with Serving(topics={"t": 2}) as served, Remote(served.url) as server, MappedPort() as port:
        cluster = server.cluster()
        port.target = int(cluster.bootstrap_servers.rpartition(":")[2])
        yield Mapped(cluster, port, served.logged)


def test_a_client_with_the_mapped_port_joins_its_group(mapped: Mapped) -> None:
    mapped.cluster.nodes[1].advertise("127.0.0.2", mapped.port.port)
    assert mapped.cluster.bootstrap_servers == mapped.port.address
    with Members(mapped.cluster) as join:
        for kind in ("kafka-python", "confluent-kafka", "aiokafka"):
            join(kind, group=kind)
        for kind in ("kafka-python", "confluent-kafka", "aiokafka"):
            mapped.cluster.group(kind).wait_stable(members=1, timeout=PATIENCE_S)
        # after the time at which a missing client would be reported
        joined = mapped.cluster.group("confluent-kafka").members
        assert joined
        mapped.cluster.nodes[1].advertise(*UNREACHABLE)
        wrong = join.start("confluent-kafka", _config(mapped, "another"), ["t"])
        assert "127.0.0.3:1" in mapped.line()
        assert not wrong.assignment
    assert len(mapped.lines()) == 1


def test_an_admin_client_that_lists_topics_is_not_missed(mapped: Mapped) -> None:
    mapped.cluster.nodes[1].advertise(*UNREACHABLE)
    admin = AdminClient({"bootstrap.servers": mapped.port.address, "client.id": "admin"})
    assert "t" in admin.list_topics(timeout=PATIENCE_S).topics
    end = time.monotonic() + WAIT_MS / 1000 + 1
    while time.monotonic() < end:
        admin.poll(0.1)
    assert mapped.lines() == []


def test_an_unreachable_advertised_address_is_one_line_with_the_remedy(mapped: Mapped) -> None:
    mapped.cluster.nodes[1].advertise(*UNREACHABLE)
    with Members(mapped.cluster) as join:
        join.start("confluent-kafka", {**_config(mapped, "g"), "client.id": "svc-1"}, ["t"])
        line = mapped.line()
    assert "client 'svc-1' (/127.0.0.1) got the address 127.0.0.3:1 for the coordinator of group" in line
    assert "--advertised PLAINTEXT=HOST:PORT" in line


def _config(mapped: Mapped, group: str) -> dict[str, object]:
    return {"bootstrap.servers": mapped.port.address, "group.id": group, "log_level": 0}
