"""`koordinator serve --error-codes`: 79, 81 and 82, or 79, 77 and 78, in every API that answers with them.

Seen by a client that knows nothing of ours: each byte it sends and reads is packed by hand here.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, OFFSET_COMMIT = 11, 12, 13, 14, 8

UNKNOWN_MEMBER_ID = 25

WAIT_S = 60

NO_ID = ""
INSTANCE = "instance-a"


@dataclass(frozen=True)
class Codes:
    """The numbers of the group errors."""

    arguments: tuple[str, ...]
    member_id_required: int
    group_max_size_reached: int
    fenced_instance_id: int


NUMBERINGS = [
    pytest.param(Codes((), 79, 81, 82), id="released"),
    pytest.param(Codes(("--error-codes", "kafka"), 79, 81, 82), id="kafka"),
    pytest.param(Codes(("--error-codes", "kip"), 79, 77, 78), id="kip"),
]


class Reply:
    """A reader of the bytes of a response."""

    def __init__(self, data: bytes, *, is_flexible: bool) -> None:
        self.data = data
        self.is_flexible = is_flexible

    def take(self, layout: str) -> int:
        size = struct.calcsize(layout)
        (value,) = struct.unpack(layout, self.data[:size])
        self.data = self.data[size:]
        return int(value)

    def _length(self, layout: str) -> int:
        return self.take(">B") - 1 if self.is_flexible else self.take(layout)

    def string(self) -> str | None:
        length = self._length(">h")
        if length < 0:
            return None
        text, self.data = self.data[:length], self.data[length:]
        return text.decode()

    def count(self) -> int:
        return self._length(">i")

    def no_tags(self) -> None:
        if self.is_flexible:
            assert self.take(">B") == 0


class Client:
    """A connection with either the oldest versions that have instance ids, or the newest."""

    def __init__(self, bootstrap_servers: str, *, is_flexible: bool) -> None:
        host, _, port = bootstrap_servers.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), WAIT_S)
        self.is_flexible = is_flexible

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def string(self, text: str | None) -> bytes:
        data = b"" if text is None else text.encode()
        length = -1 if text is None else len(data)
        return (struct.pack(">B", length + 1) if self.is_flexible else struct.pack(">h", length)) + data

    def count(self, number: int) -> bytes:
        return struct.pack(">B", number + 1) if self.is_flexible else struct.pack(">i", number)

    def blob(self, data: bytes) -> bytes:
        return self.count(len(data)) + data

    @property
    def tags(self) -> bytes:
        return b"\x00" if self.is_flexible else b""

    def call(self, api_key: int, versions: tuple[int, int], body: bytes) -> Reply:
        self.send(api_key, versions, body)
        return self.receive()

    def send(self, api_key: int, versions: tuple[int, int], body: bytes) -> None:
        header = struct.pack(">hhih", api_key, versions[self.is_flexible], 7, 3) + b"raw" + self.tags
        request = header + body + self.tags
        self.socket.sendall(struct.pack(">i", len(request)) + request)

    def receive(self) -> Reply:
        (length,) = struct.unpack(">i", self._read(4))
        reply = Reply(self._read(length), is_flexible=self.is_flexible)
        assert reply.take(">i") == 7
        reply.no_tags()
        # every response starts with the throttle time
        assert reply.take(">i") == 0
        return reply

    def _read(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            more = self.socket.recv(length - len(data))
            assert more, "the connection was closed"
            data += more
        return data

    def join(self, group: str, member_id: str, instance_id: str | None) -> tuple[int, str]:
        """Return the error and the assigned member id."""
        self.send_join(group, member_id, instance_id)
        return self.joined()

    def send_join(self, group: str, member_id: str, instance_id: str | None) -> None:
        body = self.string(group) + struct.pack(">ii", 60_000, 60_000) + self.string(member_id)
        body += self.string(instance_id) + self.string("consumer")
        body += self.count(1) + self.string("range") + self.blob(b"") + self.tags
        if self.is_flexible:
            body += self.string("a reason")
        self.send(JOIN_GROUP, (5, 9), body)

    def joined(self) -> tuple[int, str]:
        reply = self.receive()
        error, _generation = reply.take(">h"), reply.take(">i")
        if self.is_flexible:
            reply.string()
        reply.string()
        reply.string()
        if self.is_flexible:
            reply.take(">B")
        return error, reply.string() or ""

    def sync(self, group: str, member_id: str, instance_id: str | None) -> int:
        body = self.string(group) + struct.pack(">i", 1) + self.string(member_id) + self.string(instance_id)
        if self.is_flexible:
            body += self.string("consumer") + self.string("range")
        body += self.count(1) + self.string(member_id) + self.blob(b"assignment") + self.tags
        return self.call(SYNC_GROUP, (3, 5), body).take(">h")

    def heartbeat(self, group: str, member_id: str, instance_id: str | None) -> int:
        body = self.string(group) + struct.pack(">i", 1) + self.string(member_id) + self.string(instance_id)
        return self.call(HEARTBEAT, (3, 4), body).take(">h")

    def commit(self, group: str, member_id: str, instance_id: str | None) -> int:
        """Return the error of the partition."""
        body = self.string(group) + struct.pack(">i", 1) + self.string(member_id) + self.string(instance_id)
        partition = struct.pack(">iqi", 0, 5, -1) + self.string("metadata") + self.tags
        body += self.count(1) + self.string("t") + self.count(1) + partition + self.tags
        reply = self.call(OFFSET_COMMIT, (7, 8), body)
        assert (reply.count(), reply.string(), reply.count(), reply.take(">i")) == (1, "t", 1, 0)
        return reply.take(">h")

    def leave(self, group: str, member_id: str, instance_id: str | None) -> tuple[int, int]:
        """Return the top-level error and that of the member."""
        body = self.string(group) + self.count(1) + self.string(member_id) + self.string(instance_id)
        if self.is_flexible:
            body += self.string("a reason")
        reply = self.call(LEAVE_GROUP, (3, 5), body + self.tags)
        error = reply.take(">h")
        assert (reply.count(), reply.string(), reply.string()) == (1, member_id, instance_id)
        return error, reply.take(">h")


@pytest.fixture(params=[False, True], ids=["old-versions", "new-versions"])
def connect(request: pytest.FixtureRequest, serve: Callable[..., object]) -> Iterator[Callable[..., Client]]:
    """A function that starts `koordinator serve` with arguments and connects to it."""
    clients: list[Client] = []

    def start(*arguments: str) -> Client:
        served = serve("--port", "0", "--topic", "t:1", *arguments)
        servers = served.ready()["bootstrap_servers"]  # type: ignore[attr-defined]
        clients.append(Client(servers, is_flexible=request.param))
        return clients[-1]

    yield start
    for client in clients:
        client.socket.close()


def form(client: Client, group: str) -> str:
    """Create a group with one static member and return its member id."""
    error, member_id = client.join(group, NO_ID, INSTANCE)
    assert error == 0
    assert client.sync(group, member_id, INSTANCE) == 0
    return member_id


@pytest.mark.parametrize("codes", NUMBERINGS)
def test_the_numbers_of_errors_are_those_of_the_numbering(connect: Callable[..., Client], codes: Codes) -> None:
    client = connect("--config", "group.max.size=1", *codes.arguments)
    # KIP-394
    error, given = client.join("g", NO_ID, None)
    assert error == codes.member_id_required
    assert given
    # KIP-389
    member_id = form(client, "full")
    assert client.join("full", NO_ID, "another") == (codes.group_max_size_reached, "")
    assert client.join("full", NO_ID, None) == (codes.group_max_size_reached, "")
    # KIP-345: an instance id of another member
    assert client.sync("full", "stranger", INSTANCE) == codes.fenced_instance_id
    assert client.heartbeat("full", "stranger", INSTANCE) == codes.fenced_instance_id
    assert client.commit("full", "stranger", INSTANCE) == codes.fenced_instance_id
    assert client.leave("full", "stranger", INSTANCE) == (0, codes.fenced_instance_id)
    # the member itself is not affected
    assert client.heartbeat("full", member_id, INSTANCE) == 0
    assert client.commit("full", member_id, INSTANCE) == 0
    assert client.leave("full", member_id, INSTANCE) == (0, 0)


@pytest.mark.parametrize("codes", NUMBERINGS)
def test_a_replaced_static_member_is_fenced_in_every_api(connect: Callable[..., Client], codes: Codes) -> None:
    client = connect(*codes.arguments)
    old = form(client, "g")
    error, new = client.join("g", NO_ID, INSTANCE)
    assert (error, new != old) == (0, True)
    assert client.join("g", old, INSTANCE) == (codes.fenced_instance_id, old)
    assert client.sync("g", old, INSTANCE) == codes.fenced_instance_id
    assert client.heartbeat("g", old, INSTANCE) == codes.fenced_instance_id
    assert client.commit("g", old, INSTANCE) == codes.fenced_instance_id
    assert client.leave("g", old, INSTANCE) == (0, codes.fenced_instance_id)
    assert client.heartbeat("g", new, INSTANCE) == 0


@pytest.mark.parametrize("codes", NUMBERINGS)
def test_a_static_member_replaced_during_the_join_phase_is_fenced(connect: Callable[..., Client], codes: Codes) -> None:
    # the initial rebalance delay parks the first member
    waiting = connect("--config", "group.initial.rebalance.delay.ms=300000", *codes.arguments)
    host, port = waiting.socket.getpeername()
    with Client(f"{host}:{port}", is_flexible=waiting.is_flexible) as other:
        waiting.send_join("g", NO_ID, INSTANCE)
        # the group knows the instance id only after the first JoinGroup
        while (error := other.heartbeat("g", "stranger", INSTANCE)) == UNKNOWN_MEMBER_ID:
            continue
        assert error == codes.fenced_instance_id
        other.send_join("g", NO_ID, INSTANCE)
        error, member_id = waiting.joined()
    assert error == codes.fenced_instance_id
    assert member_id.startswith(INSTANCE)
