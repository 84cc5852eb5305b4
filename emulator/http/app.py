"""The HTTP API as an ASGI application: clusters, and every operation on each."""

from __future__ import annotations

from contextlib import asynccontextmanager
from difflib import SequenceMatcher
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, unquote

import trio
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from pydantic import Field, ValidationError
from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from ..broker.failures import BrokerBug
from ..pages.dashboard import FILES, FOLDER, dashboard_html
from ..pages.html import static
from ..server.cluster_registry import FIRST, NoSuchCluster, PortsTaken
from .event_stream import MEDIA_TYPE as STREAM
from .event_stream import EventStreams
from .exports import JSON, checked_format, export_of
from .guards import Guards
from .metrics import Metrics
from .openapi import document, document_3_0
from .plain import from_json, to_json, to_json_in_turns
from .problems import ERRORS_MAX, Problem, problem_of, validation_problem
from .routes import BELOW, OLD_ARGUMENTS, OLD_ROUTES, ROUTES, TRACE
from .schemas import Arguments, NewCluster, arguments_of, request_schema

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from starlette.datastructures import QueryParams
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from ..broker.failures import Failures
    from ..config.options import Options
    from ..server.cluster_registry import ClusterRegistry, RegisteredCluster
    from .routes import Route

WAIT_S_MAX = 600.0
"""The longest long poll, in seconds."""

