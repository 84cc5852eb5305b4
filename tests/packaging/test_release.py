"""The release: its files, and users' projects that install them in empty environments of every Python found here."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.needs("release")

VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
KINDS = ("wheel", "sdist")
CLIENTS = {"kafka-python": "kafka", "confluent-kafka": "confluent_kafka", "aiokafka": "aiokafka"}
"""Each client's module."""

NO_WHEELS = {("3.15", "confluent-kafka"), ("3.15", "aiokafka")}
"""Clients that need a C compiler."""

LICENCES = re.compile(
    r"(0BSD|Apache-2\.0|BSD-2-Clause|BSD-3-Clause|ISC|MIT|MPL-2\.0|PSF-2\.0)( (AND|OR) (Apache-2\.0|BSD-2-Clause|MIT))*"
    r"|License :: OSI Approved :: (Apache Software|BSD|MIT) License"
)
"""Licences of dependencies that put no condition on a program that uses them."""

EXCEPTIONS = {"crc32c": "LGPL-2.1-or-later"}
"""A shared library that is used unchanged, and that users can replace."""

TIMEOUT_S = 600


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Run a command without the variables of this test run; return its output. A failure shows all of it."""
    ours = ("PYTHON", "PYTEST", "COV", "KOORDINATOR")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@cache
def interpreter(version: str) -> str | None:
    """Return an interpreter of that version with venv: this one, one on PATH, or pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    on_path = shutil.which(f"python{version}")
    script = "import sys, ensurepip, venv; print(*sys.version_info[:2], sep='.')"
    for candidate in [sys.executable, *([on_path] if on_path else []), *pyenv.glob(f"{version}*/bin/python")]:
        done = subprocess.run([candidate, "-c", script], capture_output=True, text=True, timeout=60, check=False)
        if done.stdout.strip() == version:
            return str(candidate)
    return None


@pytest.fixture(scope="session")
def release(tree: Path, repository: Path) -> dict[str, Path]:
    """The files of a release, in build/release; "wheel" is made from "sdist"."""
    folder = repository / "build" / "release"
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", folder, tree)
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


class Environments:
    """Virtual environments with a file of the release, created on first use."""

    def __init__(self, home: Path, release: dict[str, Path]) -> None:
        self._home = home
        self._release = release

    def python(self, version: str, kind: str, extras: str = "") -> Path:
        """Return the interpreter of an environment, with pytest and all clients that have wheels unless it is for
        extras; skip the test if no Python of that version is found.
        """
        home = self._home / f"{version}-{kind}{extras}"
        python = home / "bin" / "python"
        if not python.exists():
            base = interpreter(version)
            if base is None:
                pytest.skip(f"no Python {version} found")
            run(base, "-m", "venv", home)
            pip = (python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install")
            clients = [client for client in CLIENTS if (version, client) not in NO_WHEELS]
            run(*pip, f"{self._release[kind]}{extras}", *([] if extras else ["pytest", *clients]))
        return python


@pytest.fixture(scope="session")
def environments(tmp_path_factory: pytest.TempPathFactory, release: dict[str, Path]) -> Environments:
    return Environments(tmp_path_factory.mktemp("environments"), release)


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return the `python` blocks of a page, with the file name in the title or ""."""
    block = re.compile(r'^```python(?: title="([^"]+)")?\n(.*?)^```', re.MULTILINE | re.DOTALL)
    return block.findall(page.read_text(encoding="utf-8"))


def passes(python: Path, project: Path, files: dict[str, str], tests: int) -> None:
    """Run the tests in a project of these files."""
    for name, text in files.items():
        (project / name).write_text(text, encoding="utf-8")
    assert f"{tests} passed" in run(python, "-m", "pytest", "-p", "no:cacheprovider", cwd=project)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_test_in_the_readme_passes_on_every_python(
    environments: Environments, repository: Path, tmp_path: Path, version: str, kind: str
) -> None:
    python = environments.python(version, kind)
    ((_, test),) = blocks(repository / "README.md")
    passes(python, tmp_path, {"test_readme.py": test}, tests=1)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_project_made_from_the_quick_start_passes_with_each_client(
    environments: Environments, repository: Path, tmp_path: Path, version: str, client: str
) -> None:
    if (version, client) in NO_WHEELS:
        pytest.skip(f"{client} has no wheel for Python {version}")
    page = blocks(repository / "docs" / "quick-start.md")
    (program,) = (text for _, text in page if re.search(rf"^from {CLIENTS[client]} import", text, re.MULTILINE))
    tests = dict(page)["test_orders.py"]
    choice = '"kafka-python"'
    assert choice in tests
    files = {"orders.py": program, "test_orders.py": tests.replace(choice, f'"{client}"')}
    passes(environments.python(version, "wheel"), tmp_path, files, tests=2)


def test_an_index_renders_the_description(release: dict[str, Path]) -> None:
    run(sys.executable, "-m", "twine", "check", "--strict", *release.values())


def test_the_workflows_follow_the_security_rules_of_their_host(repository: Path) -> None:
    run(Path(sys.executable).with_name("zizmor"), "--offline", repository / ".github")


def test_every_dependency_has_a_licence_that_users_can_accept(environments: Environments, repository: Path) -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    python = environments.python(version, "wheel", "[control,docker]")
    bom = repository / "build" / "release" / "koordinator.cdx.json"
    cyclonedx = (sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible")
    run(*cyclonedx, "--pyproject", repository / "pyproject.toml", "--mc-type", "library", "-o", bom, python)
    licences = {
        component["name"]: [
            each.get("expression") or each["license"].get("id") or each["license"]["name"]
            for each in component.get("licenses", [])
        ]
        for component in json.loads(bom.read_text(encoding="utf-8"))["components"]
    }
    assert {"click", "construct", "docker", "pydantic", "trio"} <= licences.keys()
    refused = {
        name: found
        for name, found in licences.items()
        if not any(LICENCES.fullmatch(each) or each == EXCEPTIONS.get(name) for each in found)
    }
    assert refused == {}
