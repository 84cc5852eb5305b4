"""The list of tests that `make soak` repeats."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIST = ROOT / "tests" / "soak" / "sensitive.txt"


@pytest.mark.slow
def test_the_ten_most_timing_sensitive_tests_exist() -> None:
    listed = [line for line in LIST.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert len(set(listed)) == len(listed) == 10
    # a test may be listed once for each client
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *listed]
    collected = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert collected.returncode == 0, collected.stdout + collected.stderr
    assert {line.partition("[")[0] for line in collected.stdout.splitlines() if "::" in line} == set(listed)
