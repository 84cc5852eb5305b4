"""The description of the API, as OpenAPI 3.1: made from the routes and the operations, and from nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.version import __version__

from .exports import FORMS, JSON
from .routes import BELOW, ROUTES, TRACE
from .schemas import NewCluster, arguments_of, summary_of

if TYPE_CHECKING:
    from ..control.control import Control
    from .routes import Route

CLUSTER = {
    "name": "cluster",
    "in": "path",
    "required": True,
    "description": "the id of a cluster; `default` is the one that is there from the start",
    "schema": {"type": "string"},
}

TIMEOUT = {
    "name": "timeout",
    "in": "query",
    "description": "wait so many seconds, at most, for what is asked to be so (a long poll)",
    "schema": {"type": "number", "minimum": 0, "maximum": 600},
}

FORMAT = {
    "name": "format",
    "in": "query",
    "description": "JSON, what Perfetto opens, or a page; as a stream with `Accept: text/event-stream`",
    "schema": {"type": "string", "enum": [JSON, *FORMS], "default": JSON},
}

WATCH = {
    "name": "watch",
    "in": "query",
    "description": "a group id; the event stream then also carries events named `group` with the group's state",
    "schema": {"type": "string"},
}

PROBLEM = {
    "type": "object",
    "description": "RFC 9457: what was wrong; nothing has been changed",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {"type": "array", "items": {"type": "object"}},
    },
}

REFUSED = {
    "default": {
        "description": "refused, with nothing changed",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}

DONE = {"200": {"description": "done", "content": {"application/json": {"schema": {}}}}, "204": {"description": "done"}}


def document_of(control: Control) -> dict[str, Any]:
    """The whole document."""
    paths: dict[str, dict[str, Any]] = {
        "/": {"get": _plain("dashboard", "The dashboard; needs no token, its data does.")},
        "/healthz": {"get": _plain("health", "The process lives; needs no token.")},
        "/readyz": {"get": _plain("ready", "Clients can connect to a cluster; needs no token.")},
        "/metrics": {"get": _text("metrics", "What Prometheus wants to know.")},
        "/openapi.json": {"get": _plain("openapi", "This document.")},
        "/v1/clusters": {
            "get": _plain("clusters.describe_all", "The clusters there are."),
            "post": {
                **_plain("clusters.create", "Start one more cluster, with ports, rules and a trace of its own."),
                "requestBody": _body(NewCluster.model_json_schema()),
                "responses": {"201": DONE["200"], **REFUSED},
            },
        },
        "/v1/clusters/{cluster}": {
            "parameters": [CLUSTER],
            "get": _plain("clusters.describe", "Where clients connect to."),
            "delete": _plain("clusters.delete", "End a cluster; its ports are free then."),
        },
    }
    for route in ROUTES:
        path = paths.setdefault(BELOW + route.path, {"parameters": [CLUSTER]})
        path[route.method.lower()] = _operation(route, control)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "koordinator",
            "version": __version__,
            "description": "What may be done to a Kafka group coordinator emulator from outside Kafka's protocol.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"token": []}, {}],
        "paths": paths,
        "components": {
            "schemas": {"Problem": PROBLEM},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route, control: Control) -> dict[str, Any]:
    operation = control.operations[route.operation]
    summary, said = summary_of(operation)
    in_path, given = (each.model_json_schema() for each in arguments_of(operation, route))
    described: dict[str, Any] = {
        "operationId": route.operation,
        "summary": summary,
        "description": said,
        "parameters": _parameters(in_path, "path"),
        "responses": {**DONE, **REFUSED},
    }
    if route.method == "GET":
        described["parameters"] += [*_parameters(given, "query"), *([TIMEOUT] if route.waits else [])]
        described["parameters"] += [FORMAT, WATCH] if route.operation == TRACE else []
    else:
        if route.waits:
            given["properties"] = {**given.get("properties", {}), TIMEOUT["name"]: TIMEOUT["schema"]}
        if given.get("properties"):
            described["requestBody"] = _body(given)
    return described


def _parameters(schema: dict[str, Any], place: str) -> list[dict[str, Any]]:
    wanted = schema.get("required", [])
    return [
        {"name": name, "in": place, "required": name in wanted, "schema": each}
        for name, each in sorted(schema.get("properties", {}).items())
    ]


def _body(schema: dict[str, Any]) -> dict[str, Any]:
    return {"required": bool(schema.get("required")), "content": {"application/json": {"schema": schema}}}


def _text(operation: str, summary: str) -> dict[str, Any]:
    text = {"description": "done", "content": {"text/plain": {"schema": {"type": "string"}}}}
    return {"operationId": operation, "summary": summary, "responses": {"200": text, **REFUSED}}


def _plain(operation: str, summary: str) -> dict[str, Any]:
    return {"operationId": operation, "summary": summary, "responses": {**DONE, **REFUSED}}
