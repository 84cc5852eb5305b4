"""The names and the version of the package, and the names of tests."""

from __future__ import annotations

import re
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import pytest

import koordinator

TESTS = Path(__file__).parents[1]


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


def test_a_file_or_class_of_tests_has_a_name_of_its_own() -> None:
    files = sorted(TESTS.rglob("test_*.py"))
    classes = [
        name for file in files for name in re.findall(r"^class (Test\w+)", file.read_text("utf-8"), re.MULTILINE)
    ]
    names = Counter([file.name for file in files] + classes)
    assert [name for name, count in names.items() if count > 1] == []
