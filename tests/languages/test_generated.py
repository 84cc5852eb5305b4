"""The generated sources of the clients of other languages are current, and those written by hand are small."""

from __future__ import annotations

import json
import re

import client_java
import pytest
from client_model import BY_HAND, VERBS, operations
from client_sources import CLIENTS, FILES, RENEW, generated_java

from koordinator.version import __version__

LINES_MAX = 630
"""The most lines of code of a client that are written by hand."""

NO_CODE = {
    "go": r"//",
    "java": r"//|/\*\*|\*|import |package |@\w+$|[])};]+$",
    "node": r"//|/\*\*|\*",
}
"""The beginnings of lines that do not count; in Java also those of imports, annotations and the ends of blocks."""

BY_HAND_SOURCES = {"go": "*.go", "java": "*/src/main/java/**/*.java", "node": "src/*.js"}
"""The modules of each client, generated ones included."""


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_the_generated_sources_are_current(name: str) -> None:
    assert (CLIENTS / name).read_text(encoding="utf-8") == FILES[name](), f"clients/{name} is not current: {RENEW}"


@pytest.mark.slow
def test_the_generated_classes_of_java_are_current() -> None:
    assert generated_java() == client_java.files(), f"clients/java is not current: {RENEW}"


@pytest.mark.parametrize("language", BY_HAND_SOURCES)
def test_the_part_that_is_written_by_hand_is_small(language: str) -> None:
    generated = generated_java() if language == "java" else {}
    sources = [
        path
        for path in (CLIENTS / language).glob(BY_HAND_SOURCES[language])
        if path.relative_to(CLIENTS).as_posix() not in FILES and path.name not in generated
    ]
    lines = [line.strip() for path in sources for line in path.read_text(encoding="utf-8").splitlines()]
    assert 0 < len([line for line in lines if line and not re.match(NO_CODE[language], line)]) <= LINES_MAX


def test_every_operation_is_a_method_once() -> None:
    generated = {verb.operation for verb in VERBS}
    assert generated | BY_HAND.keys() == operations().keys()


def test_the_packages_have_the_version_of_the_emulator() -> None:
    poms = [path.read_text(encoding="utf-8") for path in (CLIENTS / "java").rglob("pom.xml")]
    assert [f"<version>{__version__}</version>" in pom for pom in poms] == [True] * 3
    assert json.loads((CLIENTS / "node" / "package.json").read_text(encoding="utf-8"))["version"] == __version__


def test_every_method_of_java_with_options_can_be_called_without_them() -> None:
    sources = list((CLIENTS / "java" / "koordinator" / "src" / "main").rglob("*.java"))
    method = re.compile(r"^    public (?:static )?[\w<>,. ]+ (\w+)\((.*?)\) (?:throws \w+ )?\{", re.MULTILINE)
    lacking, count = [], 0
    for path in sources:
        methods = set(method.findall(path.read_text(encoding="utf-8")))
        for name, parameters in methods:
            required, options, _ = parameters.rpartition("Consumer<")
            if options:
                count += 1
                if (name, required.removesuffix(", ")) not in methods:
                    lacking.append(f"{path.stem}.{name}({parameters})")
    assert lacking == []
    assert count > 40
