"""The image, built once per run, and figures measured with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from brokers.docker_cli import BASE, IMAGE, PIPELINE_IMAGE, ROOT, docker

if TYPE_CHECKING:
    from collections.abc import Callable

BUILD_S = 600
BUILD_WITH_SPARK_S = 1500

FIGURES = pytest.StashKey[dict[str, str]]()


@pytest.fixture(scope="session")
def image() -> str:
    """Return the image of this repository."""
    return built("Dockerfile", IMAGE, BUILD_S)


@pytest.fixture(scope="session")
def pipeline_image() -> str:
    """Return the pipeline's image; its build downloads about 400 MB unless the engine has them cached."""
    return built("pipeline.Dockerfile", PIPELINE_IMAGE, BUILD_WITH_SPARK_S)


def built(dockerfile: str, name: str, timeout_s: float) -> str:
    """Build a Dockerfile of compose/; return the image's name."""
    build = ("build", "--network", "host", "--build-arg", f"PYTHON_IMAGE={BASE}")
    docker(*build, "-f", f"compose/{dockerfile}", "-t", name, ".", timeout_s=timeout_s)
    return name


@pytest.fixture(scope="session")
def figure(pytestconfig: pytest.Config) -> Callable[[str, str], None]:
    """Return a function that stores a named figure for the summary."""
    return pytestconfig.stash.setdefault(FIGURES, {}).__setitem__


@pytest.fixture(scope="session")
def koordinator_container_config(image: str) -> dict[str, Any]:
    return {"image": image, "network_mode": "host", "arguments": ["--topic", "t:4"]}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the figures, and write them to build/docker.json."""
    figures = config.stash.get(FIGURES, {})
    if not figures:
        return
    base = docker("image", "inspect", "-f", '{{with index .Config.Labels "koordinator.base"}} ({{.}}){{end}}', BASE)
    figures = {"base": BASE + base.rstrip("\n"), **figures}
    terminalreporter.section("koordinator in a container")
    for name, value in figures.items():
        terminalreporter.write_line(f"{name}: {value}")
    (ROOT / "build").mkdir(exist_ok=True)
    (ROOT / "build" / "docker.json").write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
