"""The marker `slow`, by measurement: it belongs to every test that takes more than LIMIT_S of the processor.

Processor time is that of this process and of its ended children. A busy machine changes it less than wall time, but it
does change it: on a busy machine such tests are listed, and none fails. A first run may pay for what others share
(imports, compiled codecs), and any run for its neighbours, so a test is judged by more of them. Fixtures of a module,
class or session are not counted, and no teardown: that of the last test of a module ends the module's servers. A slow
machine, or one whose processor others use, takes longer for everything: a short piece of Python before and after such a
run tells how much.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.runner import runtestprotocol

if TYPE_CHECKING:
    from collections.abc import Generator

LIMIT_S = 0.25

SLACK = 2
"""The same test takes up to twice as long on another machine: one below SLACK times the limit is listed only."""

AGAIN = 3
"""The runs by which a long test is judged, unless one of them is short."""

PIECE_S = 0.01
"""The seconds of `piece` on the machine on which LIMIT_S was chosen."""

NAME = "processor_s"
"""The property of a report with the seconds, which `--junitxml` writes, too."""

STARTERS = {"no_litter", "pytester", "serve", "wheel"}
"""Fixtures of tests that start processes or real clients: such a test is slow without being marked."""

BEGUN, TOOK = pytest.StashKey[float](), pytest.StashKey[float]()

shared_s = 0.0
"""The seconds of all fixtures so far that several tests share."""


def used() -> float:
    """Return the processor seconds of this process and of its ended children, without those of shared fixtures."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system - shared_s


def piece() -> float:
    """Count words in a dictionary, and return the processor seconds of that: about PIECE_S."""
    begun = time.process_time()
    counts: dict[str, int] = {}
    for number in range(50_000):
        word = str(number % 1_000)
        counts[word] = counts.get(word, 0) + 1
    return time.process_time() - begun


def quiet() -> bool:
    """Return whether hardly anything runs beside the tests: the load of the last minute is at most one process for each
    processor, and one more. Windows does not tell.
    """
    return hasattr(os, "getloadavg") and os.getloadavg()[0] <= (os.cpu_count() or 1) + 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start processes or real clients."""
    for item in items:
        if STARTERS & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
    """Leave out fixtures that several tests share."""
    global shared_s  # noqa: PLW0603 -- a process has one processor time
    before = used()
    try:
        return (yield)
    finally:
        if fixturedef.scope != "function":
            shared_s += used() - before


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Repeat a test that took too long on a quiet machine, and fail it if it does so each time."""
    item.stash[BEGUN] = used()
    result = yield
    if item.stash[TOOK] > LIMIT_S and not {"slow", "needs"} & item.keywords.keys() and quiet():
        for _ in range(AGAIN):
            before = piece()
            item.stash[BEGUN] = used()
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
            seconds = item.stash[TOOK] / max(1, before / PIECE_S, piece() / PIECE_S)
            if seconds <= SLACK * LIMIT_S or not all(report.passed for report in reports):
                break
        else:
            said = f"{seconds:.2f} s of the processor: mark it slow, or share its work (more than {LIMIT_S} s is slow)"
            report = pytest.TestReport(item.nodeid, item.location, {}, "failed", said, "call")
            item.ihook.pytest_runtest_logreport(report=report)
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Attach the processor time of setup and call to the last report of a test."""
    if call.when == "teardown":
        item.user_properties.append((NAME, round(item.stash[TOOK], 3)))
    else:
        item.stash[TOOK] = used() - item.stash[BEGUN]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the tests that took too long without the marker."""
    ended = [each for reports in terminalreporter.stats.values() for each in reports if hasattr(each, "keywords")]
    times = {
        each.nodeid: dict(each.user_properties)[NAME]
        for each in ended
        if NAME in dict(each.user_properties) and not {"slow", "needs"} & each.keywords.keys()
    }
    long = sorted(((seconds, name) for name, seconds in times.items() if seconds > LIMIT_S), reverse=True)
    if long:
        terminalreporter.section(f"more than {LIMIT_S} s of the processor in the first run, without the marker slow")
        for seconds, name in long:
            terminalreporter.write_line(f"{seconds:6.2f} s  {name}")
