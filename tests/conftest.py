"""The markers of the tests, the profiles of Hypothesis, and what holds in every test: invariants, and no bugs."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from marks.inner import WITHOUT_PLUGINS
from scenes import group_invariants

from koordinator.emulator.broker.failures import Failures

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest_plugins = ["marks.needs", "marks.slow"]

# a busy machine is slow, not wrong; `HYPOTHESIS_PROFILE=thorough` searches longer, `repeatable` in the same places
settings.register_profile("quick", deadline=None)
settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

group_invariants.install()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # a shell without job control starts `command &` like this, and processes that the tests start inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def pytester(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Let the inner pytest load neither schemathesis nor Hypothesis, whose imports take most of a short run."""
    monkeypatch.setenv("PYTEST_ADDOPTS", WITHOUT_PLUGINS)
    return pytester


found: list[BaseException] = []
"""The bugs that clusters of the current test have reported."""

add = Failures.add


def _note(failures: Failures, place: str, error: Exception, frame: bytes = b"") -> None:
    found.append(error)
    add(failures, place, error, frame)


setattr(Failures, "add", _note)  # noqa: B010 - type checkers take a method for constant


@pytest.fixture(autouse=True)
def no_bug_of_koordinator() -> Iterator[list[BaseException]]:
    """Fail a test in which a bug has ended a request; a test that expects one clears the list."""
    found.clear()
    yield found
    for error in found:
        raise error
