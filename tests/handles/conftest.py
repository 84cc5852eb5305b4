"""A running cluster for tests that use no plugin fixture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from koordinator import Cluster, Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Emulator(topics={"orders": 4}, seed=7) as running:
        yield running
