"""Handles over HTTP, for clusters of another process. Needs the extra `koordinator[control]`."""

from __future__ import annotations

import ssl
from contextlib import suppress
from http import HTTPStatus
from os import PathLike, fspath
from typing import Any, NoReturn, Self
from urllib.parse import quote

import httpx
from pydantic import TypeAdapter

from koordinator.emulator.control.inspect.events import Events
from koordinator.emulator.http.plain import from_json, result_from_plain, to_json
from koordinator.emulator.http.routes import BELOW, ROUTES
from koordinator.emulator.server.cluster_info import ClusterInfo
from koordinator.emulator.server.cluster_registry import FIRST

from .cluster import Cluster
from .handle import checked
from .port import ClusterStopped, Port

RESPONSE_S = 30.0
"""The timeout of a response, beyond the time of a long poll."""

POLL_S = 60.0
"""The longest long poll; a longer wait uses several."""

ROUTE_OF = {route.operation: route for route in ROUTES}

INFO: TypeAdapter[ClusterInfo] = TypeAdapter(ClusterInfo)


class Remote:
    """A server of clusters, `koordinator serve --control-port`, as a context manager.

        with Remote("http://localhost:9080", token="…") as server:
            cluster = server.cluster()
            other = server.create(topics={"orders": 4})

    For `https://`, `ca_file` is the authority to trust, the `control_ca_file` of the server's first line; without it
    those that Python trusts by default.

    Every method may be called from any thread. A refused call raises ValueError with the server's message, as in
    process. Raises PermissionError without the right token, ConnectionError if the server is unreachable or not
    trusted, and ValueError for a `ca_file` that is no authority.
    """

    def __init__(self, url: str, token: str | None = None, ca_file: str | PathLike[str] | None = None) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        trusting = True if ca_file is None else _trusting(ca_file)
        self.url = url
        self._http = httpx.Client(base_url=url, headers=headers, trust_env=False, verify=trusting)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to the server; its clusters keep running."""
        self._http.close()

    @checked
    def cluster(self, cluster_id: str = FIRST) -> Cluster:
        """Return the handle of an existing cluster."""
        return self._cluster(self.request("GET", f"/v1/clusters/{quote(cluster_id, safe='')}"))

    def clusters(self) -> list[str]:
        """Return the ids of all clusters."""
        return [info["id"] for info in self.request("GET", "/v1/clusters")]

    @checked
    def create(self, cluster_id: str | None = None, **settings: Any) -> Cluster:  # noqa: ANN401 - those of Emulator
        """Start another cluster with its own ports and trace, until its `stop`. The settings are those of Emulator."""
        body = settings if cluster_id is None else {**settings, "id": cluster_id}
        return self._cluster(self.request("POST", "/v1/clusters", body))

    def request(self, method: str, path: str, arguments: dict[str, Any] | None = None, wait_s: float = 0) -> Any:  # noqa: ANN401 - plain data
        """Send a request and return its JSON; the arguments of a GET are in its query, others in its body."""
        given = {name: value for name, value in (arguments or {}).items() if value is not None}
        is_query = method == "GET"
        try:
            response = self._http.request(
                method,
                path,
                params=given if is_query else None,
                content=to_json(arguments).encode() if arguments and not is_query else None,
                timeout=RESPONSE_S + wait_s,
            )
        except httpx.TransportError as error:
            raise ConnectionError(f"{method} {self.url}{path}: {str(error) or type(error).__name__}") from error
        if not response.is_success:
            _refuse(response)
        return None if response.status_code == HTTPStatus.NO_CONTENT else from_json(response.content)

    def _cluster(self, info: Any) -> Cluster:  # noqa: ANN401 - plain data
        return Cluster(RemotePort(self, INFO.validate_python(info)))


class RemotePort(Port):
    """A port to a cluster behind HTTP."""

    def __init__(self, server: Remote, info: ClusterInfo) -> None:
        self._server = server
        self._info = info
        self.seed = info.seed
        self._lines: list[dict[str, object]] = []
        self._path = BELOW.format(cluster=quote(info.id, safe=""))

    @property
    def bootstrap_servers(self) -> str:
        """The bootstrap servers for clients."""
        with suppress(ClusterStopped):
            self._info = INFO.validate_python(self._server.request("GET", self._path))
        return self._info.bootstrap_servers

    def perform(self, operation: str, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - the operation's own type
        """Perform an operation with one request."""
        return self._request(operation, arguments, 0)

    def poll(self, operation: str, arguments: dict[str, Any], limit_s: float) -> Any:  # noqa: ANN401 - likewise
        """Perform an operation with one long poll."""
        poll_s = min(limit_s, POLL_S)
        return self._request(operation, {**arguments, "timeout": poll_s}, poll_s)

    def trace_lines(self) -> list[dict[str, object]]:
        """Return the header and the events of the trace; after `stop` those before it."""
        return self._lines or [self.call(Events.header), *self.call(Events.read)]

    def stop(self) -> None:
        """Stop the cluster; a second call does nothing."""
        with suppress(ClusterStopped):
            self._lines = self.trace_lines()
            self._server.request("DELETE", self._path)

    def _request(self, operation: str, arguments: dict[str, Any], wait_s: float) -> Any:  # noqa: ANN401 - likewise
        route = ROUTE_OF[operation]
        in_path = {name: value for name, value in arguments.items() if f"{{{name}}}" in route.path}
        path = route.path.format(**{name: quote(str(value), safe="") for name, value in in_path.items()})
        others = {name: value for name, value in arguments.items() if name not in in_path}
        return result_from_plain(operation, self._server.request(route.method, self._path + path, others, wait_s))


def _trusting(ca_file: str | PathLike[str]) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ValueError(f"ca_file {fspath(ca_file)}: must have the authority in PEM ({error})") from error


def _refuse(response: httpx.Response) -> NoReturn:
    is_part = False
    try:
        problem = from_json(response.content)
        message, is_part = problem["detail"], "errors" in problem
    except (ValueError, LookupError, TypeError):
        message = f"{response.request.method} {response.request.url}: {response.status_code} {response.reason_phrase}"
    match response.status_code:
        case HTTPStatus.UNAUTHORIZED:
            raise PermissionError(message)
        # a rule or a hold of a cluster is a field, the cluster is none
        case HTTPStatus.NOT_FOUND if not is_part:
            raise ClusterStopped(message)
        case HTTPStatus.INTERNAL_SERVER_ERROR:
            raise RuntimeError(message)
        case _:
            raise ValueError(message)
