"""The live page, whose files a server serves: the same component as in a page of a file, and the levers beside it."""

from __future__ import annotations

from .html import SCRIPTS, STYLES, static

FILES = (*STYLES, "dashboard.css", *SCRIPTS, "panels.js", "dashboard.js")
"""Everything the page loads, in this order, from `FOLDER`."""

FOLDER = "/static"


def dashboard_html() -> str:
    """The page itself."""
    return static("dashboard.html").replace("<!-- files -->", "\n".join(map(_element, FILES)))


def _element(name: str) -> str:
    if name.endswith(".css"):
        return f'<link rel="stylesheet" href="{FOLDER}/{name}">'
    return f'<script src="{FOLDER}/{name}" defer></script>'
