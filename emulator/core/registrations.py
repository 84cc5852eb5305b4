"""The registrations of brokers, with the addresses of their listeners."""

from __future__ import annotations

from dataclasses import dataclass

PLAINTEXT = "PLAINTEXT"
"""The name of the listener that every broker has."""


@dataclass(slots=True)
class Endpoint:
    """The address clients connect to. The port is 0 until the listener is bound."""

    host: str
    port: int


@dataclass(slots=True)
class Registration:
    """A broker of the cluster: its endpoints by listener name; `is_up` if it is not fenced."""

    node_id: int
    endpoints: dict[str, Endpoint]
    rack: str | None = None
    is_up: bool = True
