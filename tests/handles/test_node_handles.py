"""Several brokers behind real sockets, and the controls over them."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import pytest

from koordinator import Cluster, Emulator
from koordinator.wire import frames
from koordinator.wire.apis import APIS
from koordinator.wire.codec import decode, encode
from koordinator.wire.errors import Error
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.metadata import MetadataRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUP = "g"
WAIT_S = 60


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Emulator(topics={"orders": 3}, brokers=3) as running:
        yield running


class Line:
    """A connection to one broker."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host.strip("[]"), int(port)), timeout=WAIT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, message: Any, version: int) -> None:
        key = next(key for key, api in APIS.items() if api.request is type(message))
        self.awaited = APIS[key].response, version, len(frames.response_header(key, version, 1))
        header = frames.request_header(key, version, 1, "c")
        self.socket.sendall(frames.frame(header, encode(message, version)))

    def answer(self) -> Any:
        kind, version, header = self.awaited
        size = int.from_bytes(self._exactly(4), "big")
        return decode(kind, version, self._exactly(size)[header:], exact=True)

    def ask(self, message: Any, version: int) -> Any:
        self.send(message, version)
        return self.answer()

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            assert piece, "closed by the broker"
            data += piece
        return data


def ask(address: str, message: Any, version: int) -> Any:
    with Line(address) as line:
        return line.ask(message, version)


def coordinator(address: str) -> tuple[int, str]:
    """Return node id and address from FindCoordinator."""
    (row,) = ask(address, FindCoordinatorRequest(coordinator_keys=(GROUP,)), 4).coordinators
    assert row.error_code == Error.NONE
    return row.node_id, f"{row.host}:{row.port}"


def brokers(address: str) -> dict[int, str]:
    """Return the brokers in the metadata."""
    rows = ask(address, MetadataRequest(topics=None), 9).brokers
    return {row.node_id: f"{row.host}:{row.port}" for row in rows}


def beat(address: str) -> int:
    """Return the error of an unknown member's heartbeat: UNKNOWN_MEMBER_ID from the coordinator of the group."""
    request = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="nobody")
    return int(ask(address, request, 3).error_code)


def refused(address: str) -> bool:
    try:
        Line(address).socket.close()
    except ConnectionRefusedError:
        return True
    return False


def test_each_broker_has_a_port_and_knows_all_of_them(cluster: Cluster) -> None:
    addresses = cluster.bootstrap_servers.split(",")
    assert len(set(addresses)) == 3
    assert [node.address() for node in cluster.nodes.values()] == addresses
    for address in addresses:
        assert brokers(address) == dict(enumerate(addresses, start=1))


def test_all_brokers_name_the_same_coordinator_and_only_it_serves_the_group(cluster: Cluster) -> None:
    addresses = cluster.bootstrap_servers.split(",")
    named = {coordinator(address) for address in addresses}
    here = cluster.coordinator(GROUP)
    assert here is not None
    assert named == {(here.id, here.address())}
    errors = {node.id: beat(node.address()) for node in cluster.nodes.values()}
    assert errors.pop(here.id) == Error.UNKNOWN_MEMBER_ID
    assert set(errors.values()) == {Error.NOT_COORDINATOR}


def test_topics_are_spread_over_the_brokers(cluster: Cluster) -> None:
    leaders = [cluster.leader("orders", partition) for partition in range(3)]
    assert [leader.id for leader in leaders if leader is not None] == [1, 2, 3]
    assert cluster.leader("orders", 3) is None
    with pytest.raises(ValueError, match="there is no topic 'bills'; there is 'orders'"):
        cluster.leader("bills", 0)


def test_records_from_python_get_to_every_leader(cluster: Cluster) -> None:
    assert cluster.produce("orders", "a", "b", "c") == 3
    assert sorted(record.partition for record in cluster.records("orders")) == [0, 1, 2]


def test_the_coordinator_can_be_moved(cluster: Cluster) -> None:
    here = cluster.coordinator(GROUP)
    assert here is not None
    there = here.id % 3 + 1
    cluster.move_coordinator(GROUP, to=there)
    assert coordinator(here.address())[0] == there
    assert beat(here.address()) == Error.NOT_COORDINATOR
    assert beat(cluster.nodes[there].address()) == Error.UNKNOWN_MEMBER_ID


def test_loading_may_take_time(cluster: Cluster) -> None:
    cluster.move_coordinator(GROUP, to=1, load=60)
    assert beat(cluster.nodes[1].address()) == Error.NONE, "answered blindly while it loads"
    cluster.move_coordinator(GROUP, to=1, load=0.05)
    address = cluster.nodes[1].address()
    group = cluster._port.served.runtime.broker(1).node.coordinator
    assert cluster._port.wait_until(lambda: not group.store.loading, WAIT_S, "test")
    assert beat(address) == Error.UNKNOWN_MEMBER_ID


def test_a_partition_can_be_moved(cluster: Cluster) -> None:
    cluster.move_leader("orders", 0, to=3)
    leader = cluster.leader("orders", 0)
    assert leader is not None
    assert leader.id == 3


