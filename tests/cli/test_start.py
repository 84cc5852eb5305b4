"""What `koordinator serve` loads before it listens."""

from __future__ import annotations

import platform
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


@pytest.mark.slow
@pytest.mark.parametrize(("clock", "is_loaded"), [(None, False), ("auto", True)])
def test_a_cluster_without_an_automatic_clock_is_built_without_its_control(
    clock: str | None, *, is_loaded: bool
) -> None:
    command = [sys.executable, "-c", PROGRAM.format(clock=clock)]
    names = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert ("koordinator.emulator.control.time.auto_clock" in names) == is_loaded
    assert is_loaded or names.strip() == "[]"


COLLECTIONS = """
import gc
import click
from koordinator.cli import commands
collections = []
gc.callbacks.append(lambda *_: collections.append(1))
commands.get_command(click.Context(commands), "serve")
print(len(collections), gc.isenabled())
"""


@pytest.mark.slow
def test_no_garbage_is_collected_while_a_command_is_imported() -> None:
    command = [sys.executable, "-c", COLLECTIONS]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout == "0 True\n"


COPIES = """
import resource
import koordinator.cli.serve as serve
serve.keep_large_blocks()
before = 0
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    bytes(90_000_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt is glibc's")
def test_a_freed_large_block_is_reused_without_page_faults() -> None:
    command = [sys.executable, "-c", COPIES]
    faults = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert int(faults) < 1_000
