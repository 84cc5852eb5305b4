"""Where clients come in: the sockets that a listener of a node listens on, and how their port is kept."""

from __future__ import annotations

import errno
import ipaddress
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from ..broker.listeners import host_port

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True, eq=False)
class ListeningSocket:
    """Where clients come in: a listener of a node, and the sockets it listens on."""

    node_id: int
    listener: str
    sockets: Sequence[trio.SocketListener]


async def listen(host: str, port: int) -> list[trio.SocketListener]:
    """Listeners on every address of a host, all on one port; port 0 is any free one, on the first address.

    Raises OSError that says what is wrong where.
    """
    where = f"cannot listen on {host_port(host, port)}"
    try:
        listeners = await trio.open_tcp_listeners(port, host=host)
    except OSError as error:
        raise OSError(error.errno or errno.EINVAL, f"{where}: {error.strerror or error}") from error
    except (UnicodeError, ValueError) as error:
        # a name that cannot even be looked up
        raise OSError(errno.EINVAL, f"{where}: {error}") from error
    if port == 0:
        # each address would have a port of its own; clients are told only one
        for listener in listeners[1:]:
            await listener.aclose()
        del listeners[1:]
    return listeners


def port_of(listeners: Sequence[trio.SocketListener]) -> int:
    """The port that listeners listen on."""
    return int(listeners[0].socket.getsockname()[1])


def address_of(listeners: Sequence[trio.SocketListener]) -> str:
    """`host:port` that listeners listen on; of several the first."""
    host, port = listeners[0].socket.getsockname()[:2]
    return host_port(host, port)


def keep_port(listener: trio.SocketListener) -> Callable[[], socket.socket]:
    """What, called once the listener is closed, keeps its port from others: a socket that is bound and does not listen.

    Who connects there is refused. `listen_again` makes a listener of it.
    """
    ours = listener.socket
    family, kind, protocol, address = ours.family, ours.type, ours.proto, ours.getsockname()

    def keep() -> socket.socket:
        kept = socket.socket(family, kind, protocol)
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            kept.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        kept.bind(address)
        # from now on nobody else may bind it either
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        return kept

    return keep


def listen_again(kept: socket.socket) -> trio.SocketListener:
    """Listen on a port that was kept."""
    # although connections from before may linger there
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.listen()
    return trio.SocketListener(trio.socket.from_stdlib_socket(kept))


def java_host(address: str) -> str:
    """An IP address as Java's `InetAddress.toString` prints it, which is what Kafka shows as a member's host."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return f"/{address}"
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return f"/{parsed.ipv4_mapped}"
        return "/" + ":".join(f"{int(word, 16):x}" for word in parsed.exploded.split(":"))
    return f"/{parsed}"
