"""The contents of the wheel, which are those of the tree, and its requirements."""

from __future__ import annotations

import re
import tomllib
import zipfile
from email.parser import Parser
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from email.message import Message
    from pathlib import Path

NOT_INSTALLED = {".md", ".pyc", ".ts"}
"""Suffixes of files that are for developers."""

CLIENTS = {"kafka-python", "confluent-kafka", "aiokafka", "kafka", "kio"}


@pytest.fixture(scope="module")
def files(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


@pytest.fixture(scope="module")
def pyproject(repository: Path) -> dict[str, Any]:
    return tomllib.loads((repository / "pyproject.toml").read_text())


def packages_in(repository: Path, mapping: dict[str, str]) -> dict[str, set[str]]:
    """Return the Python files of every package folder, by package name."""
    found: dict[str, set[str]] = {}
    for package, folder in mapping.items():
        for path in sorted((repository / folder).rglob("*.py")):
            inner = path.parent.relative_to(repository / folder).parts
            found.setdefault(".".join([package, *inner]), set()).add(path.name)
    return found


def test_the_list_of_packages_is_that_of_the_tree(repository: Path, pyproject: dict[str, Any]) -> None:
    setuptools = pyproject["tool"]["setuptools"]
    found = packages_in(repository, setuptools["package-dir"])
    assert sorted(found) == setuptools["packages"]
    assert all("__init__.py" in names for names in found.values())


def test_the_wheel_has_the_bytes_of_the_tree(repository: Path, pyproject: dict[str, Any], wheel: Path) -> None:
    # so the tests of the tree are tests of the wheel
    expected = {}
    for package, folder in pyproject["tool"]["setuptools"]["package-dir"].items():
        for path in (repository / folder).rglob("*"):
            if path.is_file() and path.suffix not in NOT_INSTALLED:
                inner = path.relative_to(repository / folder).as_posix()
                expected[f"{package.replace('.', '/')}/{inner}"] = path.read_bytes()
    with zipfile.ZipFile(wheel) as archive:
        installed = {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}
    assert installed.keys() == expected.keys()
    assert [name for name in installed if installed[name] != expected[name]] == []


def test_nothing_is_installed_under_another_name(files: list[str]) -> None:
    assert {re.sub(r"-.*", "", name.split("/")[0]) for name in files} == {"koordinator"}


def test_the_requirements_pin_no_client_library(metadata: Message) -> None:
    required = metadata.get_all("Requires-Dist", [])
    base = {re.split(r"[^\w.-]", line)[0].lower() for line in required if "extra ==" not in line}
    assert base == {"click", "construct", "cramjam", "crc32c", "google-re2", "rich", "trio"}
    assert not base & CLIENTS


def test_nothing_required_has_an_upper_bound(metadata: Message) -> None:
    base = [line.partition(";")[0] for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert [line for line in base if re.search(r"[<=~]=|<", line.replace(">=", ""))] == []


def test_the_page_of_dependencies_names_each(repository: Path, pyproject: dict[str, Any]) -> None:
    extras = pyproject["project"]["optional-dependencies"]
    requirements = {"": pyproject["project"]["dependencies"]}
    requirements |= {name: extras[name] for name in ("control", "compression", "docker", "oauth", "spark", "tls")}
    names = {name for lines in requirements.values() for line in lines if (name := re.split(r"[^\w-]", line)[0])}
    page = (repository / "docs" / "dependencies.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?:`\w+`|\u2013)? ?\| ([\w, -]+?) \|", page, re.MULTILINE)
    assert {name for row in rows for name in row.split(", ")} == names - {"koordinator"}


def test_the_pipeline_is_a_small_part_of_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        sizes = {each.filename: each.compress_size for each in archive.infolist()}
    pipeline = sum(size for name, size in sizes.items() if name.startswith("koordinator/pipeline/"))
    assert pipeline < sum(sizes.values()) / 4


def test_the_licence_is_in_the_wheel_and_named(files: list[str], metadata: Message) -> None:
    assert metadata["License-Expression"] == "Apache-2.0"
    assert [name for name in files if name.endswith("/licenses/LICENSE")]


def test_links_of_the_description_work_on_a_package_index(metadata: Message, pyproject: dict[str, Any]) -> None:
    links = re.findall(r"\]\(([^)]+)\)", str(metadata.get_payload()))
    repository = pyproject["project"]["urls"]["Repository"]
    assert [link for link in links if link.startswith(repository)]
    assert [link for link in links if not link.startswith(("https://", "http://localhost"))] == []


def test_the_version_is_dated_in_the_changelog(repository: Path, metadata: Message) -> None:
    changelog = (repository / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(metadata['Version'])} - 2\d{{3}}-\d\d-\d\d$", changelog, re.MULTILINE)


def test_every_supported_python_is_named(metadata: Message, repository: Path) -> None:
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(metadata.get_all("Classifier", [])))
    assert named == [f"3.{minor}" for minor in range(11, 16)]
    makefile = (repository / "Makefile").read_text(encoding="utf-8")
    assert "(3, 11) <= sys.version_info[:2] <= (3, 15)" in makefile
    assert "python3.14" in makefile


def test_the_plugin_and_the_command_are_found_by_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt"))
        lines = archive.read(name).decode().splitlines()
    assert [line for line in lines if line] == [
        "[console_scripts]",
        "koordinator = koordinator.cli:main",
        "koordinator-pipeline = koordinator.pipeline.cli:main",
        "[pytest11]",
        "koordinator = koordinator.fixtures.plugin",
    ]
