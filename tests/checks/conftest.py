"""Fixtures for hand-written traces and for tests with real clients."""

from __future__ import annotations

from pathlib import Path

import pytest
from clients.client_fixtures import forgiving, join, leader, no_litter, rival
from scenes.trace_tales import Tale

__all__ = ["join", "leader", "no_litter", "rival"]

pytest_collection_modifyitems = forgiving(Path(__file__).parent)


@pytest.fixture
def tale() -> Tale:
    return Tale()
