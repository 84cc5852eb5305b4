"""The wheel in a user's project whose folders have the names of ours."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

TEST = """
import sys
from pathlib import Path

import koordinator as installed
from emulator import SAMPLE as theirs_in_emulator
from fixtures import SAMPLE as theirs
from wire import SAMPLE as theirs_in_wire


def test_the_plugin_works(koordinator):
    host, port = koordinator.bootstrap_servers.rsplit(":", 1)
    assert host and int(port) > 0


def test_the_folders_are_their_own():
    assert (theirs, theirs_in_wire, theirs_in_emulator) == ("fixtures", "wire", "emulator")


def test_it_is_the_wheel():
    assert Path(sys.prefix) in Path(installed.__file__).parents
"""


@pytest.fixture(scope="session")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel; its dependencies come from the environment of the tests."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True, timeout=120)
    (site_packages,) = home.glob("lib/python*/site-packages")
    # after its own site-packages, so that its koordinator takes precedence
    (site_packages / "tests.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return python


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with its own `fixtures`, `wire`, `emulator` and `tests`."""
    for name in ("fixtures", "wire", "emulator", "tests"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"SAMPLE = {name!r}\n")
    (tmp_path / "conftest.py").write_text("import fixtures\n")
    (tmp_path / "tests" / "test_theirs.py").write_text(TEST)
    return tmp_path


@pytest.mark.parametrize("how", ["import pytest; pytest.console_main()", None], ids=["pytest", "python -m pytest"])
def test_a_project_with_folders_of_the_same_names_uses_the_fixture(
    python: Path, project: Path, how: str | None
) -> None:
    command = [str(python), "-m", "pytest"] if how is None else [str(python), "-P", "-c", how]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHON", "COV"))}
    run = subprocess.run(
        [*command, "-p", "no:cacheprovider", "-p", "no:xdist"],
        cwd=project,
        env=clean,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "3 passed" in run.stdout
