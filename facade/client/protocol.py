"""The client's side of the protocol on one connection, without sockets or clocks.

`start` encodes ApiVersions in the newest version of this client. A broker without that version answers in the layout
of v0 with UNSUPPORTED_VERSION and, since Kafka 2.4, its own versions (KIP-511). `negotiate` returns the next request
to send, or None once the versions are known. From then on `version` picks a version, and `encode_request` encodes one
request at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire import frames
from koordinator.wire.apis import APIS, ApiKey
from koordinator.wire.codec import decode, encode
from koordinator.wire.errors import Error
from koordinator.wire.frames import FrameBuffer
from koordinator.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from koordinator.wire.primitives import Malformed
from koordinator.wire.schema import declaration_of

from .errors import (
    ClientError,
    ConnectionLost,
    InvalidResponse,
    NoCommonVersion,
    RequiredVersion,
    SecuredListener,
    broker_failure,
)

if TYPE_CHECKING:
    from koordinator.wire.apis import Message

RESPONSE_BYTES_MAX = 100 * 1024 * 1024
"""The largest accepted response: Kafka's default of socket.request.max.bytes, since it has no limit for responses."""

CLIENT_ID = "koordinator"

TLS_ALERT = b"\x15\x03"
"""The start of a TLS alert: the record type and the first byte of every version (RFC 8446, 5.1)."""

HTTP = b"HTTP"
"""The start of a response of HTTP."""

_UNSUPPORTED_VERSION = int(Error.UNSUPPORTED_VERSION).to_bytes(2, "big")


class ClientProtocol:
    """Encodes the requests and decodes the responses of one connection.

    Args:
        peer: the address of the broker, for error texts: "127.0.0.1:9092".
        software_version: of this client, for ApiVersions; letters, digits, dots and hyphens.
        client_id: the client id of the requests.
    """

    def __init__(self, peer: str, software_version: str, client_id: str = CLIENT_ID) -> None:
        self.peer = peer
        self._software_version = software_version
        self._client_id = client_id
        self._frames = FrameBuffer(RESPONSE_BYTES_MAX)
        self._first_bytes = b""
        self._correlation_id = 0
        self._in_flight = ApiKey.API_VERSIONS, 0
        self._broker_versions: dict[int, tuple[int, int]] = {}

    def start(self) -> bytes:
        """Return the first request."""
        return self._encode_api_versions(APIS[ApiKey.API_VERSIONS].versions.max)

    def _encode_api_versions(self, version: int) -> bytes:
        request = ApiVersionsRequest(client_software_name=CLIENT_ID, client_software_version=self._software_version)
        return self.encode_request(request, version)

    def negotiate(self, response: Message) -> bytes | None:
        """Return the next request after a response to ApiVersions, or None once the versions are known.

        Raises InvalidResponse if the broker refuses ApiVersions for another reason than its version.
        """
        assert isinstance(response, ApiVersionsResponse)
        self._broker_versions = {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}
        if response.error_code == Error.NONE:
            return None
        _, refused = self._in_flight
        offered = min(self._broker_versions.get(ApiKey.API_VERSIONS, (0, 0))[1], refused - 1)
        if response.error_code != Error.UNSUPPORTED_VERSION or offered < 0:
            failure = broker_failure(response.error_code)
            raise InvalidResponse(f"{self.peer}: ApiVersions v{refused} is refused: {failure}")
        return self._encode_api_versions(offered)

    def version(self, required: RequiredVersion, newest: int | None = None) -> int:
        """Return the newest common version of an API, at least the required one and at most `newest`.

        Raises NoCommonVersion, whose text names the required version and its release.
        """
        api = APIS[required.api]
        client_max = api.versions.max if newest is None else newest
        broker_min, broker_max = self._broker_versions.get(required.api, (0, -1))
        version = min(broker_max, client_max)
        if version >= max(broker_min, required.version):
            return version
        if broker_max < broker_min:
            raise NoCommonVersion(f"{required}, {self.peer} does not have {api.name}")
        broker = f"{self.peer} has {api.name} v{broker_min}-{broker_max}"
        if broker_min > client_max:
            raise NoCommonVersion(f"{broker}, this client only v{required.version}-{client_max}")
        raise NoCommonVersion(f"{required}, {broker}")

    def encode_request(self, request: Message, version: int) -> bytes:
        """Return the frame of a request, which is then in flight.

        Raises ValueError for a request that the version cannot express.
        """
        key = declaration_of(type(request)).key
        assert key is not None, f"{type(request).__name__} is not a request"
        self._correlation_id += 1
        self._in_flight = ApiKey(key), version
        header = frames.request_header(key, version, self._correlation_id, self._client_id)
        return frames.frame(header, encode(request, version))

    def receive_data(self, data: bytes) -> Message | None:
        """Return the response once it is complete. Raises InvalidResponse, or SecuredListener for a TLS alert."""
        if len(self._first_bytes) < len(HTTP):
            self._first_bytes = (self._first_bytes + data)[: len(HTTP)]
        self._frames.feed(data)
        try:
            frame = self._frames.next_frame()
            return None if frame is None else self._decode(frame)
        except Malformed as error:
            if self._first_bytes.startswith(TLS_ALERT):
                raise SecuredListener(f"{self.peer}: answers with a TLS alert", "TLS") from None
            if self._first_bytes == HTTP:
                raise self.speaks_http() from None
            raise self._invalid(str(error)) from None

    def _decode(self, frame: bytes) -> Message:
        key, version = self._in_flight
        correlation_id, body = frames.read_response_header(key, version, frame)
        if correlation_id != self._correlation_id:
            raise self._invalid(f"its correlation id is {correlation_id}, that of the request {self._correlation_id}")
        if key == ApiKey.API_VERSIONS and frame[body : body + 2] == _UNSUPPORTED_VERSION:
            version = 0
        return decode(APIS[key].response, version, frame[body:])

    def speaks_http(self) -> InvalidResponse:
        """Return the error for a server of HTTP."""
        return InvalidResponse(f"{self.peer}: answers in HTTP: this is no port for Kafka clients")

    def _invalid(self, reason: str) -> InvalidResponse:
        return InvalidResponse(f"{self.peer}: the response to {self.in_flight} cannot be read: {reason}")

    @property
    def in_flight(self) -> str:
        """The last request: "LeaveGroup v5"."""
        key, version = self._in_flight
        return f"{APIS[key].name} v{version}"

    def connection_closed(self) -> ClientError:
        """Return the error for a connection that the broker closes while a request is in flight."""
        if len(self._frames):
            return self._invalid(f"the connection was closed after {len(self._frames)} bytes of it")
        return ConnectionLost(f"{self.peer}: closed the connection without a response to {self.in_flight}")
