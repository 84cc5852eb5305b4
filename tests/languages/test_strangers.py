"""A stranger has only the README and the page of a language that it links: a first test, and the same one failing.

The commands and the code of the page run in an empty project beside a clone. The failing test is that of the page with
one condition changed, so what is quoted is what runs.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest
from clients.languages import run_client
from scenes.documentation import FENCE, ROOT

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.slow

STEP_S = 600
"""Time limit of a command, the first of which fetches the packages of clients."""

CLONE = "../koordinator"
"""The path of the clone on the pages."""

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>com.example.stranger</groupId>
  <artifactId>svc</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.release>17</maven.compiler.release>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka-clients</artifactId><version>{kafka}</version>
    </dependency>
    <dependency>
      <groupId>org.junit.jupiter</groupId><artifactId>junit-jupiter</artifactId><version>{junit}</version>
      <scope>test</scope>
    </dependency>
{dependency}
  </dependencies>
  <build><plugins>
    <plugin><artifactId>maven-compiler-plugin</artifactId><version>{compiler}</version></plugin>
    <plugin><artifactId>maven-surefire-plugin</artifactId><version>{surefire}</version></plugin>
  </plugins></build>
</project>
"""
"""The project of a service, before its author has heard of koordinator; with the dependency of the page."""


def blocks(page: str, language: str) -> list[str]:
    """Return the blocks of a page that the README links."""
    assert f"(docs/{page})" in (ROOT / "README.md").read_text(encoding="utf-8")
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [block for info, block in FENCE.findall(text) if info.split()[:1] == [language]]


def step(folder: Path, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return run_client(command, folder, STEP_S, NO_COLOR="1")


def done(folder: Path, *command: str) -> None:
    """Run a command that has to succeed."""
    ran = step(folder, command)
    assert ran.returncode == 0, f"{shlex.join(command)}\n{ran.stdout}{ran.stderr}"


def install(folder: Path, page: str, *options: str) -> None:
    """Run the commands of a page's first block, except pip: the emulator is that of this interpreter."""
    lines = [shlex.split(line, comments=True) for line in blocks(page, "bash")[0].splitlines()]
    pip, *others = lines
    assert pip[0] == "pip"
    for program, *words in others:
        done(folder, program, *options, *(word.replace(CLONE, str(ROOT)) for word in words))


def failing(text: str, right: str, wrong: str) -> str:
    """Return the code of a page with its last condition changed to one that is never met."""
    assert right in text
    return text.replace(right, wrong, 1)


def assert_shows_the_group(folder: Path, ran: subprocess.CompletedProcess[str]) -> None:
    """Assert that a failure names the wait, the group's state and last events, and a page that exists."""
    said = ran.stdout + ran.stderr
    assert ran.returncode == 1, said
    assert re.search(r"""group ["']svc["']: [wW]aitStable: not within 2(\.0)? ?s: .*members"?[: ]2\b""", said), said
    assert "now: " in said
    assert re.search(r"svc-1 +JoinGroup v", said), said
    page = re.search(r"full trace: (\S+/trace\.html)", said)
    assert page is not None, said
    assert (folder / page[1]).read_text(encoding="utf-8").startswith("<!")


@pytest.mark.needs("go")
def test_a_stranger_with_go_sees_a_test_pass_and_fail(tmp_path: Path) -> None:
    (code,) = (block for block in blocks("go.md", "go") if block.startswith("package "))
    done(tmp_path, "go", "mod", "init", "example.com/svc")
    install(tmp_path, "go.md")
    (tmp_path / "svc_test.go").write_text(code, encoding="utf-8")
    done(tmp_path, "go", "mod", "tidy")
    ran = step(tmp_path, ["go", "test", "-v", "."])
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "--- PASS: TestTheConsumerReturnsAfterItsSessionExpired" in ran.stdout
    wrong = failing(
        code,
        "{Members: 1, AllOwned: true, AfterGeneration: generation}",
        "{Members: 2, AfterGeneration: generation, Timeout: 2 * time.Second}",
    )
    (tmp_path / "svc_test.go").write_text(wrong, encoding="utf-8")
    ran = step(tmp_path, ["go", "test", "."])
    assert_shows_the_group(tmp_path, ran)
    assert "--- FAIL: TestTheConsumerReturnsAfterItsSessionExpired" in ran.stdout


@pytest.mark.needs("node")
def test_a_stranger_with_node_sees_a_test_pass_and_fail(tmp_path: Path) -> None:
    code = blocks("node.md", "js")[0]
    (tmp_path / "package.json").write_text('{"private": true, "type": "module"}', encoding="utf-8")
    done(tmp_path, "npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "kafkajs")
    install(tmp_path, "node.md")
    (tmp_path / "svc.test.js").write_text(code, encoding="utf-8")
    ran = step(tmp_path, ["node", "--test"])
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"^# pass 1$", ran.stdout, re.MULTILINE), ran.stdout
    wrong = failing(
        code, "{ members: 1, allOwned: true, afterGeneration: generation }", "{ members: 2, timeoutMs: 2000 }"
    )
    (tmp_path / "svc.test.js").write_text(wrong, encoding="utf-8")
    ran = step(tmp_path, ["node", "--test"])
    assert_shows_the_group(tmp_path, ran)
    assert re.search(r"^# fail 1$", ran.stdout, re.MULTILINE), ran.stdout


@pytest.mark.needs("java")
def test_a_stranger_with_java_sees_a_test_pass_and_fail(tmp_path: Path) -> None:
    repository = own_repository(tmp_path / "repository")
    maven = ("--batch-mode", "--quiet", f"-Dmaven.repo.local={repository}")
    ours = (ROOT / "clients" / "java" / "pom.xml").read_text(encoding="utf-8")
    (dependency,) = blocks("java.md", "xml")
    versions = {
        "kafka": r"<kafka.version>(.+?)<",
        "junit": r"<junit.version>(.+?)<",
        "compiler": r"compiler-plugin</artifactId>\s*<version>(.+?)<",
        "surefire": r"surefire-plugin</artifactId>\s*<version>(.+?)<",
    }
    found = {name: re.search(pattern, ours) for name, pattern in versions.items()}
    folder = tmp_path / "svc"
    tests = folder / "src" / "test" / "java"
    tests.mkdir(parents=True)
    pom = POM.format(dependency=dependency, **{name: match[1] for name, match in found.items() if match})
    (folder / "pom.xml").write_text(pom, encoding="utf-8")
    install(folder, "java.md", *maven)
    code = blocks("java.md", "java")[0]
    (tests / "OrdersTest.java").write_text(code, encoding="utf-8")
    ran = step(folder, ["mvn", *maven, "test"])
    assert ran.returncode == 0, ran.stdout + ran.stderr
    report = (folder / "target" / "surefire-reports" / "OrdersTest.txt").read_text(encoding="utf-8")
    assert "Tests run: 1, Failures: 0, Errors: 0" in report
    wrong = failing(
        code, "o.members(1).allOwned(true).afterGeneration(generation)", "o.members(2).timeout(Duration.ofSeconds(2))"
    )
    (tests / "OrdersTest.java").write_text(wrong, encoding="utf-8")
    assert_shows_the_group(folder, step(folder, ["mvn", *maven, "test"]))


def own_repository(folder: Path) -> Path:
    """Make a local Maven repository that shares the user's files, except those of koordinator."""
    folder.mkdir()
    shared = folder.home() / ".m2" / "repository"
    shared.mkdir(parents=True, exist_ok=True)
    for each in shared.iterdir():
        if each.name != "example":
            (folder / each.name).symlink_to(each)
    return folder
