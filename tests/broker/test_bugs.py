"""A bug ends one request: it is answered or its connection closes, the report repeats it, and the cluster is marked."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import is_dataclass, replace
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from brokers.cluster import Nodes
from builders import requests
from builders.valid_frames import served
from clients.frame_clients import Wire

from koordinator import Emulator
from koordinator.client.connection import Address, BrokerConnection, Deadline
from koordinator.client.errors import ConnectionLost
from koordinator.emulator.broker import api_table, log_writes, request_reader
from koordinator.emulator.broker.broker import Broker
from koordinator.emulator.broker.failures import BrokerBug
from koordinator.emulator.core.data.data_plane import DataPlane
from koordinator.emulator.core.groups import commit, coordinator, kinds
from koordinator.wire.apis import APIS, ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from koordinator.wire.messages.metadata import MetadataRequest, MetadataResponse
from koordinator.wire.schema import fields_of

if TYPE_CHECKING:
    from collections.abc import Iterator


class PlantedError(Exception):
    """A bug."""


def fail(*_: Any) -> Any:
    """Raise the bug."""
    raise PlantedError("planted")


@pytest.fixture(autouse=True)
def expected(no_bug_of_koordinator: list[BaseException]) -> Iterator[None]:
    """Expect the planted bugs, and no others."""
    yield
    assert no_bug_of_koordinator
    assert all(isinstance(error, PlantedError | OSError) for error in no_bug_of_koordinator)
    no_bug_of_koordinator.clear()


def codes(message: Any, version: int) -> Iterator[int]:
    """Return all error codes in a response."""
    for name, spec in fields_of(type(message)).items():
        each = getattr(message, name)
        if name in {"error_code", "partition_error_code"} and version in spec.versions:
            yield each
        for row in each if isinstance(each, tuple) and isinstance(spec.type, type) else ():
            if is_dataclass(row):
                yield from codes(row, version)


@pytest.mark.slow
def test_every_api_answers_with_its_error_code_or_closes() -> None:
    nodes = Nodes(1)
    handlers = nodes.runtime.broker(1).node.handlers
    for request_class in handlers:
        handlers[request_class] = fail
    for key, version in served():
        if key == ApiKey.API_VERSIONS:
            continue
        peer = nodes.connect()
        response = nodes.ask(peer, APIS[key].request(), version)
        if response is None:
            assert peer.closed, (APIS[key].name, version)
        else:
            assert set(codes(response, version)) <= {Error.UNKNOWN_SERVER_ERROR}, (APIS[key].name, version)
    assert nodes.ask(nodes.connect(), APIS[ApiKey.API_VERSIONS].request(), 2).error_code == 0


def test_the_report_repeats_the_frame_and_later_requests_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = Nodes(1)
    (member,) = nodes.stable(1, "i1")
    monkeypatch.setitem(coordinator.HANDLERS, ApiKey.HEARTBEAT, fail)
    assert nodes.heartbeat(1, member) is Error.UNKNOWN_SERVER_ERROR
    monkeypatch.undo()
    assert nodes.heartbeat(1, member) is Error.NONE
    (report,) = nodes.logged
    assert "a bug in koordinator ended Heartbeat v" in report
    assert "frame: 000c" in report
    assert "kafka.version" in report
    with pytest.raises(BrokerBug, match="planted"):
        nodes.runtime.failures.check()


def test_a_bug_in_a_timer_ends_that_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = Nodes(1)
    (member,) = nodes.stable(1, "i1")
    monkeypatch.setitem(kinds.KINDS, "classic", replace(kinds.KINDS["classic"], fire=fail))
    nodes.wait(60_000)
    monkeypatch.undo()
    assert nodes.heartbeat(1, member) is Error.NONE


def test_a_bug_in_a_completed_write_ends_its_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = Nodes(1)
    (member,) = nodes.stable(1, "i1")
    monkeypatch.setattr(commit, "complete", fail)
    assert nodes.commit(1, 5, member) is Error.UNKNOWN_SERVER_ERROR
    monkeypatch.undo()
    assert nodes.heartbeat(1, member) is Error.NONE


def test_a_bug_while_a_record_is_written_ends_its_request_and_takes_its_change_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = Nodes(1)
    (member,) = nodes.stable(1, "i1")
    assert nodes.commit(1, 3, member) is Error.NONE
    monkeypatch.setattr(log_writes, "batch_of", fail)
    assert nodes.commit(1, 5, member) is Error.UNKNOWN_SERVER_ERROR
    monkeypatch.undo()
    assert nodes.committed(1) == 3
    assert nodes.commit(1, 6, member) is Error.NONE
    assert nodes.committed(1) == 6


def test_a_bug_while_a_response_is_encoded_is_answered_with_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = Nodes(1)
    (member,) = nodes.stable(1, "i1")

    def fail_once(*_: Any) -> Any:
        monkeypatch.undo()
        fail()

    monkeypatch.setattr(api_table, "frame_of", fail_once)
    assert nodes.heartbeat(1, member) is Error.UNKNOWN_SERVER_ERROR
    assert nodes.heartbeat(1, member) is Error.NONE


def test_where_the_error_cannot_be_encoded_either_the_connection_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = Nodes(1)
    (member,) = nodes.stable(1, "i1")
    peer = nodes.connect()
    monkeypatch.setattr(api_table, "frame_of", fail)
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id=member)
    assert nodes.ask(peer, request, 4) is None
    assert peer.closed == "a bug in koordinator ended a request"
    monkeypatch.undo()
    assert nodes.heartbeat(1, member) is Error.NONE
    assert "the error response to Heartbeat v4" in "".join(nodes.logged)


def test_a_bug_before_a_request_is_known_closes_its_connection_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = Nodes(1)
    (member,) = nodes.stable(1, "i1")
    peer, request = nodes.connect(), HeartbeatRequest(group_id="g", generation_id=1, member_id=member)
    frame = nodes.request(peer, request, 4)
    monkeypatch.setattr(request_reader, "read_request_header", fail)
    nodes.send(peer, frame)
    assert (peer.closed, peer.bytes) == ("a bug in koordinator ended a request", b"")
    monkeypatch.undo()
    assert nodes.heartbeat(1, member) is Error.NONE


def test_a_bug_in_a_queued_request_of_a_client_that_is_gone_ends_its_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = Wire()
    peer, request = wire.connect(), HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    frames = [wire.request(peer, requests.join_group("g", "", "i", protocols=(("range", b""),)), 5)]
    frames += [wire.request(peer, request, 4) for _ in range(2)]
    wire.send(peer, b"".join(frames))
    wire.broker.disconnected(wire.now, peer.number)
    assert wire.broker._closed
    monkeypatch.setattr(request_reader, "read_request_header", fail)
    wire.wait(0)
    assert not wire.broker._closed
    assert len([line for line in wire.logged if "a bug in koordinator ended a frame" in line]) == 1
    assert not peer.closed


@pytest.mark.parametrize("error", [PlantedError, OSError])
def test_stop_raises_and_the_other_cluster_lives(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    def boom(*_: Any) -> Any:
        raise error("planted")

    cluster, other = Emulator().start(), Emulator().start()
    try:
        monkeypatch.setitem(coordinator.HANDLERS, ApiKey.HEARTBEAT, boom)
        host, _, port = cluster.bootstrap_servers.partition(":")
        with closing(BrokerConnection(Address(host, int(port)), Deadline(10), "1")) as connection:
            request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
            assert connection.send(request, 4, HeartbeatResponse).error_code == Error.UNKNOWN_SERVER_ERROR
            assert connection.send(MetadataRequest(topics=()), 9, MetadataResponse).brokers
        with pytest.raises(BrokerBug, match="Heartbeat v4"):
            cluster.stop()
    finally:
        cluster.stop()
        other.stop()


@pytest.mark.parametrize(
    "function", [(Broker, "connected"), (Broker, "is_muted"), (Broker, "disconnected"), (DataPlane, "disconnected")]
)
def test_a_bug_when_a_connection_begins_or_ends_is_not_the_end_of_the_cluster(
    monkeypatch: pytest.MonkeyPatch, function: tuple[type, str]
) -> None:
    cluster, reached = Emulator().start(), Event()
    host, _, port = cluster.bootstrap_servers.partition(":")

    def boom(*_: Any) -> Any:
        reached.set()
        fail()

    def connect() -> closing[BrokerConnection]:
        return closing(BrokerConnection(Address(host, int(port)), Deadline(10), "1"))

    try:
        monkeypatch.setattr(*function, boom)
        with suppress(ConnectionLost), connect() as connection:
            connection.send(MetadataRequest(topics=()), 9, MetadataResponse)
        assert reached.wait(60)
        monkeypatch.undo()
        with connect() as later:
            assert later.send(MetadataRequest(topics=()), 9, MetadataResponse).brokers
        with pytest.raises(BrokerBug, match="planted"):
            cluster.stop()
    finally:
        cluster.stop()
