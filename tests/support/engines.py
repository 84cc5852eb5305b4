"""Docker's command line, for tests of the image."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]

IMAGE = "koordinator"

BASE = os.environ.get("PYTHON_IMAGE", "python:3.12-slim")
"""What the image is built on: a stand-in, if the engine is a private one (compose/engine.sh)."""


def docker(*arguments: str, timeout_s: float = 60) -> str:
    """What a command of Docker's says; fails with its complaint."""
    command = ["docker", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout
