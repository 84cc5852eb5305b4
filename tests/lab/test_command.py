"""`koordinator lab`: its tables, its JSON and its page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from koordinator.cli.lab import lab
from koordinator.emulator.config.install_hint import install_hint
from koordinator.lab import claims
from koordinator.lab.claims import Claim, Finding
from koordinator.lab.matrix import COLUMNS
from koordinator.lab.schemes import SCHEMES
from koordinator.lab.situations import SITUATIONS
from koordinator.lab.sources import SOURCES
from koordinator.lab.sweep import row_of
from koordinator.lab.workers.comparison import WORK_COLUMNS, WORK_SCHEMES, WORK_SITUATIONS

if TYPE_CHECKING:
    from pathlib import Path

FEW = ("--scheme", "eager", "--scheme", "cooperative", "--situation", "newcomer", "--situation", "crash")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(lab, arguments)


def test_the_list_has_every_scheme_situation_and_figure() -> None:
    output = run("list").output
    of_work = (*WORK_SCHEMES, *WORK_SITUATIONS, *WORK_COLUMNS)
    for name in (*SCHEMES, *SITUATIONS, *COLUMNS, *of_work, *SOURCES):
        assert f"  {name} " in output


@pytest.mark.slow
def test_a_run_prints_a_table_for_each_situation() -> None:
    tables = run("run", *FEW).output.strip().split("\n\n")
    assert [table.split()[0] for table in tables] == ["newcomer", "crash"]
    for table in tables:
        heading, *rows = table.splitlines()
        assert "stopped (member-s)" in heading
        assert [row.split()[0] for row in rows] == ["eager", "cooperative"]
        assert len({len(line) for line in table.splitlines()}) == 1


@pytest.mark.slow
def test_a_comparison_is_a_matrix_of_one_figure() -> None:
    lines = run("compare", *FEW, "--figure", "moved").output.splitlines()
    assert [line.split() for line in lines] == [
        ["moved", "eager", "cooperative"],
        ["newcomer", "6", "3"],
        ["crash", "4", "4"],
    ]


def test_work_is_compared_in_a_table_for_each_situation() -> None:
    load = ("--members", "2", "--partitions", "1", "--records", "4", "--scheme", "eager", "--scheme", "share")
    result = run("work", *load, "--situation", "quiet", "--situation", "slow-member", "--slow-record-s", "2")
    tables = [[line.split() for line in table.splitlines()] for table in result.output.strip().split("\n\n")]
    assert [table[0][0] for table in tables] == ["quiet", "slow-member"]
    assert [[row[:3] for row in table[1:]] for table in tables] == [
        [["eager", "1", "4"], ["share", "2", "2"]],
        [["eager", "0.5", "8"], ["share", "1", "4"]],
    ]


@pytest.mark.slow
def test_json_has_the_load_and_the_figures_of_every_seed(tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    result = run("run", *FEW, "--seeds", "2", "--members", "5", "--json", str(path))
    assert result.exit_code == 0, result.output
    data = json.loads(path.read_text(encoding="utf-8"))
    assert (data["load"]["members"], data["load"]["partitions"]) == (5, 20)
    assert [len(cell["figures"]) for cell in data["cells"]] == [2, 2, 2, 2]
    assert list(data["cells"][0]["figures"][0]) == list(COLUMNS)


@pytest.mark.slow
def test_parquet_has_the_rows_of_a_sweep(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "lab.parquet"
    result = run("run", *FEW, "--seeds", "2", "--parquet", str(path))
    assert result.exit_code == 0, result.output
    rows = parquet.read_table(path).to_pylist()
    assert len(rows) == 8
    assert rows == [{**row_of(row["cell"]), "digest": None, "error": None} for row in rows]


def test_parquet_needs_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("koordinator.cli.lab.find_spec", lambda _: None)
    result = run("run", *FEW, "--parquet", str(tmp_path / "lab.parquet"))
    assert result.exit_code == 2
    assert install_hint("spark") in result.output


@pytest.mark.slow
def test_the_page_refers_to_nothing_else_and_links_each_cell_to_its_timeline(tmp_path: Path) -> None:
    path = tmp_path / "lab.html"
    run("run", *FEW, "--html", str(path))
    page = path.read_text(encoding="utf-8")
    assert "http" not in page
    assert "src=" not in page
    for situation in ("newcomer", "crash"):
        for scheme in ("eager", "cooperative"):
            assert f'href="#{situation}.{scheme}"' in page
            assert f'<details id="{situation}.{scheme}"' in page
    assert page.count("<svg") == 4
    assert "$" not in page


@pytest.mark.slow
def test_a_picture_shows_each_owner_of_a_partition(tmp_path: Path) -> None:
    path = tmp_path / "lab.html"
    run("run", "--scheme", "eager", "--situation", "crash", "--html", str(path))
    page = path.read_text(encoding="utf-8")
    assert "<title>P4 c0001, -2 s to 0 s</title>" in page
    assert "<title>P4 c0000, 44.422 s to 49.422 s</title>" in page


@pytest.mark.slow
def test_advice_is_computed_for_the_given_load() -> None:
    output = run("advise", "--situation", "bounce", "--members", "2", "--restart-s", "50").output
    assert "If a single member restarts, and its partitions must not wait:\n" in output
    assert "  a session timeout above the restart, 50 s" in output
    assert "a restart takes 50 s, a session lasts 45 s; rebalances of a restart with static: 2" in output
    assert "`" not in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "--scheme", "eagr"), "unknown scheme 'eagr'"),
        (("run", "--situation", "crahs"), "did you mean 'crash'?"),
        (("compare", "--figure", "moves"), "did you mean 'moved'?"),
        (("run", "--members", "0"), "members must be at least 1, not 0"),
        (("advise", "--scheme", "zookeeper", "--situation", "crash", "--members", "1"), "no advice follows"),
        (("work", "--scheme", "static"), "unknown scheme 'static'"),
        (("work", "--record-s", "30"), "record_s must be below 30"),
        (("claims", "--claim", "eager"), "unknown claim 'eager'"),
    ],
)
def test_a_wrong_name_or_number_is_a_usage_error(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_a_verdict_that_differs_fails_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    false = Claim("a", "here", "All is well.", claims.HOLDS, lambda: Finding("1 of 2", holds=False))
    true = Claim("b", "there", "It is.", claims.HOLDS, lambda: Finding("2 of 2", holds=True))
    monkeypatch.setattr("koordinator.cli.lab.CLAIMS", {"a": false, "b": true})
    result = CliRunner().invoke(lab, ["claims"], standalone_mode=False)
    assert result.return_value == 1
    assert result.output.startswith("a: does not hold, not 'holds'\n  All is well. [here]\n  1 of 2\nb: holds\n")
