"""Fixtures for tests with real clients."""

from __future__ import annotations

from pathlib import Path

from clients.client_fixtures import forgiving, join, leader, no_litter, rival

__all__ = ["join", "leader", "no_litter", "rival"]

pytest_collection_modifyitems = forgiving(Path(__file__).parent)
