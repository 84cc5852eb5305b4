"""The description for a package index: README.md with absolute links. All other metadata is in pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Repository"]
LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!https?://|#)([^)]+)\)")


def absolute(link: re.Match[str]) -> str:
    """Return a Markdown link or image with an absolute address."""
    bang, text, path = link.groups()
    return f"{bang}{text}({REPOSITORY}/{'raw' if bang else 'blob'}/HEAD/{path})"


setup(
    long_description=LINK.sub(absolute, (ROOT / "README.md").read_text(encoding="utf-8")),
    long_description_content_type="text/markdown",
)
