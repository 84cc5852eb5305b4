"""The client for Node.js (`clients/node`), installed from its tarball: its tests, its documents, failed tests."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import pytest
from brokers.kafka_releases import run
from clients.languages import run_client, wait_closed
from scenes.documentation import FENCE, ROOT

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

pytestmark = [pytest.mark.needs("node"), pytest.mark.slow]

PACKAGE = ROOT / "clients" / "node"
HOME = ROOT / "build" / "languages" / "node"

CLIENTS = {"@platformatic/kafka": "1.35.0", "kafkajs": "2.2.4"}
RUNNERS = {"jest": "30.5.2", "vitest": "4.1.12"}

INSTALL_S = 300
TEST_S = 180

LONG_TESTS = f"--testTimeout={TEST_S * 1000}"
"""The option of Vitest and Jest for tests that take more than 5 s, as a busy machine's do."""

TOGETHER = 'import { test } from "node:test";\n'
"""The line of a test file that differs between node:test, Vitest and Jest."""

SCAFFOLD = """
import { withKoordinator, faults } from "koordinator";
const svc = { topics: ["orders"] };
await withKoordinator({ topics: { orders: 4 } }, async (cluster) => {
  const group = cluster.group("svc");
  await (await group.createPuppet("svc-1", svc)).join();
  await (await group.createPuppet("svc-2", svc)).join();
  await group.waitStable({ members: 2, allOwned: true });
  %s
});
"""
"""A program around the statements of a page; the page's group has two members."""


@pytest.fixture(scope="module")
def home() -> Path:
    """A project with the packed package and the clients; the registry's packages stay for later runs."""
    HOME.mkdir(parents=True, exist_ok=True)
    project = {"private": True, "type": "module", "dependencies": CLIENTS | RUNNERS}
    options = ("--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error")
    text = json.dumps(project)
    if not (HOME / "package.json").exists() or (HOME / "package.json").read_text() != text:
        (HOME / "package.json").write_text(text)
        run("npm", "--prefix", str(HOME), "install", *options, timeout_s=INSTALL_S)
    run("npm", "pack", "--silent", "--pack-destination", str(HOME), str(PACKAGE), timeout_s=INSTALL_S)
    (tarball,) = HOME.glob("koordinator-*.tgz")
    # without its dependencies, npm would look every package up again
    target = HOME / "node_modules" / "koordinator"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    run("tar", "-xzf", str(tarball), "-C", str(target), "--strip-components=1", timeout_s=INSTALL_S)
    tarball.unlink()
    shutil.rmtree(HOME / "test-results", ignore_errors=True)
    return HOME


