"""The marker `needs`: skipped and counted where a tool is missing, failed where it is required."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from marks import needs

if TYPE_CHECKING:
    from collections.abc import Callable

CONFTEST = Path(needs.__file__)


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Callable[..., pytest.RunResult]:
    """Two tests that need a tool, in a project with our conftest, on a machine that has only `docker`."""
    tools = 'TOOLS = {"chromium": lambda: "none found", "docker": lambda: "", "java": lambda: "no mvn found"}'
    pytester.makeconftest(f"{CONFTEST.read_text()}\n\n{tools}\n")
    pytester.makeini("[pytest]\nmarkers = needs(*tools): what is needed\naddopts = --strict-markers -p no:koordinator")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.needs("docker")
        def test_here(): pass

        @pytest.mark.needs("docker", "java")
        def test_java(): raise AssertionError("it ran")

        @pytest.mark.needs("java")
        def test_java_again(): raise AssertionError("it ran")

        @pytest.mark.needs("chromium")
        def test_browser(): raise AssertionError("it ran")

        def test_other(): pytest.skip("for another reason")
        """
    )

    def run_with(require: str | None, *arguments: str) -> pytest.RunResult:
        if require is None:
            monkeypatch.delenv("KOORDINATOR_REQUIRE", raising=False)
        else:
            monkeypatch.setenv("KOORDINATOR_REQUIRE", require)
        return pytester.runpytest_subprocess("-ra", *arguments, timeout=180)

    return run_with


def test_a_missing_tool_skips_with_a_reason_and_is_counted(run: Callable[..., pytest.RunResult]) -> None:
    result = run(None, "-m", "needs")
    result.assert_outcomes(passed=1, skipped=3, deselected=1)
    result.stdout.fnmatch_lines(["*skipped for want of a tool: 3 (chromium 1, java 2)"])
    result.stdout.no_fnmatch_line("*left to make ci-extra*")
    result.stdout.fnmatch_lines_random(["SKIPPED*: needs java: no mvn found", "SKIPPED*: needs chromium: none found"])


def test_a_python_only_run_counts_the_tests_left_to_ci_extra(
    run: Callable[..., pytest.RunResult],
) -> None:
    result = run(None)
    result.assert_outcomes(skipped=5)
    result.stdout.fnmatch_lines(
        ["*skipped for want of a tool: 3 (chromium 1, java 2)", "*left to make ci-extra: 1 (docker 1)"]
    )
    result.stdout.fnmatch_lines_random(["SKIPPED*: needs docker: left to make ci-extra"])


def test_the_count_is_the_same_over_several_processes(run: Callable[..., pytest.RunResult]) -> None:
    result = run(None, "-m", "needs", "-n", "2")
    result.assert_outcomes(passed=1, skipped=3)
    result.stdout.fnmatch_lines(["*skipped for want of a tool: 3 (chromium 1, java 2)"])


def test_a_required_tool_that_is_missing_fails_its_tests_and_no_others(run: Callable[..., pytest.RunResult]) -> None:
    result = run(" java,docker", "-m", "needs")
    result.assert_outcomes(passed=1, skipped=1, errors=2, deselected=1)
    result.stdout.fnmatch_lines(["*needs java, which KOORDINATOR_REQUIRE names and this machine lacks: no mvn found"])
    result.stdout.fnmatch_lines(["*skipped for want of a tool: 1 (chromium 1)"])


def test_an_unknown_required_tool_stops_the_run(run: Callable[..., pytest.RunResult]) -> None:
    result = run("jaba")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*KOORDINATOR_REQUIRE: jaba unknown; known: chromium, docker, java*"])
