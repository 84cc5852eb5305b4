"""The client for Go (`clients/go`): its tests with franz-go and sarama, its documents, failed tests."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from clients.languages import run_client
from scenes.documentation import FENCE, ROOT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.needs("go"), pytest.mark.slow]

MODULE = ROOT / "clients" / "go"

TEST_S = 900
"""Time limit of a run of Go, which fetches and compiles the clients once."""

SCAFFOLD = """package tests

import (
	"testing"
	"time"

	koordinator "koordinator.example/koordinator/clients/go"
)

func TestFragment(t *testing.T) {
	k := koordinator.Start(t, orders)
	group := k.Group("svc")
	for _, name := range []string{"svc-1", "svc-2"} {
		group.CreatePuppet(name, koordinator.CreatePuppetOptions{Topics: []string{"orders"}}).Join()
	}
	group.WaitStable(koordinator.WaitStableOptions{Members: 2, AllOwned: true})
%s
}
"""
"""A test around the statements of a page; the page's group has two members."""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A copy of the module with its tests."""
    shutil.copytree(MODULE, tmp_path / "go", ignore=shutil.ignore_patterns("test-results"))
    return tmp_path / "go" / "tests"


def go_test(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_client(["go", "test", *arguments, "."], folder, TEST_S, **environment)


def test_real_clients_are_tested(module: Path) -> None:
    ran = go_test(module)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_failed_test_shows_the_timeline(module: Path) -> None:
    ran = go_test(module, "-run", "TestFailing", KOORDINATOR_FAILING="1")
    assert ran.returncode == 1, ran.stderr
    assert 'group "svc": WaitStable: not within 2s: {"members":2,"state":"Stable"}' in ran.stdout
    assert "JoinGroup v" in ran.stdout
    assert "full trace: test-results/TestFailing/trace.html" in ran.stdout
    files = {each.name for each in (module / "test-results" / "TestFailing").iterdir()}
    assert files == {"trace.html", "trace.json", "trace.jsonl", "trace.txt"}


def test_the_code_of_the_page_runs(module: Path) -> None:
    page = (ROOT / "docs" / "go.md").read_text(encoding="utf-8")
    program, fragment = (text for info, text in FENCE.findall(page) if info == "go")
    (module / "page_test.go").write_text(program.replace("package svc", "package tests"), encoding="utf-8")
    (module / "fragment_test.go").write_text(SCAFFOLD % fragment, encoding="utf-8")
    ran = go_test(module, "-run", "TestTheConsumer|TestFragment")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_server_that_does_not_start_names_the_remedy(module: Path) -> None:
    ran = go_test(module, "-run", "TestPuppets", KOORDINATOR_COMMAND="no-such-program")
    assert ran.returncode == 1
    assert "pip install 'koordinator[control]'" in ran.stdout


def test_the_generated_file_is_formatted() -> None:
    command = ["gofmt", "-l", str(MODULE)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=TEST_S, check=True)
    assert ran.stdout == ""
