"""Type checkers accept the tests of this folder in their strict modes, and find mistakes in them."""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import koordinator

PROJECT = [path for path in sorted(Path(__file__).parent.glob("test_*.py")) if path != Path(__file__)]

MISTAKES = {
    "koordinator.group('svc').wait_state('Stabel')": "Stabel",
    "koordinator.client_config('confluent')": "confluent",
    "koordinator.group('svc').create_puppet('p', behaviour='lazy')": "lazy",
    "koordinator.group('svc').wait_stable(timeout=[5])": "timeout",
    "koordinator.move_coordinator('svc', to='2')": "to",
    "koordinator.group('svc').create_puppet('p', session_timeout_s=5)": "session_timeout_s",
    "Emulator(profile='slow')": "profile",
}

TIMEOUT_S = 300


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the tests, and a file with one mistake in each line."""
    for path in PROJECT:
        shutil.copy(path, tmp_path)
    head = "from koordinator import Cluster, Emulator\n\n\ndef test_mistakes(koordinator: Cluster) -> None:\n"
    (tmp_path / "mistakes.py").write_text(head + "".join(f"    {line}\n" for line in MISTAKES))
    return tmp_path


def root() -> str:
    """Return the folder of the package, for a type checker that does not follow the hook of an editable install."""
    return str(Path(str(koordinator.__file__)).parents[1])


@pytest.mark.slow
def test_mypy_strict(project: Path) -> None:
    pytest.importorskip("mypy")
    installed = root() in {*site.getsitepackages(), site.getusersitepackages()}
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={os.devnull}"]
    command += ["--ignore-missing-imports", "--no-error-summary", "--hide-error-context", "."]
    environment = os.environ | ({} if installed else {"MYPYPATH": root()})
    checked = subprocess.run(
        command, env=environment, cwd=project, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert checked.returncode == 1, checked.stdout + checked.stderr
    errors = [line for line in checked.stdout.splitlines() if ": error: " in line]
    # the mistakes are found, and nothing else
    assert [line for line in errors if not line.startswith("mistakes.py")] == []
    found = {int(line.split(":")[1]) for line in errors}
    assert found == set(range(5, 5 + len(MISTAKES))), errors


@pytest.mark.needs("pyright")
def test_pyright_strict(project: Path) -> None:
    settings = {"typeCheckingMode": "strict", "extraPaths": [root()], "reportMissingModuleSource": "none"}
    (project / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable]
    checked = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    found: list[dict[str, Any]] = [
        each for each in json.loads(checked.stdout)["generalDiagnostics"] if each["severity"] == "error"
    ]
    elsewhere = [each for each in found if Path(each["file"]).name != "mistakes.py" and not of_a_client(each)]
    assert elsewhere == []
    lines = {each["range"]["start"]["line"] + 1 for each in found if Path(each["file"]).name == "mistakes.py"}
    assert lines == set(range(5, 5 + len(MISTAKES)))


def of_a_client(diagnostic: dict[str, Any]) -> bool:
    """Return whether a diagnostic is about a client library without types of its own."""
    return any(name in diagnostic["message"] for name in ("KafkaConsumer", "consumer", "kafka"))
