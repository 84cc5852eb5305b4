"""A server with one cluster, and two ways to it: plain HTTP, and the handle."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import httpx
import pytest
from brokers.http_server import WAIT_S, Serving

from koordinator.handles.remote import Remote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from brokers.http_server import Served


@pytest.fixture
def served() -> Iterator[Served]:
    with Serving(seed=7, topics={"orders": 2}) as served:
        yield served


@pytest.fixture
def http(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.url, trust_env=False, timeout=WAIT_S) as client:
        yield client


@pytest.fixture
def server(served: Served) -> Iterator[Remote]:
    with Remote(served.url) as server:
        yield server


@pytest.fixture
def free_ports() -> range:
    """Return three consecutive free ports."""
    for first in range(23_000, 32_000, 3):
        sockets = [socket.socket() for _ in range(3)]
        try:
            for number, each in enumerate(sockets):
                each.bind(("127.0.0.1", first + number))
        except OSError:
            continue
        finally:
            for each in sockets:
                each.close()
        return range(first, first + 3)
    raise AssertionError("no three free ports in a row")
