"""Listening sockets of the nodes, and the reservation of their ports while a node is down."""

from __future__ import annotations

import errno
import ipaddress
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import trio

from ..broker.listeners import host_port

try:
    import resource
except ImportError:
    # Windows
    resource = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .tls import TlsListener


RESERVED_FILES_MAX = 16
"""The most files that connections of brokers leave to the rest of the process: late imports, logs, HTTP."""

ACCEPTED_TOGETHER = 64
"""Connections accepted before clients are served."""

ACCEPT_PAUSE_S = 0.1
"""The pause after a failed accept: usually the process has no more files."""


@dataclass(frozen=True, slots=True, eq=False)
class ListeningSocket:
    """A listener of a node, with one socket per address of its host; without `tls` it speaks plain text."""

    node_id: int
    listener: str
    sockets: Sequence[trio.SocketListener]
    tls: TlsListener | None = None


async def listen(host: str, port: int) -> list[trio.SocketListener]:
    """Listen on every address of a host, on one port; port 0 is any free port of the first address.

    Raises OSError with host, port and cause.
    """
    where = f"cannot listen on {host_port(host, port)}"
    try:
        listeners = await trio.open_tcp_listeners(port, host=host)
    except OSError as error:
        remedy = "; choose another port, or 0 for a free one" if error.errno == errno.EADDRINUSE else ""
        raise OSError(error.errno or errno.EINVAL, f"{where}: {error.strerror or error}{remedy}") from error
    except (UnicodeError, ValueError) as error:
        # the host is not a valid name
        raise OSError(errno.EINVAL, f"{where}: {error}") from error
    if port == 0:
        # each address has another port, and clients get only one
        for listener in listeners[1:]:
            await listener.aclose()
        del listeners[1:]
    return listeners


def port_of(listeners: Sequence[trio.SocketListener]) -> int:
    """Return the port of listeners."""
    return int(listeners[0].socket.getsockname()[1])


def address_of(listeners: Sequence[trio.SocketListener]) -> str:
    """Return `host:port` of the first listener."""
    host, port = listeners[0].socket.getsockname()[:2]
    return host_port(host, port)


def reserve_port(listener: trio.SocketListener) -> Callable[[], socket.socket]:
    """Return a function that, once the listener is closed, binds its port with a socket that does not listen.

    The port refuses connections until `listen_again`, and no other process can bind it.
    """
    closing = listener.socket
    family, kind, protocol, address = closing.family, closing.type, closing.proto, closing.getsockname()

    def reserve() -> socket.socket:
        reserved = socket.socket(family, kind, protocol)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            reserved.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        reserved.bind(address)
        # exclusive from now on
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        return reserved

    return reserve


def listen_again(reserved: socket.socket) -> trio.SocketListener:
    """Listen on a reserved port."""
    # earlier connections may linger in TIME_WAIT
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.listen()
    return trio.SocketListener(trio.socket.from_stdlib_socket(reserved))


async def accept_forever(
    listening: trio.socket.SocketType,
    where: str,
    log: Callable[[str], None],
    serve: Callable[[socket.socket, tuple[Any, ...]], None],
    reserved_files: int = RESERVED_FILES_MAX,
) -> None:
    """Pass each accepted connection and its address to `serve`, until cancelled; out of files, try again later.

    Connections are refused that leave the process fewer than `reserved_files` files, or an eighth of a small limit.
    `log` gets one line with the cause until a connection is accepted again; `where` names the listener in it.
    """
    if listening.fileno() < 0:
        # closed before it was served: the server stops as it starts
        return
    # the same file: a copy could not be made when the process has no more
    accepting = socket.socket(listening.family, listening.type, fileno=listening.fileno())
    accepting.settimeout(0)
    try:
        is_refusing = False
        while True:
            await trio.lowlevel.wait_readable(accepting)
            for _ in range(ACCEPTED_TOGETHER):
                try:
                    client, address = accepting.accept()
                    _refuse_without_reserve(client, reserved_files)
                except BlockingIOError:
                    break
                except OSError as error:
                    if not is_refusing:
                        log(f"{where}: connections are refused: {error.strerror or error}")
                    is_refusing = True
                    await trio.sleep(ACCEPT_PAUSE_S)
                    break
                is_refusing = False
                serve(client, address)
    finally:
        accepting.detach()


def _refuse_without_reserve(client: socket.socket, reserved_files: int) -> None:
    """Close an accepted connection and raise OSError if it leaves the process too few files."""
    if resource is None:
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # the system assigns the lowest free number
    if limit - client.fileno() <= min(reserved_files, limit // 8):
        client.close()
        reason = f"the process may have {limit} open files, and has nearly as many; raise `ulimit -n`"
        raise OSError(errno.EMFILE, reason)


def java_host(address: str) -> str:
    """Return an IP address in the format of Java's `InetAddress.toString`, as Kafka shows a member's host."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return f"/{address}"
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return f"/{parsed.ipv4_mapped}"
        return "/" + ":".join(f"{int(word, 16):x}" for word in parsed.exploded.split(":"))
    return f"/{parsed}"
