"""`koordinator doctor`: what a bug report needs to know about this machine."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
from importlib import metadata
from typing import TYPE_CHECKING, Any

import click

from koordinator.emulator.config.options import PREFIX
from koordinator.emulator.trace.run_metadata import installed_version
from koordinator.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PORTS = {"broker": 9092, "control": 9080}
"""The ports that the documentation uses."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "firefox", "msedge")

LIMIT_S = 10
"""The limit for a program to report its version."""

REQUIREMENT = re.compile(r"""([\w.-]+)(?:.*extra == ["']([\w-]+)["'])?""")
"""A dependency in the metadata of a package: its name, and its extra if it has one."""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor(*, as_json: bool) -> None:
    """Describe this machine for a bug report: versions, libraries, ports, Docker, Java, browser.

    A part that cannot be found out has the error as its value; the exit status is 0.
    """
    report = {name: _result(probe) for name, probe in PROBES.items()}
    if as_json:
        click.echo(json.dumps(report))
        return
    for name, found in report.items():
        if not isinstance(found, dict):
            click.echo(f"{name}: {found}")
            continue
        click.echo(f"{name}:")
        for key, value in found.items():
            click.echo(f"  {key}: {_text(value)}")


def _result(probe: Callable[[], Any]) -> Any:  # noqa: ANN401 - plain data
    try:
        return probe()
    except Exception as error:  # noqa: BLE001 - a diagnosis never fails
        return f"error: {type(error).__name__}: {error}"


def _text(value: Mapping[str, str] | str) -> str:
    return value if isinstance(value, str) else ", ".join(f"{name} {version}" for name, version in value.items())


def _libraries() -> dict[str, dict[str, str]]:
    """Return the installed version of each library by extra, or "missing"; those without an extra first."""
    libraries: dict[str, dict[str, str]] = {"every installation": {}}
    for requirement in metadata.requires("koordinator") or ():
        found = REQUIREMENT.match(requirement)
        if found is not None and found[1] != "koordinator":
            libraries.setdefault(found[2] or "every installation", {})[found[1]] = (
                installed_version(found[1]) or "missing"
            )
    return libraries


def _ports() -> dict[str, str]:
    """Return for each port of 127.0.0.1 whether a server can listen on it."""
    ports = {}
    for purpose, port in PORTS.items():
        with socket.socket() as listener:
            if os.name == "posix":
                # a port in TIME_WAIT is free for the server; on Windows this would take over a port in use
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", port))
            except OSError as error:
                ports[f"{port} ({purpose})"] = error.strerror or str(error)
            else:
                ports[f"{port} ({purpose})"] = "free"
    return ports


def _version(*command: str) -> str:
    """Return the first line that a program prints, on stderr if it prints none; "missing", or the reason it fails."""
    program = shutil.which(command[0])
    if program is None:
        return "missing"
    done = subprocess.run(  # noqa: S603 - the commands of PROBES
        [program, *command[1:]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=LIMIT_S,
        check=False,
    )
    if done.returncode:
        return " ".join([f"exit status {done.returncode}:", *done.stderr.strip().splitlines()[-1:]])
    return (done.stdout.strip() or done.stderr.strip()).partition("\n")[0]


def _browser() -> str:
    browser = next((name for name in BROWSERS if shutil.which(name)), None)
    return "missing" if browser is None else _version(browser, "--version")


PROBES: Mapping[str, Callable[[], Any]] = {
    "koordinator": lambda: __version__,
    "python": lambda: f"{platform.python_implementation()} {platform.python_version()} ({sys.executable})",
    "platform": platform.platform,
    "processors": lambda: str(os.cpu_count()),
    "libraries": _libraries,
    "ports": _ports,
    "docker": lambda: _version("docker", "version", "--format", "server {{.Server.Version}}"),
    "java": lambda: _version("java", "-version"),
    "browser": _browser,
    # only their names: a value may be a token
    "variables": lambda: ", ".join(sorted(name for name in os.environ if name.startswith(PREFIX))) or "none",
}
"""What is found out, in the order of the report."""
