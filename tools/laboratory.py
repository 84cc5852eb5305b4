"""The run of the rebalance laboratory that docs/lab.md shows: `docs/lab.json`, and the tables made from it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tables import table

from koordinator.lab.advice import advice
from koordinator.lab.cells import Cell, CellResult
from koordinator.lab.claims import CLAIMS
from koordinator.lab.figures import Figures
from koordinator.lab.load import Load
from koordinator.lab.matrix import COLUMNS, heading, plain, play_matrix
from koordinator.lab.schemes import SCHEMES
from koordinator.lab.situations import SITUATIONS
from koordinator.lab.workers.backlog import WorkFigures
from koordinator.lab.workers.comparison import WORK_COLUMNS, WORK_SCHEMES, WORK_SITUATIONS, figure_text, play_work

LAB = Path(__file__).parents[1] / "docs" / "lab.json"

FIGURES = ("rebalances", "balance_s", "stopped_s", "idle_s", "moved", "reprocessed")
"""The figures with a table in the document."""


def played() -> str:
    """Return the run as text: the whole matrix, the comparison of work, and the figures of each claim."""
    matrix = list(play_matrix(SCHEMES, tuple(SITUATIONS), Load()))
    claims = {}
    for name, claim in CLAIMS.items():
        finding = claim.check()
        claims[name] = {"verdict": finding.verdict, "figures": finding.figures}
    work = [
        {"situation": situation, "scheme": scheme, "figures": asdict(play_work(scheme, situation))}
        for situation in WORK_SITUATIONS
        for scheme in WORK_SCHEMES
    ]
    return json.dumps({**plain(matrix), "work": work, "claims": claims}, indent=1) + "\n"


def read() -> dict[str, Any]:
    """Return the run."""
    run: dict[str, Any] = json.loads(LAB.read_text(encoding="utf-8"))
    return run


def claims_table() -> str:
    """Return the claims with verdicts."""
    run = read()["claims"]
    rows = []
    for name, claim in CLAIMS.items():
        verdict = f"{run[name]['verdict']}: {claim.condition}" if claim.condition else run[name]["verdict"]
        rows.append([f"{claim.text} ({claim.place})", run[name]["figures"], verdict, f"`{name}`"])
    return table(["Claim", "Figures", "Verdict", "Check"], rows)


def results() -> list[CellResult]:
    """Return the cells of the run."""
    return [
        CellResult(Cell(each["scheme"], each["situation"], Load()), tuple(Figures(**of) for of in each["figures"]))
        for each in read()["cells"]
    ]


def answers_table() -> str:
    """Return the advice, with the figures that it rests on."""
    rows = ([row.condition, row.choice, row.figures] for row in advice(results()))
    return table(["If \u2026", "then", "because"], rows)


def _cells() -> dict[tuple[str, str], dict[str, float]]:
    return {(each["situation"], each["scheme"]): each["figures"][0] for each in read()["cells"]}


def matrix_tables() -> str:
    """Return a table for each of the figures."""
    cells = _cells()
    parts = []
    for name in FIGURES:
        rows = [
            [situation, *(COLUMNS[name].text(cells[situation, scheme][name]) for scheme in SCHEMES)]
            for situation in SITUATIONS
        ]
        parts.append(f"### {heading(name).capitalize()}\n\n" + table(["", *SCHEMES], rows))
    return "\n".join(parts)


def work_figures() -> dict[tuple[str, str], WorkFigures]:
    """Return the figures of work by situation and scheme."""
    return {(each["situation"], each["scheme"]): WorkFigures(**each["figures"]) for each in read()["work"]}


def work_table() -> str:
    """Return a table with a row for each situation and scheme of work."""
    rows = [
        [WORK_SITUATIONS[situation].summary, scheme, *(figure_text(name, getattr(of, name)) for name in WORK_COLUMNS)]
        for (situation, scheme), of in work_figures().items()
    ]
    headings = (f"{column.heading} ({column.unit})" for column in WORK_COLUMNS.values())
    return table(["", "scheme", *headings], rows)
