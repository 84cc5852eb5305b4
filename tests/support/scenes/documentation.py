"""The pages of the documentation, and their code blocks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("*/README.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block: its page, its number there, its language and its text."""

    page: Path
    number: int
    language: str
    text: str

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
