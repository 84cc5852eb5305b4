"""docs/assertions.md names every wait and assertion, and every check with its title."""

from __future__ import annotations

from pathlib import Path

import pytest

from koordinator.emulator.trace.vocabulary import CHECKS, REBALANCE_CAUSES
from koordinator.handles.checks import Checks

PAGE = (Path(__file__).parents[2] / "docs" / "assertions.md").read_text("utf-8")


@pytest.mark.parametrize("name", [name for name in vars(Checks) if not name.startswith("_")])
def test_every_method_is_explained(name: str) -> None:
    assert f"{name}(" in PAGE


@pytest.mark.parametrize("check", CHECKS)
def test_every_check_is_explained(check: str) -> None:
    assert sum(line.startswith(f"| {check} |") for line in PAGE.splitlines()) == 1


def test_every_cause_is_named() -> None:
    assert all(cause in PAGE for cause in REBALANCE_CAUSES)
