"""docs/fidelity.md names the scenarios of each edge."""

from __future__ import annotations

import re

from scenarios.registry import load
from scenes.documentation import ROOT

PAGE = (ROOT / "docs" / "fidelity.md").read_text(encoding="utf-8")
_, _, EDGES = PAGE.partition("## Edges, and the scenarios that compare them\n")
NAMED = set(re.findall(r"\b[EGT]-\d{3}\b", EDGES.partition("\n## ")[0]))
FIRST = "E-601"


def test_every_named_scenario_exists() -> None:
    assert NAMED - load().keys() == set()


def test_every_scenario_of_an_edge_is_named() -> None:
    scenarios = {number for number in load() if number.startswith("E-") and number >= FIRST}
    assert len(scenarios) > 50
    assert scenarios - NAMED == set()
