"""Wherever the HTTP API takes a string, any string is used or refused by name: surrogates, NUL, keywords, megabytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_from_bytes

import httpx
import pytest
from brokers.http_server import WAIT_S, Serving
from documents import OPENAPI

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENT: dict[str, Any] = json.loads(OPENAPI.read_text(encoding="utf-8"))

THERE = {"cluster": "default", "group": "g", "topic": "orders", "name": "a"}
"""What the cluster has, by the names of path parameters."""

ODD = ("\ud800", "\0", "[::1")
LONG = "x" * 2_000_000

Place = tuple[str | int, ...]


def places(value: object, place: Place = ()) -> Iterator[Place]:
    """Yield the places of all strings in a JSON value."""
    if isinstance(value, str):
        yield place
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from places(each, (*place, name))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from places(each, (*place, number))


def replaced(value: Any, place: Place, text: str) -> Any:
    """Return a JSON value with another string in a place."""
    if not place:
        return text
    items = dict(value) if isinstance(value, dict) else list(value)
    items[place[0]] = replaced(items[place[0]], place[1:], text)
    return items


def quoted(text: object) -> str:
    return quote_from_bytes(str(text).encode(errors="surrogatepass"), safe="")


def fullest(schema: Any) -> Any:
    """Return a value of a schema that has everything it can have: each property, one entry in each table and list."""
    if "$ref" in schema:
        return fullest(DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    for each in ("anyOf", "oneOf", "allOf"):
        if each in schema:
            return max((fullest(choice) for choice in schema[each]), key=lambda value: len(list(places(value))))
    if "enum" in schema or "const" in schema:
        return [*schema.get("enum", ()), schema.get("const")][0]
    match schema.get("type", "string"):
        case "object":
            known = {name: fullest(each) for name, each in schema.get("properties", {}).items()}
            more = schema.get("additionalProperties")
            return {**known, "more": fullest(more)} if isinstance(more, dict) else known
        case "array":
            return [fullest(schema["items"])] if schema.get("items") else []
        case "integer" | "number":
            return max(schema.get("minimum", 0), min(1, schema.get("maximum", 1)))
        case "boolean":
            return False
        case "null":
            return None
    return "a"


def example(method: str, path: str) -> tuple[dict[str, Any], Any]:
    """Return a query and a body for an operation, without waits."""
    operation = DOCUMENT["paths"][path][method]
    query = {each["name"]: fullest(each["schema"]) for each in operation.get("parameters", ()) if each["in"] == "query"}
    content = operation.get("requestBody", {}).get("content", {})
    body = fullest(content["application/json"]["schema"]) if "application/json" in content else None
    for given_to in (query, body):
        if isinstance(given_to, dict) and "timeout" in given_to:
            given_to["timeout"] = 0.01
    return query, body


@pytest.mark.slow
def test_any_string_in_any_place_of_a_request_is_used_or_refused() -> None:
    asked = 0
    with (
        Serving(seed=7, topics={"orders": 2}) as served,
        httpx.Client(base_url=served.url, trust_env=False, timeout=WAIT_S) as http,
    ):

        def ask(method: str, path: str, values: dict[str, str], query: dict[str, Any], body: Any) -> None:
            nonlocal asked
            asked += 1
            url = path.format_map({name: quoted(value) for name, value in values.items()})
            url += "?" + "&".join(f"{quoted(name)}={quoted(value)}" for name, value in query.items())
            content = None if body is None else json.dumps(body).encode()
            response = http.request(method, url, content=content, headers={"Content-Type": "application/json"})
            assert response.status_code < 500, (method, url[:200], (content or b"")[:200], response.text)

        for path, methods in DOCUMENT["paths"].items():
            names = [part[1:].partition("}")[0] for part in path.split("/") if part.startswith("{")]
            values = {name: THERE.get(name, "1") for name in names}
            for method in methods.keys() - {"parameters"}:
                if (method, path) == ("delete", "/v1/clusters/{cluster}"):
                    continue
                query, body = example(method, path)
                for text in ODD:
                    for name in values.keys() - {"cluster"}:
                        ask(method, path, {**values, name: text}, query, body)
                    for name in query:
                        ask(method, path, values, {**query, name: text}, body)
                    for place in places(body):
                        ask(method, path, values, query, replaced(body, place, text))
                for place in list(places(body))[:1]:
                    ask(method, path, values, query, replaced(body, place, LONG))
        assert http.get("/v1/health").json() == {"status": "ok"}
    assert asked > 500
