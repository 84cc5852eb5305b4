"""Documentation of the HTTP API: every operation from the OpenAPI document, and the curl commands of the levers.

A section of a page of `docs/levers/` shows one lever in Python. Its example is performed on a cluster behind HTTP, and
the section gets the same requests as curl commands, with the fields that each accepts.
"""

from __future__ import annotations

import json
import re
from functools import cache, partial
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from brokers.http_server import Serving
from scenes.documentation import ROOT
from tables import table

from koordinator import Cluster, faults
from koordinator.emulator.config.settings import STANDARD_AUTHORIZER
from koordinator.emulator.control.operations import arguments as arguments_of
from koordinator.emulator.http.openapi import document
from koordinator.emulator.http.routes import BELOW
from koordinator.handles.remote import INFO, ROUTE_OF, Remote, RemotePort

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LEVERS = ROOT / "docs" / "levers"
SERVER = "localhost:9080"
PROSE_WIDTH = 100
METHODS = ("get", "put", "post", "delete")
REFERENCE = re.compile(r"#/components/schemas/(\w+)")


class Lever(NamedTuple):
    """A section of a page of `docs/levers/`: its name, and its example in Python."""

    name: str
    page: Path
    code: str

    @property
    def parts(self) -> dict[str, Callable[[], str]]:
        """The generated parts of the section."""
        return {f"curl of {self.name}": partial(curl_of, self), f"fields of {self.name}": partial(fields_of, self)}


def levers() -> list[Lever]:
    """Return the levers of all pages."""
    found = []
    for page in sorted(LEVERS.glob("*.md")):
        for section in page.read_text(encoding="utf-8").split("\n## ")[1:] if page.stem != "index" else ():
            (name,) = re.findall(r"^<!-- curl of ([a-z-]+): ", section, re.MULTILINE)
            found.append(Lever(name, page, _code(section)))
    return found


