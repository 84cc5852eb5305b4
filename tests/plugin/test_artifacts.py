"""The files and report sections of a failed test."""

from __future__ import annotations

import json
import re
from pathlib import PureWindowsPath
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

import koordinator.handles.emulator  # noqa: F401 - once, instead of anew in each inner run
from koordinator.emulator.pages import perfetto
from koordinator.fixtures.artifacts import folder_name

if TYPE_CHECKING:
    from pathlib import Path

FAILING = """
from koordinator.client.connection import Address, Deadline, BrokerConnection

def call(cluster):
    host, _, port = cluster.bootstrap_servers.rpartition(":")
    BrokerConnection(Address(host, int(port)), Deadline(10), "1").close()

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


def test_only_the_trace_of_a_failed_test_is_kept(project: pytest.Pytester) -> None:
    run(project).assert_outcomes(passed=1, failed=1)
    assert kept(project) == [f"test_app-test_bad/trace.{suffix}" for suffix in ("html", "json", "jsonl")]
    lines = (project.path / "test-results" / "test_app-test_bad" / "trace.jsonl").read_text().splitlines()
    header, *events = map(json.loads, lines)
    assert header["kind"] == "header"
    assert header["schema_version"] == 1
    assert [event["kind"] for event in events][:3] == ["conn", "request", "response"]


def test_perfetto_gets_its_own_file(project: pytest.Pytester) -> None:
    run(project)
    loaded = json.loads((project.path / "test-results" / "test_app-test_bad" / "trace.json").read_text())
    assert loaded["traceEvents"]


def test_the_page_title_has_the_test_and_its_failure(project: pytest.Pytester) -> None:
    run(project)
    page = (project.path / "test-results" / "test_app-test_bad" / "trace.html").read_text(encoding="utf-8")
    assert "<title>test_app.py::test_bad</title>" in page
    assert "AssertionError: assert not 'what the test is about'" in page
    assert "Loaded group svc" in page


@pytest.mark.parametrize(("mode", "tests"), [("off", 0), ("on", 2), ("retain-on-failure", 1)])
def test_traces_are_kept_of_no_test_of_every_test_or_of_those_that_failed(
    project: pytest.Pytester, mode: str, tests: int
) -> None:
    result = run(project, f"--koordinator-trace={mode}", "--koordinator-trace-dir=kept/here")
    result.assert_outcomes(passed=1, failed=1)
    assert len(list(project.path.glob("kept/here/*/trace.jsonl"))) == tests
    # the report does not depend on the files
    result.stdout.fnmatch_lines(["*koordinator timeline (svc)*", "rerun: pytest test_app.py::test_bad --koordinator-*"])


def test_the_section_has_the_timeline_the_files_and_the_rerun_command(project: pytest.Pytester) -> None:
    result = run(project, "--koordinator-seed=4711")
    result.stdout.fnmatch_lines(
        [
            "koordinator: --koordinator-seed=4711",
            "*- koordinator timeline (svc) -*",
            "*Empty => Stable, generation 7, loaded",
            "full trace: test-results/test_app-test_bad/trace.html   perfetto: test-results/*/trace.json",
            "rerun: pytest test_app.py::test_bad --koordinator-seed=4711",
        ]
    )


# -- reports ---


def properties(path: Path) -> dict[str, dict[str, str]]:
    """Return the properties of each test case in a JUnit file."""
    cases = ET.parse(path).iter("testcase")  # noqa: S314 - pytest has written it
    return {
        str(case.get("name")): {str(each.get("name")): str(each.get("value")) for each in case.iter("property")}
        for case in cases
    }


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "xdist"])
def test_the_junit_file_has_the_trace_and_the_rebalance_stats(
    project: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    result = project.runpytest_subprocess("--junitxml=j.xml", "--koordinator-seed=3", *workers, timeout=170)
    result.assert_outcomes(passed=1, failed=1)
    page = project.path / "test-results" / "test_app-test_bad" / "trace.html"
    assert page.exists()
    assert properties(project.path / "j.xml") == {
        "test_good": {"koordinator_rebalances": "0", "koordinator_join_ms": "0"},
        "test_bad": {
            "koordinator_trace": str(page),
            "koordinator_seed": "3",
            "koordinator_rebalances": "0",
            "koordinator_join_ms": "0",
        },
    }
    result.stdout.fnmatch_lines(["*koordinator timeline (svc)*", "full trace: *", "rerun: *--koordinator-seed=3"])


PHASES = """
import pytest

@pytest.fixture
def broken(koordinator):
    koordinator.create_topic("orders")
    raise RuntimeError("in setup")

@pytest.fixture
def breaks(koordinator):
    yield
    raise RuntimeError("in teardown")

def test_setup(broken): pass

def test_teardown(koordinator, breaks): pass

def test_call_and_teardown(koordinator, breaks): raise RuntimeError("in call")

def test_stopped(koordinator):
    koordinator.stop()
    raise RuntimeError("after the end")

def test_two(koordinator, koordinator_factory):
    koordinator_factory()
    raise RuntimeError("of two")

@pytest.mark.xfail(raises=RuntimeError)
def test_expected(koordinator): raise RuntimeError("as expected")

