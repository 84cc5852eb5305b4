"""The Python examples of the documentation have no type error: names, arguments and results exist as they are used."""

from __future__ import annotations

import re
import subprocess
import sys
from textwrap import indent
from typing import TYPE_CHECKING

from scenes.documentation import blocks

if TYPE_CHECKING:
    from pathlib import Path

    from scenes.documentation import Block

NAMES = """
from koordinator import Cluster, Group, faults
koordinator: Cluster
cluster: Cluster
group: Group
"""
"""The names that a fragment uses without a definition; mypy ignores others."""

FIXTURE = re.compile(r"^(\s*(?:async )?def \w+\()koordinator\b", re.MULTILINE)
OPTIONS = (
    "--config-file=",
    "--check-untyped-defs",
    "--ignore-missing-imports",
    "--disable-error-code=name-defined",
    "--disable-error-code=var-annotated",
)


def program_of(block: Block) -> str:
    """Return a module with the example, in which the fixture has its type."""
    text = FIXTURE.sub(r"\1koordinator: Cluster", block.text)
    return NAMES + text if block.language == "python" else f"{NAMES}\ndef fragment() -> None:\n{indent(text, '    ')}"


def test_the_examples_have_no_type_error(tmp_path: Path) -> None:
    for block in blocks("python", "py"):
        if not block.page.stem.startswith("pipeline"):
            name = re.sub(r"\W", "_", block.name)
            (tmp_path / f"{name}.py").write_text(program_of(block), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", *OPTIONS, "--cache-dir", tmp_path / "cache", tmp_path]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert checked.returncode == 0, checked.stdout
