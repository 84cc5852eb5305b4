"""The requests in the frames of a node's connections.

Kafka: `RequestHeader`, `AbstractRequest.parseRequest`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.frames import correlation_id_of, read_request_header, repeats
from koordinator.wire.messages.api_versions import ApiVersionsRequest
from koordinator.wire.primitives import Malformed

from .connections import REMEMBERED_MAX, ReadRequest
from .failures import FRAME_SHOWN_MAX
from .other_protocols import sasl_at
from .sasl_requests import SASL_APIS

if TYPE_CHECKING:
    from koordinator.wire.apis import Message

    from ..core.effects import Call
    from .api_table import ApiTable
    from .authentication.listener_security import ListenerSecurity
    from .connections import Connection
    from .host_log import HostLog

SECRET_APIS = SASL_APIS | {
    int(ApiKey.ALTER_USER_SCRAM_CREDENTIALS),
    int(ApiKey.RENEW_DELEGATION_TOKEN),
    int(ApiKey.EXPIRE_DELEGATION_TOKEN),
}
"""APIs whose requests no report shows."""


class RequestReader:
    """Reads requests. `host_log` gets a line for a client that logs in where nobody can."""

    def __init__(self, api_table: ApiTable, security: ListenerSecurity, host_log: HostLog) -> None:
        self._api_table = api_table
        self._security = security
        self._host_log = host_log

    def read(self, now: int, peer: Connection, frame: bytes) -> tuple[Call, Message]:
        """Return the request in a frame. Raises Malformed.

        A client's heartbeats are equal, and messages are immutable: the connection remembers a request that repeats the
        one before it, and does not decode the next repetitions.
        """
        before, peer.frame = peer.frame, frame if len(frame) <= FRAME_SHOWN_MAX else b""
        latest = peer.latest
        if latest is not None and repeats(frame, latest.frame):
            if peer.authenticator is not None:
                peer.authenticator.check(now, latest.key)
        else:
            latest = self._decode(now, peer, frame)
            is_kept = len(frame) <= REMEMBERED_MAX and repeats(frame, before) and latest.key not in SECRET_APIS
            peer.latest = latest if is_kept else None
        return peer.call(correlation_id_of(frame), latest.key, latest.version), latest.message

    def queued(self, peer: Connection) -> list[tuple[Call, Message]]:
        """Return the requests that wait behind the one in flight, up to the first that cannot be read."""
        waiting: list[tuple[Call, Message]] = []
        with suppress(Malformed):
            for frame in peer.frames.complete():
                header, body = read_request_header(frame)
                version, request = self._api_table.read(header, frame, body)
                waiting.append((peer.call(header.correlation_id, header.api_key, version), request))
        return waiting

    def _decode(self, now: int, peer: Connection, frame: bytes) -> ReadRequest:
        header, body = read_request_header(frame)
        key, authenticator = header.api_key, peer.authenticator
        if key in SECRET_APIS:
            peer.frame = b""
        if authenticator is not None:
            authenticator.check(now, key)
        if header.client_id != peer.client_id:
            # all events of a connection share one string
            peer.client_id = header.client_id or ""
        version, request = self._api_table.read(header, frame, body)
        if isinstance(request, ApiVersionsRequest):
            peer.software = (request.client_software_name, request.client_software_version)
        elif key == ApiKey.SASL_HANDSHAKE and authenticator is None:
            line = sasl_at(self._security.protocol(peer.listener))
            self._host_log.tell(peer.client_host, line, f"client {peer.shown} sends {line}")
        return ReadRequest(frame, key, version, request)
