"""Hostile peers: a single-threaded process of their own.

It reads orders, a JSON object per line, and answers each with one. `begin` prepares the peers and starts their work,
which lasts until the order `end`; its answer has the amount of work done. The peers verify the server's responses, so
that an unserved peer does not pass for a harmless one.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import sys
import time
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from measuring.members import JOIN_VERSION, METADATA, SYNC_VERSION, TIMEOUT_MS, Member, Members
from measuring.peers import HELLO, INT16, INT32, LIMIT_S, READ_BYTES, TOGETHER, Connection, Peers, request

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_protocol import ConsumerProtocolSubscription, write_subscription
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from koordinator.wire.messages.leave_group import LeaveGroupRequest
from koordinator.wire.messages.metadata import MetadataRequest
from koordinator.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

Address = tuple[str, int]

BYTE_EVERY_S = 0.001
"""One byte on each connection in turn: each of 50 drips 20 bytes a second."""

ANNOUNCED_BYTES = 1 << 20
"""The announced length of a dripping frame, which never completes."""

PENDING_MS = 1_000
"""The session timeout of a flood: issued ids expire during it."""

SMALL_WINDOW_BYTES = 4096
"""The receive buffer of a resetting client."""

LEAVE_VERSION = 2
METADATA_VERSION = 9
RESET = struct.pack("ii", 1, 0)
"""Linger 0: closing resets the connection and leaves nothing behind."""

_ERROR = struct.Struct(">8xh")
"""The error in a response; all of these have a correlation id and a throttle time before it."""


class Hostile(Protocol):
    """Repeated hostile work. `pause_s`: the wait between two repetitions."""

    pause_s: float

    def act(self) -> int:
        """Do it once, in a moment or as long as the server takes; return the number of repetitions."""

    def end(self) -> None:
        """Disconnect."""


class Silent:
    """Silent connections, some of which drip."""

    pause_s = BYTE_EVERY_S

    def __init__(self, address: Address, *, connections: int, dripping: int) -> None:
        self._peers = Peers()
        self._silent: list[Connection] = []
        for begin in range(0, connections, TOGETHER):
            self._silent += [Connection(address) for _ in range(begin, min(begin + TOGETHER, connections))]
            # the last connection sends a request; its response proves that all earlier ones are accepted
            self._peers.open(address, 1, HELLO)
        self._dripping = self._silent[:dripping]
        self._next = 0
        for connection in self._dripping:
            connection.send(INT32.pack(ANNOUNCED_BYTES))

    def act(self) -> int:
        """Send a byte on the next connection."""
        self._dripping[self._next].send(b"\0")
        self._next = (self._next + 1) % len(self._dripping)
        return 1

    def end(self) -> None:
        """Close all connections."""
        self._peers.close()
        for connection in self._silent:
            connection.socket.close()


class Malformed:
    """Unreadable or truncated frames, each on a fresh connection, which the server has to close."""

    pause_s = 0.0

    def __init__(self, address: Address) -> None:
        self._address = address
        self._frames = malformed()

    def act(self) -> int:
        """Send each frame on its own connection, all at once."""
        clients = [socket.create_connection(self._address, timeout=LIMIT_S) for _ in self._frames]
        for client, frame in zip(clients, self._frames, strict=True):
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            client.sendall(frame)
        # the last frame is incomplete
        clients[-1].shutdown(socket.SHUT_WR)
        for client, frame in zip(clients, self._frames, strict=True):
            with suppress(ConnectionResetError):
                if client.recv(1):
                    raise AssertionError(f"this was answered: {frame.hex(' ')}")
            client.close()
        return len(clients)

    def end(self) -> None:
        """Nothing to close."""


def malformed() -> list[bytes]:
    """Return unreadable frames; the last one is the beginning of a readable frame."""
    join = _join("bench", PENDING_MS, (JoinGroupRequestProtocol(name="range", metadata=b""),))
    body = join[INT32.size :]
    metadata = request(MetadataRequest(topics=()), METADATA_VERSION)[INT32.size :]
    frames = [
        body[:-3],
        body[:3],
        b"",
        # the count of protocols, in front of 5 + 2 bytes of name and 4 of metadata
        body[: -INT32.size - 11] + INT32.pack(0x7FFFFFFF) + body[-11:],
        # an unknown API key and version
        INT16.pack(0x7FFF) + body[INT16.size :],
        INT16.pack(ApiKey.JOIN_GROUP) + INT16.pack(0x7FFF) + body[2 * INT16.size :],
        # a count as an endless varint
        metadata[:-5] + b"\xff" * 5,
    ]
    lengths = [INT32.pack(-1), INT32.pack(0x7FFFFFFF), b"GET / HTTP/1.1\r\n\r\n"]
    return [*lengths, *(INT32.pack(len(frame)) + frame for frame in frames), join[:-3]]


class Flood:
    """Pipelined JoinGroups without a member id: the runaway group of KIP-389. Each receives an id (KIP-394)."""

    pause_s = 0.0

    def __init__(self, address: Address, *, connections: int, in_flight: int) -> None:
        self._peers = Peers()
        protocols = (JoinGroupRequestProtocol(name="range", metadata=METADATA),)
        self._join = _join("runaway", PENDING_MS, protocols)
        for connection in self._peers.open(address, connections, HELLO):
            connection.send(self._join * in_flight)

    def act(self) -> int:
        """Replace every answered JoinGroup by another."""
        ready = self._peers.poll.poll(LIMIT_S)
        if not ready:
            raise TimeoutError("JoinGroups have not been answered")
        done = 0
        for fd, _ in ready:
            connection = self._peers.by_fd[fd]
            connection.got += connection.receive()
            count = 0
            while (frame := connection.frame()) is not None:
                _expect(Error.MEMBER_ID_REQUIRED, frame)
                count += 1
            if count:
                connection.send(self._join * count)
            done += count
        return done

    def end(self) -> None:
        """Close all connections."""
        self._peers.close()


class Large:
    """A member of its own group that rejoins repeatedly with a large, always different request."""

    pause_s = 0.0

    def __init__(self, address: Address, *, protocols: int, metadata_bytes: int) -> None:
        self._peers = Peers()
        members = Members(self._peers, self._peers.open(address, 1, HELLO), "large")
        (self._member,) = members.members.values()
        members.join([self._member])
        # a group with subscriptions that cannot be read would never be answered
        metadata = write_subscription(ConsumerProtocolSubscription(user_data=b"m" * metadata_bytes), 0)
        offered = tuple(
            JoinGroupRequestProtocol(name=f"protocol-{number}", metadata=metadata) for number in range(protocols)
        )
        self._frame = bytearray(_join("large", TIMEOUT_MS, offered, self._member.id.decode()))

    def act(self) -> int:
        """Join; the response returns the protocol metadata to the leader."""
        # the last byte of the metadata: changed metadata rebalances the group
        self._frame[-1] ^= 1
        _ask(self._member, self._frame)
        return 1

    def end(self) -> None:
        """Leave the group, which frees its memory."""
        _leave(self._member, "large")
        self._peers.close()


class Resets:
    """A member of its own group whose assignment exceeds the network's buffers.

    It requests the assignment repeatedly, each time on a fresh connection, reads the beginning, and resets.
    """

    pause_s = 0.0

    def __init__(self, address: Address, *, assignment_bytes: int) -> None:
        self._address = address
        self._peers = Peers()
        members = Members(self._peers, self._peers.open(address, 1, HELLO), "resets")
        (self._member,) = members.members.values()
        members.join([self._member])
        members.join([self._member])
        member_id = self._member.id.decode()
        asks = SyncGroupRequest(group_id="resets", generation_id=self._member.generation, member_id=member_id)
        assigned = SyncGroupRequestAssignment(member_id=member_id, assignment=b"a" * assignment_bytes)
        _ask(self._member, request(replace(asks, assignments=(assigned,)), SYNC_VERSION))
        self._asks = request(asks, SYNC_VERSION)

    def act(self) -> int:
        """Do it once."""
        with socket.socket() as client:
            client.settimeout(LIMIT_S)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_WINDOW_BYTES)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            client.connect(self._address)
            client.sendall(self._asks)
            _fill(client, bytearray(INT32.size))
        return 1

    def end(self) -> None:
        """Leave the group."""
        _leave(self._member, "resets")
        self._peers.close()


KINDS = {"silent": Silent, "malformed": Malformed, "flood": Flood, "large": Large, "resets": Resets}


def _join(
    group: str, session_timeout_ms: int, protocols: tuple[JoinGroupRequestProtocol, ...], member_id: str = ""
) -> bytes:
    message = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=TIMEOUT_MS,
        member_id=member_id,
        protocol_type="consumer",
        protocols=protocols,
    )
    return request(message, JOIN_VERSION)


def _leave(member: Member, group: str) -> None:
    _ask(member, request(LeaveGroupRequest(group_id=group, member_id=member.id.decode()), LEAVE_VERSION))


def _ask(member: Member, frame: bytes | bytearray) -> None:
    """Send a frame and read the whole response, which must have no error."""
    client = member.connection.socket
    client.settimeout(LIMIT_S)
    client.sendall(frame)
    head = bytearray(INT32.size + _ERROR.size)
    _fill(client, head)
    _expect(Error.NONE, head[INT32.size :])
    left = INT32.unpack_from(head)[0] - _ERROR.size
    rest = bytearray(min(left, READ_BYTES))
    while left:
        left -= _fill(client, memoryview(rest)[:left])


def _expect(error: Error, answer: bytes | bytearray) -> None:
    (found,) = _ERROR.unpack_from(answer)
    if found != error:
        raise AssertionError(f"answered with {Error(found).name} instead of {error.name}")


def _fill(client: socket.socket, buffer: bytearray | memoryview) -> int:
    view = memoryview(buffer)
    while view:
        count = client.recv_into(view)
        if not count:
            raise ConnectionError("the server has closed a connection")
        view = view[count:]
    return len(buffer)


def main() -> None:
    """Serve orders until the input ends."""
    for line in iter(sys.stdin.readline, ""):
        order = json.loads(line)
        del order["order"]
        kind: Hostile = KINDS[order.pop("kind")](("127.0.0.1", order.pop("port")), **order)
        print("{}", flush=True)
        begun, done = time.monotonic(), kind.act()
        # one order at a time, so that none waits unseen in the buffer of stdin
        while not select.select([sys.stdin], [], [], kind.pause_s)[0]:
            done += kind.act()
        seconds = time.monotonic() - begun
        kind.end()
        sys.stdin.readline()
        print(json.dumps({"done": done, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
