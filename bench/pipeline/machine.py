"""Processes with their costs, and free disk space."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
POLL_S = 0.2
LIMIT_S = 4 * 3600
"""The longest time of a process."""

MIB = 1 << 20


class NotDone(Exception):
    """A process failed; the text is its last output."""


@dataclass(frozen=True, slots=True)
class Spent:
    """The output of a process, its time, and the peak memory and processor time of it and all its descendants."""

    told: Any
    seconds: float
    peak_mib: float
    processor_s: float


def ran(*command: str) -> Spent:
    """Run Python with a script of this folder, or `-c`; return its last line, JSON or not. Raises NotDone."""
    script = HERE / command[0]
    whole = [sys.executable, str(script) if script.exists() else command[0], *command[1:]]
    began = time.monotonic()
    with subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        peaks: dict[int, float] = {}
        ticks: dict[int, int] = {}
        while True:
            _watch(process.pid, peaks, ticks)
            try:
                out, err = process.communicate(timeout=POLL_S)
                break
            except subprocess.TimeoutExpired:
                if time.monotonic() - began > LIMIT_S:
                    process.kill()
                    raise NotDone(f"{' '.join(command)}: not done after {LIMIT_S} s") from None
    if process.returncode:
        raise NotDone(f"{' '.join(command)}: {err.strip() or out.strip()}")
    last = out.strip().splitlines()[-1]
    told = json.loads(last) if last.startswith("{") else last
    processor_s = sum(ticks.values()) / os.sysconf("SC_CLK_TCK")
    return Spent(told, time.monotonic() - began, sum(peaks.values()), processor_s)


def _watch(pid: int, peaks: dict[int, float], ticks: dict[int, int]) -> None:
    """Track the peak memory and the processor time of a process and all its descendants."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        times = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        children = [
            child
            for thread in Path(f"/proc/{pid}/task").iterdir()
            for child in (thread / "children").read_text(encoding="utf-8").split()
        ]
    except OSError:
        return
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            peaks[pid] = int(line.split()[1]) / 1024
    # user and system time
    ticks[pid] = int(times[11]) + int(times[12])
    for child in children:
        _watch(int(child), peaks, ticks)


def size(folder: Path) -> int:
    """Return the number of bytes below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def free(folder: Path) -> int:
    """Return the number of free bytes on a folder's disk."""
    return shutil.disk_usage(folder).free


def cores() -> int:
    """Return the number of processors of this process."""
    return len(os.sched_getaffinity(0))
