"""What tests with real clients have: members that join the groups of a cluster, and end with the test.

A folder of such tests takes these into its conftest.py.
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
    """A `pytest_collection_modifyitems` that forgives the clients their warnings, in this folder only."""

    def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
        for item in items:
            if item.path.is_relative_to(folder):
                for warning in WARNINGS_OF_CLIENTS:
                    item.add_marker(pytest.mark.filterwarnings(warning))

    return pytest_collection_modifyitems


@pytest.fixture(scope="module", autouse=True)
def no_litter() -> Iterator[None]:
    """What the clients forgot is found while it is forgiven, and not in somebody else's test."""
    yield
    gc.collect()


@pytest.fixture
def join(koordinator: Cluster) -> Iterator[Members]:
    """Lets consumers of the real clients join groups of the cluster `koordinator`."""
    with Members(koordinator) as members:
        yield members


@pytest.fixture
def leader(koordinator: Cluster, join: Members) -> Iterator[Rival]:
    """A dynamic member that assigns nothing and goes nowhere until it is told to; at the latest before the clients."""
    del join  # clients that wait for the group would wait for its leader when they end
    with Rival(koordinator.bootstrap_servers) as rival:
        yield rival
        rival.leave()


@pytest.fixture
def rival(koordinator: Cluster) -> Iterator[Rival]:
    """A static member with the instance id "one"."""
    with Rival(koordinator.bootstrap_servers, "one") as rival:
        yield rival
