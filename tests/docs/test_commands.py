"""Every `bash` and `console` block of the documentation runs, as far as this machine can; output is a `text` block.

A server with a group of two members stands by. `koordinator`, `curl` and `jq` run for real. Of the rest the names are
checked: targets of make, extras, files of Docker, tests, options of the pipeline.
"""

from __future__ import annotations

import json
import re
import shlex
import socket
import subprocess
import sys
import tomllib
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import pytest
from confluent_kafka import ShareConsumer
from scenes.documentation import BLOCKS, NEEDS_SHELL, ROOT, blocks, run_shell

from koordinator import Emulator
from koordinator.handles.remote import Remote

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from koordinator import Cluster

LANGUAGES = {
    "bash",
    "console",
    "python",
    "py",
    "text",
    "json",
    "yaml",
    "toml",
    "sql",
    "mermaid",
    "java",
    "go",
    "js",
    "xml",
}
"""Languages of blocks. `text` is output; `java`, `go` and `js` are run by tests of `languages` and of the images."""

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
OTHER = "kafka.example:9092"
"""The address of a second cluster."""

UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4,12}){4}")
READY_S = 60


class Command(NamedTuple):
    """A command of a page, and the output that the page shows below it."""

    line: str
    output: list[str]

    @property
    def words(self) -> list[str]:
        first, *rest = shlex.split(self.line, comments=True)
        return [first.removeprefix(".venv/bin/"), *rest]

    @property
    def name(self) -> str:
        return self.words[0]


def commands(language: str, text: str) -> list[Command]:
    """Return the commands of a block: the lines after `$ ` of a console, and every line of a script."""
    found: list[Command] = []
    joined = re.sub(r"\\\n\s*", "", text)
    if language == "bash":
        # an argument in quotes may have several lines
        joined = re.sub(r'"[^"]*"', lambda quoted: quoted[0].replace("\n", " "), joined)
    for line in joined.splitlines():
        if language == "bash" and line.strip(" ") and not line.lstrip(" ").startswith("#"):
            found.append(Command(line, []))
        elif line.startswith("$ "):
            found.append(Command(line[2:], []))
        elif line and language == "console":
            found[-1].output.append(line)
    return found


SHELL_BLOCKS = [
    pytest.param(commands(block.language, block.text), id=block.name)
    for block in blocks("bash", "console")
    if block.page.parent.name != "levers"
]
"""The commands of each block of a shell; test_levers.py has those of the levers."""

CHECKED = [each for block in SHELL_BLOCKS for each in block.values[0]]
RUNNING = {"koordinator", "curl", "jq"}
ELSEWHERE = {
    "git",
    "go",
    "kafka-console-consumer.sh",
    "koordinator-pipeline",
    "mvn",
    "npm",
    "pip",
    "python3",
    "spark-submit",
}
"""Commands that other tests run, or that need another machine."""


class Ports(NamedTuple):
    """The ports of a server, which stand for 9092 and 9080 of the pages."""

    kafka: int
    control: int

    def used_in(self, line: str) -> str:
        line = re.sub(r"(?:localhost|127\.0\.0\.1):9092\b", f"127.0.0.1:{self.kafka}", line)
        line = re.sub(r"(?:localhost|127\.0\.0\.1):9080\b", f"127.0.0.1:{self.control}", line)
        return line.replace("--port 9092", f"--port {self.kafka}").replace(
            "--control-port 9080", f"--control-port {self.control}"
        )


def free_ports() -> Ports:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(2)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return Ports(*(each.getsockname()[1] for each in sockets))


@contextmanager
def serving(words: list[str], folder: Path) -> Iterator[str]:
    """Run a server, and yield the first line of its output."""
    command = [sys.executable, "-m", "koordinator", *words]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            yield server.stdout.readline()
        finally:
            server.terminate()
            assert server.wait(READY_S) == 0


def controlled(ready: str) -> Remote:
    """Return the handle of the server with this first line."""
    started = json.loads(ready)
    return Remote(started["control_url"], ca_file=started.get("control_ca_file"))


def prepare(cluster: Cluster) -> None:
    """Add members and offsets, as the consumers of a reader would."""
    with suppress(ValueError):  # the page's own command has created it
        cluster.create_topic("orders", partitions=2)
    cluster.produce("orders", *(("key", str(number)) for number in range(9)))
    group = cluster.group("svc")
    group.create_puppet("svc-1", topics=["orders"], instance_id="worker-1").join()
    group.create_puppet("svc-2", topics=["orders"]).join()
    group.wait_stable(members=2)
    for name in ("svc", "old", "older"):
        cluster.group(name).set_offsets({("orders", 0): 1})


