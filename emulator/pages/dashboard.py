"""The live page: the timeline of a cluster with control panels, as an HTML page, style sheets and ES modules."""

from __future__ import annotations

from .html import STYLES, modules_of, static

ENTRY = "dashboard"

FILES = (*STYLES, "dashboard.css", *(f"{name}.js" for name in modules_of(ENTRY)))
"""The files that the page loads from `FOLDER`."""

FOLDER = "/static"


def dashboard_html() -> str:
    """Return the page."""
    return static("dashboard.html").replace("<!-- files -->", "\n".join(map(_element, FILES)))


def _element(name: str) -> str:
    if name.endswith(".css"):
        return f'<link rel="stylesheet" href="{FOLDER}/{name}">'
    if name == f"{ENTRY}.js":
        return f'<script type="module" src="{FOLDER}/{name}"></script>'
    return f'<link rel="modulepreload" href="{FOLDER}/{name}">'