PARSED_AT_ONCE_MAX = 64 * 1024
"""The longest body in bytes that is parsed before clients are served; a thread parses larger ones."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
"""The content security policy: the page loads its own files only, and no page may embed it."""

HEADERS = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"}


SIMILARITY_MIN = 0.6
"""How similar each part of a path must be for the path to be suggested; 1 is equal."""

OLD = "old"
"""The name of the routes of old paths, which are not suggested."""

OLD_SINCE = "@1767225600"
"""The date of their deprecation, 1 January 2026, in the format of RFC 9745."""


class PathSegment(Convertor[str]):
    """A path segment; its percent-encoding is decoded."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        """Return the decoded segment."""
        return unquote(value)

    def to_string(self, value: str) -> str:
        """Raise NotImplementedError: no address is built from a route."""
        raise NotImplementedError(value)


register_url_convertor("segment", PathSegment())


class Timeout(Arguments):
    """The argument of every long poll: its maximum time in seconds; 0 returns at once."""

    timeout: Annotated[float, Field(ge=0, le=WAIT_S_MAX)] = 0.0


class OperationEndpoint:
    """The endpoint of one operation: arguments from path, query and body; a JSON response, or 204 for None."""

    def __init__(self, registry: ClusterRegistry, route: Route, streams: EventStreams) -> None:
        self._registry = registry
        self._streams = streams
        self._route = route
        self._path_model, self._model = arguments_of(route)
        is_trace = route.operation == TRACE
        properties = request_schema(self._model).get("properties", {})
        self._known_beside = [*(["timeout"] if route.waits else []), *(["format", "watch"] if is_trace else [])]
        self._lists = {name for name, schema in properties.items() if schema.get("type") == "array"}

    async def serve(self, request: Request) -> Response:
        """Perform the operation."""
        route, registered = self._route, self._registry[request.path_params["cluster"]]
        in_path = {name: value for name, value in request.path_params.items() if name != "cluster"}
        arguments = _validated(self._path_model, in_path, strict=False)
        is_query = route.method == "GET"
        others = self._query(request.query_params) if is_query else await _body(request)
        is_old = isinstance(others, dict) and self._replace_old(others, is_query=is_query)
        response = await self._perform(request, registered, arguments, others)
        if is_old:
            response.headers["Deprecation"] = OLD_SINCE
        return response

    async def _perform(
        self,
        request: Request,
        registered: RegisteredCluster,
        arguments: dict[str, Any],
        others: Any,  # noqa: ANN401 - JSON
    ) -> Response:
        route, is_query = self._route, self._route.method == "GET"
        timeout_s = others.pop("timeout", None) if route.waits and isinstance(others, dict) else None
        export = checked_format(others.pop("format", JSON)) if route.operation == TRACE else JSON
        watch = others.pop("watch", None) if route.operation == TRACE else None
        arguments |= _validated(self._model, others, strict=not is_query, more=self._known_beside)
        if export != JSON:
            return await export_of(registered, export, arguments)
        if route.operation == TRACE and STREAM in request.headers.get("accept", ""):
            return self._streams.stream_of(request, registered, **arguments, watch=watch)
        try:
            if timeout_s is None:
                found = await registered.cluster.call(route.operation, arguments)
                return _response(None if found is None else await to_json_in_turns(found))
            limit_s = _validated(Timeout, {"timeout": timeout_s}, strict=not is_query)["timeout"]
            async with _while_connected(request):
                return _json_response(await registered.cluster.wait(route.operation, arguments, limit_s))
            # the client has disconnected
            return Response(status_code=HTTPStatus.NO_CONTENT)
        except TypeError as error:
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from error
        except ValueError as error:
            raise problem_of(error, arguments) from error

    def _replace_old(self, others: dict[str, Any], *, is_query: bool) -> bool:
        """Give arguments of the release before their names of today; return whether there are any."""
        old, new = OLD_ARGUMENTS.get(self._route.operation, (None, ""))
        if old in others and new not in others:
            others[new] = others.pop(old)
            return True
        if self._route.operation == "groups.meets" and others.get("owned") == "all" and "all_owned" not in others:
            others.pop("owned")
            others["all_owned"] = "true" if is_query else True
            return True
        return False

    def _query(self, given: QueryParams) -> dict[str, Any]:
        """Return the arguments in a query; a list has one value for each occurrence of its name."""
        return {name: given.getlist(name) if name in self._lists else value for name, value in given.items()}


class OldEndpoint(OperationEndpoint):
    """The endpoint of an operation at its path of the release before."""

    async def serve(self, request: Request) -> Response:
        """Perform the operation; the response names the path of today (RFC 9745)."""
        response = await super().serve(request)
        response.headers["Deprecation"] = OLD_SINCE
        (path,) = (each.path for each in ROUTES if each.operation == self._route.operation)
        now = f"{BELOW}{path}"
        for name, value in request.path_params.items():
            now = now.replace(f"{{{name}}}", quote(value, safe=""))
        response.headers["Link"] = f'<{now}>; rel="successor-version"'
        return response


class ClusterEndpoints:
    """The endpoints that list, create, describe and delete clusters."""

    def __init__(self, registry: ClusterRegistry, defaults: Options) -> None:
        self._registry = registry
        self._defaults = defaults

    async def list(self, _: Request) -> Response:
        """Return all clusters."""
        return _json_response([registered.info() for registered in self._registry])

    async def create(self, request: Request) -> Response:
        """Start a cluster."""
        settings = NewCluster(**_validated(NewCluster, await _body(request), strict=True))
        try:
            registered = await self._registry.create(settings.options(self._defaults), settings.id)
        except ValueError as error:
            raise problem_of(error, {}) from error
        except (OSError, PortsTaken) as error:
            text = error.strerror if isinstance(error, OSError) else None
            raise Problem(HTTPStatus.CONFLICT, text or str(error)) from error
        return _json_response(registered.info(), HTTPStatus.CREATED)

    async def describe(self, request: Request) -> Response:
        """Return a cluster."""
        return _json_response(self._registry[request.path_params["cluster"]].info())

    async def delete(self, request: Request) -> Response:
        """Stop a cluster; a problem if a bug of koordinator has ended one of its requests."""
        cluster_id = request.path_params["cluster"]
        failures = self._registry[cluster_id].cluster.runtime.failures
        await self._registry.remove(cluster_id)
        _check(cluster_id, failures)
        return _json_response(None)


class ProcessEndpoints:
    """The endpoints of the whole process."""

    def __init__(self, registry: ClusterRegistry) -> None:
        self._registry = registry
        self._document = document()
        self._metrics = CollectorRegistry()
        self._metrics.register(Metrics(registry))

    async def health(self, _: Request) -> Response:
        """Return that the process is alive."""
        return _json_response({"status": "ok"})

    async def bugs(self, _: Request) -> Response:
        """Return that no bug of koordinator has ended a request of a cluster, or a problem with the first report."""
        for registered in self._registry:
            _check(registered.id, registered.cluster.runtime.failures)
        return _json_response({"status": "ok"})

    async def ready(self, _: Request) -> Response:
        """Return that a cluster accepts clients."""
        clusters = [registered.id for registered in self._registry]
        if not clusters:
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "there is no cluster yet")
        return _json_response({"status": "ready", "clusters": clusters})

    async def metrics(self, _: Request) -> Response:
        """Return metrics in the text format of Prometheus."""
        return Response(generate_latest(self._metrics), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    async def openapi(self, _: Request) -> Response:
        """Return the OpenAPI document."""
        return _json_response(self._document)

    async def openapi_3_0(self, _: Request) -> Response:
        """Return the OpenAPI document in the older version."""
        return _json_response(document_3_0())


def create_app(
    registry: ClusterRegistry, defaults: Options, token: str | None = None, *, is_local: bool = True
) -> Starlette:
    """Return the application. New clusters start from `defaults`; `is_local`: it listens on loopback only."""
    clusters, process, streams = ClusterEndpoints(registry, defaults), ProcessEndpoints(registry), EventStreams()
    routes = [
        StarletteRoute("/", _dashboard),
        StarletteRoute(f"{FOLDER}/{{name:segment}}", _static_file),
        StarletteRoute("/healthz", process.health),
        StarletteRoute("/readyz", process.ready),
        StarletteRoute("/metrics", process.metrics),
        StarletteRoute("/openapi.json", process.openapi),
        StarletteRoute("/openapi-3.0.json", process.openapi_3_0),
        StarletteRoute("/v1/health", process.bugs),
        StarletteRoute("/v1/clusters", clusters.list),
        StarletteRoute("/v1/clusters", clusters.create, methods=["POST"]),
        StarletteRoute("/v1/clusters/{cluster:segment}", clusters.describe),
        StarletteRoute("/v1/clusters/{cluster:segment}", clusters.delete, methods=["DELETE"]),
        *(_route(route, OperationEndpoint(registry, route, streams)) for route in ROUTES),
        *(_route(route, OldEndpoint(registry, route, streams), name=OLD) for route in OLD_ROUTES),
    ]
    # the guards respond to a Problem
    handlers: dict[Any, Any] = {
        HTTPException: _http_error,
        NoSuchCluster: _no_such_cluster,
        Exception: _internal_error,
    }
    return Starlette(
        routes=routes, exception_handlers=handlers, middleware=[Middleware(Guards, token=token, is_local=is_local)]
    )


def _check(cluster_id: str, failures: Failures) -> None:
    """Raise a problem if a bug of koordinator has ended a request of the cluster."""
    try:
        failures.check()
    except BrokerBug as bug:
        raise Problem(HTTPStatus.INTERNAL_SERVER_ERROR, f"cluster {cluster_id!r}: {bug}") from bug


def _route(route: Route, endpoint: OperationEndpoint, name: str | None = None) -> StarletteRoute:
    path = f"{BELOW}{route.path}".replace("}", ":segment}")
    return StarletteRoute(path, endpoint.serve, methods=[route.method], name=name)


async def _no_such_cluster(_: Request, error: NoSuchCluster) -> Response:
    return Problem(HTTPStatus.NOT_FOUND, str(error)).response()


async def _internal_error(request: Request, error: Exception) -> Response:
    detail = f"{request.method} {request.url.path}: a bug in koordinator: {type(error).__name__}: {error}"
    return Problem(HTTPStatus.INTERNAL_SERVER_ERROR, detail).response()


async def _http_error(request: Request, error: HTTPException) -> Response:
    status = HTTPStatus(error.status_code)
    path = request.url.path
    nearest = _nearest_path(path, request.app.routes) if status == HTTPStatus.NOT_FOUND else None
    hint = f"; did you mean {nearest}?" if nearest else ""
    headers = dict(error.headers or {})
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = _methods_of(request)
        hint = f"; allowed: {headers['Allow']}"
    detail = f"{request.method} {path}: {status.phrase.lower()}{hint}; see /openapi.json"
    return Problem(status, detail, headers=headers).response()


def _methods_of(request: Request) -> str:
    """Return the methods of all routes with the path of a request."""
    routes = [each for each in request.app.routes if isinstance(each, StarletteRoute)]
    found = [each.methods or () for each in routes if each.path_regex.match(request.scope["path"])]
    return ", ".join(sorted({method for methods in found for method in methods}))


def _nearest_path(path: str, routes: Sequence[BaseRoute]) -> str | None:
    """Return the most similar path that the server has, with the names of `path` in the places of its variables.

    The paths of a cluster may lack its prefix.
    """
    given = path.split("/")
    best, nearest = SIMILARITY_MIN, None
    for route in (each for each in routes if getattr(each, "name", "") != OLD):
        template = getattr(route, "path", "").replace(":segment}", "}")
        for prefix in ("", BELOW) if template.startswith(f"{BELOW}/") else ("",):
            parts = template.removeprefix(prefix).split("/")
            if len(parts) == len(given):
                score = min(_similarity(*each) for each in zip(parts, given, strict=True))
                if score > best:
                    filled = [own if part.startswith("{") else part for part, own in zip(parts, given, strict=True)]
                    best, nearest = score, prefix.format(cluster=FIRST) + "/".join(filled)
    return nearest


def _similarity(part: str, given: str) -> float:
    return 1 if part.startswith("{") else SequenceMatcher(None, part, given).ratio()


async def _dashboard(_: Request) -> Response:
    return Response(dashboard_html(), media_type="text/html; charset=utf-8", headers=HEADERS)


async def _static_file(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in FILES:
        raise Problem(HTTPStatus.NOT_FOUND, f"there is no file {name!r}; known: {', '.join(FILES)}")
    kind = "text/css" if name.endswith(".css") else "text/javascript"
    return Response(static(name), media_type=f"{kind}; charset=utf-8", headers=HEADERS)


@asynccontextmanager
async def _while_connected(request: Request) -> AsyncIterator[None]:
    """Cancel the block when the client disconnects. Exceptions of the block are raised unwrapped."""
    raised: list[Exception] = []
    async with trio.open_nursery() as nursery:

        async def watch() -> None:
            try:
                while (await request.receive())["type"] != "http.disconnect":
                    pass
            except Problem as problem:
                raised.append(problem)
            nursery.cancel_scope.cancel()

        nursery.start_soon(watch)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the nursery would wrap it
            raised.append(error)
        nursery.cancel_scope.cancel()
    if raised:
        raise raised[0]


def _validated(
    model: type[Arguments],
    values: Any,  # noqa: ANN401 - plain data
    *,
    strict: bool,
    more: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the arguments that are given. Raises Problem, whose known names include those of `more`."""
    unlisted = 0
    if isinstance(values, dict):
        unknown = [name for name in values if name not in model.model_fields]
        for name in unknown[ERRORS_MAX:]:
            # each would become an error that no answer lists
            del values[name]
            unlisted += 1
    try:
        validated = model.model_validate(values, strict=strict)
    except ValidationError as error:
        raise validation_problem(error, [*model.model_fields, *more], unlisted) from error
    return {name: getattr(validated, name) for name in validated.model_fields_set}


async def _body(request: Request) -> Any:  # noqa: ANN401 - plain data
    """Return the JSON body of a request; without a body an empty object."""
    body = await request.body()
    if not body:
        return {}
    try:
        if len(body) > PARSED_AT_ONCE_MAX:
            return await trio.to_thread.run_sync(from_json, body)
        return from_json(body)
    except (ValueError, RecursionError) as error:
        raise Problem(HTTPStatus.BAD_REQUEST, f"the body is not valid JSON: {error}") from error


def _json_response(value: Any, status: HTTPStatus = HTTPStatus.OK) -> Response:  # noqa: ANN401 - plain data or a result
    return _response(None if value is None else to_json(value), status)


def _response(document: str | None, status: HTTPStatus = HTTPStatus.OK) -> Response:
    if document is None:
        return Response(status_code=HTTPStatus.NO_CONTENT)
    return Response(document, status, media_type="application/json")
