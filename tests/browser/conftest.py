"""A browser for pages from files: headless Chromium, driven by Playwright, without a network."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest
from recorded import lines_of

from koordinator.emulator.pages.html import html_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

QUIETLY = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # grey letters: pictures are smaller, and the same on every screen
    "--disable-lcd-text",
)

WAIT_MS = 20_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # not for the whole session: as long as it lasts an asyncio loop runs in this thread, in which nothing may wait
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only where there is a browser

    program = next(path for path in map(shutil.which, BROWSERS) if path)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=QUIETLY)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A tab that fails its test when a script of the page does, or when the page asks the network for anything."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, offline=True)
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type in {"error", "warning"} else None)
    page.on("request", lambda asked: None if asked.url.startswith("file:") else wrong.append(asked.url))
    yield page
    context.close()
    assert wrong == []


@pytest.fixture
def opened(page: Page, tmp_path: Path) -> Callable[..., Page]:
    """Opens the page of a trace: a recorded one by its name, or lines."""

    def open_it(trace: str | list[dict[str, Any]], anchor: str = "", scheme: str = "light", **texts: str) -> Page:
        page.emulate_media(color_scheme=cast("Literal['light', 'dark']", scheme))
        path = tmp_path / "trace.html"
        path.write_text(html_of(lines_of(trace) if isinstance(trace, str) else trace, **{"title": "a test", **texts}))
        page.goto(path.as_uri() + anchor)
        return page

    return open_it
