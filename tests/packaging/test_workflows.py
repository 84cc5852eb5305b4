"""The workflows and the action for GitHub: checked by actionlint, and played as far as a machine without GitHub can."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest
import yaml

if TYPE_CHECKING:
    from pathlib import Path

ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"

LIMIT_S = 300


@pytest.mark.needs("go")
@pytest.mark.slow
def test_actionlint_accepts_the_workflows(repository: Path) -> None:
    command = ["go", "run", ACTIONLINT, *sorted(map(str, repository.glob(".github/workflows/*.yml")))]
    ran = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr


def test_a_release_is_announced_after_everything_is_published(repository: Path) -> None:
    text = (repository / ".github" / "workflows" / "publish.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    published = jobs.keys() - {"build", "image", "announce"}
    assert published == {"publish", "images", "npm", "maven", "go"}
    assert set(jobs["announce"]["needs"]) == published
    assert [name for name, job in jobs.items() if "build" in job.get("needs", ())] == [
        *("publish", "image", "npm", "maven", "go"),
    ]
    proofs = {"publish": "attest-build-provenance", "npm": "--provenance", "maven": "attest-build-provenance"}
    assert [name for name, proof in proofs.items() if proof not in str(jobs[name]["steps"])] == []
    assert "--provenance=mode=max" in str(jobs["image"]["steps"])


def test_the_modules_for_go_require_the_version_that_is_tagged(repository: Path) -> None:
    from koordinator.version import __version__  # noqa: PLC0415 - beside its only use

    module = (repository / "clients" / "go" / "container" / "go.mod").read_text(encoding="utf-8")
    assert f"clients/go v{__version__}\n" in module


def test_the_container_for_development_makes_the_environment(repository: Path) -> None:
    text = (repository / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8")
    container = json.loads(text)
    command, target = container["postCreateCommand"].split()
    assert command == "make"
    assert re.search(rf"^{target}:", (repository / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


class Job:
    """A job on a runner: the files and variables that GitHub gives to the steps of an action."""

    def __init__(self, action: Path, home: Path) -> None:
        self.action, self.home = action, home
        self.environ = {"PATH": os.environ["PATH"], "RUNNER_TEMP": str(home), "GITHUB_ACTION_PATH": str(action)}
        for name in ("GITHUB_PATH", "GITHUB_ENV", "GITHUB_OUTPUT"):
            self.environ[name] = str(home / name)
            (home / name).touch()

    def run(self, **inputs: str) -> subprocess.CompletedProcess[str]:
        """Run the steps of the action with these inputs, and the defaults of the others."""
        action = yaml.safe_load((self.action / "action.yml").read_text(encoding="utf-8"))
        assert inputs.keys() <= {name.replace("-", "_") for name in action["inputs"]}
        given = {name: inputs.get(name.replace("-", "_"), each["default"]) for name, each in action["inputs"].items()}
        (step,) = action["runs"]["steps"]
        environ = {
            name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: given[match[1]], text)
            for name, text in step["env"].items()
        }
        certificates = {name: text for name, text in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
        return subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", step["run"]],  # noqa: S607 - the shell of GitHub
            env={**self.environ, **certificates, **environ},
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    def values(self, name: str) -> dict[str, str]:
        """Return what the action has written to the file of a variable."""
        lines = (self.home / name).read_text(encoding="utf-8").splitlines()
        return dict(line.partition("=")[::2] for line in lines)


@pytest.fixture
def job(repository: Path, tmp_path: Path) -> Job:
    return Job(repository / ".github" / "actions" / "setup-koordinator", tmp_path)


@pytest.mark.needs("pypi")
@pytest.mark.slow
def test_the_action_serves_a_cluster_for_the_later_steps(job: Job, wheel: Path) -> None:
    package = f"{wheel}[control]"
    ran = job.run(package=package, topics="orders:6 payments:1", port="0", control_port="0")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    outputs, variables = job.values("GITHUB_OUTPUT"), job.values("GITHUB_ENV")
    try:
        assert variables == {
            "KOORDINATOR_BOOTSTRAP": outputs["bootstrap-servers"],
            "KOORDINATOR_CONTROL_URL": outputs["control-url"],
        }
        with urlopen(f"{outputs['control-url']}/v1/clusters/default/topics", timeout=60) as answer:  # noqa: S310
            topics = json.load(answer)
        assert {each["topic"]: len(each["partitions"]) for each in topics} == {"orders": 6, "payments": 1}
        (path,) = (job.home / "GITHUB_PATH").read_text(encoding="utf-8").split()
        listed = subprocess.run(
            [f"{path}/koordinator", "groups", "list"],
            env={**job.environ, **variables},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert (listed.returncode, listed.stderr) == (0, "")
    finally:
        os.kill(int(outputs["pid"]), signal.SIGTERM)


@pytest.mark.needs("pypi")
@pytest.mark.slow
def test_the_action_fails_with_the_reason_of_the_server(job: Job, wheel: Path) -> None:
    ran = job.run(package=str(wheel), topics="a/b:1", port="0")
    assert ran.returncode == 1
    assert "::error::koordinator serve did not start" in ran.stdout
    assert "a/b" in ran.stderr


@pytest.mark.needs("release")
@pytest.mark.slow
def test_uvx_serves_from_a_wheel(wheel: Path, tmp_path: Path) -> None:
    uvx = [str(sys.executable).replace("/python", "/uvx"), "--from", f"{wheel}[control]", "koordinator"]
    command = [*uvx, "serve", "--port", "0", "--control-port", "0", "--stop-with-stdin"]
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        line = json.loads(server.stdout.readline())
        server.stdin.close()
        assert server.wait(LIMIT_S) == 0
    assert line["bootstrap_servers"].startswith("127.0.0.1:")
