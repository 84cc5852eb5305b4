"""Fixtures of the coordinator's tests."""

from __future__ import annotations

import pytest
from scenes.play import Play


@pytest.fixture
def play() -> Play:
    """A coordinator without initial delay, and nobody in it yet."""
    return Play()
