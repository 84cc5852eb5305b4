"""ARCHITECTURE.md describes the tree and the import contract as they are."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
BYTES_MAX = 14 * 1024


def table(heading: str) -> list[str]:
    """Return the rows of the first table below a heading."""
    rows = re.findall(r"^\|.*$", PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0], re.MULTILINE)
    return rows[2:]


def test_the_page_is_short() -> None:
    assert len(PAGE.encode()) <= BYTES_MAX


def test_the_table_of_rooms_is_the_import_contract() -> None:
    rooms = [re.findall(r"`([\w.]+)`", row.split("|")[1]) for row in table("The rooms and their borders")]
    layers = [layer.replace("koordinator.", "").split(" | ") for layer in CONTRACTS[0]["layers"]]
    assert rooms == layers


@pytest.mark.parametrize("contract", [contract["name"] for contract in CONTRACTS[1:]])
def test_every_other_contract_is_listed(contract: str) -> None:
    assert f"* {contract}." in PAGE.replace("\n  ", " ")


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`([\w/]+/(?:\w+\.py)?)`", PAGE))))
def test_every_path_exists(path: str) -> None:
    assert (ROOT / path).exists() or (ROOT / "emulator" / path).exists()


def test_no_two_classes_of_the_packages_have_one_name() -> None:
    """But for private ones, Kafka's messages, and the twins of `koordinator_aio`."""
    places: dict[str, list[str]] = defaultdict(list)
    for package in ("emulator", "facade", "fixtures", "lab", "pipeline", "wire"):
        for path in (ROOT / package).rglob("*.py"):
            if not path.is_relative_to(ROOT / "wire" / "messages") and "aio" not in path.parts:
                for name in re.findall(r"^class ([A-Z]\w*)", path.read_text(encoding="utf-8"), re.MULTILINE):
                    places[name].append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_two_test_files_have_one_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in (ROOT / "tests").rglob("test_*.py"):
        places[path.name].append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
