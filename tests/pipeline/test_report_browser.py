"""The report in a browser without a network: all sections are visible, and nothing exceeds the page or a sheet."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Literal

import pytest
from browsing.chromium import launched, tab
from browsing.screenshots import DOCS, KEEP
from spark.report_store import store_facts

from koordinator.pipeline.report.page import CONTENTS, page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def shown(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    path: Path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page(store_facts(spark), title="a report", timelines={"t": "t.html"}), encoding="utf-8")
    with launched() as browser, tab(browser) as shown:
        shown.goto(path.as_uri())
        yield shown


def test_a_link_of_the_contents_opens_its_section_and_shows_the_heading(shown: Page) -> None:
    open_details(shown, are_open=False)
    for id_, name in CONTENTS:
        shown.click(f"nav >> text={name}")
        assert shown.evaluate("location.hash") == f"#{id_}"
        assert shown.locator(f"#{id_} .about").first.is_visible(), id_
        heading = shown.locator(f"section:has(#{id_}) h2").bounding_box()
        assert heading is not None
        assert heading["y"] >= 0, id_


def contrasts(shown: Page) -> list[float]:
    """Return the contrast of each visible text with the page's background, as in WCAG 2: 1 is none, 21 the greatest."""
    return [float(each) for each in shown.evaluate(CONTRASTS)]


CONTRASTS = """() => {
  const channels = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((each) => each / 255);
  const linear = (each) => each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4;
  const luminance = (colour) => channels(colour).map(linear)
    .reduce((sum, each, at) => sum + each * [0.2126, 0.7152, 0.0722][at], 0);
  const paper = luminance(getComputedStyle(document.querySelector("section:not(.tiles)")).backgroundColor);
  const texts = [...document.querySelectorAll("h1, h2, p, td:not(.hot), th, a")]
    .map((each) => getComputedStyle(each).color);
  const labels = [...document.querySelectorAll("svg text")].map((each) => getComputedStyle(each).fill);
  return [...texts, ...labels].map(luminance)
    .map((each) => (Math.max(each, paper) + 0.05) / (Math.min(each, paper) + 0.05));
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_and_charts_are_legible_in_the_light_and_in_the_dark(
    shown: Page, scheme: Literal["light", "dark"]
) -> None:
    shown.emulate_media(color_scheme=scheme)
    open_details(shown)
    found = contrasts(shown)
    is_dark = shown.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 28)"
    shown.emulate_media(color_scheme="light")
    assert is_dark == (scheme == "dark")
    assert len(found) > 100
    assert min(found) >= LEGIBLE


LEGIBLE = 4.5
"""The least contrast of text in WCAG 2, level AA."""


def test_every_chart_fills_its_section_and_has_text(shown: Page) -> None:
    open_details(shown)
    for chart in shown.locator("svg.wide").all():
        box = chart.bounding_box()
        assert box is not None
        assert box["width"] > 900
        assert box["height"] > 60
        assert chart.locator("text").count() > 2


def open_details(shown: Page, *, are_open: bool = True) -> None:
    shown.evaluate("(open) => document.querySelectorAll('details').forEach((each) => { each.open = open; })", are_open)


@pytest.mark.parametrize("width", [1280, 420])
def test_the_details_begin_within_four_screens(shown: Page, width: int) -> None:
    shown.set_viewport_size({"width": width, "height": 800})
    open_details(shown, are_open=False)
    assert shown.evaluate("document.documentElement.scrollHeight") <= 4 * 800


@pytest.mark.parametrize("width", [1280, 420])
def test_nothing_exceeds_the_page_width(shown: Page, width: int) -> None:
    shown.set_viewport_size({"width": width, "height": 800})
    open_details(shown)
    assert shown.evaluate("document.documentElement.scrollWidth") <= width


def test_the_tables_show_one_group_if_it_is_selected(shown: Page) -> None:
    open_details(shown)
    every = shown.locator("tr.group:visible").count()
    shown.get_by_label("d", exact=True).check()
    longest = shown.locator("#wasted table").last.locator("tbody tr")
    of_d = longest.filter(has=shown.locator("td:first-child", has_text=re.compile("^d$")))
    assert longest.locator("visible=true").count() == of_d.count() == 5
    assert longest.count() == 8
    shown.get_by_label("all groups").check()
    assert shown.locator("tr.group:visible").count() == every


def test_only_tables_scroll_sideways_on_a_phone(shown: Page) -> None:
    shown.set_viewport_size({"width": 420, "height": 800})
    open_details(shown)
    wide = "[...document.querySelectorAll('body *')].filter((each) => each.scrollWidth > each.clientWidth"
    scrolling = f"{wide} && ['auto', 'scroll'].includes(getComputedStyle(each).overflowX))"
    assert shown.evaluate(f"{scrolling}.every((each) => each.firstElementChild.matches('table:only-child'))")
    assert shown.evaluate(f"{scrolling}.length") > 0


def test_every_chart_fits_a_phone_and_is_legible(shown: Page) -> None:
    shown.set_viewport_size({"width": 420, "height": 800})
    open_details(shown)
    charts = [chart for chart in shown.locator("svg.chart").all() if chart.is_visible()]
    assert len(charts) == shown.locator("figure").count() == 7
    for chart in charts:
        box = chart.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 420
        inside = """(svg) => [...svg.querySelectorAll('text')].map((text) => text.getBoundingClientRect())
            .filter((text) => text.width).map((text) => [text.left, text.right, text.height])"""
        texts = chart.evaluate(inside)
        assert min(left for left, _, _ in texts) >= 0
        assert max(right for _, right, _ in texts) <= 420
        assert min(height for _, _, height in texts) >= 9


def test_nothing_is_cut_off_in_print(shown: Page) -> None:
    shown.set_viewport_size({"width": 1040, "height": 720})  # A4 landscape without margins
    open_details(shown, are_open=False)
    shown.emulate_media(media="print")
    assert all(chart.is_visible() for chart in shown.locator("svg.wide").all())
    cut = shown.evaluate("[...document.querySelectorAll('.scroll')].map((each) => each.scrollWidth - each.clientWidth)")
    shown.emulate_media(media="screen")
    assert max(cut) <= 1


@pytest.mark.skipif(
    KEEP not in os.environ, reason=f"the picture in the docs is made anew with {KEEP}, after make report"
)
def test_the_picture_in_the_docs_shows_the_demo_report() -> None:
    with launched() as browser, tab(browser) as shown:
        shown.goto((DOCS.parent / "build" / "report" / "report.html").as_uri())
        assert shown.title() == "The demo"
        shown.set_viewport_size({"width": 1280, "height": 1400})
        shown.screenshot(path=DOCS / "img" / "pipeline-report.png")
