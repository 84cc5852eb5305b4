"""Check our prose for phrases that avoid the noun, where a clause stands for a word of the field.

It reads docstrings, comments, help texts and Markdown. Each folder has a limit in hits per thousand texts; beyond the
limit the places are printed and the exit status is 1. Markdown prose lines over 120 characters always fail.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter, defaultdict
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

OUTPUTS = {"build", "dist", "node_modules", "test-results"}
"""Folders that are not sources."""

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


def failures_of(root: Path) -> list[str]:
    """Return a line for each long Markdown line, and for each hit in a folder that exceeds its limit."""
    texts: Counter[str] = Counter()
    hits: defaultdict[str, list[str]] = defaultdict(list)
    failures = []
    for path in _sources(root):
        name = path.relative_to(root)
        folder = name.parts[0] if len(name.parts) > 1 else "."
        for number, text in texts_of(path):
            texts[folder] += 1
            if PHRASES.search(text):
                hits[folder].append(f"{name}:{number}: {text[:LINE_MAX]}")
            if path.suffix == ".md" and len(text) > LINE_MAX and not text.startswith("|"):
                failures.append(f"{name}:{number}: {len(text)} characters, at most {LINE_MAX}")
    for folder, places in hits.items():
        rate, limit = 1000 * len(places) / texts[folder], LIMITS.get(folder, LIMIT)
        if rate > limit:
            failures += [*places, f"{folder}: {rate:.1f} per thousand texts, at most {limit:g}"]
    return failures


def _sources(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*")):
        folders = path.relative_to(root).parts[:-1]
        if path.suffix in {".py", ".md"} and not any(name.startswith(".") or name in OUTPUTS for name in folders):
            yield path


def main() -> int:
    """Check the repository; return the exit status."""
    failures = failures_of(Path(__file__).parents[1])
    sys.stdout.write("".join(f"{failure}\n" for failure in failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
