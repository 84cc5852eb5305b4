"""The modules of `examples/demo.py`, as fixtures, and the false ones of its claims."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    for name in [name for name in sys.modules if name == "demo" or name.split(".")[0] == "bouncing"]:
        del sys.modules[name]


@pytest.fixture
def story() -> ModuleType:
    return import_module("bouncing.story")


@pytest.fixture
def verdicts() -> ModuleType:
    return import_module("bouncing.verdicts")


def false_claims(found: Any) -> list[str]:
    return [each.claim for each in found if not each.is_true]
