"""The page of a trace: a single file that loads nothing, whatever the trace contains."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any

import pytest
from browsing.recorded_traces import lines_of

from koordinator.emulator.pages.dashboard import FILES
from koordinator.emulator.pages.html import STYLES, html_of, modules_of


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the texts of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.elements[-1] if self.elements else ("", {})
        self.texts[attributes.get("id") or tag] = self.texts.get(attributes.get("id") or tag, "") + data


def test_a_page_loads_nothing() -> None:
    page = html_of(lines_of("static_bounce"), title="a static bounce")
    assert re.findall(r"https?://[^\"'\s]*", page) == []
    for tag, attributes in Elements(page).elements:
        assert not {"src", "href", "srcset", "action"} & attributes.keys(), tag
        assert tag not in {"link", "iframe", "object", "img", "base"}
    assert not re.search(r"@import [\"']|url\(|\bfetch\(|XMLHttpRequest|import\s*\(", page)


def test_the_content_of_a_trace_cannot_leave_its_script_element() -> None:
    evil = "</script><script>alert(1)</script><!-- & \u2028 ' \""
    lines = [{"kind": "conn", "seq": 1, "wall_ts": 1, "client_id": evil}]
    elements = Elements(html_of(lines, title=evil, subtitle=evil))
    assert [tag for tag, _ in elements.elements].count("script") == 2
    assert not set("<>&") & set(elements.texts["trace"])
    data = json.loads(elements.texts["trace"])
    assert data == {"title": evil, "subtitle": evil, "lines": lines, "groups": [], "drawings": {}}
    assert elements.texts["title"].strip() == evil


@pytest.mark.parametrize("lines", [[], [{"kind": "header", "schema_version": 1, "wall_ts": 1}]])
def test_a_trace_without_events_has_a_page(lines: list[dict[str, Any]]) -> None:
    assert json.loads(Elements(html_of(lines, title="nothing")).texts["trace"])["lines"] == lines


def test_a_page_is_only_slightly_larger_than_its_trace() -> None:
    lines = lines_of("static_bounce")
    empty = len(html_of([], title="t").encode())
    assert empty < 150_000
    assert len(html_of(lines, title="t").encode()) - empty < 1.3 * len(json.dumps(lines, separators=(",", ":")))


def test_every_file_of_the_folder_is_used() -> None:
    names = {each.name for each in files("koordinator.emulator.pages").iterdir() if each.name.endswith((".js", ".css"))}
    page = {f"{name}.js" for name in modules_of("page")}
    assert names == {*FILES, *page, *STYLES}
