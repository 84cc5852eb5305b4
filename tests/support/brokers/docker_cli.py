"""Docker's command line, for tests of the image."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[3]

IMAGE = "koordinator"
PIPELINE_IMAGE = "koordinator-pipeline"

MIB = 1024 * 1024

BASE = os.environ.get("PYTHON_IMAGE", "python:3.12-slim")
"""What the image is built on: a stand-in, if the engine is a private one (compose/engine.sh)."""


def docker(*arguments: str, timeout_s: float = 60, environment: Mapping[str, str] | None = None) -> str:
    """What a command of Docker's says, with more variables than there are; fails with its complaint."""
    command, environ = ["docker", *arguments], {**os.environ, **(environment or {})}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout_s, check=False, cwd=ROOT, env=environ
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def size_mib(image: str) -> tuple[float, float]:
    """How large an image is, and how large without the base image."""
    size, base = (int(docker("image", "inspect", "-f", "{{.Size}}", name)) for name in (image, BASE))
    return size / MIB, (size - base) / MIB
