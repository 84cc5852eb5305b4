"""The clients of docs/clients.md still do what its table says; `make suites` plays those that have to be compiled."""

from __future__ import annotations

import json

import pytest
from clients.line_clients import TOOLS
from clients.lives import LIVES, lived
from scenes.documentation import ROOT

PLAYS = json.loads((ROOT / "tests" / "suites" / "clients.json").read_text())

COMPILED = ("confluent-js", "rust-rdkafka", "rskafka")


def marked(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.slow if TOOLS[kind] == "python" else pytest.mark.needs(TOOLS[kind])


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param(kind, name, marks=marked(kind))
        for kind in LIVES
        if kind not in COMPILED
        for name in LIVES[kind]
        # a play that fails waits for its limit
        if not PLAYS[kind]["plays"][name].startswith("no: ")
    ],
)
def test_a_client_does_what_the_table_says(kind: str, name: str) -> None:
    assert lived(kind, name) == PLAYS[kind]["plays"][name]
