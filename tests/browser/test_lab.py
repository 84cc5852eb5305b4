"""The page of the laboratory in a browser."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import laboratory
import pytest
from browsing.screenshots import kept

from koordinator.lab.figures import Figures
from koordinator.lab.page import lab_page
from koordinator.lab.schemes import SCHEMES

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = pytest.mark.needs("chromium")

NARROW = 420


def opened(page: Page, folder: Path, *situations: str) -> Page:
    """Open the page of the committed run, reduced to these situations."""
    results = [each for each in laboratory.results() if each.cell.situation in situations]
    path = folder / "lab.html"
    path.write_text(lab_page(results), encoding="utf-8")
    page.goto(path.as_uri())
    return page


def test_the_selected_figure_is_the_only_one_shown(page: Page, tmp_path: Path) -> None:
    opened(page, tmp_path, "crash")
    names = [each.name for each in fields(Figures)]
    for name in (names[0], names[-1]):
        page.select_option("#figure", name)
        shown = page.evaluate(
            "[...document.querySelectorAll('[data-figure]:not([hidden])')].map(e => e.dataset.figure)"
        )
        assert set(shown) == {name}


def test_a_cell_leads_to_its_timeline(page: Page, tmp_path: Path) -> None:
    opened(page, tmp_path, "newcomer", "crash")
    page.select_option("#figure", "moved")
    page.locator("section:visible a[href='#crash.consumer']").click()
    top = page.locator("[id='crash.consumer']").bounding_box()
    assert top is not None
    assert -1 <= top["y"] < 800
    assert page.locator("[id='crash.consumer'] rect").count() > 12


def test_the_steps_show_who_has_which_partition(page: Page, tmp_path: Path) -> None:
    opened(page, tmp_path, "bounce")
    heading, _, bounced, _ = (row.locator("th, td").all_inner_texts() for row in page.locator(".steps tr").all())
    assert heading[1:] == ["before", "0 s", "10 s", "301 s"]
    assert bounced[2:4] == ["down", "none"]
    assert bounced[1] == bounced[4] == "14710"


def test_the_page_fits_a_phone(page: Page, tmp_path: Path) -> None:
    page.set_viewport_size({"width": NARROW, "height": 800})
    opened(page, tmp_path, "bounce")
    assert page.evaluate("document.documentElement.scrollWidth") == NARROW
    assert page.evaluate("document.querySelector('details:not(.other) svg').getBoundingClientRect().width") > NARROW


def test_the_matrix_has_a_column_for_each_protocol_of_today_and_for_all_at_a_switch(page: Page, tmp_path: Path) -> None:
    opened(page, tmp_path, "newcomer", "rolling", "slow-processing", "long-pause", "crash")
    of_today = [name for name, scheme in SCHEMES.items() if not scheme.is_other]
    headings = page.locator(".scroll[data-figure='stopped_s'] th:visible")
    assert headings.all_inner_texts()[1:] == of_today
    assert page.locator("details:visible").count() == 5 * len(of_today)
    shades = darkest(page)
    assert shades == [0.6] * 5
    page.get_by_label("Show schemes").check()
    assert darkest(page) != shades
    with kept(page, "lab-matrix", ".scroll[data-figure='stopped_s'] table"):
        assert headings.all_inner_texts()[1:] == list(SCHEMES)
    assert page.locator("details:visible").count() == 5 * len(SCHEMES)


def darkest(page: Page) -> list[float]:
    """Return the strength of the colour of the worst cell that a protocol of today has, in each row with a colour."""
    rows = page.evaluate("""() => [...document.querySelectorAll("[data-figure='stopped_s'].scroll tr")].map((row) =>
        [...row.querySelectorAll(".cell:not(.other)")].map((cell) =>
            Number(getComputedStyle(cell).backgroundColor.match(/[\\d.]+/g)[3] ?? 1)))""")
    return [round(max(row), 2) for row in rows if row and max(row)]


def test_the_contents_lead_to_every_part_of_the_page(page: Page, tmp_path: Path) -> None:
    opened(page, tmp_path, "bounce", "crash")
    links = page.locator("nav a")
    assert links.all_inner_texts() == [
        "Advice for this load",
        "All protocols in all situations",
        "Step by step",
        "Situations",
        "bounce: a member restarts in time",
        "crash: a member is killed",
        "Sources",
    ]
    for link in links.all():
        link.click()
        name = page.evaluate("location.hash.slice(1)")
        top = page.locator(f"[id='{name}']").bounding_box()
        assert top is not None
        assert 0 <= top["y"] < 800
