"""The pages of the documentation, and their code blocks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from marks.inner import WITHOUT_PLUGINS

ROOT = Path(__file__).parents[3]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("*/README.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


NEEDS_SHELL = pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="no curl and jq found")
BASH = shutil.which("bash") or "bash"
SHELL = """
set -eu
koordinator() { "$PYTHON" -m koordinator "$@"; }
curl() { command curl --silent --show-error --fail-with-body --max-time 40 "$@"; }
"""
"""Makes a script end at its first failure; curl fails with the response if the server refuses a request."""


class Block(NamedTuple):
    """A fenced block: its page, its number there, its info string and its text."""

    page: Path
    number: int
    info: str
    text: str

    @property
    def language(self) -> str:
        """The first word of the info string; a title may follow."""
        return self.info.partition(" ")[0]

    @property
    def name(self) -> str:
        """The name of the block in a test's id."""
        return f"{self.page.relative_to(ROOT)}-{self.number}"


BLOCKS = [
    Block(page, number, *match.groups())
    for page in PAGES
    for number, match in enumerate(FENCE.finditer(page.read_text(encoding="utf-8")), 1)
]


def blocks(*languages: str) -> list[Block]:
    """Return the blocks in these languages."""
    return [block for block in BLOCKS if block.language in languages]


def run_shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the commands of a block in a folder."""
    return subprocess.run(
        [BASH, "-c", SHELL + script],
        cwd=folder,
        env={**os.environ, "PYTHON": sys.executable, "PYTEST_ADDOPTS": WITHOUT_PLUGINS},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
