"""The OpenAPI 3.1 document of the API, generated from the routes and the operations."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from koordinator.version import __version__

from .exports import FORMS, JSON
from .exports import TEXT as TEXT_FORMAT
from .plain import BASE64
from .routes import BELOW, ROUTES, TRACE, Route
from .schemas import NewCluster, arguments_of, request_schema, result_schemas, summary_of

CLUSTER = {
    "name": "cluster",
    "in": "path",
    "required": True,
    "description": "the id of a cluster; `default` is the first one",
    "schema": {"type": "string"},
}


def _query(name: str, description: str, **schema: object) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _object(optional: dict[str, Any] | None = None, **properties: object) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(properties),
        "additionalProperties": False,
        "properties": {**properties, **(optional or {})},
    }


TEXT = {"type": "string"}

TIMEOUT = _query(
    "timeout", "long poll: the maximum time in seconds to wait for a true result", type="number", minimum=0, maximum=600
)
FORMAT = _query(
    "format",
    "JSON, a Perfetto trace, an HTML page, a test of a group, or the last events as text; with "
    "`Accept: text/event-stream` the response is a stream",
    type="string",
    enum=[JSON, TEXT_FORMAT, *FORMS],
    default=JSON,
)
WATCH = _query(
    "watch",
    "a group id; the event stream then also carries events named `group` with the group's state",
    type="string",
)

PROBLEM = {
    "type": "object",
    "description": "An error (RFC 9457); the request changed nothing.",
    **_object(
        {"errors": {"type": "array", "items": _object(field=TEXT, detail=TEXT, value=TEXT)}},
        type=TEXT,
        title=TEXT,
        status={"type": "integer"},
        detail=TEXT,
    ),
}

REFUSED = {
    "default": {
        "description": "refused, with nothing changed",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}

HEALTH = _object(status={"const": "ok"})
READINESS = _object(status={"const": "ready"}, clusters={"type": "array", "items": TEXT})


def document() -> dict[str, Any]:
    """Return the whole document."""
    results, components = result_schemas(route.operation for route in ROUTES)
    created = {str(HTTPStatus.CREATED.value): _json(results["cluster"], "created"), **REFUSED}
    paths: dict[str, dict[str, Any]] = {
        "/": {"get": _fixed("dashboard", "Return the dashboard page; needs no token.", _text("text/html"))},
        "/healthz": {"get": _fixed("health", "Return that the process is alive; needs no token.", _json(HEALTH))},
        "/readyz": {"get": _fixed("ready", "Return that a cluster accepts clients; needs no token.", _json(READINESS))},
        "/metrics": {"get": _fixed("metrics", "Return metrics in the format of Prometheus.", _text("text/plain"))},
        "/openapi.json": {"get": _fixed("openapi", "Return this document.", _json({"type": "object"}))},
        "/openapi-3.0.json": {
            "get": _fixed("openapi_3_0", "Return this document in OpenAPI 3.0.", _json({"type": "object"}))
        },
        "/v1/health": {
            "get": _fixed("bugs", "Return that no bug has ended a request; else its report.", _json(HEALTH))
        },
        "/v1/clusters": {
            "get": _fixed("clusters.describe_all", "Return all clusters.", _json(results["clusters"])),
            "post": {
                "operationId": "clusters.create",
                "summary": "Start another cluster, with its own ports, rules and trace.",
                "requestBody": _body(request_schema(NewCluster)),
                "responses": created,
            },
        },
        "/v1/clusters/{cluster}": {
            "parameters": [CLUSTER],
            "get": _fixed("clusters.describe", "Return a cluster's addresses.", _json(results["cluster"])),
            "delete": {
                "operationId": "clusters.delete",
                "summary": "Stop a cluster and free its ports.",
                "responses": {"204": {"description": "done"}, **REFUSED},
            },
        },
    }
    for route in ROUTES:
        path = paths.setdefault(BELOW + route.path, {"parameters": [CLUSTER]})
        path[route.method.lower()] = _operation(route, results[route.operation])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "koordinator",
            "version": __version__,
            "description": "Control of a Kafka group coordinator emulator, outside Kafka's protocol.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"token": []}, {}],
        "paths": paths,
        "components": {
            "schemas": {**components, "Problem": PROBLEM},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def document_3_0() -> dict[str, Any]:
    """Return the document in OpenAPI 3.0, which most generators of clients read."""
    older: dict[str, Any] = _older(document())
    del older["info"]["license"]["identifier"]
    return {**older, "openapi": "3.0.3"}


def _older(part: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a part of the document with the JSON Schema of OpenAPI 3.0."""
    if isinstance(part, list):
        return [_older(each) for each in part]
    if not isinstance(part, dict):
        return part
    older = {name: _older(each) for name, each in part.items()}
    if "const" in older and isinstance(older["const"], str):
        older |= {"type": "string", "enum": [older.pop("const")]}
    if isinstance(older.get("prefixItems"), list):
        # there are no tuples: a list of any of the types
        del older["prefixItems"]
        older["items"] = {}
    if older.get("contentEncoding") == BASE64:
        del older["contentEncoding"]
        older["format"] = "byte"
    options = older.get("anyOf")
    if isinstance(options, list) and {"type": "null"} in options:
        others = [each for each in options if each != {"type": "null"}]
        older["nullable"] = True
        if len(others) > 1:
            older["anyOf"] = others
        else:
            del older["anyOf"]
            # a reference has no neighbours in 3.0
            older |= {"allOf": others} if "$ref" in others[0] else others[0]
    return older


def _operation(route: Route, result: dict[str, Any]) -> dict[str, Any]:
    summary, description = summary_of(route.operation)
    in_path, others = (request_schema(model) for model in arguments_of(route))
    operation: dict[str, Any] = {
        "operationId": route.operation,
        "summary": summary,
        "description": description,
        "parameters": _parameters(in_path, "path"),
        "responses": {**_responses(result), **REFUSED},
    }
    if route.method == "GET":
        operation["parameters"] += [*_parameters(others, "query"), *([TIMEOUT] if route.waits else [])]
        operation["parameters"] += [FORMAT, WATCH] if route.operation == TRACE else []
    else:
        if route.waits:
            others["properties"] = {**others.get("properties", {}), TIMEOUT["name"]: TIMEOUT["schema"]}
        if others.get("properties"):
            operation["requestBody"] = _body(others)
    return operation


def _responses(result: dict[str, Any]) -> dict[str, Any]:
    """Return the success responses of a result; None is an empty response."""
    empty = {"204": {"description": "done"}}
    if result == {"type": "null"}:
        return empty
    options = result.get("anyOf", [])
    if {"type": "null"} not in options:
        return {"200": _json(result)}
    others = [option for option in options if option != {"type": "null"}]
    return {"200": _json(others[0] if len(others) == 1 else {"anyOf": others}), **empty}


def _parameters(schema: dict[str, Any], place: str) -> list[dict[str, Any]]:
    required = schema.get("required", [])
    return [
        {"name": name, "in": place, "required": name in required, "schema": each}
        for name, each in sorted(schema.get("properties", {}).items())
    ]


def _body(schema: dict[str, Any]) -> dict[str, Any]:
    return {"required": bool(schema.get("required")), "content": {"application/json": {"schema": schema}}}


def _json(schema: dict[str, Any], description: str = "done") -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _text(media_type: str) -> dict[str, Any]:
    return {"description": "done", "content": {media_type: {"schema": TEXT}}}


def _fixed(operation: str, summary: str, response: dict[str, Any]) -> dict[str, Any]:
    return {"operationId": operation, "summary": summary, "responses": {"200": response, **REFUSED}}
