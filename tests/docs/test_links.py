"""Links between documents lead somewhere, and docs/index.md leads to every page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *ROOT.glob("*/README.md")]
FOLDERS = "bench|compose|docs|emulator|examples|facade|fixtures|pipeline|tests|tools|wire"
PATH = re.compile(rf"`((?:{FOLDERS})/[\w./*-]*)`")
LINK = re.compile(r"\]\((?!https?://)([^)#\s]*)(?:#([^)\s]*))?\)")


def anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for name, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), name
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{name}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_in_code_style_exists(page: Path) -> None:
    named = PATH.findall(page.read_text(encoding="utf-8"))
    assert [name for name in named if not any(ROOT.glob(name.rstrip("/")))] == []


def test_every_page_can_be_reached_from_the_index() -> None:
    reached: set[Path] = set()
    ahead = [ROOT / "docs" / "index.md"]
    while ahead:
        page = ahead.pop().resolve()
        if page not in reached and page.suffix == ".md":
            reached.add(page)
            ahead += [page.parent / name for name, _ in LINK.findall(page.read_text(encoding="utf-8")) if name]
    assert {path.resolve() for path in (ROOT / "docs").glob("*.md")} <= reached
