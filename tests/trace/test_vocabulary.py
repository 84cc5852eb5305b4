"""The vocabulary of the trace is complete, and its JSON export is current."""

from __future__ import annotations

import ast
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from koordinator.emulator.core.groups.causes import Cause
from koordinator.emulator.core.groups.classic.group import ClassicGroupState
from koordinator.emulator.core.groups.classic.transitions import TRANSITIONS
from koordinator.emulator.core.transactions.transitions import TransactionCause
from koordinator.emulator.trace import vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator

TRACE = Path(__file__).parents[2] / "emulator" / "trace"

PREPARING = ClassicGroupState.PREPARING_REBALANCE


def trees(folder: Path) -> Iterator[ast.Module]:
    """Parse the modules of a folder."""
    for path in sorted(folder.rglob("*.py")):
        yield ast.parse(path.read_text(encoding="utf-8"))


def test_the_json_export_is_current() -> None:
    path = files("koordinator.emulator.trace") / "vocabulary.json"
    assert path.read_text(encoding="utf-8") == vocabulary.vocabulary_json(), "vocabulary.json is stale: make docs"


def test_group_states_are_those_of_the_core() -> None:
    assert set(vocabulary.GROUP_STATES) == {state.value for state in ClassicGroupState}


def test_every_cause_of_the_core_is_declared() -> None:
    causes = {cause.value for cause in Cause}
    assert causes <= {*vocabulary.REBALANCE_CAUSES, *vocabulary.OTHER_CAUSES}
    starts = {cause.value for (_, cause), state in TRANSITIONS.items() if state is PREPARING}
    assert starts <= {*vocabulary.REBALANCE_CAUSES}
    assert {cause.value for cause in TransactionCause} == {*vocabulary.TRANSACTION_CAUSES}


def test_every_kind_of_line_is_declared() -> None:
    kinds = {
        value.value
        for tree in trees(TRACE)
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and key.value == "kind" and isinstance(value, ast.Constant)
    }
    # a fault event has its kind in a field, `kind: Literal[...]`
    kinds |= {
        name.value
        for tree in trees(TRACE)
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "kind"
        for name in ast.walk(node.annotation)
        if isinstance(name, ast.Constant)
    }
    assert {*vocabulary.KINDS} - kinds <= {"test"}, "the pytest plugin writes the kind `test`"
    assert kinds <= {*vocabulary.KINDS}


def test_no_cause_is_declared_twice() -> None:
    assert not {*vocabulary.REBALANCE_CAUSES} & {*vocabulary.OTHER_CAUSES}
