"""An unused rule fails its test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import koordinator.handles.emulator  # noqa: F401 - once, instead of anew in each inner run

if TYPE_CHECKING:
    import pytest

TESTS = """
import pytest
from koordinator import faults

def test_unused(koordinator):
    koordinator.group("svc").rule("OffsetCommit", faults.error("NOT_COORDINATOR"), once=True)

def test_optional(koordinator):
    koordinator.group("svc").rule("OffsetCommit", faults.error("NOT_COORDINATOR"), optional=True)

def test_used(koordinator):
    group = koordinator.group("svc")
    rule = group.rule("JoinGroup", faults.error("COORDINATOR_NOT_AVAILABLE"), once=True)
    group.puppet("a").join()
    group.wait_stable(members=1)
    assert rule.hits == 1

def test_fails_before(koordinator):
    koordinator.group("svc").rule("OffsetCommit", faults.error("NOT_COORDINATOR"))
    assert not 1

def test_removed(koordinator):
    koordinator.group("svc").rule("OffsetCommit", faults.error("NOT_COORDINATOR")).remove()

def test_stopped(koordinator):
    koordinator.group("svc").rule("OffsetCommit", faults.error("NOT_COORDINATOR"))
    koordinator.stop()
"""


def test_an_unused_rule_fails_its_test_unless_it_is_optional_or_the_test_has_failed_already(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(test_it=TESTS)
    result = pytester.runpytest("-p", "no:hypothesispytest")
    result.assert_outcomes(passed=5, failed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_unused*",
            "koordinator: rules that were never used (optional=True allows it):",
            "*OffsetCommit*",
            "full trace: test-results/test_it-test_unused/trace.html*",
        ]
    )
