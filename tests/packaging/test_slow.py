"""The marker `slow`: a long test without it is listed, and fails on a quiet machine. A loop names its cases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from marks import slow
from marks.cases import case

if TYPE_CHECKING:
    from collections.abc import Callable

TESTS = """
import time
import pytest

def work():
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass

@pytest.fixture(scope="module")
def shared():
    work()

first = []

def test_long(): work()

def test_long_the_first_time():
    first or work()
    first.append(1)

@pytest.mark.slow
def test_marked(): work()

def test_with_a_shared_fixture(shared): pass
"""


@pytest.fixture
def run(pytester: pytest.Pytester) -> Callable[..., pytest.RunResult]:
    """Five tests with our plugin, whose limit is lower here, on a quiet machine or a busy one."""
    pytester.makeini("[pytest]\nmarkers = slow: takes long\naddopts = --strict-markers -p no:koordinator")
    pytester.makepyfile(TESTS)

    def run_on(*, quiet: bool, piece_s: float = slow.PIECE_S) -> pytest.RunResult:
        changed = (
            f"LIMIT_S = 0.04\n\n\ndef quiet() -> bool:\n    return {quiet}\n"
            f"\n\ndef piece() -> float:\n    return {piece_s}\n"
        )
        pytester.makeconftest(f"{Path(slow.__file__).read_text()}\n\n{changed}")
        return pytester.runpytest_subprocess(timeout=120)

    return run_on


@pytest.mark.slow
def test_an_unmarked_test_that_is_long_twice_fails_on_a_quiet_machine(run: Callable[..., pytest.RunResult]) -> None:
    result = run(quiet=True)
    result.assert_outcomes(passed=4, failed=1)  # its first run passed
    result.stdout.fnmatch_lines(["*_ test_long _*", "0.* s of the processor: mark it slow, or share its work (*)"])


@pytest.mark.slow
def test_a_busy_machine_fails_no_test_and_lists_the_long_ones(run: Callable[..., pytest.RunResult]) -> None:
    result = run(quiet=False)
    result.assert_outcomes(passed=4)
    listed = {line.rpartition("::")[2] for line in result.outlines if "::" in line}
    assert listed == {"test_long", "test_long_the_first_time"}


@pytest.mark.slow
def test_a_slow_machine_fails_no_test_that_is_quick_on_a_quick_one(run: Callable[..., pytest.RunResult]) -> None:
    run(quiet=True, piece_s=3 * slow.PIECE_S).assert_outcomes(passed=4)


def test_a_failure_in_a_loop_names_its_case() -> None:
    with pytest.raises(pytest.fail.Exception) as failed, case("JoinGroup", 9), pytest.raises(ValueError, match="never"):
        pass
    assert failed.value.__notes__ == ["in the case JoinGroup 9"]
