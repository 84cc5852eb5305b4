"""The versions that the README promises are those that platforms.md says were tested."""

from __future__ import annotations

import re
import tomllib

from scenes.documentation import ROOT

from koordinator.emulator.config.settings import RELEASES

RANGE = re.compile(r"(?:Python|CPython) (3\.\d+) to (3\.\d+)")


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_every_page_names_the_same_versions_of_python() -> None:
    pages = ("README.md", "CONTRIBUTING.md", "docs/platforms.md")
    ranges = {name: set(RANGE.findall(text(name))) for name in pages}
    project = tomllib.loads(text("pyproject.toml"))["project"]
    supported = [each.rpartition(" :: ")[2] for each in project["classifiers"] if re.search(r":: 3\.\d+$", each)]
    assert ranges == {name: {(supported[0], supported[-1])} for name in pages}
    tested = {version for row in re.findall(r"^\| (3\.[\d., ]+) \|", text("docs/platforms.md"), re.MULTILINE)
              for version in row.split(", ")}  # fmt: skip
    assert tested == set(supported)


def test_the_readme_names_every_release_and_the_default() -> None:
    pattern = r"behaves like Kafka ([\d.]+);\s+`--kafka-version` selects ([\d., or]+)\."
    ((default, others),) = re.findall(pattern, text("README.md"))
    assert [*re.findall(r"\d\.\d", others), default] == list(RELEASES)
