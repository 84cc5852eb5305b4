"""A simulated cluster of two nodes, for puppets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from koordinator import Simulation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator import Cluster


@pytest.fixture
def simulation() -> Simulation:
    return Simulation(topics={"t": 4}, brokers=2)


@pytest.fixture
def cluster(simulation: Simulation) -> Iterator[Cluster]:
    with simulation as cluster:
        yield cluster
