"""The page of the laboratory in a browser."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import laboratory
import pytest
from browsing.screenshots import kept

from koordinator.lab.cells import Cell, CellResult
from koordinator.lab.figures import Figures
from koordinator.lab.load import Load
from koordinator.lab.page import lab_page
from koordinator.lab.schemes import SCHEMES

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = pytest.mark.needs("chromium")

NARROW = 420


def opened(page: Page, folder: Path, *situations: str) -> Page:
    """Open the page of the committed run, reduced to these situations."""
    results = [
        CellResult(Cell(each["scheme"], each["situation"], Load()), (Figures(**each["figures"][0]),))
        for each in laboratory.read()["cells"]
        if each["situation"] in situations
    ]
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
    assert page.evaluate("document.querySelector('svg').getBoundingClientRect().width") > NARROW


def test_the_matrix_has_a_column_for_each_protocol(page: Page, tmp_path: Path) -> None:
    opened(page, tmp_path, "newcomer", "rolling", "slow-processing", "long-pause", "crash")
    with kept(page, "lab-matrix", ".scroll[data-figure='stopped_s'] table"):
        assert page.locator("section:visible th").all_inner_texts()[1:] == list(SCHEMES)
