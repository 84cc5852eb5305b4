"""The emulator in a container, with the same handle: for tests whose program under test runs in containers as well.

Needs the extra `koordinator[docker]`, an engine (`DOCKER_HOST`, or the one of this machine) and the image
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
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import docker
from docker.errors import APIError, DockerException, NotFound

from koordinator.emulator.broker.listeners import host_port

from .remote import Remote

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from docker import DockerClient
    from docker.models.containers import Container

    from .cluster import Cluster

IMAGE = "koordinator"
"""The image that is run if no other is named."""

KAFKA_PORT, CONTROL_PORT, INSIDE_PORT = 9092, 9080, 9094
"""What it listens on in the container: clients, control, and clients in other containers (listener INSIDE)."""

INSIDE = "INSIDE"

OWNER = "koordinator.owner"
"""The label that says which process has started a container: `HOST/PID`."""

READY_S = 60.0
"""How long a container may take until it serves; it takes less than a second, once the machine has time for it."""

POLL_S = 0.02

LOOPBACK = "127.0.0.1"

STOP_S = 5
"""How long it may take to end before it is killed."""


class NoEngine(RuntimeError):
    """No Docker engine answers; the text says why."""


class KoordinatorContainer:
    """A container with a cluster, as a context manager.

        with KoordinatorContainer(arguments=["--topic", "orders:6"]) as container:
            run_my_service(bootstrap=container.bootstrap_servers)
            container.cluster.group("svc").wait_stable(members=2)

    `arguments` are those of `koordinator serve`; `environment` has its variables; whatever else is given goes to
    `docker run` as the Docker SDK calls it (`volumes`, `mem_limit`, `name`, …).

    Its ports are mapped to free ones of this machine, and that is what clients are told. Clients in other containers
    of the same `network` connect to `inside`. With `network_mode="host"` nothing is mapped: free ports are taken.

    Raises NoEngine, RuntimeError with the log of a container that does not serve, and docker's own errors.
    """

    def __init__(
        self,
        image: str = IMAGE,
        *,
        arguments: Sequence[str] = (),
        environment: dict[str, str] | None = None,
        **run: Any,  # noqa: ANN401 - the SDK's
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
        """How long the last start has taken, from `docker run` until clients were told the right address."""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> Self:
        """Start it, and wait until it serves. What dead processes have left on this engine is removed first."""
        self._client = client = engine()
        remove_leftovers(client)
        begun = time.monotonic()
        try:
            self._container = client.containers.run(
                self._image,
                ["serve", *self._arguments],
                detach=True,
                environment={**self._variables(), **self._environment},
                labels={OWNER: _owner()},
                **{**self._network(), **self._run},
            )
            self._connect(begun)
        except BaseException:
            self.stop()
            raise
        self.ready_s = time.monotonic() - begun
        return self

    def restart(self) -> None:
        """Start it again after it has ended, or was killed; its volumes are as they were, and so are mapped ports.

        On the network of the host it serves at other ports.
        """
        begun = time.monotonic()
        self.container.restart(timeout=STOP_S)
        self._connect(begun)
        self.ready_s = time.monotonic() - begun

    def stop(self) -> None:
        """End it and remove it, with the volumes it made."""
        if self._server is not None:
            self._server.close()
        container, self._container, client, self._client = self._container, None, self._client, None
        if container is not None:
            with suppress(NotFound):
                # a paused one does not end
                with suppress(APIError):
                    container.unpause()
                container.stop(timeout=STOP_S)
                container.remove(v=True, force=True)
        if client is not None:
            client.close()

    @property
    def container(self) -> Container:
        """The container, as the Docker SDK has it: `pause()`, `kill()`, `exec_run(…)`, `stats(…)`."""
        if self._container is None:
            raise RuntimeError("the container is not running: use `with`, or start()")
        return self._container

    @property
    def cluster(self) -> Cluster:
        """The handle of its cluster, the same as in process."""
        if self._cluster is None:
            raise RuntimeError("the container is not running: use `with`, or start()")
        return self._cluster

    @property
    def server(self) -> Remote:
        """Its control over HTTP, with which more clusters can be made."""
        if self._server is None:
            raise RuntimeError("the container is not running: use `with`, or start()")
        return self._server

    @property
    def bootstrap_servers(self) -> str:
        """What clients on this machine connect to."""
        return self.cluster.bootstrap_servers

    @property
    def inside(self) -> str:
        """What clients in other containers of its network connect to; with the host's network the same as others."""
        if self._is_on_host:
            return self.bootstrap_servers
        return host_port(self.container.attrs["Config"]["Hostname"], INSIDE_PORT)

    def logs(self) -> str:
        """Everything it has said so far."""
        return str(self.container.logs().decode(errors="replace"))

    # -- inside ----------------------------------------------------------------------------------------------

    @property
    def _is_on_host(self) -> bool:
        return bool(self._run.get("network_mode") == "host")

    def _variables(self) -> dict[str, str]:
        if self._is_on_host:
            return {"KOORDINATOR_HOST": "127.0.0.1", "KOORDINATOR_PORT": "0", "KOORDINATOR_CONTROL_PORT": "0"}
        return {"KOORDINATOR_LISTENER": f"{INSIDE}=0.0.0.0:{INSIDE_PORT}"}

    def _network(self) -> dict[str, Any]:
        if self._is_on_host:
            # the health check does not know the port
            return {"healthcheck": {"test": ["NONE"]}}
        # an engine elsewhere has no use for a port that only its own machine reaches
        address = LOOPBACK if _engine_host() == LOOPBACK else "0.0.0.0"  # noqa: S104
        return {"ports": {f"{port}/tcp": (address, None) for port in (KAFKA_PORT, CONTROL_PORT)}}

    def _connect(self, begun: float) -> None:
        """Wait for the first line, and let clients be told what they can reach."""
        said = self._first_line(begun + READY_S)
        if self._server is not None:
            self._server.close()
        if self._is_on_host:
            host, port = LOOPBACK, urlsplit(said["control_url"]).port or 0
        else:
            host, port = self._mapped(CONTROL_PORT)
        self._server = Remote(f"http://{host_port(host, port)}", said.get("control_token") or self._token)
        self._cluster = self._server.cluster()
        if not self._is_on_host:
            node = self._cluster.nodes[1]
            node.advertise(*self._mapped(KAFKA_PORT))
            node.advertise(self.container.attrs["Config"]["Hostname"], INSIDE_PORT, INSIDE)

    @property
    def _token(self) -> str | None:
        return self._environment.get("KOORDINATOR_CONTROL_TOKEN")

    def _mapped(self, port: int) -> tuple[str, int]:
        """Where a port of the container is reached from here."""
        bindings = self.container.attrs["NetworkSettings"]["Ports"].get(f"{port}/tcp")
        if not bindings:
            raise RuntimeError(f"port {port} of the container is not mapped")
        return _engine_host(), int(bindings[0]["HostPort"])

    def _first_line(self, end: float) -> dict[str, Any]:
        """What it says when it serves; RuntimeError with its log if it does not."""
        container = self.container
        while True:
            container.reload()
            said = container.logs(stdout=True, stderr=False).decode(errors="replace").splitlines()
            # those of earlier starts are still there
            lines = [line for line in said if line.startswith("{")]
            if len(lines) > self._starts:
                self._starts = len(lines)
                told: dict[str, Any] = json.loads(lines[-1])
                return told
            if container.status in {"exited", "dead"} or time.monotonic() > end:
                raise RuntimeError(f"the container is {container.status} and does not serve; its log:\n{self.logs()}")
            time.sleep(POLL_S)


def engine() -> DockerClient:
    """A client of the engine in DOCKER_HOST, or of this machine's; NoEngine if none answers."""
    client, problem = None, ""
    with warnings.catch_warnings():
        # the SDK forgets the socket with which it could not connect
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
            raise NoEngine(f"no Docker engine answers: {problem}")
    return client


def remove_leftovers(client: DockerClient) -> list[str]:
    """Remove the containers that processes of this machine have left which are no more; returns their names."""
    removed = []
    for container in client.containers.list(all=True, filters={"label": OWNER}):
        host, _, pid = container.labels[OWNER].rpartition("/")
        if host == socket.gethostname() and pid.isdigit() and not _lives(int(pid)):
            with suppress(APIError):
                container.remove(v=True, force=True)
                removed.append(str(container.name))
    return removed


def _engine_host() -> str:
    """Where mapped ports are reached: on the machine of the engine."""
    place = urlsplit(os.environ.get("DOCKER_HOST", ""))
    return place.hostname or LOOPBACK if place.scheme in {"tcp", "http", "https", "ssh"} else LOOPBACK


def _owner() -> str:
    return f"{socket.gethostname()}/{os.getpid()}"


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
