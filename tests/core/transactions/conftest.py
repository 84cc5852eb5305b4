"""Fixtures of the transaction coordinator's tests."""

from __future__ import annotations

import pytest
from scenes.transaction_play import TransactionPlay


@pytest.fixture
def play() -> TransactionPlay:
    """Return a coordinator of the newest release, with transaction version 2."""
    return TransactionPlay()


@pytest.fixture
def old() -> TransactionPlay:
    """Return a coordinator of release 3.9."""
    return TransactionPlay(kafka_version="3.9")


@pytest.fixture(params=["4.4", "3.9"])
def both(request: pytest.FixtureRequest) -> TransactionPlay:
    """Return a coordinator of each of two releases."""
    return TransactionPlay(kafka_version=request.param)
