"""The emulator in a container, with the same handle, for tests of programs that run in containers.

Needs the extra `koordinator[docker]`, an engine (`DOCKER_HOST`, or the local one) and the image
(`docker build -f compose/Dockerfile -t koordinator .`).
"""

from __future__ import annotations

import gc
import json
import os
import socket
import time
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import urlsplit

import docker
from docker.errors import APIError, DockerException, NotFound

from koordinator.emulator.broker.listeners import host_port
from koordinator.emulator.config.options import OPTIONS, PREFIX

from .remote import Remote
from .renames import Renamed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from docker import DockerClient
    from docker.models.containers import Container

    from .cluster import Cluster

_T = TypeVar("_T")

IMAGE = "koordinator"
"""The default image."""

KAFKA_PORT, CONTROL_PORT, INSIDE_PORT = 9092, 9080, 9094
"""The ports in the container: for clients, for control, and for clients in other containers (listener INSIDE)."""

INSIDE = "INSIDE"

OWNER = "koordinator.owner"
"""The label with the process that started a container, `HOST/PID`."""

VARIABLES = {option.name: option.variable for option in OPTIONS}
"""The environment variable of each option of the cluster."""

READY_S = 60.0
"""The timeout of a start, in seconds; on an idle machine a start takes less than a second."""

POLL_S = 0.02

LOOPBACK = "127.0.0.1"

STOP_S = 5
"""The time to stop before the container is killed, in seconds."""


class NoEngine(RuntimeError):
    """No Docker engine responds; the text says why."""


class KoordinatorContainer:
    """A container with a cluster, as a context manager.

        with KoordinatorContainer(arguments=["--topic", "orders:6"]) as container:
            run_my_service(bootstrap=container.bootstrap_servers)
            container.cluster.group("svc").wait_stable(members=2)

    `arguments` are those of `koordinator serve`, `environment` its variables. Other options are passed to
    `containers.run` of the Docker SDK (`volumes`, `mem_limit`, `name`, …).

    Its ports are mapped to free ports of this machine, which it advertises to clients. Clients in other containers of
    the same `network` connect to `internal_bootstrap_servers`. With `network_mode="host"` it listens on free ports
    without mapping.

    Raises NoEngine, RuntimeError with the log of a container that does not serve, and errors of the Docker SDK.
    """

    def __init__(
        self,
        image: str = IMAGE,
        *,
        arguments: Sequence[str] = (),
        environment: dict[str, str] | None = None,
        **run: Any,  # noqa: ANN401 - those of the SDK
    ) -> None:
        self._image = image
        self._arguments = list(arguments)
        self._environment = dict(environment or {})
        self._run = run
        self._client: DockerClient | None = None
        self._container: Container | None = None
        self._server: Remote | None = None
        self._cluster: Cluster | None = None
        self._starts = 0
        self.ready_s = 0.0
        """The duration of the last start, from `docker run` to the advertised address, in seconds."""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Self:
        """Start the container and wait until it serves. Containers of dead processes are removed first."""
        self._client = client = engine()
        remove_leftovers(client)
        begun = time.monotonic()
        try:
            self._container = client.containers.run(
                self._image,
                ["serve", *self._arguments],
                detach=True,
                environment={**self._variables(), **self._environment},
                labels={OWNER: f"{socket.gethostname()}/{os.getpid()}"},
                **{**self._network(), **self._run},
            )
            self._connect(begun)
        except BaseException:
            self.stop()
            raise
        self.ready_s = time.monotonic() - begun
        return self

    def restart(self) -> None:
        """Start the container again after it ended or was killed, with the same volumes and mapped ports.

        With the host's network its ports change.
        """
        begun = time.monotonic()
        self.container.restart(timeout=STOP_S)
        self._connect(begun)
        self.ready_s = time.monotonic() - begun

    def stop(self) -> None:
        """Stop the container and remove it, with its anonymous volumes."""
        if self._server is not None:
            self._server.close()
        container, self._container, client, self._client = self._container, None, self._client, None
        if container is not None:
            with suppress(NotFound):
                # a paused container does not stop
                with suppress(APIError):
                    container.unpause()
                container.stop(timeout=STOP_S)
                container.remove(v=True, force=True)
        if client is not None:
            client.close()

    @property
    def container(self) -> Container:
        """The container of the Docker SDK: `pause()`, `kill()`, `exec_run(…)`, `stats(…)`."""
        return _running(self._container)

    @property
    def cluster(self) -> Cluster:
        """The handle of its cluster."""
        return _running(self._cluster)

    @property
    def server(self) -> Remote:
        """The handle of its server, which can create more clusters."""
        return _running(self._server)

    @property
    def bootstrap_servers(self) -> str:
        """The bootstrap servers for clients on this machine."""
        return self.cluster.bootstrap_servers

    @property
    def internal_bootstrap_servers(self) -> str:
        """The bootstrap servers for clients in other containers of its network."""
        if self._is_on_host:
            return self.bootstrap_servers
        return host_port(self.container.attrs["Config"]["Hostname"], INSIDE_PORT)

    inside: Renamed[str] = Renamed("internal_bootstrap_servers")

    def logs(self) -> str:
        """Return the container's output."""
        return str(self.container.logs().decode(errors="replace"))

    @property
    def _is_on_host(self) -> bool:
        return bool(self._run.get("network_mode") == "host")

    def _variables(self) -> dict[str, str]:
        if self._is_on_host:
            return {VARIABLES["host"]: "127.0.0.1", VARIABLES["port"]: "0", f"{PREFIX}CONTROL_PORT": "0"}
        return {VARIABLES["listeners"]: f"{INSIDE}=0.0.0.0:{INSIDE_PORT}"}

    def _network(self) -> dict[str, Any]:
        if self._is_on_host:
            # the image's health check uses a fixed port
            return {"healthcheck": {"test": ["NONE"]}}
        # a remote engine must publish the ports beyond its loopback interface
        address = LOOPBACK if _engine_host() == LOOPBACK else "0.0.0.0"  # noqa: S104
        return {"ports": {f"{port}/tcp": (address, None) for port in (KAFKA_PORT, CONTROL_PORT)}}

    def _connect(self, begun: float) -> None:
        """Wait for the first line, and advertise the mapped ports."""
        announcement = self._first_line(begun + READY_S)
        if self._server is not None:
            self._server.close()
        if self._is_on_host:
            host, port = LOOPBACK, urlsplit(announcement["control_url"]).port or 0
        else:
            host, port = self._mapped(CONTROL_PORT)
        token = announcement.get("control_token") or self._environment.get(f"{PREFIX}CONTROL_TOKEN")
        self._server = Remote(f"http://{host_port(host, port)}", token)
        self._cluster = self._server.cluster()
        if not self._is_on_host:
            node = self._cluster.nodes[1]
            node.advertise(*self._mapped(KAFKA_PORT))
            node.advertise(self.container.attrs["Config"]["Hostname"], INSIDE_PORT, INSIDE)

    def _mapped(self, port: int) -> tuple[str, int]:
        """Return the address on this side of a mapped port."""
        bindings = self.container.attrs["NetworkSettings"]["Ports"].get(f"{port}/tcp")
        if not bindings:
            raise RuntimeError(f"port {port} of the container is not mapped")
        return _engine_host(), int(bindings[0]["HostPort"])

    def _first_line(self, end: float) -> dict[str, Any]:
        """Return the announcement of the server. Raises RuntimeError with its log if it does not serve."""
        container = self.container
        while True:
            container.reload()
            output = container.logs(stdout=True, stderr=False).decode(errors="replace").splitlines()
            # the output includes earlier starts
            lines = [line for line in output if line.startswith("{")]
            if len(lines) > self._starts:
                self._starts = len(lines)
                announcement: dict[str, Any] = json.loads(lines[-1])
                return announcement
            if container.status in {"exited", "dead"} or time.monotonic() > end:
                raise RuntimeError(f"the container is {container.status} and does not serve; its log:\n{self.logs()}")
            time.sleep(POLL_S)


