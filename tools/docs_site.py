"""Hooks of MkDocs for `make docs-site` (mkdocs.yml).

Pages link to files outside docs/: other READMEs, recipes, tests. The site has no repository beside it, so each of those
files becomes a page below `source/`, and links lead there. Anchors are those of GitHub.
"""

from __future__ import annotations

import os.path
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File
from pymdownx.slugs import slugify

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)(?=(?:#[^)\s]*)?\))")
MERMAID = re.compile(r"^```mermaid\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
ARROW = re.compile(r"^ +(\S+) --> (\S+)(?: : (.*))?$", re.MULTILINE)

LANGUAGES = {".py": "python", ".sh": "bash", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml", ".json": "json"}

PATHS: dict[str, Path] = {}
"""The file behind each page below `source/`."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give headings GitHub's anchors."""
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each file outside docs/ that a page links to, directly or through others."""
    ahead = [Path(each.abs_src_path) for each in files.documentation_pages() if each.abs_src_path]
    ahead += [ROOT / "CHANGELOG.md"]
    seen = set(ahead[:-1])
    while ahead:
        path = ahead.pop()
        if path not in seen:
            seen.add(path)
            PATHS[_uri(path)] = path
            files.append(File.generated(config, _uri(path), content=_content(path)))
        if path.suffix == ".md":
            ahead += [each for each in _targets(path) if each not in seen and not each.is_relative_to(DOCS)]
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - MkDocs' names
    """Rewrite links to files outside docs/, and draw diagrams as tables: their script would come from another host."""
    uri = page.file.src_uri
    path = PATHS.get(uri, DOCS / uri)

    def link(match: re.Match[str]) -> str:
        target = (path.parent / match[1]).resolve()
        return os.path.relpath(_uri(target), Path(uri).parent) if target.is_file() else match[0]

    return MERMAID.sub(_table, LINK.sub(link, markdown) if path.suffix == ".md" else markdown)


def _uri(path: Path) -> str:
    """Return a file's place on the site."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    return f"source/{path.relative_to(ROOT).as_posix()}{'' if path.suffix == '.md' else '.md'}"


def _content(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    return f"# {path.relative_to(ROOT).as_posix()}\n\n````{LANGUAGES.get(path.suffix, 'text')}\n{text}````\n"


def _targets(path: Path) -> Iterator[Path]:
    for name in LINK.findall(path.read_text(encoding="utf-8")):
        target = (path.parent / name).resolve()
        if target.is_file() and target.is_relative_to(ROOT):
            yield target


def _table(diagram: re.Match[str]) -> str:
    rows = [f"| {before} | {after} | {label} |" for before, after, label in ARROW.findall(diagram[1])]
    return "\n".join(["| from | to | cause |", "|---|---|---|", *rows, ""]).replace("[*]", "-")
