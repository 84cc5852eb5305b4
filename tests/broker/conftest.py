"""Fixtures of the broker's tests."""

from __future__ import annotations

import pytest
from clients.frame_clients import Wire


@pytest.fixture
def wire() -> Wire:
    """A broker with topic t, without connections."""
    return Wire()
