"""The names and the version of the package."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest

import koordinator

if TYPE_CHECKING:
    from pathlib import Path


def test_the_version_is_declared_once(wheel: Path) -> None:
    assert koordinator.__version__ == version("koordinator")
    assert wheel.name == f"koordinator-{koordinator.__version__}-py3-none-any.whl"


def test_the_public_names_are_those_listed() -> None:
    for name in koordinator.__all__:
        assert getattr(koordinator, name) is not None
    assert set(koordinator.__all__) <= set(dir(koordinator))
    assert koordinator.Emulator.__module__ == "koordinator.handles.emulator"
    with pytest.raises(AttributeError, match="module 'koordinator' has no attribute 'Broker'"):
        _ = koordinator.Broker
