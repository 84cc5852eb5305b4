"""A trace as one HTML file that opens offline: scripts, style and data are all inside.

The scripts are classic ones without a build step; each adds its part to the global `Koordinator`, so their order here
matters. A live page can serve the same files and mount the same component.
"""

from __future__ import annotations

import json
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SCRIPTS = ("model.js", "axis.js", "words.js", "draw.js", "tape.js", "as_test.js", "timeline.js")
"""The component, in the order it is loaded."""

STYLES = ("timeline.css",)
"""Its style sheets."""

POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
"""What the page may load: nothing. What stands in a trace came from anybody."""


def html_of(lines: Iterable[Mapping[str, object]], *, title: str, subtitle: str = "") -> str:
    """The page that shows these lines of a trace (see `koordinator.emulator.trace.trace`).

    `title` and `subtitle` are plain text: the test and why it failed, say.
    """
    data = _inside_script({"title": title, "subtitle": subtitle, "lines": list(lines)})
    scripts = "\n".join(static(name) for name in SCRIPTS)
    styles = "\n".join(static(name) for name in STYLES)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width">
<title>{escape(title)}</title>
<style>body {{ margin: 0; }}
{styles}</style>
</head>
<body>
<main id="timeline"></main>
<script type="application/json" id="trace">{data}</script>
<script>
{scripts}
const given = JSON.parse(document.getElementById("trace").textContent);
Koordinator.timeline = Koordinator.mount(document.getElementById("timeline"), given.lines, given);
</script>
</body>
</html>
"""


@cache
def static(name: str) -> str:
    """The text of one of the component's files."""
    return (files("koordinator.emulator.pages") / name).read_text(encoding="utf-8")


def _inside_script(data: object) -> str:
    """JSON that cannot end the script element it stands in, nor begin a comment there."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
