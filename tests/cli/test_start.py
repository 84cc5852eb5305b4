"""What `koordinator serve` loads before it listens."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import koordinator.cli.serve
from koordinator.emulator.config.options import Options
served = koordinator.cli.serve.build(Options(clock={clock!r}))
rooms = "koordinator.emulator.control", "koordinator.emulator.verify"
print([name for name in sys.modules if name.startswith(rooms)])
"""


@pytest.mark.parametrize(("clock", "is_loaded"), [(None, False), ("auto", True)])
def test_a_cluster_without_an_automatic_clock_is_built_without_its_control(
    clock: str | None, *, is_loaded: bool
) -> None:
    command = [sys.executable, "-c", PROGRAM.format(clock=clock)]
    names = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert ("koordinator.emulator.control.time.auto_clock" in names) == is_loaded
    assert is_loaded or names.strip() == "[]"
