"""Fixtures of the coordinator's tests."""

from __future__ import annotations

import pytest
from scenes.play import Play


@pytest.fixture
def play() -> Play:
    """Return a coordinator without members and initial delay."""
    return Play()
