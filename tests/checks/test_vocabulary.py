"""The vocabulary of the trace is complete, and its JSON export is current."""

from __future__ import annotations

import ast
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from koordinator.emulator.core.groups.classic.group import ClassicGroupState
from koordinator.emulator.trace import vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]

CORE = ROOT / "emulator" / "core"

TRACE = ROOT / "emulator" / "trace"


def trees(folder: Path) -> Iterator[ast.Module]:
    """Parse the modules of a folder."""
    for path in sorted(folder.rglob("*.py")):
        yield ast.parse(path.read_text(encoding="utf-8"))


def texts(node: ast.expr) -> list[str]:
    """Return the string constants of an expression."""
    return [each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def core_causes() -> set[str]:
    """Return the causes that the core declares: the first argument of each `Reason`, and each `cause = …`."""
    found: set[str] = set()
    for tree in trees(CORE):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Reason":
                found.update(texts(node.args[0]))
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "cause":
                found.update(texts(node.value))
    return found


def test_the_json_export_is_current() -> None:
    path = files("koordinator.emulator.trace") / "vocabulary.json"
    assert path.read_text(encoding="utf-8") == vocabulary.vocabulary_json(), "vocabulary.json is stale: make docs"


def test_group_states_are_those_of_the_core() -> None:
    assert set(vocabulary.GROUP_STATES) == {state.value for state in ClassicGroupState}


def test_every_cause_of_the_core_is_declared() -> None:
    causes = core_causes()
    assert {"member_join", "session_expired", "joined", "protocol_change"} <= causes
    assert causes <= {*vocabulary.REBALANCE_CAUSES, *vocabulary.OTHER_CAUSES}


def test_every_kind_of_line_is_declared() -> None:
    kinds = {
        value.value
        for tree in trees(TRACE)
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and key.value == "kind" and isinstance(value, ast.Constant)
    }
    assert {*vocabulary.KINDS} - kinds <= {"test"}, "the pytest plugin writes the kind `test`"
    assert kinds <= {*vocabulary.KINDS}


def test_no_cause_is_declared_twice() -> None:
    assert not {*vocabulary.REBALANCE_CAUSES} & {*vocabulary.OTHER_CAUSES}
