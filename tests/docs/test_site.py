"""The documentation as a site: every page is in its navigation, and it needs no other host."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
FOREIGN = re.compile(r'<(?:script|img|iframe)[^>]*\ssrc="?https?:|<link[^>]*\srel="?stylesheet[^>]*href="?https?:')


def pages(nav: object) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for each in nav.values() if isinstance(nav, dict) else nav:  # type: ignore[union-attr]
            yield from pages(each)


def test_the_navigation_has_every_page_once() -> None:
    docs = ROOT / "docs"
    named = [name for name in pages(SITE["nav"]) if not name.startswith("source/")]
    assert sorted(named) == sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))


@pytest.mark.needs("mkdocs")
def test_the_site_builds_without_a_warning_and_loads_nothing_from_other_hosts(tmp_path: Path) -> None:
    own = ROOT / ".venv-docs" / "bin"
    command = shutil.which("mkdocs", path=f"{own}{os.pathsep}{os.environ['PATH']}")
    assert command
    built = subprocess.run(
        [command, "build", "--strict", "--site-dir", tmp_path],
        cwd=ROOT,
        env={**os.environ, "PATH": f"{Path(command).parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    html = {path: path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.html")}
    assert {path.name: found for path, text in html.items() if (found := FOREIGN.findall(text))} == {}
    assert (tmp_path / "search" / "search_index.js").stat().st_size > 0
    assert "expire_session" in html[tmp_path / "api.html"]
