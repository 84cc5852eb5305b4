"""What is said on one connection, as bytes: nothing here has a socket or a clock.

`greeting` begins: ApiVersions in our newest version. A broker that does not have that one answers in the layout of
v0 with UNSUPPORTED_VERSION and, since Kafka 2.4, the versions it has (KIP-511); `greeted` says what to send next,
and None when the versions are settled. From then on `version` chooses and `ask` makes requests, one at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire import headers
from koordinator.wire.apis import APIS, ApiKey
from koordinator.wire.codec import decode, encode
from koordinator.wire.errors import Error
from koordinator.wire.frames import FrameBuffer
from koordinator.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from koordinator.wire.primitives import Malformed
from koordinator.wire.schema import declaration_of

from .problems import BadAnswer, ClientError, Lost, Need, Secured, VersionMissing, refusal

if TYPE_CHECKING:
    from koordinator.wire.apis import Message

ANSWER_MAX = 100 * 1024 * 1024
"""The longest answer in bytes that is accepted: Kafka's socket.request.max.bytes, as nothing says it for answers."""

CLIENT_ID = "koordinator"

TLS_ALERT = b"\x15\x03"
"""How a TLS record with an alert begins: its type, and the first byte of any version (RFC 8446, 5.1)."""


class Conversation:
    """Requests to bytes and bytes to answers, for one connection.

    Args:
        peer: who is at the other end, for texts: "127.0.0.1:9092".
        software_version: ours, for ApiVersions; letters, digits, dots and hyphens.
        client_id: what to be called in requests.
    """

    def __init__(self, peer: str, software_version: str, client_id: str = CLIENT_ID) -> None:
        self.peer = peer
        self._software_version = software_version
        self._client_id = client_id
        self._frames = FrameBuffer(ANSWER_MAX)
        self._head = b""
        self._correlation_id = 0
        self._asked = ApiKey.API_VERSIONS, 0
        self._served: dict[int, tuple[int, int]] = {}

    # -- versions --------------------------------------------------------------------------------------------

    def greeting(self) -> bytes:
        """The first request."""
        return self._greeting(APIS[ApiKey.API_VERSIONS].versions.max)

    def _greeting(self, version: int) -> bytes:
        named = ApiVersionsRequest(client_software_name=CLIENT_ID, client_software_version=self._software_version)
        return self.ask(named, version)

    def greeted(self, answer: Message) -> bytes | None:
        """The next request after an answer to a greeting; None when the versions are settled.

        Raises BadAnswer where ApiVersions is refused for another reason than its version.
        """
        assert isinstance(answer, ApiVersionsResponse)
        self._served = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
        if answer.error_code == Error.NONE:
            return None
        asked = self._asked[1]
        offered = min(self._served.get(ApiKey.API_VERSIONS, (0, 0))[1], asked - 1)
        if answer.error_code != Error.UNSUPPORTED_VERSION or offered < 0:
            raise BadAnswer(f"{self.peer}: ApiVersions v{asked} is refused: {refusal(answer.error_code)}")
        return self._greeting(offered)

    def version(self, need: Need, newest: int | None = None) -> int:
        """The newest version of an API in common, at least what is needed and at most `newest`.

        Raises VersionMissing, whose text says which version is needed and which release has it.
        """
        api = APIS[need.api]
        ours = api.versions.max if newest is None else newest
        least, most = self._served.get(need.api, (0, -1))
        version = min(most, ours)
        if version >= max(least, need.version):
            return version
        theirs = f"does not have {api.name}" if most < least else f"has {api.name} v{least}-{most}"
        if least > ours:
            raise VersionMissing(f"{self.peer} {theirs}, only v{need.version}-{ours} can be asked here")
        raise VersionMissing(f"{need}, {self.peer} {theirs}")

    # -- requests and answers --------------------------------------------------------------------------------

    def ask(self, request: Message, version: int) -> bytes:
        """The bytes of a request; what is received next should be its answer.

        Raises ValueError for a request that the version cannot express.
        """
        key = declaration_of(type(request)).key
        assert key is not None, f"{type(request).__name__} is not a request"
        self._correlation_id += 1
        self._asked = ApiKey(key), version
        header = headers.request_header(key, version, self._correlation_id, self._client_id)
        return headers.frame(header, encode(request, version))

    def received(self, data: bytes) -> Message | None:
        """The answer, once it is complete. Raises BadAnswer, or Secured for a TLS alert."""
        if len(self._head) < len(TLS_ALERT):
            self._head = (self._head + data)[: len(TLS_ALERT)]
        self._frames.feed(data)
        try:
            frame = self._frames.next_frame()
            return None if frame is None else self._read(frame)
        except Malformed as error:
            if self._head == TLS_ALERT:
                raise Secured(f"{self.peer}: answers with a TLS alert", "TLS") from None
            raise self._bad(str(error)) from None

    def _read(self, frame: bytes) -> Message:
        key, version = self._asked
        correlation_id, body = headers.read_response_header(key, version, frame)
        if correlation_id != self._correlation_id:
            raise self._bad(f"its correlation id is {correlation_id}, that of the request {self._correlation_id}")
        if key == ApiKey.API_VERSIONS and frame[body : body + 2] == _UNSUPPORTED:
            version = 0
        return decode(APIS[key].response, version, frame[body:])

    def _bad(self, why: str) -> BadAnswer:
        return BadAnswer(f"{self.peer}: the answer to {self.awaited} cannot be read: {why}")

    @property
    def awaited(self) -> str:
        """The last request: "LeaveGroup v5"."""
        key, version = self._asked
        return f"{APIS[key].name} v{version}"

    def ended(self) -> ClientError:
        """What it means that the other side closes the connection now, while an answer is awaited."""
        if len(self._frames):
            return self._bad(f"the connection was closed after {len(self._frames)} bytes of it")
        return Lost(f"{self.peer}: closed the connection without an answer to {self.awaited}")


_UNSUPPORTED = int(Error.UNSUPPORTED_VERSION).to_bytes(2, "big")
