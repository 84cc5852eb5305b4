"""Sweeps: grids of cells, and one row for each run."""

from __future__ import annotations

import pytest

from koordinator.lab.cells import Cell, play
from koordinator.lab.load import Load
from koordinator.lab.schemes import SCHEMES
from koordinator.lab.situations import SITUATIONS
from koordinator.lab.sweep import cell_of, cells_of, key_of, parse_axis, row_of

CELL = Cell("eager", "crash", Load(config=(("group.max.size", 5),)))


def test_a_grid_has_every_combination_with_every_seed() -> None:
    grid = dict(map(parse_axis, ("scheme=eager,static", "situation=crash", "members=3,10", "session_timeout_s=10")))
    cells = list(cells_of(grid, seeds=2))
    assert [(each.scheme, each.load.members, each.load.partitions, each.load.seed) for each in cells] == [
        (scheme, members, 4 * members, seed) for scheme in ("eager", "static") for members in (3, 10) for seed in (1, 2)
    ]
    assert {each.load.session_timeout_s for each in cells} == {10}


def test_a_grid_without_axes_has_every_scheme_and_situation() -> None:
    cells = list(cells_of({}, seeds=1))
    assert {(each.scheme, each.situation) for each in cells} == {(one, two) for one in SCHEMES for two in SITUATIONS}
    assert {each.load for each in cells} == {Load()}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("member=3", "did you mean 'members'?"),
        ("scheme=eagr", "unknown scheme 'eagr'"),
        ("members=x", "members=x: must be a number"),
        ("members", "expected NAME=VALUE"),
    ],
)
def test_a_wrong_axis_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        parse_axis(text)


def test_a_key_stands_for_its_cell() -> None:
    assert cell_of(key_of(CELL)) == CELL


@pytest.mark.slow
def test_a_row_has_the_figures_of_the_run_and_a_digest_that_repeats() -> None:
    row = row_of(key_of(CELL))
    assert row["idle_s"] == play(CELL).idle_s
    assert "error" not in row
    assert row == row_of(key_of(CELL))
    assert row["digest"] != row_of(key_of(Cell("eager", "crash", Load(seed=2))))["digest"]


def test_a_run_that_fails_has_its_error() -> None:
    row = row_of(key_of(Cell("eager", "crash", Load(session_timeout_s=0))))
    assert str(row["error"]).startswith("ValueError: session_timeout_ms must be")
    assert "idle_s" not in row
