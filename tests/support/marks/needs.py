"""The marker `needs`, which counts the tests that this machine cannot run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

JAVA_MIN = 17

RELEASE = ("build", "cyclonedx_py", "twine", "uv")


def _java() -> str:
    """Return the missing part of Java for Apache Kafka, which Maven fetches; "" if complete."""
    missing = [name for name in ("java", "mvn") if shutil.which(name) is None]
    if missing:
        return f"no {' and no '.join(missing)} found"
    # on stderr, in quotes: 17.0.15, or 1.8.0_292 before Java 9
    command = ["java", "-version"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < JAVA_MIN:
        return f"Java {JAVA_MIN} or newer is wanted, java -version says {said.partition(chr(10))[0] or 'nothing'}"
    return ""


def _docker() -> str:
    """Return the missing part of Docker, command line or engine; "" if complete."""
    command = shutil.which("docker")
    if command is None:
        return "no docker found"
    asked = subprocess.run([command, "info"], capture_output=True, text=True, timeout=60, check=False)
    return "" if asked.returncode == 0 else "no Docker engine responds (DOCKER_HOST, or KOORDINATOR_DOCKER_BOOTSTRAP=1)"


def _mounts() -> str:
    """Return why a private tmpfs cannot be mounted without root; "" if it can."""
    command = shutil.which("unshare")
    if command is None:
        return "no unshare found"
    mount = [command, "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    asked = subprocess.run(mount, capture_output=True, text=True, timeout=60, check=False)
    return "" if asked.returncode == 0 else f"no file system may be mounted here: {asked.stderr.strip()}"


def _pypi() -> str:
    """Return why pip cannot install; "" if it can."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--no-deps", "--quiet", "six"]
    with TemporaryDirectory() as folder:
        asked = subprocess.run([*command, "--dest", folder], capture_output=True, timeout=60, check=False)
    return "" if asked.returncode == 0 else "pip finds no package index"


TOOLS: dict[str, Callable[[], str]] = {
    "chromium": lambda: "" if any(shutil.which(name) for name in BROWSERS) else "no Chromium found",
    "docker": cache(_docker),
    "engines": lambda: "" if find_spec("duckdb") and find_spec("polars") else "no duckdb and polars found",
    "go": lambda: "" if shutil.which("go") else "no Go found",
    "java": cache(_java),
    "mkdocs": lambda: "" if Path(".venv-docs/bin/mkdocs").exists() or shutil.which("mkdocs") else "no MkDocs found",
    "mounts": cache(_mounts),
    "node": lambda: "" if shutil.which("npm") else "no Node.js with npm found",
    "pypi": cache(_pypi),
    "pyright": lambda: "" if find_spec("basedpyright") else "no basedpyright found",
    "release": lambda: "" if all(map(find_spec, RELEASE)) else f"no {', '.join(RELEASE)} found",
    "spark": lambda: "" if find_spec("pyspark") else "no pyspark found",
}
"""Tools besides Python; each check returns the missing part, or ""."""

REQUIRE = "KOORDINATOR_REQUIRE"
"""The variable that lists, separated by commas, tools whose absence fails tests."""


def required() -> set[str]:
    """Return the required tools."""
    return {name.strip() for name in os.environ.get(REQUIRE, "").split(",")} - {""}


def pytest_configure() -> None:
    """Reject an unknown tool: a typo would turn failures into skips."""
    unknown = required() - TOOLS.keys()
    if unknown:
        raise pytest.UsageError(f"{REQUIRE}: {', '.join(sorted(unknown))} unknown; known: {', '.join(TOOLS)}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose tools are missing, or fail it if they are required; without `-m needs` leave it to `make
    ci-extra`.
    """
    tools = [tool for marker in item.iter_markers("needs") for tool in marker.args]
    for tool in tools:
        missing = TOOLS[tool]()
        if missing and tool in required():
            pytest.fail(f"needs {tool}, which {REQUIRE} names and this machine lacks: {missing}", pytrace=False)
        if missing:
            pytest.skip(f"needs {tool}: {missing}")
    if tools and "needs" not in item.config.getoption("markexpr"):
        pytest.skip(f"needs {tools[0]}{LEFT}")


LEFT = ": left to make ci-extra"
"""Skip reason of a test whose tool is present but belongs to `make ci-extra`."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the number of tests skipped per missing tool, and the number left to `make ci-extra`."""
    missing: Counter[str] = Counter()
    left: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        said = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else ""
        reason = re.search(r"needs (\w+)", said)
        if reason and reason[1] in TOOLS:
            (left if said.endswith(LEFT) else missing)[reason[1]] += 1
    for what, found in (("skipped for want of a tool", missing), ("left to make ci-extra", left)):
        if found:
            counts = ", ".join(f"{tool} {count}" for tool, count in sorted(found.items()))
            terminalreporter.write_line(f"{what}: {found.total()} ({counts})")
