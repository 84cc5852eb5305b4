"""Headless Chromium, driven by Playwright, without a network, for pages from files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

import pytest
from browsing.chromium import launched, tab
from browsing.recorded_traces import lines_of

from koordinator.emulator.pages.html import html_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # not for the whole session: Playwright runs an asyncio loop in this thread, which must not block
    with launched() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with tab(browser) as page:
        yield page


@pytest.fixture
def opened(page: Page, tmp_path: Path) -> Callable[..., Page]:
    """Return a function that opens the page of a recorded trace, by name, or of lines."""

    def open_it(trace: str | list[dict[str, Any]], anchor: str = "", scheme: str = "light", **texts: str) -> Page:
        page.emulate_media(color_scheme=cast("Literal['light', 'dark']", scheme))
        path = tmp_path / "trace.html"
        path.write_text(html_of(lines_of(trace) if isinstance(trace, str) else trace, **{"title": "a test", **texts}))
        page.goto(path.as_uri() + anchor)
        return page

    return open_it
