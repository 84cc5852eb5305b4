"""Listeners of the nodes and their advertised addresses, configured as Kafka's `listeners` and `advertised.listeners`.

Every node has the listener PLAINTEXT and any named ones. Clients get the addresses of the listener that they connect
to. `listener.security.protocol.map`, or else its name, gives a listener its security protocol.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, TypeAlias

from koordinator.wire.values import value

from ..core.brokers import PLAINTEXT
from .authentication.protocols import checked_protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PORT_MAX = 65_535

LOOPBACK = "127.0.0.1"

_NAME = re.compile(r"(?:(?P<node>\d{1,6}):)?(?P<name>[A-Za-z0-9_]+)")
_PLACE = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^:\[\]\s]+)(?::(?P<port>\d{1,5}))?")


Places: TypeAlias = dict[tuple[int | None, str], tuple[str, int]]
"""Host and port by node, None for every node, and name of the listener."""


@value
class Listener:
    """A listener of a node: its address (port 0: any free port) and its advertised address (port 0: the bound one)."""

    name: str
    host: str
    port: int
    advertised_host: str
    advertised_port: int


class Listeners:
    """The listeners of every node.

    `listeners` and `advertised` map names to `HOST:PORT`: `NAME` for every node, or `2:NAME` for node 2. A port given
    for every node is the port of the first node; the next nodes get the next ports. Raises ValueError for an invalid
    name, host or port.

    The main listener, at `host` and `port`, is PLAINTEXT, or that of another `security` protocol. Beside it PLAINTEXT
    has a free port of loopback then: for tools, and for puppets.
    """

    def __init__(
        self,
        host: str,
        port: int,
        listeners: Mapping[str, str],
        advertised: Mapping[str, str],
        node_ids: Sequence[int],
        security: str = PLAINTEXT,
    ) -> None:
        self._positions = {node_id: position for position, node_id in enumerate(node_ids)}
        _check_port(port, str(port))
        self.main = checked_protocol(security)
        """The name of the main listener."""
        own: Places = {(None, PLAINTEXT): (LOOPBACK, 0), (None, self.main): (host, port)}
        self._places = {**own, **_parsed("listener", listeners, node_ids)}
        self._advertised = _parsed("advertised", advertised, node_ids)
        for node_id, name in self._advertised:
            known = {place[1] for place in self._places if node_id is None or place[0] in {None, node_id}}
            if name not in known:
                raise ValueError(f"advertised {name}: there is no listener of this name")
        for node_id in node_ids:
            self.of(node_id)

    def of(self, node_id: int) -> list[Listener]:
        """Return the listeners of a node, PLAINTEXT first."""
        listeners = []
        for name in dict.fromkeys(name for at, name in self._places if at in {None, node_id}):
            host, port = self._place(self._places, node_id, name) or ("", 0)
            advertised_host, advertised_port = self._place(self._advertised, node_id, name) or (advertised(host), 0)
            listeners.append(Listener(name, host, port, advertised_host, advertised_port))
        return listeners

    @property
    def names(self) -> list[str]:
        """The names of the listeners of all nodes."""
        return list(dict.fromkeys(name for _, name in self._places))

    @property
    def hosts(self) -> list[str]:
        """The hosts that clients of any listener are told, once each."""
        listeners = (listener for node_id in self._positions for listener in self.of(node_id))
        return list(dict.fromkeys(listener.advertised_host for listener in listeners))

    def _place(self, places: Places, node_id: int, name: str) -> tuple[str, int] | None:
        own, of_all = places.get((node_id, name)), places.get((None, name))
        if own is not None or of_all is None:
            return own
        host, port = of_all
        if port == 0:
            return host, 0
        first, own_port = next(iter(self._positions)), port + self._positions.setdefault(node_id, len(self._positions))
        _check_port(own_port, f"{port} for node {first} is {own_port} for node {node_id}")
        return host, own_port


def _parsed(kind: str, given: Mapping[str, str], node_ids: Sequence[int]) -> Places:
    places: Places = {}
    for key, place in given.items():
        named, placed = _NAME.fullmatch(key), _PLACE.fullmatch(place)
        if named is None:
            raise ValueError(f"{kind} {key!r}: must be NAME, or NODE:NAME")
        if placed is None:
            raise ValueError(f"{kind} {key}={place}: must be HOST:PORT")
        node_id = int(named["node"]) if named["node"] else None
        if node_id is not None and node_id not in node_ids:
            known = ", ".join(map(str, node_ids))
            raise ValueError(f"{kind} {key}: there is no node {node_id}; there are {known}")
        port = int(placed["port"] or 0)
        _check_port(port, f"{kind} {key}={place}")
        places[node_id, named["name"].upper()] = placed["host"].strip("[]"), port
    return places


def _check_port(port: int, given: str) -> None:
    if not 0 <= port <= PORT_MAX:
        raise ValueError(f"port {given}: must be from 0 to {PORT_MAX}")


def advertised(host: str) -> str:
    """Return the host to advertise by default: the bound host, or loopback for a wildcard address."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104


def host_port(host: str, port: int) -> str:
    """Return `host:port`, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback address or `localhost`."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