def test_skipped(koordinator): pytest.skip("no reason")

def test_without(): raise RuntimeError("without a cluster")
"""


def test_a_failure_in_any_phase_keeps_the_traces_of_all_clusters(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=PHASES)
    result = run(pytester)
    result.assert_outcomes(failed=4, passed=1, errors=3, xfailed=1, skipped=1)
    assert [name for name in kept(pytester) if name.endswith(".jsonl")] == [
        "test_it-test_call_and_teardown/trace.jsonl",
        "test_it-test_setup/trace.jsonl",
        "test_it-test_stopped/trace.jsonl",
        "test_it-test_teardown/trace.jsonl",
        "test_it-test_two/trace-2.jsonl",
        "test_it-test_two/trace.jsonl",
    ]
    # both in the call phase and in the teardown
    assert result.stdout.str().count("full trace: test-results/test_it-test_call_and_teardown/trace.html") == 2
    result.stdout.fnmatch_lines(["*- koordinator timeline (cluster 1) -*", "*- koordinator timeline (cluster 2) -*"])


def test_only_files_of_an_earlier_session_are_removed(project: pytest.Pytester) -> None:
    folder = project.path / "test-results" / "test_app-test_bad"
    folder.mkdir(parents=True)
    for name in ("trace-2.jsonl", "trace-2.html", "trace-2.json", "trace.html", "theirs.html"):
        (folder / name).touch()
    run(project)
    names = [path.name for path in folder.iterdir()]
    assert "theirs.html" in names
    assert not any(name.startswith("trace-2") for name in names)
    assert (folder / "trace.html").stat().st_size > 0


def test_an_uncreatable_folder_is_reported_without_hiding_the_failure(project: pytest.Pytester) -> None:
    project.path.joinpath("test-results").write_text("a file")
    result = run(project)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["the trace could not be written: *test-results*", "rerun: pytest test_app.py::test_bad *"]
    )


def test_an_error_while_writing_artifacts_does_not_hide_the_failure(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perfetto, "perfetto_of", lambda lines: lines["no such thing"])
    result = run(project)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["the trace could not be written: TypeError: *", "rerun: pytest *::test_bad *"])


MANY_GROUPS = """
from koordinator import faults

def test_it(koordinator):
    for number in range(8):
        group = koordinator.group(f"g{number}")
        if number == 2:
            group.rule("JoinGroup", faults.error("UNKNOWN_MEMBER_ID"), once=True)
        # no member sends a heartbeat during the test: a late one would put its group behind newer ones
        group.puppet("a", session_timeout_s=1200, heartbeat_interval_s=600).join()
        group.wait_stable(members=1)
    assert not 1
"""


def test_of_many_groups_those_with_errors_and_the_last_are_shown(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=MANY_GROUPS)
    result = run(pytester)
    result.assert_outcomes(failed=1)
    titles = [line for line in result.outlines if "- koordinator timeline (" in line]
    assert [re.findall(r"\((.*)\)", line) for line in titles] == [["g4"], ["g5"], ["g6"], ["g7"], ["g2"]]
    result.stdout.fnmatch_lines(["3 other groups are not shown"])


def test_a_rerun_has_a_folder_of_its_own(pytester: pytest.Pytester) -> None:
    # like plugins that rerun tests
    pytester.makeconftest(
        """
        from _pytest.runner import runtestprotocol

        def pytest_runtest_protocol(item, nextitem):
            for last in (False, True):
                for report in runtestprotocol(item, nextitem=nextitem, log=False):
                    if last:
                        item.ihook.pytest_runtest_logreport(report=report)
            return True
        """
    )
    pytester.makepyfile(test_it="def test_it(koordinator): assert not 1")
    result = run(pytester)
    result.assert_outcomes(failed=1)
    folders = sorted(path.name for path in pytester.path.glob("test-results/*"))
    assert folders == ["test_it-test_it", "test_it-test_it-rerun1"]
    result.stdout.fnmatch_lines(["full trace: test-results/test_it-test_it-rerun1/trace.html*"])


def test_no_two_tests_share_a_folder() -> None:
    ids = ["t.py::test", "t.py::T::test", "a/t.py::test", "a-t.py::test", "t.py::test[a-b]", "t.py::test[a/b]"]
    ids += [f"t.py::test[{'x' * 300}{end}]" for end in "yz"]
    names = [folder_name(each) for each in ids]
    assert names[:4] == ["t-test", "t-T-test", "a-t-test", names[3]]
    assert len(set(names)) == len(ids)
    assert max(map(len, names)) < 200
    assert all(re.fullmatch(r"[\w.-]+", name) for name in names)


@pytest.mark.parametrize(
    "nodeid", ["a/t.py::test", "t.py::T::test[a:b]", r"t.py::test[C:\\x]", "t.py::test[x. ]", "con.py::test"]
)
def test_the_folder_of_a_test_is_one_folder_on_windows(nodeid: str) -> None:
    folder = PureWindowsPath("C:/project/test-results") / folder_name(nodeid)
    assert len(folder.parts) == 4
    assert not re.search(r'[<>:"|?*]|[. ]$', folder.name)
    assert not re.fullmatch(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?", folder.name)
