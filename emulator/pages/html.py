"""The page of one trace: a single HTML file that opens without a network, with scripts, styles and data inside.

The scripts are ES modules. A page from a file cannot import other files, so `bundle` joins the modules into one script:
each module becomes a function that returns its exports. The live page (`dashboard`) serves the same modules as files.
"""

from __future__ import annotations

import json
import re
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from .feed import drawn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.trace.exchanges import Line

STYLES = ("timeline.css",)
"""The style sheets of the timeline."""

POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
"""The content security policy: the page loads nothing, whatever the trace contains."""

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:const|class|function) (\w+))", re.MULTILINE)


def html_of(lines: Iterable[Line], *, title: str, subtitle: str = "") -> str:
    """Return the page of the lines of a trace (see `koordinator.emulator.trace.trace`).

    `title` and `subtitle` are plain text, such as the name of a test and its failure.
    """
    styles = "\n".join(static(name) for name in STYLES)
    kept = list(lines)
    data = json.dumps({"title": title, "subtitle": subtitle, "lines": kept, **drawn(kept)}, separators=(",", ":"))
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
<script type="application/json" id="trace">{_escaped(data)}</script>
<script type="module">
{bundle("page")}</script>
</body>
</html>
"""


@cache
def static(name: str) -> str:
    """Return the text of one of the files in this folder."""
    return (files("koordinator.emulator.pages") / name).read_text(encoding="utf-8")


@cache
def modules_of(entry: str) -> tuple[str, ...]:
    """Return the names of a module and of its imports, without `.js`, each after the modules that it imports."""
    names: dict[str, None] = {}

    def visit(name: str) -> None:
        for _, imported in _IMPORT.findall(static(f"{name}.js")):
            if imported not in names:
                visit(imported)
        names[name] = None

    visit(entry)
    return tuple(names)


@cache
def bundle(entry: str) -> str:
    """Return one script of a module and its imports."""
    return "".join(map(_as_function, modules_of(entry)))


def _as_function(name: str) -> str:
    text = _IMPORT.sub(lambda match: f"const {match[1]} = ${match[2]};\n", static(f"{name}.js"))
    exports = ", ".join(_EXPORT.findall(text))
    return f"const ${name} = (() => {{\n{_EXPORT.sub('', text)}return {{ {exports} }};\n}})();\n"


def _escaped(text: str) -> str:
    """Return JSON that cannot end its script element or start a comment there."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
