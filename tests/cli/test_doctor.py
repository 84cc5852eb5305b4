"""`koordinator doctor` and `koordinator completion`, and errors that belong to no command."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import koordinator
from koordinator.cli import doctor, main

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]

LIMIT_S = 60


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run `koordinator` in this process; return its exit status, stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert isinstance(ended.value.code, int)
        return ended.value.code, *capsys.readouterr()

    return run


@pytest.fixture
def report(run: Callable[..., tuple[int, str, str]]) -> Callable[[], dict[str, Any]]:
    """Return the report of `koordinator doctor --json`, whose exit status is 0."""

    def report() -> dict[str, Any]:
        status, out, err = run("doctor", "--json")
        assert (status, err) == (0, "")
        found = json.loads(out)
        assert isinstance(found, dict)
        return found

    return report


def test_doctor_reports_versions_and_the_libraries_of_every_extra(report: Callable[[], dict[str, Any]]) -> None:
    found = report()
    assert found["koordinator"] == koordinator.__version__
    assert sys.executable in found["python"]
    assert found["libraries"]["every installation"]["trio"][0].isdigit()
    assert found["libraries"]["control"]["httpx"][0].isdigit()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(found["libraries"]) <= {"every installation", *project["optional-dependencies"]}
    assert {"control", "docker", "spark", "demo"} <= set(found["libraries"])
    assert {"docker", "java", "browser"} <= set(found)


def test_doctor_reports_a_missing_package_and_a_port_in_use(
    report: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor.metadata, "requires", lambda _: ['no-such-package>=1; extra == "control"', "click"])
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        monkeypatch.setattr(doctor, "PORTS", {"broker": port})
        found = report()
    assert found["libraries"]["control"] == {"no-such-package": "missing"}
    assert list(found["libraries"]["every installation"]) == ["click"]
    assert found["ports"] == {f"{port} (broker)": "Address already in use"}


def test_doctor_never_fails_and_shows_no_token(
    run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(doctor.subprocess, "run", fail)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(doctor.metadata, "requires", fail)
    monkeypatch.setenv("KOORDINATOR_CONTROL_TOKEN", "secret")
    status, out, _ = run("doctor")
    assert status == 0
    for name in ("libraries", "docker", "java", "browser"):
        assert f"{name}: error: RuntimeError: no such thing\n" in out
    assert "KOORDINATOR_CONTROL_TOKEN" in out
    assert "secret" not in out


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_of_a_shell_completes_commands(
    run: Callable[..., tuple[int, str, str]], shell: str
) -> None:
    status, out, _ = run("completion", shell)
    assert status == 0
    assert f"_KOORDINATOR_COMPLETE={shell}_complete" in out
    completed = subprocess.run(
        [sys.executable, "-c", "from koordinator.cli import main; main()"],
        env={**os.environ, "_KOORDINATOR_COMPLETE": f"{shell}_complete", "COMP_WORDS": "koordinator ser"}
        | {"COMP_CWORD": "ser" if shell == "fish" else "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    assert "serve" in completed.stdout
    assert "groups" not in completed.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("serv",),
            (
                "koordinator: unknown command 'serv'; known: completion, doctor, groups, lab, offsets, serve, "
                "share-offsets, transactions; did you mean 'serve'?"
            ),
        ),
        (("--serve",), "koordinator: No such option '--serve'"),
        (("serve", "--port", "x"), "x: must be an integer from 0 to 65535"),
        (("serve", "--seed", "-1"), "-1: must be an integer of at least 0"),
    ],
)
def test_a_usage_error_states_value_and_remedy(
    run: Callable[..., tuple[int, str, str]], arguments: tuple[str, ...], message: str
) -> None:
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_unwritable_stdout_is_one_line_on_stderr() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "koordinator", "doctor", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, "koordinator: cannot write to stdout: No space left on device\n")
