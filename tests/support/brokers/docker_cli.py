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

WAIT_S = 120
"""The limit of a wait for a container; it only ends a test that hangs."""

MIB = 1024 * 1024

BASE = os.environ.get("PYTHON_IMAGE", "python:3.12-slim")
"""The base image: a stand-in for a private engine (compose/engine.sh)."""


def docker(*arguments: str, timeout_s: float = WAIT_S, environment: Mapping[str, str] | None = None) -> str:
    """Return the output of a docker command, with additional variables; fail with its error output."""
    command, environ = ["docker", *arguments], {**os.environ, **(environment or {})}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout_s, check=False, cwd=ROOT, env=environ
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def size_mib(image: str) -> tuple[float, float]:
    """Return the size of an image in MiB, and its size without the base image."""
    size, base = (int(docker("image", "inspect", "-f", "{{.Size}}", name)) for name in (image, BASE))
    return size / MIB, (size - base) / MIB
