"""Checks of every request before its endpoint: token, host, origin, and the size of its body."""

from __future__ import annotations

import hmac
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..pages.dashboard import FOLDER
from .problems import Problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_BYTES_MAX = 64 * 1024 * 1024
"""The limit of a request body; a snapshot includes records."""

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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or respond with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            self._check(scope)
            raw: bytes = scope.get("raw_path") or scope["path"].encode()
            scope = {**scope, "path": raw.partition(b"?")[0].decode("ascii", "replace")}
            await self._app(scope, _bounded(receive), send)
        except Problem as problem:
            await problem.response()(scope, receive, send)

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


def _bounded(receive: Receive) -> Receive:
    size = 0

    async def receive_bounded() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > BODY_BYTES_MAX:
            raise _too_large()
        return message

    return receive_bounded


def _too_large() -> Problem:
    return Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {BODY_BYTES_MAX} bytes")
