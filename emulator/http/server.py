"""The HTTP API on a port: Hypercorn on Trio, in the process of its clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import trio
from hypercorn.config import Config
from hypercorn.trio import serve

from ..broker.listeners import host_port, is_loopback
from ..server.listening_sockets import listen, port_of
from .app import create_app

if TYPE_CHECKING:
    from ..config.options import Options
    from ..server.cluster_registry import ClusterRegistry


async def serve_control(
    registry: ClusterRegistry,
    defaults: Options,
    *,
    host: str,
    port: int,
    token: str | None,
    task_status: trio.TaskStatus[str],
) -> None:
    """Serve until cancelled; report the address, `http://127.0.0.1:9080`. Raises OSError if it cannot listen."""
    listeners = await listen(host, port)
    url = f"http://{host_port(host, port_of(listeners))}"
    config = Config()
    # bind here: Hypercorn's own errors do not name the address
    config.bind = [f"fd://{listener.socket.detach()}" for listener in listeners]
    config.accesslog = config.errorlog = None
    config.graceful_timeout = 0.0
    config.include_server_header = False
    async with trio.open_nursery() as nursery:
        app = cast("Any", create_app(registry, defaults, token, is_local=is_loopback(host)))
        await nursery.start(serve, app, config)
        task_status.started(url)
