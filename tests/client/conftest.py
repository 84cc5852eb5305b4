"""Scripted brokers and clients of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from brokers.admin_responses import TIMEOUT_S
from brokers.scripted_broker import Scripted

from koordinator.client.admin import Admin
from koordinator.client.connection import Address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def broker() -> Iterator[Scripted]:
    with Scripted() as scripted:
        yield scripted


@pytest.fixture
def other() -> Iterator[Scripted]:
    with Scripted(node_id=2) as scripted:
        yield scripted


@pytest.fixture
def admin() -> Iterator[Callable[..., Admin]]:
    """A factory of clients, which are closed after the test."""
    made: list[Admin] = []

    def make(*brokers: Scripted | Address, timeout_s: float = TIMEOUT_S) -> Admin:
        addresses = [Address(each.host, each.port) for each in brokers]
        made.append(Admin(addresses, timeout_s, "1"))
        return made[-1]

    yield make
    for each in made:
        each.close()
