"""A scripted broker: a socket, a thread per connection, and responses from our codec.

    with Scripted() as broker:
        broker.answers(ApiKey.LEAVE_GROUP, CLOSE, LeaveGroupResponse(error_code=30))

The last response of an API repeats. ApiVersions, Metadata and FindCoordinator are answered like a cluster of one unless
the test overrides them. A message may also be a function of the request and its version.
"""

from __future__ import annotations

import socket
import threading
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Self

from koordinator.client.logs import ADMIN_CLIENT_ID
from koordinator.client.protocol import CLIENT_ID
from koordinator.wire import frames
from koordinator.wire.apis import APIS, ApiKey
from koordinator.wire.codec import decode, encode
from koordinator.wire.errors import Error
from koordinator.wire.frames import FrameBuffer
from koordinator.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from koordinator.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from koordinator.wire.messages.metadata import MetadataResponse, MetadataResponseBroker
from koordinator.wire.primitives import Malformed

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.wire.apis import Message

OURS = {CLIENT_ID, ADMIN_CLIENT_ID}
"""The client ids that are served. A real client of an earlier test may still connect to its port, which is ours now."""

WAIT_S = 60
"""Seconds of silence after which a connection is given up."""


class Odd(Enum):
    """Misbehaviour in place of a response."""

    CLOSE = auto()
    SILENCE = auto()


CLOSE, SILENCE = Odd.CLOSE, Odd.SILENCE


@dataclass(frozen=True)
class Raw:
    """These bytes in place of a response, then a close."""

    data: bytes


@dataclass(frozen=True)
class Cut:
    """A response without its last bytes, then a close."""

    message: Any
    missing: int = 1


@dataclass(frozen=True)
class Drip:
    """A response sent byte by byte."""

    message: Any
    every_s: float


@dataclass(frozen=True)
class WrongId:
    """A response to another request."""

    message: Any


@dataclass
class Asked:
    """A received request: API, version and message."""

    api: ApiKey
    version: int
    request: Any


@dataclass
class Scripted:
    """One broker. `versions` overrides the advertised versions of an API; None removes the API.

    `says_its_versions`: whether it lists ApiVersions when it rejects a version of it (since Kafka 2.4).
    """

    versions: dict[ApiKey, tuple[int, int] | None] = field(default_factory=dict)
    says_its_versions: bool = True
    node_id: int = 1
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._listener.getsockname()
        self._script: dict[ApiKey, list[Any]] = {
            ApiKey.METADATA: [lambda *_: MetadataResponse(brokers=tuple(each.row for each in self.brokers))],
            ApiKey.FIND_COORDINATOR: [lambda request, version: coordinated_by(self, request, version)],
        }
        self.brokers = [self]
        self._sockets: list[socket.socket] = []
        self._closed = threading.Event()

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def row(self) -> MetadataResponseBroker:
        return MetadataResponseBroker(node_id=self.node_id, host=self.host, port=self.port)

    def answers(self, api: ApiKey, *steps: Any) -> None:
        """Set the responses to an API, in order; the last one repeats."""
        self._script[api] = list(steps)

    def requests(self, api: ApiKey) -> list[Asked]:
        """Return the received requests of one API."""
        return [each for each in self.asked if each.api is api]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._listener.close()
        for each in self._sockets:
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        buffer, known = FrameBuffer(1 << 20), False
        try:
            with connection:
                connection.settimeout(WAIT_S)
                while piece := connection.recv(65536):
                    buffer.feed(piece)
                    while (frame := buffer.next_frame()) is not None:
                        header, body = frames.read_request_header(frame)
                        if header.client_id not in OURS:
                            return
                        self.connections += not known
                        known = True
                        if not self._answer(connection, header, frame[body:]):
                            return
        except (OSError, Malformed):
            return

    def _answer(self, connection: socket.socket, header: frames.RequestHeader, body: bytes) -> bool:
        api, version = ApiKey(header.api_key), header.api_version
        request: Any = None
        if version in APIS[api].versions:
            request = decode(APIS[api].request, version, body)
        self.asked.append(Asked(api, version, request))
        step = self._next(api, request, version)
        match step:
            case Odd.CLOSE:
                return False
            case Odd.SILENCE:
                return True
            case Raw(data):
                connection.sendall(data)
                return False
            case Cut(message, missing):
                connection.sendall(self._bytes(api, version, header.correlation_id, message)[:-missing])
                return False
            case Drip(message, every_s):
                for byte in self._bytes(api, version, header.correlation_id, message):
                    connection.sendall(bytes([byte]))
                    self._closed.wait(every_s)
            case WrongId(message):
                connection.sendall(self._bytes(api, version, header.correlation_id + 1, message))
            case _:
                connection.sendall(self._bytes(api, version, header.correlation_id, step))
        return True

    def _next(self, api: ApiKey, request: Any, version: int) -> Any:
        if api is ApiKey.API_VERSIONS and api not in self._script:
            return self._api_versions(version)
        steps = self._script[api]
        step = steps.pop(0) if len(steps) > 1 else steps[0]
        return step(request, version) if callable(step) else step

    def _api_versions(self, version: int) -> ApiVersionsResponse:
        served = {api.key: (api.versions.min, api.versions.max) for api in APIS.values()} | self.versions
        least, most = served[ApiKey.API_VERSIONS] or (0, 0)
        rows = {key: ends for key, ends in served.items() if ends is not None}
        error = Error.NONE
        if not least <= version <= most:
            error = Error.UNSUPPORTED_VERSION
            rows = {ApiKey.API_VERSIONS: (least, most)} if self.says_its_versions else {}
        return ApiVersionsResponse(
            error_code=error,
            api_keys=tuple(
                ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in rows.items()
            ),
        )

    @staticmethod
    def _bytes(api: ApiKey, version: int, correlation_id: int, message: Message) -> bytes:
        is_refused = api is ApiKey.API_VERSIONS and getattr(message, "error_code", 0) == Error.UNSUPPORTED_VERSION
        body = encode(message, 0 if is_refused else version)
        return frames.frame(frames.response_header(api, version, correlation_id), body)


def coordinated_by(broker: Scripted, request: Any, version: int, error: Error = Error.NONE) -> FindCoordinatorResponse:
    """Return a response that names this broker as coordinator of all requested groups, or an error."""
    row: dict[str, Any] = {"node_id": broker.node_id, "host": broker.host, "port": broker.port, "error_code": error}
    if version < 4:
        return FindCoordinatorResponse(**row)
    return FindCoordinatorResponse(coordinators=tuple(Coordinator(key=key, **row) for key in request.coordinator_keys))


def coordinator(broker: Scripted, error: Error = Error.NONE) -> Callable[[Any, int], FindCoordinatorResponse]:
    """Return the same as a script step."""
    return lambda request, version: coordinated_by(broker, request, version, error)
