"""Fixtures of the server's tests."""

from __future__ import annotations

import pytest

from koordinator.emulator.server import turns


@pytest.fixture(params=["epoll", "tasks"])
def waiting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for sockets by epoll, where there is one, and as systems without it do."""
    if request.param == "tasks":
        monkeypatch.setattr(turns, "EPOLL", None)
