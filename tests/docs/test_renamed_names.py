"""No page of the documentation uses a name of the release before; docs/upgrade.md lists them."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

import pytest
from scenes.documentation import PAGES, ROOT, blocks

from koordinator import handles
from koordinator.handles.renames import Renamed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

UPGRADE = ROOT / "docs" / "upgrade.md"

HANDLES = [
    kind
    for module in iter_modules(handles.__path__)
    for _, kind in inspect.getmembers(import_module(f"{handles.__name__}.{module.name}"), inspect.isclass)
    if kind.__module__.startswith(handles.__name__)
]

CURRENT = {name for kind in HANDLES for name, value in vars(kind).items() if not isinstance(value, Renamed)}

OLD_NAMES = {name for kind in HANDLES for name, value in vars(kind).items() if isinstance(value, Renamed)} - CURRENT
"""The old names of methods and properties, except those that another handle has today."""

OLD_ARGUMENTS = {
    (kind.__name__ if name == "__init__" else name, old)
    for kind in HANDLES
    for name, value in vars(kind).items()
    if inspect.isfunction(value)
    for old in getattr(value, "new_names", {})
}
"""The methods with the old names of their arguments."""

ONLY_OLD = {old for _, old in OLD_ARGUMENTS if old.endswith("_s")} | {"about"}
"""The arguments that are no words of anything else."""


def old_names_in(code: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute) and node.attr in OLD_NAMES:
            yield f".{node.attr}"
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            yield from (f"{called}({each.arg}=)" for each in node.keywords if (called, each.arg) in OLD_ARGUMENTS)


def test_the_table_of_renames_has_methods_and_arguments() -> None:
    assert {"puppet", "set_max_size", "believe"} <= OLD_NAMES
    assert {("Emulator", "about"), ("create_puppet", "heartbeat_interval_s"), ("fence", "instance")} <= OLD_ARGUMENTS
    found = list(old_names_in("group.puppet('a'); koordinator.Emulator(about={}); group.rule('x')"))
    assert sorted(found) == [".puppet", ".rule", "Emulator(about=)"]


@pytest.mark.parametrize(
    "code", [pytest.param(each.text, id=each.name) for each in blocks("python", "py") if each.page != UPGRADE]
)
def test_no_block_of_python_uses_a_renamed_name(code: str) -> None:
    assert list(old_names_in(code)) == []


@pytest.mark.parametrize("page", [each for each in PAGES if each not in {UPGRADE, ROOT / "CHANGELOG.md"}], ids=str)
def test_no_text_names_a_renamed_argument(page: Path) -> None:
    named = set(re.findall(r"`(\w+)(?:=[^`]*)?`", page.read_text(encoding="utf-8")))
    assert named & ONLY_OLD == set()
