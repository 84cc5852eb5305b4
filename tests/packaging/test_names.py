"""The names and the version of the package, and the names of tests."""

from __future__ import annotations

import re
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import pytest

import koordinator

TESTS = Path(__file__).parents[1]


def test_the_version_is_declared_once(wheel: Path) -> None:
    assert koordinator.__version__ == version("koordinator")
    assert wheel.name == f"koordinator-{koordinator.__version__}-py3-none-any.whl"


def test_the_reference_lists_every_public_name() -> None:
    page = (TESTS.parent / "docs" / "api.md").read_text("utf-8")
    listed = set(re.findall(r"`(\w+)`", page.partition("| names")[2].partition(":::")[0]))
    assert {name for name in koordinator.__all__ if name not in listed} == {"__version__"}


@pytest.mark.slow
def test_the_public_names_are_those_listed() -> None:
    for name in koordinator.__all__:
        assert getattr(koordinator, name) is not None
    assert set(koordinator.__all__) <= set(dir(koordinator))
    assert koordinator.Emulator.__module__ == "koordinator.handles.emulator"
    with pytest.raises(AttributeError, match="module 'koordinator' has no attribute 'Broker'"):
        _ = koordinator.Broker


def test_every_timeout_of_a_wait_is_a_timeout_error() -> None:
    timeouts = {name for name in koordinator.__all__ if name.endswith("Timeout")}

    assert timeouts == {"GroupTimeout", "HoldTimeout", "KoordinatorTimeout", "PuppetTimeout", "TransactionTimeout"}
    for name in timeouts:
        with pytest.raises(TimeoutError, match="late") as raised:
            raise getattr(koordinator, name)("late")
        assert isinstance(raised.value, koordinator.KoordinatorTimeout)
        assert isinstance(raised.value, AssertionError), "pytest reports a failure"


def test_a_name_that_needs_an_extra_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "docker", None)
    monkeypatch.delitem(sys.modules, "koordinator.handles.docker", raising=False)

    with pytest.raises(ImportError, match=r"KoordinatorContainer needs docker, .*pip install .*\[docker\]"):
        _ = koordinator.KoordinatorContainer


def test_a_file_or_class_of_tests_has_a_name_of_its_own() -> None:
    files = sorted(TESTS.rglob("test_*.py"))
    classes = [
        name for file in files for name in re.findall(r"^class (Test\w+)", file.read_text("utf-8"), re.MULTILINE)
    ]
    names = Counter([file.name for file in files] + classes)
    assert [name for name, count in names.items() if count > 1] == []
