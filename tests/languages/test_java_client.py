"""The client for Java (`clients/java`): its tests with Kafka's own client, its documents, failed tests."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from clients.languages import run_client, wait_closed
from scenes.documentation import FENCE, ROOT

from koordinator.version import __version__

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

pytestmark = [pytest.mark.needs("java"), pytest.mark.slow]

PROJECT = ROOT / "clients" / "java"

TEST_S = 600
"""Time limit of a run of Maven, which fetches the dependencies once."""


LEAVING = """class Leave {
    public static void main(String[] arguments) {
        System.out.println(example.koordinator.Koordinator.start().bootstrapServers());
        Runtime.getRuntime().halt(0);
    }
}
"""
"""A program that ends without closing its cluster."""

IMPORTS = """import example.koordinator.*;
import java.time.Duration;
import java.util.*;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
"""

SCAFFOLDS = {
    "@RegisterExtension": """class FieldTest {
    %s
    @Test
    void test(Koordinator koordinator) {
        org.junit.jupiter.api.Assertions.assertEquals(3, koordinator.nodeStates().size());
    }
}
""",
    "try (var container": """class ContainerFragment {
    // only compiled: it needs an engine
    void test() {
        %s
    }
    void startMyConsumer(String bootstrapServers) {}
}
""",
    "group.addRule": """@KoordinatorTest(topics = "orders:4")
class StatementsTest {
    @Test
    void test(Koordinator koordinator) {
        Group group = koordinator.group("svc");
        for (String name : List.of("svc-1", "svc-2")) {
            group.createPuppet(name, o -> o.topics("orders")).join();
        }
        group.waitStable(o -> o.members(2).allOwned(true));
        %s
    }
}
""",
}
"""Classes around the fragments of the page, by their first words; the group of the statements has two members."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with its tests."""
    folder = tmp_path_factory.mktemp("java") / "java"
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("target", "test-results"))
    return folder


def maven(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_client(["mvn", "--batch-mode", "--quiet", *arguments], folder, TEST_S, **environment)


def test_real_clients_are_tested(project: Path) -> None:
    ran = maven(project, "verify")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    reports = project.glob("*/target/surefire-reports/TEST-*.xml")
    names = {each.name.split(".")[-2] for each in reports}
    assert {"ConsumersTest", "KoordinatorExtensionTest", "KoordinatorPerMethodTest"} <= names


def test_a_failed_test_shows_the_timeline(project: Path) -> None:
    ran = maven(project, "test", "--projects", "koordinator", "-Dtest=FailingTest", KOORDINATOR_FAILING="1")
    assert ran.returncode == 1, ran.stderr
    assert 'group "svc": waitStable: not within 2.0 s: {"members":2,"state":"Stable"}' in ran.stdout
    assert "expected: <Empty> but was: <Stable>" in ran.stdout
    assert "a rule was never used (optional allows it): rule-1: lose_reply() on OffsetCommit" in ran.stdout
    for name in ("aMemberIsMissing", "anAssertionOfTheTestFails", "aRuleIsNeverUsed"):
        folder = project / "koordinator" / "test-results" / f"FailingTest.{name}"
        assert f"Suppressed: full trace: test-results/FailingTest.{name}/trace.html" in ran.stdout
        assert {each.name for each in folder.iterdir()} == {"trace.html", "trace.json", "trace.jsonl", "trace.txt"}
        lines = (folder / "trace.jsonl").read_text().splitlines()
        assert json.loads(lines[0])["kind"] == "header"
    missing = (project / "koordinator" / "test-results" / "FailingTest.aMemberIsMissing" / "trace.jsonl").read_text()
    assert '"JoinGroup"' in missing


def test_the_code_of_the_page_runs(project: Path) -> None:
    page = (ROOT / "docs" / "java.md").read_text(encoding="utf-8")
    program, *fragments = (text for info, text in FENCE.findall(page) if info == "java")
    # in other packages than that of the client, as the tests of its users
    folders = {name: project / name / "src" / "test" / "java" for name in ("koordinator", "koordinator-testcontainers")}
    (folders["koordinator"] / "OrdersTest.java").write_text(program, encoding="utf-8")
    for (words, scaffold), fragment in zip(SCAFFOLDS.items(), fragments, strict=True):
        assert fragment.startswith(words)
        name = scaffold.partition("class ")[2].partition(" ")[0]
        text = IMPORTS + scaffold % fragment
        if name == "ContainerFragment":
            text = f"import example.koordinator.testcontainers.*;\n{text}"
        folder = folders["koordinator-testcontainers" if name == "ContainerFragment" else "koordinator"]
        (folder / f"{name}.java").write_text(text, encoding="utf-8")
    tests = "-Dtest=OrdersTest,FieldTest,StatementsTest"
    ran = maven(project, "test", tests, "-Dsurefire.failIfNoSpecifiedTests=false")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    reports = (project / "koordinator" / "target" / "surefire-reports").glob("TEST-*Test.xml")
    assert {each.stem for each in reports} >= {"TEST-OrdersTest", "TEST-FieldTest", "TEST-StatementsTest"}


def test_the_server_ends_with_the_process_that_started_it(project: Path, tmp_path: Path) -> None:
    assert maven(project, "compile", "--projects", "koordinator").returncode == 0
    program = tmp_path / "Leave.java"
    program.write_text(LEAVING, encoding="utf-8")
    classes = project / "koordinator" / "target" / "classes"
    ran = run_client(["java", "-cp", str(classes), str(program)], tmp_path, TEST_S)
    wait_closed(ran.stdout)


def test_the_page_names_the_version() -> None:
    page = (ROOT / "docs" / "java.md").read_text(encoding="utf-8")
    (dependency,) = (text for info, text in FENCE.findall(page) if info == "xml")
    assert f"<version>{__version__}</version>" in dependency