def _running(part: _T | None) -> _T:
    if part is None:
        raise RuntimeError("the container is not running: use `with`, or start()")
    return part


def engine() -> DockerClient:
    """Return a client of the engine in DOCKER_HOST, or of the local one. Raises NoEngine if none responds."""
    client, problem = None, ""
    with warnings.catch_warnings():
        # the SDK does not close the socket of a failed connection
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            client = docker.from_env()
            client.ping()
        except (DockerException, OSError) as error:
            problem = str(error)
            if client is not None:
                client.close()
        if problem:
            gc.collect()
            raise NoEngine(f"no Docker engine responds: {problem}")
    return client


def remove_leftovers(client: DockerClient) -> list[str]:
    """Remove the containers of dead processes of this machine, and return their names."""
    removed = []
    for container in client.containers.list(all=True, filters={"label": OWNER}):
        host, _, pid = container.labels[OWNER].rpartition("/")
        if host == socket.gethostname() and pid.isdigit() and not _is_alive(int(pid)):
            with suppress(APIError):
                container.remove(v=True, force=True)
                removed.append(str(container.name))
    return removed


def _engine_host() -> str:
    """Return the host of mapped ports: the machine of the engine."""
    place = urlsplit(os.environ.get("DOCKER_HOST", ""))
    return place.hostname or LOOPBACK if place.scheme in {"tcp", "http", "https", "ssh"} else LOOPBACK


def _is_alive(pid: int) -> bool:
    """Return whether a process runs. On Windows assume it: `os.kill` would end the process."""
    if os.name == "nt":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
