"""Fixtures of the tests of consumer groups."""

from __future__ import annotations

import pytest
from scenes.consumer_play import ConsumerPlay


@pytest.fixture
def play() -> ConsumerPlay:
    """Return a coordinator without groups."""
    return ConsumerPlay()
