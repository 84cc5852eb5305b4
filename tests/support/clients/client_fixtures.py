"""Fixtures of tests with real clients: members that join groups of a cluster, and end with the test.

The conftest.py of such a folder imports them.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest
from clients.consumers import WARNINGS_OF_CLIENTS, Members
from clients.raw_member import Rival

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from koordinator import Cluster


def forgiving(folder: Path) -> Callable[[list[pytest.Item]], None]:
    """Return a `pytest_collection_modifyitems` that ignores known client warnings in this folder only."""

    def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
        for item in items:
            if item.path.is_relative_to(folder):
                for warning in WARNINGS_OF_CLIENTS:
                    item.add_marker(pytest.mark.filterwarnings(warning))

    return pytest_collection_modifyitems


@pytest.fixture(scope="module", autouse=True)
def no_litter() -> Iterator[None]:
    """Collect garbage of the clients while their warnings are ignored, and not in another test."""
    yield
    gc.collect()


@pytest.fixture
def join(koordinator: Cluster) -> Iterator[Members]:
    """Return a factory of real consumers in groups of the cluster `koordinator`."""
    with Members(koordinator) as members:
        yield members


@pytest.fixture
def leader(koordinator: Cluster, join: Members) -> Iterator[Rival]:
    """Return a dynamic member that assigns nothing and leaves on request, at the latest before the clients do."""
    del join  # clients that wait for the group would otherwise wait for its leader when they end
    with Rival(koordinator.bootstrap_servers) as rival:
        yield rival
        rival.leave()


@pytest.fixture
def rival(koordinator: Cluster) -> Iterator[Rival]:
    """Return a static member with the instance id "one"."""
    with Rival(koordinator.bootstrap_servers, "one") as rival:
        yield rival
