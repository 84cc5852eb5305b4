"""A test suite leaves its files behind, and `run`, `verify` and `report` work on that folder as it is."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

LIMIT_S = 280

MAIN = "from koordinator.pipeline.cli import main; main()"

SUITE = """
import pytest

@pytest.mark.koordinator(topics={"t": 2})
def test_two_members_meet(koordinator):
    group = koordinator.group("svc")
    for name in ("a", "b"):
        group.puppet(name).join()
    group.wait_stable(members=2)
    raise RuntimeError("as requested")
"""


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the `test-results` of a suite that failed, and a store of them."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "test_suite.py").write_text(SUITE)
    suite = run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder / "test_suite.py"), cwd=folder)
    assert suite.returncode == 1, suite.stdout
    assert len(list((folder / "test-results").rglob("*.json"))) == 1, "the plugin writes a Perfetto file"
    return folder


def test_a_failed_suite_becomes_a_report(folder: Path) -> None:
    loaded = run("-c", MAIN, "run", "--input", "test-results/", "--output", "store", "--master", "local[2]", cwd=folder)
    assert loaded.returncode == 0, loaded.stderr
    assert " 1 test, 1 ignored, 0 duplicate, 0 quarantined" in loaded.stdout
    report = run("-c", MAIN, "report", "--store", "store", cwd=folder)
    assert report.returncode == 0, report.stderr
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "test_two_members_meet" in page
    assert "The store is" not in page
