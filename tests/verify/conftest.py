"""Fixtures for hand-written traces."""

from __future__ import annotations

import pytest
from scenes.trace_tales import Tale


@pytest.fixture
def tale() -> Tale:
    return Tale()
