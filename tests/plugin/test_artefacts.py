"""What is kept and told of a test that failed."""

from __future__ import annotations

import json

import pytest

import koordinator.fixtures.running  # noqa: F401 - once, instead of anew in each inner run

FAILING = """
import socket

def call(cluster):
    host, _, port = cluster.bootstrap_servers.rpartition(":")
    socket.create_connection((host, int(port)), timeout=5).close()

def test_good(koordinator):
    call(koordinator)

def test_bad(koordinator):
    call(koordinator)
    koordinator.load_groups([{"group_id": "svc", "generation": 7, "members": [{"instance_id": "a"}]}])
    assert not "what the test is about"
"""


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest("-p", "no:hypothesispytest", *arguments)


def kept(pytester: pytest.Pytester) -> list[str]:
    folder = pytester.path / "test-results"
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(test_app=FAILING)
    return pytester


def test_the_trace_of_a_failed_test_is_kept_and_that_of_a_good_one_is_not(project: pytest.Pytester) -> None:
    run(project).assert_outcomes(passed=1, failed=1)
    assert kept(project) == ["test_app-test_bad/trace.jsonl"]
    lines = (project.path / "test-results" / "test_app-test_bad" / "trace.jsonl").read_text().splitlines()
    header, *events = map(json.loads, lines)
    assert header["kind"] == "header"
    assert header["schema_version"] == 1
    assert [event["change"] for event in events if event["kind"] == "conn"] == ["opened", "closed"]


@pytest.mark.parametrize(("mode", "tests"), [("off", 0), ("on", 2), ("retain-on-failure", 1)])
def test_traces_are_kept_of_no_test_of_every_test_or_of_those_that_failed(
    project: pytest.Pytester, mode: str, tests: int
) -> None:
    result = run(project, f"--koordinator-trace={mode}", "--koordinator-trace-dir=kept/here")
    result.assert_outcomes(passed=1, failed=1)
    assert len(list(project.path.glob("kept/here/*/trace.jsonl"))) == tests
    # what the report says does not depend on files
    result.stdout.fnmatch_lines(["*koordinator timeline (svc)*", "rerun: pytest test_app.py::test_bad --koordinator-*"])


def test_the_section_tells_the_story_the_files_and_how_to_run_it_again(project: pytest.Pytester) -> None:
    result = run(project, "--koordinator-seed=4711")
    result.stdout.fnmatch_lines(
        [
            "koordinator: --koordinator-seed=4711",
            "*- koordinator timeline (svc) -*",
            "*Empty => Stable (generation 7)  Loaded group svc *",
            "full trace: test-results/test_app-test_bad/trace.jsonl*",
            "rerun: pytest test_app.py::test_bad --koordinator-seed=4711",
        ]
    )
