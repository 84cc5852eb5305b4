"""docs/troubleshooting.md quotes messages that the program has, and docs/concepts.md explains each word once."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest
from scenes.documentation import ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
OURS = PAGE.partition("## From a client")[0] + PAGE.partition("## From the pipeline")[2]
MESSAGES = re.findall(r"^\| `([^`]+)` \|", OURS, re.MULTILINE)
FOLDERS = ("emulator", "wire", "facade", "fixtures", "pipeline")
THEIRS = ("JAVA_HOME",)


@cache
def texts() -> str:
    """Return all text of the program; a line break stands for each value that is put into a message."""
    found: list[str] = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.JoinedStr):
                    found.append(
                        "".join(str(part.value) if isinstance(part, ast.Constant) else "\n" for part in node.values)
                    )
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.append(node.value)
    return "\0".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("message", [each for each in MESSAGES if each not in THEIRS])
def test_each_message_of_ours_is_one_of_the_program(message: str) -> None:
    pieces = (re.escape(piece) for piece in message.split("…"))
    assert re.search("\n[^\0]*".join(pieces), texts()), message


def test_there_are_messages() -> None:
    assert len(MESSAGES) > 15


def test_each_word_is_explained_once() -> None:
    concepts = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    words = re.findall(r"^\| ([^|]+) \| .+ \| .*\|$", concepts, re.MULTILINE)
    assert len(set(words) - {"word"}) == sum(word != "word" for word in words) > 30
