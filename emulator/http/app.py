"""The HTTP API as an ASGI application: clusters, and for each of them every operation."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from pydantic import Field, ValidationError
from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.routing import Route as Routed

from ..control.control import is_met
from ..pages.dashboard import FOLDER
from ..server.cluster_registry import NoSuchCluster, PortsTaken
from .event_stream import MEDIA_TYPE as STREAM
from .event_stream import stream_of
from .exports import JSON, checked_form, export_of
from .guards import Guards
from .metrics import Metrics
from .openapi import document_of
from .pages import dashboard, static_file
from .patience import while_connected
from .plain import from_json, to_json
from .problems import Problem, unfit
from .routes import BELOW, ROUTES, TRACE
from .schemas import Arguments, NewCluster, arguments_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from ..config.options import Options
    from ..control.control import Control
    from ..server.cluster_registry import ClusterRegistry
    from .routes import Route

WAIT_S_MAX = 600.0
"""The longest that a request may ask to wait, in seconds."""


class Segment(Convertor[str]):
    """A part of a path between slashes, with its escapes resolved."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        """What was meant."""
        return unquote(value)

    def to_string(self, value: str) -> str:
        """Not used: no address is made from a route."""
        raise NotImplementedError(value)


register_url_convertor("segment", Segment())


class Timeout(Arguments):
    """What every long poll takes: how long it may last, in seconds; 0 asks once."""

    timeout: Annotated[float, Field(ge=0, le=WAIT_S_MAX)] = 0.0


class Operated:
    """The endpoint of one operation: its arguments from path, query and body; what it gives as JSON, or 204."""

    def __init__(self, fleet: ClusterRegistry, route: Route, control: Control) -> None:
        operation = control.operations[route.operation]
        self._fleet = fleet
        self._route = route
        self._in_path, self._given = arguments_of(operation, route)

    async def serve(self, request: Request) -> Response:
        """Do it."""
        route, hosted = self._route, self._fleet[request.path_params["cluster"]]
        in_path = {name: value for name, value in request.path_params.items() if name != "cluster"}
        arguments = _checked(self._in_path, in_path, strict=False)
        reads = route.method == "GET"
        given = dict(request.query_params) if reads else await _body(request)
        timeout_s = given.pop("timeout", None) if route.waits and isinstance(given, dict) else None
        form = checked_form(given.pop("format", JSON)) if route.operation == TRACE else JSON
        watch = given.pop("watch", None) if route.operation == TRACE else None
        arguments |= _checked(self._given, given, strict=not reads)
        if form != JSON:
            return await export_of(hosted, form, arguments)
        if route.operation == TRACE and STREAM in request.headers.get("accept", ""):
            return stream_of(hosted, **arguments, watch=watch)
        try:
            if timeout_s is None:
                return _answer(await hosted.call(route.operation, arguments))
            limit_s = _checked(Timeout, {"timeout": timeout_s}, strict=not reads)["timeout"]
            async with while_connected(request):
                return _answer(await hosted.wait(route.operation, arguments, limit_s, is_met))
            # nobody is there to be answered
            return Response(status_code=HTTPStatus.NO_CONTENT)
        except TypeError as error:
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from error
        except ValueError as error:
            raise Problem(HTTPStatus.CONFLICT, str(error)) from error


class Clusters:
    """The endpoints that clusters come and go by."""

    def __init__(self, fleet: ClusterRegistry, defaults: Options) -> None:
        self._fleet = fleet
        self._defaults = defaults

    async def list(self, request: Request) -> Response:
        """The clusters there are."""
        del request
        return _answer([hosted.described() for hosted in self._fleet])

    async def create(self, request: Request) -> Response:
        """Start one more."""
        wanted = NewCluster(**_checked(NewCluster, await _body(request), strict=True))
        try:
            hosted = await self._fleet.create(wanted.options(self._defaults), wanted.id)
        except (ValueError, OSError, PortsTaken) as error:
            raise Problem(HTTPStatus.CONFLICT, str(error)) from error
        return _answer(hosted.described(), HTTPStatus.CREATED)

    async def describe(self, request: Request) -> Response:
        """One of them."""
        return _answer(self._fleet[request.path_params["cluster"]].described())

    async def delete(self, request: Request) -> Response:
        """End one."""
        await self._fleet.remove(request.path_params["cluster"])
        return _answer(None)


class Pages:
    """What is there beside clusters."""

    def __init__(self, fleet: ClusterRegistry, document: Mapping[str, Any]) -> None:
        self._fleet = fleet
        self._document = document
        self._metrics = CollectorRegistry()
        self._metrics.register(Metrics(fleet))

    async def health(self, request: Request) -> Response:
        """The process lives."""
        del request
        return _answer({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Clients can connect to a cluster."""
        del request
        clusters = [hosted.id for hosted in self._fleet]
        if not clusters:
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "there is no cluster yet")
        return _answer({"status": "ready", "clusters": clusters})

    async def metrics(self, request: Request) -> Response:
        """What Prometheus wants to know, in its text format."""
        del request
        return Response(generate_latest(self._metrics), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    async def openapi(self, request: Request) -> Response:
        """The description of this API."""
        del request
        return _answer(self._document)


def app_of(
    fleet: ClusterRegistry, control: Control, defaults: Options, token: str | None = None, *, is_local: bool = True
) -> Starlette:
    """The application. `control` is any: it is asked what operations there are. New clusters begin with `defaults`.

    `is_local`: it is reached on loopback only.
    """
    clusters, pages = Clusters(fleet, defaults), Pages(fleet, document_of(control))
    routes = [
        Routed("/", dashboard),
        Routed(f"{FOLDER}/{{name:segment}}", static_file),
        Routed("/healthz", pages.health),
        Routed("/readyz", pages.ready),
        Routed("/metrics", pages.metrics),
        Routed("/openapi.json", pages.openapi),
        Routed("/v1/clusters", clusters.list),
        Routed("/v1/clusters", clusters.create, methods=["POST"]),
        Routed("/v1/clusters/{cluster:segment}", clusters.describe),
        Routed("/v1/clusters/{cluster:segment}", clusters.delete, methods=["DELETE"]),
        *(
            Routed(
                f"{BELOW}{route.path}".replace("}", ":segment}"),
                Operated(fleet, route, control).serve,
                methods=[route.method],
            )
            for route in ROUTES
        ),
    ]
    handlers: dict[Any, Any] = {
        Problem: _problem,
        HTTPException: _http_error,
        NoSuchCluster: _no_such_cluster,
        Exception: _bug,
    }
    return Starlette(
        routes=routes, exception_handlers=handlers, middleware=[Middleware(Guards, token=token, is_local=is_local)]
    )


async def _problem(request: Request, problem: Problem) -> Response:
    del request
    return problem.response()


async def _no_such_cluster(request: Request, error: NoSuchCluster) -> Response:
    del request
    return Problem(HTTPStatus.NOT_FOUND, str(error)).response()


async def _bug(request: Request, error: Exception) -> Response:
    said = f"{request.method} {request.url.path}: a bug in koordinator: {type(error).__name__}: {error}"
    return Problem(HTTPStatus.INTERNAL_SERVER_ERROR, said).response()


async def _http_error(request: Request, error: HTTPException) -> Response:
    status = HTTPStatus(error.status_code)
    said = f"{request.method} {request.url.path}: {status.phrase.lower()}; /openapi.json says what there is"
    return Problem(status, said, headers=error.headers).response()


def _checked(model: type[Arguments], given: Any, *, strict: bool) -> dict[str, Any]:  # noqa: ANN401 - plain data
    try:
        checked = model.model_validate(given, strict=strict)
    except ValidationError as error:
        raise unfit(error, list(model.model_fields)) from error
    return {name: getattr(checked, name) for name in checked.model_fields_set}


async def _body(request: Request) -> Any:  # noqa: ANN401 - plain data
    """What a request brings as JSON; no body is an empty object."""
    body = await request.body()
    if not body:
        return {}
    try:
        return from_json(body)
    except (ValueError, RecursionError) as error:
        raise Problem(HTTPStatus.BAD_REQUEST, f"the body is no JSON document: {error}") from error


def _answer(given: Any, status: HTTPStatus = HTTPStatus.OK) -> Response:  # noqa: ANN401 - plain data
    if given is None:
        return Response(status_code=HTTPStatus.NO_CONTENT)
    return Response(to_json(given), status, media_type="application/json")
