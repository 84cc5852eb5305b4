"""Texts of clients in regular expressions: none compiles with Python's `re`, and every match takes linear time."""

from __future__ import annotations

import ast
import sys
import time
from pathlib import Path

import pytest

from koordinator.emulator.config.kafka_configs import ConfigKey, ConfigType
from koordinator.emulator.core import expressions
from koordinator.emulator.trace.vocabulary import sub_cause

OWN = {
    ("emulator/trace/vocabulary.py", "text"),
}
"""The expressions that are no literals: the table of client reasons."""

LINEAR_S = 10
"""The limit of the processor time. Backtracking over these texts would take hours."""


def patterns_of(path: Path) -> list[str]:
    """Return the sources of the patterns, except literals, that a module gives to `re`."""
    source = path.read_text()
    if "\nimport re\n" not in source:
        return []
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return [
        ast.unparse(call.args[0])
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "re"
        and call.func.attr != "escape"
        and not isinstance(call.args[0], ast.Constant)
    ]


def test_python_s_expressions_are_our_own() -> None:
    emulator = Path(expressions.__file__).resolve().parents[2]
    rooms = [emulator / "emulator", emulator / "wire"]
    modules = [path for room in rooms for path in room.rglob("*.py")]
    assert len(modules) > 100
    found = {(path.relative_to(emulator).as_posix(), text) for path in modules for text in patterns_of(path)}
    assert found == OWN


@pytest.mark.skipif(sys.version_info >= (3, 15), reason="google-re2 has no wheels for Python 3.15")
def test_a_hostile_expression_matches_in_linear_time() -> None:
    began = time.process_time()
    assert expressions.compiled("(a+)+$").fullmatch("a" * 100_000 + "b") is None
    assert time.process_time() - began < LINEAR_S


@pytest.mark.parametrize("unit", ["encountered from ", "metadata ", "rebalance failed due t"])
def test_a_long_client_reason_is_classified_in_linear_time(unit: str) -> None:
    began = time.process_time()
    sub_cause(unit * 5_000)
    assert time.process_time() - began < LINEAR_S


@pytest.mark.parametrize("text", ["1" * 300_000 + "x", "1" * 300_000, "." * 300_000, "-" * 300_000])
@pytest.mark.parametrize("kind", [ConfigType.DOUBLE, ConfigType.LONG, ConfigType.INT])
def test_a_long_config_value_is_parsed_in_linear_time(kind: ConfigType, text: str) -> None:
    began = time.process_time()
    problem = ConfigKey("some.ratio", kind, lowest="0", highest="1").problem(text)
    assert problem is not None
    assert time.process_time() - began < LINEAR_S
