"""What `koordinator-pipeline` does where PySpark is not installed, its help and completions, and lines of progress."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click
import pytest

from koordinator.cli import commands
from koordinator.pipeline import console
from koordinator.pipeline.cli import WITHOUT_SPARK, Jobs, jobs
from koordinator.pipeline.snapshots import LocalSnapshotFiles, StoreSnapshot, commit

if TYPE_CHECKING:
    from pathlib import Path

    from koordinator.cli import Commands

LIMIT_S = 60

WITHOUT = (
    "import sys; sys.modules['pyspark'] = sys.modules['pyarrow'] = None;"
    " from koordinator.pipeline.cli import main; main()"
)
"""The command where neither PySpark nor PyArrow is installed."""


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT, *arguments]
    environ = {**os.environ, **variables}
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=LIMIT_S, check=False)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store without rows."""
    commit(LocalSnapshotFiles(tmp_path), StoreSnapshot(1, "2026-11-21T12:00:00+00:00"), str(tmp_path))
    return tmp_path


def test_the_help_lists_all_jobs_without_pyspark() -> None:
    ended = run("--help")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert re.findall(r"^  ([a-z]+)  ", ended.stdout, re.MULTILINE) == sorted(Jobs.modules)


def test_a_job_that_needs_spark_names_the_installation() -> None:
    ended = run("run", "--help")
    assert ended.returncode == 2
    assert ended.stderr.startswith("koordinator-pipeline: pyspark is not installed: ")


def test_the_tables_of_a_store_are_listed_without_pyspark(store: Path) -> None:
    ended = run("tables", "--store", str(store))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "gold/rebalance" in ended.stdout
    views = run("tables", "--store", str(store), "--spark").stdout
    assert "CAST(NULL AS array<struct<client_software:string,client_version:string,status:string>>)" in views


@pytest.mark.needs("engines")
def test_a_store_is_queried_without_pyspark(store: Path) -> None:
    ended = run("sql", "--store", str(store), "-c", "SELECT count(*) + 41 FROM silver.call, mart.test_run")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "41" in ended.stdout
    empty = run("objective", "--store", str(store))
    assert (empty.returncode, empty.stderr.count("no group with members")) == (2, 1)


@pytest.mark.parametrize("job", ["objective", "sql"])
def test_a_missing_duckdb_is_named(store: Path, job: str) -> None:
    without = f"import sys; sys.modules['duckdb'] = None; {WITHOUT}"
    command = [sys.executable, "-c", without, job, "--store", str(store)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (ended.returncode, ended.stderr) == (
        2,
        "koordinator-pipeline: duckdb is not installed: pip install duckdb\n",
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_jobs_and_options_without_pyspark(shell: str) -> None:
    script = run("completion", shell).stdout
    assert "_KOORDINATOR_PIPELINE_COMPLETE" in script
    variables = {"_KOORDINATOR_PIPELINE_COMPLETE": "bash_complete", "COMP_WORDS": "koordinator-pipeline ob"}
    assert run(**variables, COMP_CWORD="1").stdout.split() == ["plain,objective"]


@pytest.mark.slow
@pytest.mark.parametrize("group", [commands, jobs], ids=["koordinator", "koordinator-pipeline"])
def test_the_list_of_commands_says_what_the_help_of_each_says(group: Commands) -> None:
    loadable = WITHOUT_SPARK if group is jobs and find_spec("pyspark") is None else tuple(group.summaries)
    found = {name: group.get_command(click.Context(group), name) for name in loadable}
    texts = {name: each.get_short_help_str(limit=200) for name, each in found.items() if each is not None}
    assert texts == {name: group.summaries[name] for name in loadable}


def test_a_step_of_a_long_job_is_one_line_where_stderr_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = iter([0.0, 4.0, 12.0, 13.0, 23.5])
    monkeypatch.setattr(console.time, "monotonic", lambda: next(times))
    with console.progress(3) as report_progress:
        for step in ("reading", "silver/call", "gold/rebalance", "the report"):
            report_progress(step)
    assert capsys.readouterr().err.splitlines() == [
        "koordinator-pipeline: 12 s, 1 of 3 steps done: silver/call",
        "koordinator-pipeline: 24 s, 3 of 3 steps done: the report",
    ]
