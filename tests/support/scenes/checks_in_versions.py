"""Each check has its failing scene in each version of the APIs that it reads.

A scene names no API: it depends on those without whose lines its verdict is another. Their requests and responses go
over the wire in each version, and from there into trace lines. The APIs that a check reads are those that its code
names.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import is_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from marks.cases import case

from koordinator.emulator import verify
from koordinator.emulator.verify.conformance import SERVER_CHECKS, client_checks
from koordinator.emulator.verify.group_trace import GroupTrace
from koordinator.emulator.verify.transaction_checks import TITLES, check_transactions
from koordinator.wire.apis import APIS
from koordinator.wire.schema import fields_of
from scenes.lines_on_the_wire import API_KEYS, over_the_wire
from scenes.trace_tales import Tale

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from koordinator.trace.exchanges import Line

    Scene = Callable[[Tale], None]

COLUMNS = {
    "member_id": ("member_id",),
    "instance_id": ("group_instance_id", "instance_id"),
    "generation": ("generation_id", "generation_id_or_member_epoch", "member_epoch"),
}
"""The columns of a sender, with their fields."""


def of_each(scene: Callable[..., None], apis: Iterable[str]) -> tuple[Scene, ...]:
    """Return the scene of each API."""
    return tuple(partial(scene, api=api) for api in apis)


def judged(check: str, lines: list[Line]) -> tuple[str, tuple[int, ...], str]:
    """Return status, evidence and message."""
    if check in TITLES:
        found = check_transactions(lines)[check]
    elif check in SERVER_CHECKS:
        found = SERVER_CHECKS[check][1](GroupTrace(lines, "g"))
    else:
        found = client_checks(GroupTrace(lines, "g"), auto_commit=True)[check]()
    return found.status, found.evidence, found.message


def without(lines: list[Line], api: str) -> list[Line]:
    return [line for line in lines if line.get("api") != api]


def played(scene: Scene) -> list[Line]:
    tale = Tale()
    scene(tale)
    return tale.lines


def apis_of(check: str, lines: list[Line]) -> list[str]:
    """Return the APIs whose lines the verdict depends on."""
    verdict = judged(check, lines)
    apis = sorted({line["api"] for line in lines if "api" in line})
    return [api for api in apis if judged(check, without(lines, api)) != verdict]


def has_field(cls: Any, names: tuple[str, ...], version: int) -> bool:
    """Return whether a message, or a row of it, has one of these fields in a version."""
    specs = {name: spec for name, spec in fields_of(cls).items() if version in spec.versions}
    rows = [spec.type for spec in specs.values() if spec.is_array and isinstance(spec.type, type)]
    return not specs.keys().isdisjoint(names) or any(
        has_field(row, names, version) for row in rows if is_dataclass(row)
    )


def versions_that_carry(api: str, lines: list[Line]) -> list[int]:
    """Return the versions of an API whose requests have the fields of these lines: OffsetCommit v0 has no member."""
    requests = [line for line in lines if line.get("api") == api and line["kind"] == "request"]
    cls, versions = APIS[API_KEYS[api]].request, APIS[API_KEYS[api]].versions
    told = (fields for column, fields in COLUMNS.items() if any(column in line for line in requests))
    needed = [fields for fields in told if has_field(cls, fields, versions.max)]
    return [each for each in versions if all(has_field(cls, fields, each) for fields in needed)]


def name_of(scene: Scene) -> str:
    if isinstance(scene, partial):
        return f"{scene.func.__name__}-{scene.keywords['api']}"
    return scene.__name__


def cases_of(scenes: Mapping[str, Iterable[Scene]]) -> list[Any]:
    """Return each check with each of its scenes, as parameters of a test."""
    return [
        pytest.param(check, scene, id=f"{check}-{name_of(scene)}") for check, each in scenes.items() for scene in each
    ]


def assert_fails_in_each_version(check: str, scene: Scene) -> None:
    status, evidence, _ = judged(check, played(scene))
    assert status == "fail"
    for api in apis_of(check, played(scene)):
        versions = versions_that_carry(api, played(scene))
        assert versions
        for version in versions:
            lines = played(scene)
            over_the_wire(lines, api, version)
            with case(check, api, version):
                assert judged(check, lines)[:2] == (status, evidence)


class Code:
    """The definitions of the package of checks, by name; methods of public classes as `.name`."""

    def __init__(self) -> None:
        self._definitions: dict[str, list[ast.AST]] = defaultdict(list)
        for path in Path(verify.__file__).parent.glob("*.py"):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                match node:
                    case ast.ClassDef(name=name, body=body):
                        for method in (each for each in body if isinstance(each, ast.FunctionDef)):
                            self._definitions[name if name.startswith("_") else f".{method.name}"].append(method)
                    case ast.FunctionDef(name=name):
                        self._definitions[name].append(node)
                    case ast.Assign() | ast.AnnAssign():
                        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                        for each in (name for target in targets for name in ast.walk(target)):
                            if isinstance(each, ast.Name):
                                self._definitions[each.id].append(node)

    def apis(self, function: str) -> set[str]:
        """Return the APIs that a function names, or a definition that it uses."""
        found, todo, seen = set(), [function], {*TEXTS}
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            for node in (each for definition in self._definitions[name] for each in ast.walk(definition)):
                match node:
                    case ast.Constant(value=str(text)) if text in API_KEYS:
                        found.add(text)
                    case ast.Name(id=used):
                        todo.append(used)
                    case ast.Attribute(attr=used):
                        todo.append(f".{used}")
        return found


TEXTS = (".describe", ".label", ".software", ".clients")
"""Methods that name members and clients in messages, from all requests."""


def function_of(check: str) -> str:
    """Return the name of a check's function."""
    if check in SERVER_CHECKS:
        return SERVER_CHECKS[check][1].__name__
    return client_checks(GroupTrace([], "g"))[check].__code__.co_names[-1]


def assert_reads_no_other_api(
    scenes: Mapping[str, Iterable[Scene]], without_effect: Mapping[tuple[str, str], str]
) -> None:
    """Assert that each check's code names the APIs that its verdicts depend on, and those without effect."""
    code = Code()
    for check, each in scenes.items():
        with case(check):
            covered = {api for scene in each for api in apis_of(check, played(scene))}
            exempt = {api for other, api in without_effect if other == check}
            assert code.apis(function_of(check)) <= covered | exempt
            assert not covered & exempt