def prepare_share_group(cluster: Cluster) -> None:
    """Let a share group begin to read a topic, and its member leave."""
    cluster.create_topic("jobs", partitions=1)
    client = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "workers"}
    consumer = ShareConsumer(client)
    consumer.subscribe(["jobs"])
    for _ in range(30):
        consumer.poll(1.0)
        if cluster.group("workers").share_positions():
            break
    cluster.produce("jobs", ("key", "1"), ("key", "2"))
    assert consumer.poll(30)
    consumer.commit_sync()
    consumer.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "test_app.py").write_text("def test_it(koordinator): koordinator.groups()\n")
    return tmp_path


def compare(command: Command, output: str) -> None:
    """Compare the first word of each line that a page shows; names and numbers in the rest differ in each run."""
    heads = {head_of(line) for line in output.splitlines()}
    for line in command.output:
        assert head_of(line) in heads, f"{line!r} is not in the output:\n{output}"


def head_of(line: str) -> str:
    if line.startswith('{"'):
        return " ".join(sorted(json.loads(line)))
    return UUID.sub("", line.strip().partition(" ")[0]).replace("─", "")


@pytest.mark.slow
@NEEDS_SHELL
@pytest.mark.parametrize("block", [each for each in SHELL_BLOCKS if {c.name for c in each.values[0]} & RUNNING])
def test_the_commands_of_a_block_run(block: list[Command], folder: Path) -> None:
    ports = free_ports()
    own = [each for each in block if each.words[:2] == ["koordinator", "serve"]]
    first = ports.used_in(own[0].line) if own else f"koordinator serve --port {ports.kafka} --trace trace.jsonl"
    words = shlex.split(first, comments=True)[1:]
    words += [] if "--control-port" in words else ["--control-port", str(ports.control)]
    words += [] if "--port" in words else ["--port", str(ports.kafka)]
    with serving(words, folder) as ready, controlled(ready) as server, Emulator() as other:
        # two addresses on one page are two clusters
        if any(OTHER in each.line for each in block):
            prepare(other)
            # of the groups that are loaded
            server.cluster().create_topic("orders", partitions=2)
        else:
            prepare(server.cluster())
        if any("share-offsets" in each.line for each in block):
            prepare_share_group(server.cluster())
        for each in own:
            compare(each, ready)
        for each in block:
            if each.name in RUNNING and each not in own:
                ran = run_shell(ports.used_in(each.line).replace(OTHER, other.bootstrap_servers), folder)
                refused = any(line.startswith("koordinator ") for line in each.output)
                assert ran.returncode == int(refused), f"{each.line}\n{ran.stdout}{ran.stderr}"
                compare(each, ran.stdout + ran.stderr)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(each, id=each.line[:60], marks=[pytest.mark.slow] if each.name == "pytest" else [])
        for each in CHECKED
    ],
)
def test_a_command_names_things_that_exist(command: Command, folder: Path) -> None:
    words = command.words
    match words:
        case ["make", target, *arguments]:
            assert target in TARGETS, target
            makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
            assert [each for each in arguments if f"$({each.partition('=')[0]})" not in makefile] == []
        case ["pip" | "python", "install", *specs] | ["python", "-m", "pip", "install", *specs]:
            extras = {each for spec in specs for each in re.findall(r"[\w-]+", "".join(re.findall(r"\[(.*)\]", spec)))}
            assert extras <= PROJECT["optional-dependencies"].keys()
        case ["docker", *rest]:
            files = [after for before, after in pairwise(rest) if before == "-f"]
            assert [name for name in files if not (ROOT / name).exists()] == []
        case ["pytest", *arguments]:
            named = [each for each in arguments if "/" in each and not each.startswith("-")]
            assert [each for each in named if not [*ROOT.glob(each)]] == []
            given = [each for each in arguments if each.startswith("-")]
            ran = run_shell(f"$PYTHON -m pytest -p no:cacheprovider --collect-only {shlex.join(given)}", folder)
            assert ran.returncode == 0, ran.stdout + ran.stderr
        case [name, *_]:
            assert name in {*RUNNING, *ELSEWHERE}, command.line


def test_every_block_has_a_language() -> None:
    assert [block.name for block in BLOCKS if block.language not in LANGUAGES] == []