def _code(text: str) -> str:
    (code,) = re.findall(r"^```py\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return code


class Recorder(RemotePort):
    """A port that records operations with their arguments."""

    def __init__(self, server: Remote) -> None:
        super().__init__(server, INFO.validate_python(server.request("GET", "/v1/clusters/default")))
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def _request(self, operation: str, arguments: dict[str, Any], wait_s: float) -> Any:
        self.calls.append((operation, arguments))
        return super()._request(operation, arguments, wait_s)


CLUSTER: Any = {
    "brokers": 3,
    "config": {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"},
    "listeners": {"SSL": "127.0.0.1:0"},
}
"""The options of the levers' cluster: some change the rights of clients, and the certificate of the brokers."""


def prepare(cluster: Cluster) -> None:
    """Create the cluster of the levers' examples: `docs/levers/index.md` shows it."""
    exec(_code((LEVERS / "index.md").read_text(encoding="utf-8")), {"koordinator": cluster})  # noqa: S102 - our own page


def perform(cluster: Cluster, lever: Lever) -> None:
    """Perform the Python example of a lever on a prepared cluster."""
    exec(lever.code, {"koordinator": cluster, "group": cluster.group("svc"), "faults": faults})  # noqa: S102


@cache
def calls_of(lever: Lever) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return the operations that a lever's example performs: those that change something or wait."""
    with Serving(**CLUSTER) as served, Remote(served.url) as server:
        recorder = Recorder(server)
        prepare(Cluster(recorder))
        recorder.calls.clear()
        perform(Cluster(recorder), lever)
    calls = []
    for call in recorder.calls:
        is_read = ROUTE_OF[call[0]].method == "GET"
        # a long poll that timed out is repeated
        if not is_read or ("timeout" in call[1] and [call] != calls[-1:]):
            calls.append(call)
    return tuple(calls)


def curl_of(lever: Lever) -> str:
    """Return the curl commands of a lever."""
    lines = [_curl(operation, arguments) for operation, arguments in calls_of(lever)]
    return "\n".join(["```bash", *lines, "```", ""])


def _curl(operation: str, arguments: dict[str, Any]) -> str:
    route = ROUTE_OF[operation]
    in_path = {name: value for name, value in arguments.items() if f"{{{name}}}" in route.path}
    known = arguments_of(operation)
    given = {
        name: value
        for name, value in arguments.items()
        if name not in in_path and value != known.get(name, (None, ...))[1]
    }
    address = SERVER + BELOW.format(cluster="default") + route.path.format(**in_path)
    if route.method == "GET":
        return f'curl "{address}{"?" if given else ""}{_query(given)}"'
    if given:
        option = "" if route.method == "POST" else f"-X {route.method} "
        return f"curl {option}-d '{json.dumps(given)}' {address}"
    return f"curl -X {route.method} {address}"


def _query(given: dict[str, Any]) -> str:
    whole = {name: int(value) if isinstance(value, float) else value for name, value in given.items()}
    return urlencode(whole, doseq=True)


def fields_of(lever: Lever) -> str:
    """Return the documentation of each operation that a lever's example performs."""
    sections = []
    for name in dict.fromkeys(operation for operation, _ in calls_of(lever)):
        route = ROUTE_OF[name]
        operation = document()["paths"][BELOW + route.path][route.method.lower()]
        text = fill(operation["summary"], PROSE_WIDTH, break_on_hyphens=False)
        sections.append(f"**`{route.method} {route.path}`**\n\n{text}\n\n{_fields(operation)}")
    return "\n".join(sections)


def operations_page() -> str:
    """Return every operation of the API with its fields, and the objects of the responses."""
    api = document()
    parts = []
    for path, methods in api["paths"].items():
        for method in METHODS:
            if method in methods:
                operation = methods[method]
                text = operation.get("description") or operation["summary"]
                parts.append(
                    f"### {method.upper()} {path}\n\n{text}\n\n{_fields(operation)}Returns {_returns(operation)}.\n"
                )
    parts.append("## Objects\n")
    for name, schema in api["components"]["schemas"].items():
        rows = [(f"`{field}`", _type(each)) for field, each in schema["properties"].items()]
        parts.append(f"### {name}\n\n{_plain(schema.get('description', ''))}\n\n{table(('field', 'type'), rows)}")
    return "\n".join(parts)


def _plain(text: str) -> str:
    """Return the first sentence of a docstring as one line."""
    return " ".join(text.partition("\n\n")[0].split())


def _fields(operation: dict[str, Any]) -> str:
    rows = [*_rows(operation)]
    return table(("field", "in", "type", "default"), rows) + "\n" if rows else ""


def _rows(operation: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    for each in operation.get("parameters", []):
        if each["in"] == "query":
            yield _row(each["name"], "query", each["schema"], required=each.get("required", False))
    body = operation.get("requestBody")
    schema = body["content"]["application/json"]["schema"] if body else {}
    for name, each in schema.get("properties", {}).items():
        yield _row(name, "body", each, required=name in schema.get("required", []))


def _row(name: str, place: str, schema: dict[str, Any], *, required: bool) -> tuple[str, str, str, str]:
    default = (
        "required" if required else f"`{json.dumps(schema['default'])}`" if schema.get("default") is not None else ""
    )
    return (f"`{name}`", place, _type(schema), default)


def _returns(operation: dict[str, Any]) -> str:
    for status in ("200", "201"):
        if status in operation["responses"]:
            (content,) = operation["responses"][status]["content"].items()
            return _type(content[1]["schema"]) if content[0] == "application/json" else f"`{content[0]}`"
    return "nothing (204)"


def _type(schema: dict[str, Any]) -> str:
    """Return the type of a value in words."""
    match schema:
        case {"$ref": reference}:
            name = REFERENCE.fullmatch(reference)
            assert name, reference
            return f"[{name[1]}](http-api.md#{name[1].lower()})"
        case {"const": value}:
            return f"`{json.dumps(value)}`"
        case {"enum": values}:
            return " or ".join(f"`{json.dumps(value)}`" for value in values)
        case {"anyOf": options}:
            return " or ".join(dict.fromkeys(map(_type, options)))
        case {"prefixItems": items}:
            return f"[{', '.join(map(_type, items))}]"
        case {"type": "array", "items": items}:
            return f"list of {_type(items)}" if items else "list"
        case {"type": "object", "properties": {"base64": _}}:
            return '`{"base64": "…"}`'
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"object of {_type(values)}"
        case {"type": kind}:
            return str(kind)
    return "any"
