"""A member on a raw connection that takes the place of a real client, or occupies one."""

from __future__ import annotations

import select
import socket
from typing import TYPE_CHECKING, Any, Self

from builders.requests import join_group, subscription

from koordinator.wire import frames
from koordinator.wire.apis import APIS
from koordinator.wire.codec import decode, encode
from koordinator.wire.frames import FrameBuffer
from koordinator.wire.messages.join_group import JoinGroupResponse
from koordinator.wire.messages.leave_group import LeaveGroupRequest
from koordinator.wire.schema import declaration_of

if TYPE_CHECKING:
    from koordinator.wire.apis import Message

WAIT_S = 60
"""The limit of a wait for a response."""

LONG_MS = 300_000
"""A session timeout longer than any test."""


class Rival:
    """A member of group g on its own connection. It acts only on request."""

    def __init__(self, bootstrap_servers: str, instance_id: str | None = None) -> None:
        self._bootstrap_servers = bootstrap_servers
        host, _, port = bootstrap_servers.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), WAIT_S)
        self._frames = FrameBuffer(1 << 20)
        self._asked = (0, 0)
        self.instance_id = instance_id
        self.member_id = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, request: Message, version: int) -> None:
        """Send a request without waiting for the response."""
        key = declaration_of(type(request)).key
        assert key is not None, f"{type(request).__name__} is not a request"
        self._asked = (key, version)
        self._socket.sendall(frames.frame(frames.request_header(key, version, 1, "rival"), encode(request, version)))

    def is_answered(self, wait_s: float) -> bool:
        """Return whether the request in flight is answered within this time."""
        return bool(select.select([self._socket], [], [], wait_s)[0])

    def receive(self) -> Any:
        """Return the response to the request in flight."""
        key, version = self._asked
        while (frame := self._frames.next_frame()) is None:
            data = self._socket.recv(65_536)
            assert data, f"closed instead of an answer to {APIS[key].name}"
            self._frames.feed(data)
        _, body = frames.read_response_header(key, version, frame)
        return decode(APIS[key].response, version, frame[body:])

    def ask(self, request: Message, version: int) -> Any:
        """Send a request and return its response."""
        self.send(request, version)
        return self.receive()

    def send_join(self) -> None:
        """Send a JoinGroup: with the instance id, or in a version that needs no member id first (KIP-394)."""
        request = join_group(
            "g",
            self.member_id,
            self.instance_id,
            session_ms=LONG_MS,
            rebalance_ms=LONG_MS,
            protocols=(("range", subscription("t", version=0)),),
        )
        self.send(request, 3 if self.instance_id is None else 5)

    def joined(self) -> JoinGroupResponse:
        """Return the response to that JoinGroup."""
        answer = self.receive()
        assert isinstance(answer, JoinGroupResponse)
        assert answer.error_code == 0, answer
        self.member_id = answer.member_id
        return answer

    def join(self) -> JoinGroupResponse:
        """Join, and return the response."""
        self.send_join()
        return self.joined()

    def leave(self) -> None:
        """Leave the group if still a member, whatever is in flight."""
        with Rival(self._bootstrap_servers) as messenger:
            messenger.ask(LeaveGroupRequest(group_id="g", member_id=self.member_id), 1)
