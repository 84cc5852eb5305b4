"""Checks of every request before its endpoint: token, host, origin, and the size and pace of its body."""

from __future__ import annotations

import hmac
import math
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import trio

from ..pages.dashboard import FOLDER
from .connection import connection_of
from .problems import Problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_BYTES_MAX = 64 * 1024 * 1024
"""The limit of a request body; a snapshot includes records."""

BODIES_BYTES_MAX = 2 * BODY_BYTES_MAX
"""The limit of all bodies together, from their arrival to the end of their responses."""

BODY_BYTES_FREE = 64 * 1024
"""The first bytes of a body do not count there: large bodies must not keep small ones out."""

BODY_S = 60.0
"""The limit for the arrival of a body, in seconds."""

LENGTH_DIGITS_MAX = 20
"""More digits are not a length."""

OPEN = ("/", "/healthz", "/readyz")
"""Paths without a token. Those below `STATIC` need none either: they contain no data."""

STATIC = f"{FOLDER}/"

LOCAL = ("localhost", "127.0.0.1", "::1")
"""The names of this machine on its loopback interface."""


class Guards:
    """ASGI middleware that checks the token and limits request bodies.

    It also passes the percent-encoded path on, because a group id may contain slashes.

    Web pages of other sites must not control clusters through a browser on this machine. A request with a foreign
    `Origin` is refused; without a token on loopback also a request with a foreign `Host`, against DNS rebinding.
    """

    def __init__(self, app: ASGIApp, token: str | None, *, is_local: bool) -> None:
        self._app = app
        self._token = token
        self._hosts = LOCAL if is_local and token is None else None
        self._bodies = Bodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or respond with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with connection_of(scope).request():
            body = Body(receive, self._bodies)

            async def respond(message: Message) -> None:
                if not body.has_response:
                    body.has_response = True
                    await body.discard()
                await send(message)

            try:
                self._check(scope)
                raw: bytes = scope.get("raw_path") or scope["path"].encode()
                scope = {**scope, "path": raw.partition(b"?")[0].decode("ascii", "replace")}
                await self._app(scope, body.receive, respond)
            except Problem as problem:
                await problem.response()(scope, receive, respond)
            finally:
                body.release()

    def _check(self, scope: Scope) -> None:
        headers = {name.lower(): value for name, value in scope["headers"]}
        length = headers.get(b"content-length", b"0")
        # thousands of digits are no number for Python
        if not length.isdigit() or len(length) > LENGTH_DIGITS_MAX or int(length) > BODY_BYTES_MAX:
            raise _too_large()
        host = headers.get(b"host", b"").decode("latin-1")
        if self._hosts is not None and _place_of(f"//{host}")[0] not in self._hosts:
            raise Problem(HTTPStatus.FORBIDDEN, f"host {host!r}: must be {', '.join(self._hosts)} without a token")
        origin = headers.get(b"origin", b"").decode("latin-1")
        if origin and _place_of(origin)[1] != host:
            raise Problem(HTTPStatus.FORBIDDEN, f"origin {origin!r}: pages of other sites may not control clusters")
        if self._token is None or scope["path"] in OPEN or scope["path"].startswith(STATIC):
            return
        given = headers.get(b"authorization", b"")
        if not hmac.compare_digest(given, b"Bearer " + self._token.encode()):
            detail = "send `Authorization: Bearer TOKEN` with the token of --control-token"
            raise Problem(HTTPStatus.UNAUTHORIZED, detail, headers={"WWW-Authenticate": "Bearer"})


def _place_of(address: str) -> tuple[str | None, str | None]:
    """Return the host name of an address, and its host with the port; None if it is not an address."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return None, None
    return parts.hostname, parts.netloc


class Bodies:
    """The bytes of all bodies that the server has."""

    def __init__(self) -> None:
        self.size = 0


class Body:
    """The body of one request: `receive` is that of the request, with the limits of its size and its time."""

    def __init__(self, receive: Receive, bodies: Bodies) -> None:
        self._receive = receive
        self._bodies = bodies
        self._size = self._counted = 0
        self._deadline = trio.current_time() + BODY_S
        self._is_complete = self._is_receiving = False
        self.has_response = False
        """Whether the response has begun: then a body that breaks a limit ends the connection."""

    async def receive(self) -> Message:
        """Return the next message of the request. Raises Problem if its body is too large, or too late."""
        self._is_receiving = True
        try:
            return await self._receive_bounded()
        except Problem:
            if not self.has_response:
                raise
            return {"type": "http.disconnect"}
        finally:
            self._is_receiving = False

    async def _receive_bounded(self) -> Message:
        with trio.move_on_at(math.inf if self._is_complete else self._deadline) as limit:
            message = await self._receive()
        if limit.cancelled_caught:
            raise Problem(HTTPStatus.REQUEST_TIMEOUT, f"the body did not arrive within {BODY_S:g} s")
        self._is_complete = not message.get("more_body", False)
        self._size += len(message.get("body", b""))
        if self._size > BODY_BYTES_MAX:
            raise _too_large()
        counted = max(self._size - BODY_BYTES_FREE, 0)
        if self._bodies.size + counted - self._counted > BODIES_BYTES_MAX:
            detail = f"the bodies of all requests together are larger than {BODIES_BYTES_MAX} bytes; repeat it later"
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers={"Retry-After": "1"})
        self._bodies.size += counted - self._counted
        self._counted = counted
        return message

    async def discard(self) -> None:
        """Read the rest of the body, unless the application does: Hypercorn reads no next request before that."""
        with trio.move_on_at(self._deadline):
            while not (self._is_complete or self._is_receiving):
                self._is_complete = not (await self._receive()).get("more_body", False)

    def release(self) -> None:
        """Count the body no longer."""
        self._bodies.size -= self._counted
        self._counted = 0


def _too_large() -> Problem:
    return Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {BODY_BYTES_MAX} bytes")