def test_a_stopped_broker_refuses_connections_and_returns_on_its_old_port(cluster: Cluster) -> None:
    node = cluster.nodes[2]
    address = node.address()
    with Line(address) as line:
        line.ask(MetadataRequest(topics=None), 9)
        node.stop()
        assert line.socket.recv(1) == b"", "its connections are closed"
    assert node.state == "down"
    assert refused(address)
    assert set(brokers(cluster.nodes[1].address())) == {1, 3}
    with pytest.raises(ValueError, match="node 2 is down"):
        node.stop()
    node.start()
    assert node.state == "up"
    assert set(brokers(address)) == {1, 2, 3}
    with pytest.raises(ValueError, match="node 2 is up already"):
        node.start()


def test_a_broker_may_be_killed_and_started_many_times(cluster: Cluster) -> None:
    node = cluster.nodes[3]
    address = node.address()
    for _ in range(20):
        node.kill()
        assert refused(address)
        node.start()
        assert set(brokers(address)) == {1, 2, 3}


def test_the_only_broker_may_be_stopped_too() -> None:
    with Emulator(topics={"orders": 1}) as cluster:
        cluster.produce("orders", "a")
        cluster.nodes[1].stop()
        assert cluster.coordinator(GROUP) is None
        assert cluster.group(GROUP).state == "Dead"
        cluster.nodes[1].start()
        assert brokers(cluster.bootstrap_servers) == {1: cluster.bootstrap_servers}
        assert [record.value for record in cluster.records("orders")] == [b"a"]


def test_a_paused_broker_accepts_connections_and_answers_after_it_resumes(cluster: Cluster) -> None:
    node = cluster.nodes[1]
    node.pause()
    assert node.state == "paused"
    answers = []
    with Line(node.address()) as line:
        line.send(MetadataRequest(topics=None), 9)
        line.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            line.socket.recv(1)
        line.socket.settimeout(WAIT_S)
        reader = threading.Thread(target=lambda: answers.append(line.answer()))
        reader.start()
        node.resume()
        reader.join(WAIT_S)
    assert len(answers[0].brokers) == 3
    assert node.state == "up"


@pytest.mark.slow
def test_a_paused_broker_loses_no_request(cluster: Cluster) -> None:
    node = cluster.nodes[1]
    node.pause()
    with Line(node.address()) as line:
        for _ in range(5_000):
            line.send(MetadataRequest(topics=()), 9)
        node.resume()
        for _ in range(5_000):
            line.answer()


def test_a_broker_can_be_added_and_removed(cluster: Cluster) -> None:
    node = cluster.add_node()
    assert (node.id, node.state) == (4, "up")
    assert brokers(node.address())[4] == node.address()
    cluster.move_coordinator(GROUP, to=4)
    assert coordinator(cluster.nodes[1].address()) == (4, node.address())
    address = node.address()
    node.remove()
    assert node.state == "removed"
    assert refused(address)
    assert set(cluster.nodes) == {1, 2, 3}
    assert coordinator(cluster.nodes[1].address())[0] in {1, 2, 3}
    with pytest.raises(ValueError, match="there is no node 4"):
        node.start()


def test_a_broker_can_name_a_wrong_coordinator(cluster: Cluster) -> None:
    here = cluster.coordinator(GROUP)
    assert here is not None
    wrong, other = (node for node in cluster.nodes.values() if node.id != here.id)
    wrong.misdirect(GROUP, other.id)
    assert coordinator(wrong.address())[0] == other.id
    assert coordinator(other.address())[0] == here.id
    wrong.misdirect(GROUP, None)
    assert coordinator(wrong.address())[0] == here.id


def test_clients_get_the_addresses_of_their_listener() -> None:
    wanted = {"OUTSIDE": "127.0.0.1:0"}
    with Emulator(brokers=2, listeners=wanted, advertised={"1:OUTSIDE": "kafka.example:9"}) as cluster:
        first, second = cluster.nodes.values()
        assert brokers(first.address()) == {1: first.address(), 2: second.address()}
        assert brokers(second.address("OUTSIDE")) == {1: "kafka.example:9", 2: second.address("OUTSIDE")}
        first.advertise("elsewhere", 10, "OUTSIDE")
        assert brokers(second.address("OUTSIDE"))[1] == "elsewhere:10"
        with pytest.raises(ValueError, match="node 1 has no listener 'INSIDE'"):
            first.address("INSIDE")


def at_a_fixed_port(brokers: int, attempts: int = 50) -> tuple[int, Cluster]:
    """A cluster at a free port with a free successor; on a busy machine this may take several attempts."""
    for _ in range(attempts):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with suppress(OSError, ValueError):
            return port, Emulator(brokers=brokers, port=port).start()
    raise AssertionError(f"no {brokers} free ports in a row in {attempts} attempts")


def test_a_fixed_port_is_that_of_the_first_broker() -> None:
    port, cluster = at_a_fixed_port(2)
    try:
        assert cluster.bootstrap_servers == f"127.0.0.1:{port},127.0.0.1:{port + 1}"
    finally:
        cluster.stop()


def test_if_one_broker_cannot_listen_none_does() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{port}"):
            Emulator(brokers=2, listeners={"2:INSIDE": f"127.0.0.1:{port}"}).start()


@pytest.mark.parametrize("brokers", [0, 101])
def test_a_cluster_has_1_to_100_brokers(brokers: int) -> None:
    with pytest.raises(ValueError, match=f"brokers {brokers}: must be from 1 to 100"):
        Emulator(brokers=brokers).start()


@pytest.mark.koordinator(brokers=2)
def test_the_marker_knows_brokers(koordinator: Cluster) -> None:
    assert set(koordinator.nodes) == {1, 2}
