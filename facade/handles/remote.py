"""The same handle over HTTP: clusters of another process. Needs the extra `koordinator[control]`."""

from __future__ import annotations

from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NoReturn, Self
from urllib.parse import quote

import httpx

from koordinator.emulator.control.control import is_met
from koordinator.emulator.http.plain import from_json, to_json
from koordinator.emulator.http.routes import BELOW, ROUTES
from koordinator.emulator.server.cluster_registry import FIRST

from .cluster import Cluster
from .emulator import refuse_inside_a_loop
from .port import ClusterStopped, call_text

if TYPE_CHECKING:
    from types import TracebackType

    from koordinator.emulator.http.routes import Route

ANSWER_S = 30.0
"""How long an answer may take, beyond what it was asked to wait for."""

POLL_S = 60.0
"""The longest that one request waits; a longer wait is several."""

OF_OPERATION = {route.operation: route for route in ROUTES}


class Remote:
    """A server of clusters, `koordinator serve --control-port`, as a context manager.

        with Remote("http://localhost:9080", token="…") as server:
            cluster = server.cluster()
            other = server.create(topics={"orders": 4})

    Every method may be called from any thread. What the server refuses raises what the same call raises in process:
    ValueError, with the server's words. PermissionError without the right token, ConnectionError if nobody answers.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.url = url
        self._http = httpx.Client(base_url=url, headers=headers, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to the server; its clusters go on."""
        self._http.close()

    def cluster(self, cluster_id: str = FIRST) -> Cluster:
        """The handle of a cluster that is there."""
        return Cluster(RemotePort(self, self.request("GET", f"/v1/clusters/{quote(cluster_id, safe='')}")))

    def clusters(self) -> list[str]:
        """The ids of the clusters there are."""
        return [described["id"] for described in self.request("GET", "/v1/clusters")]

    def create(self, cluster_id: str | None = None, **settings: Any) -> Cluster:  # noqa: ANN401 - plain data
        """Start one more cluster, with ports and a trace of its own; `stop` ends it. The settings are Emulator's."""
        wanted = settings if cluster_id is None else {**settings, "id": cluster_id}
        return Cluster(RemotePort(self, self.request("POST", "/v1/clusters", wanted)))

    def request(self, method: str, path: str, given: dict[str, Any] | None = None, wait_s: float = 0) -> Any:  # noqa: ANN401 - plain data
        """Ask the server; what was given goes into the query of a GET, and into the body of anything else."""
        reads = method == "GET"
        try:
            response = self._http.request(
                method,
                path,
                params={name: value for name, value in (given or {}).items() if value is not None} if reads else None,
                content=to_json(given).encode() if given and not reads else None,
                timeout=ANSWER_S + wait_s,
            )
        except httpx.TransportError as error:
            raise ConnectionError(f"{method} {self.url}{path}: {str(error) or type(error).__name__}") from error
        if not response.is_success:
            _refuse(response)
        return None if response.status_code == HTTPStatus.NO_CONTENT else from_json(response.content)


class RemotePort:
    """A `Port` to a cluster behind HTTP."""

    def __init__(self, server: Remote, described: dict[str, Any]) -> None:
        self._server = server
        self._described = described
        self._lines: list[dict[str, object]] = []
        self._below = BELOW.format(cluster=quote(described["id"], safe=""))

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to."""
        with suppress(ClusterStopped):
            self._described = self._server.request("GET", self._below)
        return str(self._described["bootstrap_servers"])

    @property
    def seed(self) -> int:
        """What decides the ids of the cluster."""
        return int(self._described["seed"])

    def call(self, operation: str, /, **arguments: Any) -> Any:  # noqa: ANN401 - plain data
        """Do something there."""
        return self._ask(operation, arguments, 0)

    def wait(self, operation: str, timeout_s: float, /, **arguments: Any) -> Any:  # noqa: ANN401 - likewise
        """Ask, by long polls, until what the operation gives is met; returns what it gave last."""
        refuse_inside_a_loop(call_text(operation, arguments))
        left_s = timeout_s
        while True:
            given = self._ask(operation, {**arguments, "timeout": min(left_s, POLL_S)}, min(left_s, POLL_S))
            left_s -= POLL_S
            if is_met(given) or left_s <= 0:
                return given

    def trace_lines(self) -> list[dict[str, object]]:
        """The header and the events of the trace; of a cluster that this handle has ended, too."""
        return self._lines or [self.call("events.header"), *self.call("events.read")]

    def stop(self) -> None:
        """End the cluster; nothing happens if it has ended."""
        with suppress(ClusterStopped):
            self._lines = self.trace_lines()
            self._server.request("DELETE", self._below)

    def _ask(self, operation: str, arguments: dict[str, Any], wait_s: float) -> Any:  # noqa: ANN401 - likewise
        route: Route = OF_OPERATION[operation]
        in_path = {name: value for name, value in arguments.items() if f"{{{name}}}" in route.path}
        path = route.path.format(**{name: quote(str(value), safe="") for name, value in in_path.items()})
        given = {name: value for name, value in arguments.items() if name not in in_path}
        return self._server.request(route.method, self._below + path, given, wait_s)


def _refuse(response: httpx.Response) -> NoReturn:
    try:
        said = from_json(response.content)["detail"]
    except (ValueError, LookupError, TypeError):
        said = f"{response.request.method} {response.request.url}: {response.status_code} {response.reason_phrase}"
    match response.status_code:
        case HTTPStatus.UNAUTHORIZED:
            raise PermissionError(said)
        case HTTPStatus.NOT_FOUND:
            raise ClusterStopped(said)
        case HTTPStatus.INTERNAL_SERVER_ERROR:
            raise RuntimeError(said)
        case _:
            raise ValueError(said)
