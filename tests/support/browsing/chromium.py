"""Headless Chromium, driven by Playwright, without a network, for pages from files."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    # grey text: screenshots are smaller and equal on every screen
    "--disable-lcd-text",
)

WAIT_MS = 120_000
"""The limit of a wait; it only ends a test that hangs."""


@contextmanager
def launched() -> Iterator[Browser]:
    """Start the browser. Until it ends, an asyncio loop runs in this thread."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only where there is a browser

    program = next(path for path in map(shutil.which, BROWSERS) if path)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=QUIETLY)
        yield browser
        browser.close()


def processor_s(page: Page) -> float:
    """Return the processor seconds of all processes of the page's browser."""
    browser = page.context.browser
    assert browser is not None, "the page has a browser"
    session = browser.new_browser_cdp_session()
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    return sum(float(process["cpuTime"]) for process in processes)


@contextmanager
def tab(browser: Browser) -> Iterator[Page]:
    """Open a tab; fail the test on a script error or a network request."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, offline=True)
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type in {"error", "warning"} else None)
    page.on("request", lambda request: None if request.url.startswith("file:") else wrong.append(request.url))
    yield page
    context.close()
    assert wrong == []
