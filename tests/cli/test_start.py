"""What `koordinator serve` loads before it listens."""

from __future__ import annotations

import gc
import platform
import subprocess
import sys

import pytest

from koordinator.imports import collections_paused

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


LOADED = """
import sys
before = set(sys.modules)
import koordinator.cli.serve
from koordinator.emulator.config.options import Options
koordinator.cli.serve.build(Options())
names = [name.split(".") for name in sys.modules if name not in before]
own = {".".join(name[1 : 3 if name[1] == "emulator" else 2]) for name in names if name[0] == "koordinator" and name[1:]}
print(*own - {"emulator"})
print(*{name[0] for name in names} - sys.stdlib_module_names - {"koordinator"})
"""


@pytest.mark.slow
def test_a_server_starts_with_these_rooms_and_packages_alone() -> None:
    command = [sys.executable, "-I", "-c", LOADED]
    output = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    own, others = (set(line.split()) for line in output.splitlines())
    rooms = {"broker", "config", "core", "formats", "server", "storage", "trace"}
    assert own == {f"emulator.{room}" for room in rooms} | {"cli", "imports", "version", "wire"}
    assert others <= {"attr", "attrs", "click", "construct", "idna", "outcome", "sniffio", "sortedcontainers", "trio"}


CHECKSUM = """
import sys
from koordinator.wire.records import crc32c
before = set(sys.modules)
print(hex(crc32c(b"123456789")), *set(sys.modules) - before)
"""


@pytest.mark.slow
def test_the_first_checksum_loads_neither_a_command_line_nor_the_version_of_its_package() -> None:
    command = [sys.executable, "-c", CHECKSUM]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout == "0xe3069283\n"


COLLECTIONS = """
import gc
import click
from koordinator.cli import commands
collections = []
gc.callbacks.append(lambda *_: collections.append(1))
commands.get_command(click.Context(commands), "serve")
print(len(collections), gc.isenabled())
"""

OF_A_TEST = """
import gc, sys
import koordinator
early = []
def note(*_):
    if not hasattr(sys.modules.get("koordinator.handles.emulator"), "Emulator"):
        early.append(1)
gc.callbacks.append(note)
koordinator.Emulator
print(len(early), gc.isenabled())
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", [COLLECTIONS, OF_A_TEST], ids=["serve", "Emulator"])
def test_no_garbage_is_collected_while_a_command_or_the_emulator_is_imported(program: str) -> None:
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout == "0 True\n"


def test_an_import_leaves_a_disabled_collector_disabled() -> None:
    gc.disable()
    try:
        with collections_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


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
