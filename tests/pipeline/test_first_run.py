"""The page on traces in CI: its commands run as they stand, on the files that a test suite leaves behind."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from scenes.documentation import blocks
from spark.in_process import run_in_process

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

LIMIT_S = 900
"""Time limit of a suite with one test on a busy machine."""

SUITE = """
import pytest

@pytest.mark.koordinator(topics={"t": 2})
def test_two_members_meet(koordinator):
    group = koordinator.group("svc")
    for name in ("a", "b"):
        group.create_puppet(name).join()
    group.wait_stable(members=2)
    raise RuntimeError("as requested")
"""


COMMANDS = [block.text for block in blocks("bash") if block.page.stem == "pipeline-ci"]


def run(command: str, folder: Path, spark: SparkSession) -> subprocess.CompletedProcess[str]:
    program, *arguments = shlex.split(command)
    if program == "koordinator-pipeline":
        return run_in_process(spark, arguments, folder)
    pytest_ = [sys.executable, "-m", program, "-q", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(pytest_, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """Return a folder with the `test-results` of a suite that failed, and a store and a report of them."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "test_suite.py").write_text(SUITE)
    suite = run(COMMANDS[0], folder, spark)
    assert suite.returncode == 1, suite.stdout
    assert len(list((folder / "test-results").rglob("*.json"))) == 1, "the plugin writes a Perfetto file"
    loaded = run(COMMANDS[1], folder, spark)
    assert loaded.returncode == 0, loaded.stderr
    assert " 1 test, 1 ignored, 0 duplicate, 0 quarantined" in loaded.stdout
    return folder


def test_a_failed_suite_becomes_a_report(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "test_two_members_meet" in page
    assert "The store is" not in page


@pytest.mark.needs("engines")
@pytest.mark.parametrize("number", [number for number, text in enumerate(COMMANDS) if " sql " in text])
def test_a_query_of_the_page_has_rows(folder: Path, number: int, spark: SparkSession) -> None:
    done = run(COMMANDS[number], folder, spark)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 4, done.stdout
