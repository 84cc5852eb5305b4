"""The HTTP API on a port: Hypercorn on Trio, beside the clusters it controls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import trio
from hypercorn.config import Config
from hypercorn.trio import serve

from ..broker.listeners import host_port, is_loopback
from ..server.listening_sockets import listen, port_of
from .app import app_of

if TYPE_CHECKING:
    from ..config.options import Options
    from ..control.control import Control
    from ..server.cluster_registry import ClusterRegistry


async def serve_control(  # noqa: PLR0913 - one wish each
    fleet: ClusterRegistry,
    control: Control,
    defaults: Options,
    *,
    host: str,
    port: int,
    token: str | None,
    task_status: trio.TaskStatus[str],
) -> None:
    """Serve until cancelled; reports the address, `http://127.0.0.1:9080`. Raises OSError if nothing can listen."""
    listeners = await listen(host, port)
    url = f"http://{host_port(host, port_of(listeners))}"
    config = Config()
    # Hypercorn's own way to listen does not say where it could not
    config.bind = [f"fd://{listener.socket.detach()}" for listener in listeners]
    config.accesslog = config.errorlog = None
    config.graceful_timeout = 0.0
    config.include_server_header = False
    async with trio.open_nursery() as nursery:
        app = cast("Any", app_of(fleet, control, defaults, token, is_local=is_loopback(host)))
        await nursery.start(serve, app, config)
        task_status.started(url)
