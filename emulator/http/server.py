"""The HTTP API on a port: Hypercorn on Trio, in the process of its clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from hypercorn.config import Config
from hypercorn.trio import serve

from .app import create_app

if TYPE_CHECKING:
    import trio

    from ..config.options import Options
    from ..server.cluster_registry import ClusterRegistry


async def serve_control(
    registry: ClusterRegistry,
    defaults: Options,
    listeners: list[trio.SocketListener],
    token: str | None,
    *,
    is_local: bool,
) -> None:
    """Serve at listeners until cancelled; `is_local`: only this machine can reach them."""
    config = Config()
    # bound by the caller: Hypercorn's own errors do not name the address
    config.bind = [f"fd://{listener.socket.detach()}" for listener in listeners]
    config.accesslog = config.errorlog = None
    config.graceful_timeout = 0.0
    config.include_server_header = False
    await serve(cast("Any", create_app(registry, defaults, token, is_local=is_local)), config)