def node(home: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_client(command, home, TEST_S, NO_COLOR="1", **environment)


def write(home: Path, name: str, text: str) -> str:
    (home / name).write_text(text, encoding="utf-8")
    return name


def source(name: str) -> str:
    return (PACKAGE / "tests" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["kafkajs.test.js", "platformatic.test.js"])
def test_real_clients_are_tested(home: Path, name: str) -> None:
    ran = node(home, "node", "--test", write(home, name, source(name)))
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("runner", ["node:test", "vitest", "jest"])
def test_a_failed_test_shows_the_timeline_in_each_runner(home: Path, runner: str) -> None:
    text = source("failing.test.js")
    assert TOGETHER in text
    commands = {
        "node:test": ("node", "--test"),
        "vitest": ("node_modules/.bin/vitest", "run", LONG_TESTS),
        "jest": ("node_modules/.bin/jest", LONG_TESTS),
    }
    lines = {"node:test": TOGETHER, "vitest": 'import { test } from "vitest";\n', "jest": ""}
    text = text.replace(TOGETHER, lines[runner])
    if runner != "node:test":
        # their tests have no argument with a name
        text = text.replace("async (t) =>", "async () =>").replace("t.name", f'"{runner}"')
    name = write(home, f"failing-{runner.replace(':', '-')}.test.js", text)
    ran = node(home, *commands[runner], name, NODE_OPTIONS="--experimental-vm-modules")
    said = ran.stdout + ran.stderr
    assert ran.returncode == 1, said
    assert "group 'svc': assertNoRebalance: expected no rebalance, seen 2" in said
    assert "LeaveGroup v3 -> OK" in said
    folder = home / "test-results" / ("a-restart-causes-no-rebalance" if runner == "node:test" else runner)
    assert f"full trace: {folder.relative_to(home)}/trace.html" in said
    assert {each.name for each in folder.iterdir()} == {"trace.html", "trace.json", "trace.jsonl", "trace.txt"}
    assert json.loads((folder / "trace.jsonl").read_text().partition("\n")[0])["kind"] == "header"


BLOCKS = [
    pytest.param(text, id=f"{page.name}-{number}")
    for page in (PACKAGE / "README.md", ROOT / "docs" / "node.md")
    for number, (info, text) in enumerate(FENCE.findall(page.read_text(encoding="utf-8")), 1)
    if info == "js"
]


@pytest.mark.parametrize("text", BLOCKS)
def test_the_code_of_a_page_runs(home: Path, text: str) -> None:
    if "import " in text:
        ran = node(home, "node", "--test", write(home, "page.test.js", text))
        assert re.search(r"^# pass 1$", ran.stdout, re.MULTILINE), ran.stdout + ran.stderr
    else:
        # `await using` is newer than Node.js 20
        ran = node(home, "node", write(home, "page.js", SCAFFOLD % text.replace("await using", "const")))
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_server_ends_with_the_process_that_started_it(home: Path) -> None:
    text = 'import { startKoordinator } from "koordinator";\nconst cluster = await startKoordinator();\n'
    ran = node(
        home, "node", write(home, "leave.js", f"{text}console.log(cluster.bootstrapServers);\nprocess.exit(0);\n")
    )
    wait_closed(ran.stdout)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ('{ command: "no-such-program" }', "pip install 'koordinator[control]'"),
        ('{ topics: { "a b": 1 } }', "a b"),
        ("{ topic: {} }", "unknown option 'topic'"),
        ('{ image: "koordinator" }', "npm install --save-dev testcontainers"),
    ],
)
def test_a_start_that_fails_names_the_remedy(home: Path, options: str, problem: str) -> None:
    text = f'import {{ startKoordinator }} from "koordinator";\nawait startKoordinator({options});\n'
    ran = node(home, "node", write(home, "start.js", text))
    assert ran.returncode == 1
    assert problem in ran.stderr


def test_misspelt_options_are_refused(home: Path) -> None:
    text = """
    import { withKoordinator } from "koordinator";
    await withKoordinator({}, async (cluster) => { await cluster.group("svc").waitStable({ member: 1 }) });
    """
    assert "group 'svc': unknown option 'member'" in node(home, "node", write(home, "option.js", text)).stderr


ENGINE = """
import { spawn } from "node:child_process";
import { once } from "node:events";
export const Wait = { forLogMessage: (pattern) => pattern };
export class GenericContainer {
  constructor(image) { this.image = image; }
  withCommand([serve, ...words]) { this.words = [serve, "--port", "0", "--control-port", "0", ...words]; return this; }
  withEnvironment(variables) { this.variables = variables; return this; }
  withExposedPorts(...ports) { this.ports = ports; return this; }
  withWaitStrategy(pattern) { this.pattern = pattern; return this; }
  withStartupTimeout() { return this; }
  async start() {
    const [program, ...before] = process.env.KOORDINATOR_COMMAND.split(" ");
    const server = spawn(program, [...before, ...this.words], { env: { ...process.env, ...this.variables } });
    const [text] = await once(server.stdout, "data");
    if (!this.pattern.test(text)) throw new Error(text);
    const { control_url, port } = JSON.parse(text);
    const ports = { 9080: Number(new URL(control_url).port), 9092: port };
    if (String(this.ports) !== "9080,9092") throw new Error(this.ports);
    return {
      getHost: () => "localhost",
      getMappedPort: (each) => ports[each],
      stop: async () => { server.kill(); await once(server, "exit"); console.log("stopped", this.image); },
    };
  }
}
"""
"""The part of testcontainers that the client uses, with a process in place of a container."""


def test_a_container_advertises_its_mapped_port(home: Path) -> None:
    package = home / "node_modules" / "testcontainers"
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir()
    try:
        (package / "package.json").write_text('{"type": "module", "exports": "./index.js"}')
        (package / "index.js").write_text(ENGINE)
        text = """
        import { withKoordinator } from "koordinator";
        await withKoordinator({ image: "koordinator", topics: { orders: 4 } }, async (cluster) => {
          console.log(cluster.bootstrapServers, (await cluster.topic("orders").leader(3)));
        });
        """
        ran = node(home, "node", write(home, "container.js", text))
    finally:
        shutil.rmtree(package)
    assert re.fullmatch(r"localhost:\d+ 1\nstopped koordinator\n", ran.stdout), ran.stdout + ran.stderr
