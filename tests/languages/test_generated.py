"""The generated sources of the clients of other languages are current, and those written by hand are small."""

from __future__ import annotations

import json

import pytest
from client_model import BY_HAND, VERBS, operations
from client_sources import CLIENTS, FILES, RENEW

from koordinator.version import __version__

LINES_MAX = 600
"""The most lines of code of a client that are written by hand."""

COMMENT = ("//", "/**", "*")
"""The beginnings of lines that are no code."""

BY_HAND_SOURCES = {"go": "*.go", "node": "src/*.js"}
"""The modules of each client, generated ones included."""


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_the_generated_sources_are_current(name: str) -> None:
    assert (CLIENTS / name).read_text(encoding="utf-8") == FILES[name](), f"clients/{name} is not current: {RENEW}"


@pytest.mark.parametrize("language", BY_HAND_SOURCES)
def test_the_part_that_is_written_by_hand_is_small(language: str) -> None:
    sources = [
        path
        for path in (CLIENTS / language).glob(BY_HAND_SOURCES[language])
        if path.relative_to(CLIENTS).as_posix() not in FILES
    ]
    lines = [line.strip() for path in sources for line in path.read_text(encoding="utf-8").splitlines()]
    assert 0 < len([line for line in lines if line and not line.startswith(COMMENT)]) <= LINES_MAX


def test_every_operation_is_a_method_once() -> None:
    generated = {verb.operation for verb in VERBS}
    assert generated | BY_HAND.keys() == operations().keys()


def test_the_package_has_the_version_of_the_emulator() -> None:
    assert json.loads((CLIENTS / "node" / "package.json").read_text(encoding="utf-8"))["version"] == __version__
