"""What a request has to pass before anything is done for it: the token, and how much it may send."""

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
"""The largest body that is read; a snapshot with records may be large."""

OPEN = ("/", "/healthz", "/readyz")
"""Paths that need no token. Nor do those below `STATIC`: the files of the dashboard, in which there is no data."""

STATIC = f"{FOLDER}/"

LOCAL = ("localhost", "127.0.0.1", "::1")
"""What this machine is called on itself."""


class Guards:
    """ASGI middleware: a token where one is wanted, bodies of a bounded size, and paths as they came.

    A group's id may be any text, with slashes in it: routes look at the path before its escapes are resolved.

    Pages of other sites that a browser on this machine shows must not control clusters: a request that names another
    `Origin` is refused, and where no token is wanted on loopback also one to another `Host`, by which DNS would lend
    such a page our address.
    """

    def __init__(self, app: ASGIApp, token: str | None, *, is_local: bool) -> None:
        self._app = app
        self._token = token
        self._hosts = LOCAL if is_local and token is None else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
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
        if not length.isdigit() or int(length) > BODY_BYTES_MAX:
            raise _too_large()
        host = headers.get(b"host", b"").decode("latin-1")
        if self._hosts is not None and urlsplit(f"//{host}").hostname not in self._hosts:
            raise Problem(HTTPStatus.FORBIDDEN, f"host {host!r}: this is {', '.join(self._hosts)} without a token")
        origin = headers.get(b"origin", b"").decode("latin-1")
        if origin and urlsplit(origin).netloc != host:
            raise Problem(HTTPStatus.FORBIDDEN, f"origin {origin!r}: pages of other sites may not control clusters")
        if self._token is None or scope["path"] in OPEN or scope["path"].startswith(STATIC):
            return
        given = headers.get(b"authorization", b"")
        if not hmac.compare_digest(given, b"Bearer " + self._token.encode()):
            said = "a token is wanted: `Authorization: Bearer TOKEN` with the token of --control-token"
            raise Problem(HTTPStatus.UNAUTHORIZED, said, headers={"WWW-Authenticate": "Bearer"})


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
    return Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body of at most {BODY_BYTES_MAX} bytes is read")
