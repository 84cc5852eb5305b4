"""Check our prose for phrases that avoid the noun, where a clause stands for a word of the field.

It reads docstrings, comments, help texts and Markdown. Each folder has a limit in hits per thousand texts; beyond the
limit the places are printed and the exit status is 1. Markdown prose lines over 120 characters always fail.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PHRASES = re.compile(
    r"(?:^|[.;:,(] )[Ww]hat (?:is|are|was|were|has|have|it|they|an?|the|there|to|one|each|comes?|goes|[a-z]+s)\b"
    r"|(?:^|[.;:,(] )[Ww]ho(?:ever)? [a-z]+"
    r"|\b(?:[Ss]ome|[Nn]o|[Ee]very|[Aa]ny)body\b|\bwhom\b"
    r"|\b(?:is|are|was|were) (?:told|said|gone|wanted)\b"
    r"|\b(?:has|have|had) come\b"
    r"|\b[Ss]o (?:many|long|often|much|late|soon)\b"
    r"|\b(?:anew|[Ll]ikewise|dear(?:er|est)?|for ever|wish(?:es|ed)?)\b"
    r"|\bof (?:him|her|it)self\b|\bof themselves\b"
    r"|^(?:As above|The same)\b"
)

LIMITS = {"tests": 20.0}
"""Hits per thousand texts, by top-level folder."""

LIMIT = 10.0
"""The limit of every other folder."""

LINE_MAX = 120

DIRECTIVE = re.compile(r"#\s*(?:noqa|type:|pragma|fmt|mypy|ruff|!)")


def texts_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line number and text of each docstring, comment, help text or Markdown line of a file."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from _markdown_lines(source)
        return
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, " ".join(text.split())
            case ast.keyword(arg="help", value=ast.Constant(value=str(text))):
                yield node.value.lineno, text
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not DIRECTIVE.match(token.string):
            yield token.start[0], token.string.lstrip("# ")


def _markdown_lines(source: str) -> Iterator[tuple[int, str]]:
    fenced = False
    for number, line in enumerate(source.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and line.strip():
            yield number, line.strip()


def main() -> int:
    """Check the files that git tracks; return the exit status."""
    root = Path(__file__).parents[1]
    listing = subprocess.run(["git", "ls-files", "*.py", "*.md"], cwd=root, check=True, capture_output=True, text=True)  # noqa: S607
    texts: dict[str, int] = {}
    hits: dict[str, list[str]] = {}
    long_lines = []
    for name in listing.stdout.splitlines():
        folder = name.partition("/")[0] if "/" in name else "."
        for number, text in texts_of(root / name):
            texts[folder] = texts.get(folder, 0) + 1
            if PHRASES.search(text):
                hits.setdefault(folder, []).append(f"{name}:{number}: {text[:LINE_MAX]}")
            if name.endswith(".md") and len(text) > LINE_MAX and not text.startswith("|"):
                long_lines.append(f"{name}:{number}: {len(text)} characters, at most {LINE_MAX}")
    failures = long_lines
    for folder, places in hits.items():
        rate, limit = 1000 * len(places) / texts[folder], LIMITS.get(folder, LIMIT)
        if rate > limit:
            failures += [*places, f"{folder}: {rate:.1f} per thousand texts, at most {limit:g}"]
    sys.stdout.write("".join(f"{failure}\n" for failure in failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
