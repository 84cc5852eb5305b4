"""CONTRIBUTING.md says which files an addition touches: they exist, and have the tables and classes that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECTION = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Add an API", 1)[1].split("\n## ", 1)[0]
ROWS = re.findall(r"^\| (an? .*?) \| (.*) \|$", SECTION, re.MULTILINE)


@pytest.mark.parametrize(("addition", "places"), ROWS, ids=[addition for addition, _ in ROWS])
def test_an_addition_touches_files_that_exist(addition: str, places: str) -> None:
    marked = re.findall(r"`([^`]+)`", places)
    paths = [ROOT / name for name in marked if "/" in name]
    assert paths, addition
    assert [path for path in paths if not path.exists()] == []
    code = "".join(path.read_text(encoding="utf-8") for path in paths if path.suffix == ".py")
    names = [name for name in marked if "/" not in name and name != "make docs"]
    assert [name for name in names if not re.search(rf"^(?:class )?{name}\b", code, re.MULTILINE)] == []
