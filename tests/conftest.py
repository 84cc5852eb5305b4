"""What every test has: the marker `needs`, which counts what could not be shown on this machine."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Callable

# a busy machine is slow, not wrong; `HYPOTHESIS_PROFILE=thorough` looks longer
settings.register_profile("quick", deadline=None)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

TOOLS: dict[str, Callable[[], bool]] = {
    "chromium": lambda: any(shutil.which(name) for name in BROWSERS),
    "docker": lambda: shutil.which("docker") is not None,
    "java": lambda: shutil.which("java") is not None,
    "spark": lambda: find_spec("pyspark") is not None,
}
"""What a test may need besides Python, and whether it is here."""

REQUIRE = "KOORDINATOR_REQUIRE"
"""Tools, separated by commas, whose absence fails the tests that need them."""


def required() -> set[str]:
    """The tools that must be here."""
    return {name.strip() for name in os.environ.get(REQUIRE, "").split(",")} - {""}


def pytest_configure() -> None:
    """Refuse a tool nobody knows: a slip there would turn failures into skips."""
    unknown = required() - TOOLS.keys()
    if unknown:
        raise pytest.UsageError(f"{REQUIRE}: {', '.join(sorted(unknown))} unknown; known: {', '.join(TOOLS)}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose tools are missing; fail it if they are required."""
    for marker in item.iter_markers("needs"):
        for tool in marker.args:
            if TOOLS[tool]():
                continue
            if tool in required():
                pytest.fail(f"needs {tool}, which {REQUIRE} names and this machine lacks", pytrace=False)
            pytest.skip(f"needs {tool}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests were skipped for want of which tool."""
    missing: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        reason = re.search(r"needs (\w+)", str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else "")
        if reason and reason[1] in TOOLS:
            missing[reason[1]] += 1
    if missing:
        counts = ", ".join(f"{tool} {count}" for tool, count in sorted(missing.items()))
        terminalreporter.write_line(f"skipped for want of a tool: {missing.total()} ({counts})")
