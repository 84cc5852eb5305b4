"""`make broken-rules`: break each rule of tests/support/broken in a copy of the package, and expect its tests to fail.

Exit status 1: a test passes although its rule is broken.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import click
from broken.every_rule import EVERY_RULE

if TYPE_CHECKING:
    from broken.rules import BrokenRule

ROOT = Path(__file__).parents[2]
ROOMS = ("emulator", "wire", "fixtures", "pipeline", "lab")
LIMIT_S = 300
FAILED = re.compile(r"^(?:FAILED|ERROR) \S*::(\w+)", re.MULTILINE)


def failing(rule: BrokenRule, package: Path) -> set[str]:
    """Return the names of the rule's tests that fail with the package changed by it."""
    # the folder `facade` is the package itself
    broken = package / rule.path.removeprefix("facade/")
    text = broken.read_text()
    broken.write_text(text.replace(rule.text, rule.instead))
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider", *sorted(rule.tests)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(package.parent)},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    finally:
        broken.write_text(text)
    return set(FAILED.findall(ran.stdout))


def main() -> int:
    """Break every rule; return the exit status."""
    passed = 0
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, "koordinator")
        shutil.copytree(ROOT / "facade", package)
        for room in ROOMS:
            shutil.copytree(ROOT / room, package / room)
        for rule in EVERY_RULE:
            failed = failing(rule, package)
            passing = [name for name in rule.test_names if name not in failed]
            passed += len(passing)
            click.echo(f"{'PASS' if passing else 'fail'}  {rule.part}: {rule.rule} {' '.join(passing)}".rstrip())
    click.echo(
        f"{len(EVERY_RULE)} rules broken, "
        f"{passed} of {sum(len(each.tests) for each in EVERY_RULE)} tests pass nevertheless"
    )
    return int(passed > 0)


if __name__ == "__main__":
    sys.exit(main())
