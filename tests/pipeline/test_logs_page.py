"""The page on brokers' logs: its commands run as they stand, on a recorded log."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest
from scenes.documentation import blocks
from spark.in_process import run_in_process
from spark.loads import read_table
from spark.log_rows import LOGS

from koordinator.pipeline.schema import CLIENT_JOIN, TABLES

if TYPE_CHECKING:
    import subprocess

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.needs("engines")

COMMANDS = [block.text for block in blocks("bash") if block.page.stem == "pipeline-logs"]
DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "pipeline-logs.md"


def run(command: str, folder: Path, spark: SparkSession) -> subprocess.CompletedProcess[str]:
    program, *arguments = shlex.split(command.replace("/var/log/kafka/", "logs/"))
    assert program == "koordinator-pipeline"
    return run_in_process(spark, arguments, folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """Return a folder in which the first commands of the page ran."""
    folder = tmp_path_factory.mktemp("logs_page")
    (folder / "logs").mkdir()
    for log in (LOGS / "4.3").glob("*.log"):
        shutil.copy(log, folder / "logs")
    done = run(COMMANDS[0], folder, spark)
    assert done.returncode == 0, done.stderr
    return folder


def test_a_log_becomes_a_report(folder: Path) -> None:
    assert "Rebalances by cause" in (folder / "report.html").read_text(encoding="utf-8")


def test_the_objective_names_the_groups_that_miss_it(folder: Path, spark: SparkSession) -> None:
    done = run(COMMANDS[1], folder, spark)
    assert "of their time in rebalances" in done.stdout, done.stderr
    assert done.returncode == int(not done.stdout.startswith("0 of "))
    lax = run(COMMANDS[1].replace("--max-share 1", "--max-share 100 --json shares.json"), folder, spark)
    assert (lax.returncode, (folder / "shares.json").read_text().count('"share"') > 0) == (0, True), lax.stderr


def test_the_figures_of_the_laboratory_are_those_of_its_runs() -> None:
    cells = json.loads((DOCS / "lab.json").read_text())["cells"]
    rebalances = {cell["scheme"]: cell["figures"][0]["rebalances"] for cell in cells if cell["situation"] == "rolling"}
    assert "of three members costs 6\nrebalances, with static members none" in PAGE.read_text()
    assert (rebalances["eager"], rebalances["static"]) == (6, 0)


def test_logs_fill_the_columns_that_the_page_names_and_no_others(folder: Path) -> None:
    rows = re.findall(r"^\| (`[^|]*) \|([^|]*)\|([^|]*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    named = [(path, *map(names_in, cells)) for first, *cells in rows for path in names_in(first)]
    for path, filled, null in named:
        rows_of = read_table(folder / "store", TABLES.get(path, CLIENT_JOIN))
        if path not in TABLES:
            rows_of = rows_of.filter(pc.field("source") == path)
        assert bool(rows_of.num_rows) == bool(filled), path
        assert {name for name in (*filled, *null) if rows_of[name].null_count < rows_of.num_rows} == {*filled}, path
    assert len(named) == 13


def names_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("number", range(2, len(COMMANDS)))
def test_a_query_of_the_page_has_rows(folder: Path, number: int, spark: SparkSession) -> None:
    done = run(COMMANDS[number], folder, spark)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 4, done.stdout
