"""The page on brokers' logs: its commands run as they stand, on a recorded log."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from scenes.documentation import BASH, blocks
from spark.log_rows import LOGS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.needs("engines")

COMMANDS = [block.text for block in blocks("bash") if block.page.stem == "pipeline-logs"]
LIMIT_S = 500

SHELL = """
set -eu
koordinator-pipeline() { "$PYTHON" -c "from koordinator.pipeline.cli import main; main()" "$@"; }
"""


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BASH, "-c", SHELL + script.replace("/var/log/kafka/", "logs/")],
        cwd=folder,
        env={**os.environ, "PYTHON": sys.executable, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which the first commands of the page ran."""
    folder = tmp_path_factory.mktemp("logs_page")
    (folder / "logs").mkdir()
    shutil.copy(LOGS / "4.3" / "server.log", folder / "logs")
    done = run(COMMANDS[0], folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_a_log_becomes_a_report(folder: Path) -> None:
    assert "Rebalances by cause" in (folder / "report.html").read_text(encoding="utf-8")


def test_the_objective_names_the_groups_that_miss_it(folder: Path) -> None:
    done = run(COMMANDS[1], folder)
    assert "of their time in rebalances" in done.stdout, done.stderr
    assert done.returncode == int(not done.stdout.startswith("0 of "))
    lax = run(COMMANDS[1].replace("--max-share 1", "--max-share 100 --json shares.json"), folder)
    assert (lax.returncode, (folder / "shares.json").read_text().count('"share"') > 0) == (0, True), lax.stderr


@pytest.mark.parametrize("number", range(2, len(COMMANDS)))
def test_a_query_of_the_page_has_rows(folder: Path, number: int) -> None:
    done = run(COMMANDS[number], folder)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 4, done.stdout
