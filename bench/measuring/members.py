"""Raw members of a group: prepared frames with a placeholder for the member id, responses read by offset."""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from measuring.peers import HELLO, INT16, INT32, Connection, Peers, request

from koordinator.wire.errors import Error
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from koordinator.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

if TYPE_CHECKING:
    from collections.abc import Sequence

JOIN_VERSION = 5
SYNC_VERSION = 3
"""The version of librdkafka, which its mock understands."""

TIMEOUT_MS = 300_000
"""Session and rebalance timeout: nothing expires during a measurement."""

METADATA = b"\0\1\0\0\0\1\0\6orders\0\0\0\0\0\0\0\0"
"""A subscription to `orders`."""

ASSIGNMENT = b"\0\1\0\0\0\1\0\6orders\0\0\0\1\0\0\0\0\0\0\0\0"
"""Partition 0 of `orders`."""

_ANY = "<member>"
_ERROR = struct.Struct(">8xh")
_JOINED = struct.Struct(">8xhi")


class Template:
    """The frame of a request without its member id."""

    def __init__(self, message: JoinGroupRequest | SyncGroupRequest, version: int) -> None:
        frame = request(message, version)[INT32.size :]
        self._before, self._after = frame.split(INT16.pack(len(_ANY)) + _ANY.encode())

    def of(self, member_id: bytes) -> bytes:
        """Return the frame for a member."""
        body = b"".join((self._before, INT16.pack(len(member_id)), member_id, self._after))
        return INT32.pack(len(body)) + body


@dataclass(slots=True)
class Member:
    """One member on its connection, with the result of its last JoinGroup."""

    connection: Connection
    id: bytes = b""
    generation: int = -1
    leads: bool = False
    listed: int = 0
    """The number of members in the response, which only the leader sees."""


class Members:
    """The members of one group."""

    def __init__(self, peers: Peers, connections: Sequence[Connection], group: str) -> None:
        self.members = {connection.fd: Member(connection) for connection in connections}
        self.group = group
        self._peers = peers
        self._join = Template(
            JoinGroupRequest(
                group_id=group,
                session_timeout_ms=TIMEOUT_MS,
                rebalance_timeout_ms=TIMEOUT_MS,
                member_id=_ANY,
                protocol_type="consumer",
                protocols=(JoinGroupRequestProtocol(name="range", metadata=METADATA),),
            ),
            JOIN_VERSION,
        )

    def form(self, *, first_alone: bool) -> float:
        """Form one generation of all; return the seconds from the first JoinGroup to the last SyncGroup response.

        The first member forms a generation alone. Then all others receive their ids (KIP-394), join with them, and the
        first rejoins. A group waits for all issued ids, so this is one generation whatever the timing; kfake waits
        only for its members, so its early ones rejoin.
        `first_alone=False`: all join at once, for a server with an initial delay.
        """
        everybody = list(self.members.values())
        begun = time.perf_counter()
        if first_alone:
            self.join(everybody[:1])
            self.join(everybody[:1])
            self.sync(everybody[:1])
            self.join(everybody[1:])
        self._join_one_generation(everybody)
        self.sync(everybody)
        return time.perf_counter() - begun

    def join(self, members: Sequence[Member]) -> None:
        """Send JoinGroups; a member without an id receives one, or joins at once."""
        self._send(members)
        self._peers.answers([member.connection for member in members], self._joined)

    def _join_one_generation(self, members: Sequence[Member]) -> None:
        """Join until one generation has all of them; the members of a smaller one rejoin."""
        waiting = {member.connection.fd for member in members}
        answered: list[Member] = []
        self._send(members)
        while waiting:
            for connection, frame in self._peers.some_answers(len(waiting)):
                self._joined(connection, frame)
                waiting.remove(connection.fd)
                answered.append(self.members[connection.fd])
            if waiting and any(member.listed == len(answered) for member in answered):
                self._send(answered)
                waiting.update(member.connection.fd for member in answered)
                answered = []

    def _send(self, members: Sequence[Member]) -> None:
        for member in members:
            member.connection.send(self._join.of(member.id))

    def _joined(self, connection: Connection, frame: bytes) -> None:
        error, generation = _JOINED.unpack_from(frame)
        if error not in {Error.NONE, Error.MEMBER_ID_REQUIRED}:
            raise AssertionError(f"JoinGroup was answered with {Error(error).name}")
        _, at = _text(frame, _JOINED.size)
        leader, at = _text(frame, at)
        member = self.members[connection.fd]
        member.id, at = _text(frame, at)
        (member.listed,) = INT32.unpack_from(frame, at)
        member.generation = generation
        member.leads = leader == member.id

    def sync(self, members: Sequence[Member]) -> None:
        """Send SyncGroups; the leader is last and assigns the same to every member."""
        (leader,) = (member for member in members if member.leads)
        generation = leader.generation
        follower = Template(
            SyncGroupRequest(group_id=self.group, generation_id=generation, member_id=_ANY), SYNC_VERSION
        )
        for member in members:
            if member is not leader:
                member.connection.send(follower.of(member.id))
        # its response proves that all earlier frames were read: the mock rejects members after its leader's sync
        leader.connection.send(HELLO)
        self._peers.answers([leader.connection])
        assignments = tuple(
            SyncGroupRequestAssignment(member_id=member.id.decode(), assignment=ASSIGNMENT) for member in members
        )
        brought = SyncGroupRequest(
            group_id=self.group, generation_id=generation, member_id=leader.id.decode(), assignments=assignments
        )
        leader.connection.send(request(brought, SYNC_VERSION))
        self._peers.answers([member.connection for member in members], _synced)


def _synced(_: Connection, frame: bytes) -> None:
    error = _ERROR.unpack_from(frame)[0]
    if error or not frame.endswith(ASSIGNMENT):
        raise AssertionError(f"SyncGroup was answered with {Error(error).name}")


def _text(frame: bytes, at: int) -> tuple[bytes, int]:
    """Return a string ("" for null) and its end."""
    begin = at + INT16.size
    end = begin + max(0, INT16.unpack_from(frame, at)[0])
    return frame[begin:end], end
