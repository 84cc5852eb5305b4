"""The HTTP API on a port: Hypercorn on Trio, in the process of its clusters."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

import trio
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState
from hypercorn.utils import wrap_app

from ..server.listening_sockets import RESERVED_FILES_MAX, accept_forever, address_of
from .app import create_app
from .connection import CONNECTION, HEAD_S, HttpConnection
from .tls_connection import TlsHttpConnection

if TYPE_CHECKING:
    import socket

    from ..config.options import Options
    from ..server.cluster_registry import ClusterRegistry
    from ..server.tls import TlsListener

RESERVED_FILES = RESERVED_FILES_MAX // 2
"""The files that connections leave to the process: half of the reserve, so that clients of brokers leave some."""


async def serve_control(
    registry: ClusterRegistry,
    defaults: Options,
    listeners: list[trio.SocketListener],
    token: str | None,
    *,
    is_local: bool,
    tls: TlsListener | None = None,
) -> None:
    """Serve at listeners until cancelled; `is_local`: only this machine can reach them. With `tls` it is HTTPS."""
    config = Config()
    config.accesslog = config.errorlog = None
    config.include_server_header = False
    config.keep_alive_timeout = config.ssl_handshake_timeout = HEAD_S
    app = wrap_app(
        cast("Any", create_app(registry, defaults, token, is_local=is_local)), config.wsgi_max_body_size, "asgi"
    )
    context = WorkerContext(None)
    open_connections: set[HttpConnection] = set()

    async def serve(connection: HttpConnection) -> None:
        open_connections.add(connection)
        try:
            await TCPServer(app, config, context, ConnectionState({CONNECTION: connection}), cast("Any", connection))
        except Exception as error:  # noqa: BLE001 - a bug ends one connection
            registry.log(f"control port: a connection has failed: {type(error).__name__}: {error}")
        finally:
            open_connections.remove(connection)

    async with trio.open_nursery() as nursery:

        def accept(client: socket.socket, _: tuple[Any, ...]) -> None:
            if tls is None:
                nursery.start_soon(serve, HttpConnection(client))
            else:
                nursery.start_soon(serve, TlsHttpConnection(client, tls, registry.log))

        for listener in listeners:
            where = f"control port {address_of([listener])}"
            nursery.start_soon(
                partial(accept_forever, reserved_files=RESERVED_FILES), listener.socket, where, registry.log, accept
            )
        try:
            await trio.sleep_forever()
        finally:
            for listener in listeners:
                listener.socket.close()
            for connection in open_connections:
                connection.abort()
