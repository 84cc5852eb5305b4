"""Fixtures of the tests of streams groups."""

from __future__ import annotations

import pytest
from scenes.streams_play import StreamsPlay


@pytest.fixture
def play() -> StreamsPlay:
    """Return a coordinator without groups."""
    return StreamsPlay()
