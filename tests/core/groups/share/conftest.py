"""Fixtures of the tests of share groups."""

from __future__ import annotations

import pytest
from scenes.share_play import SharePlay


@pytest.fixture
def play() -> SharePlay:
    """Return a coordinator without groups."""
    return SharePlay()
