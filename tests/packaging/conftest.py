"""The wheel under test: the one that `make` built and installed, or one built here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
IN_THE_WHEEL = ("facade", "emulator", "fixtures", "lab", "pipeline", "wire")
"""The package folders."""


@pytest.fixture(scope="session")
def repository() -> Path:
    """The folder with `pyproject.toml`."""
    return REPOSITORY


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the inputs of a build: setuptools builds beside the sources."""
    copy = tmp_path_factory.mktemp("tree")
    for name in IN_THE_WHEEL:
        shutil.copytree(REPOSITORY / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, copy / name)
    return copy


@pytest.fixture(scope="session")
def wheel(tree: Path) -> Path:
    """A wheel of the working tree."""
    given = os.environ.get("KOORDINATOR_WHEEL")
    if given:
        return REPOSITORY / given
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(tree / "dist"), str(tree)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    (built,) = (tree / "dist").glob("*.whl")
    return built
