"""Frames and their headers: a request or response after its length in bytes, a big-endian int32.

Request header v1: int16 api key, int16 api version, int32 correlation id, nullable string client id.
Request header v2, of flexible versions: v1 and tagged fields (KIP-482); *the client id keeps its int16 length*. v0,
without the client id, belongs to ControlledShutdown only. Response header v0: int32 correlation id. v1, of flexible
versions: v0 and tagged fields.

ApiVersions is an exception, because clients send it before they know the server's versions (KIP-511). Its response has
header v0 in every version. An unsupported version of it is not rejected; its header is that of the nearest version.
Kafka: RequestHeader, ApiKeys.requestHeaderVersion, ApiKeys.responseHeaderVersion.
"""

import struct
from collections.abc import Iterator
from io import BytesIO

from .apis import APIS, ApiKey
from .primitives import Malformed, skip_tags
from .schema import Message, declaration_of
from .values import value
from .versions import Versions

_LENGTH = struct.Struct(">i")
_LENGTH_MAX = 0x7FFFFFFF

_REQUEST = struct.Struct(">hhih")
"""A request header, with the length of the client id at its end."""
_RESPONSE = struct.Struct(">i")
_ID_BEGINS, _ID_ENDS = 4, 8
"""The place of the correlation id: in a request without its length, and in a response with it."""
_NO_TAGS = b"\0"

_COPIED_TWICE_MAX = 4096
"""Up to this size two copies of a frame take less time than a memoryview."""


class FrameBuffer(bytearray):
    """The received bytes of a connection that are not consumed yet.

    Memory grows with received bytes, never with an announced length. Each byte is moved a bounded number of times on
    average, whatever the sizes of the pieces: deleting the front of a bytearray does not move the rest.

    Args:
        limit: the maximum length of a frame in bytes: Kafka's socket.request.max.bytes.
    """

    __slots__ = ("limit",)

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    feed = bytearray.extend
    """Add received bytes."""

    def next_frame(self) -> bytes | None:
        """Consume the next frame and return it without its length; None while it is incomplete.

        Raises Malformed for a length that is negative or over the limit, and on every later call, because the frame
        boundaries are lost. Kafka closes the connection (NetworkReceive, InvalidReceiveException).
        """
        if len(self) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self)
        if not 0 <= length <= self.limit:
            raise Malformed(f"a frame of {length} bytes; 0 to {self.limit} are allowed")
        end = _LENGTH.size + length
        if len(self) < end:
            return None
        if end <= _COPIED_TWICE_MAX:
            frame = bytes(self[_LENGTH.size : end])
        else:
            with memoryview(self) as view:
                frame = bytes(view[_LENGTH.size : end])
        del self[:end]
        return frame

    @property
    def start(self) -> bytes:
        """The first four bytes: the length of the next frame."""
        return bytes(self[: _LENGTH.size])

    def complete(self) -> Iterator[bytes]:
        """Yield the complete frames without consuming them. Stop at an invalid frame length."""
        begin = 0
        while len(self) - begin >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self, begin)
            end = begin + _LENGTH.size + length
            if not 0 <= length <= self.limit or end > len(self):
                return
            yield bytes(self[begin + _LENGTH.size : end])
            begin = end


@value
class RequestHeader:
    """A request header. A client_id of None is null on the wire, which Kafka treats as ""."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def read_request_header(request: bytes) -> tuple[RequestHeader, int]:
    """Return the header of a request and the offset of its body; `request` is a whole frame.

    Raises Malformed for invalid bytes, and for an API or version that is not served, except versions of ApiVersions.
    Kafka closes the connection in all of these cases.
    """
    if len(request) < _REQUEST.size:
        raise Malformed(f"{len(request)} bytes are too few for the header of a request")
    key, version, correlation_id, length = _REQUEST.unpack_from(request)
    has_tags = _REQUEST_HAS_TAGS.get((key, version))
    if key == ApiKey.API_VERSIONS:
        has_tags = version >= declaration_of(APIS[key].request).flexible.min
    elif has_tags is None:
        api = APIS.get(key)
        served = f"{api.name} is served in the versions {api.versions}, not {version}" if api else None
        raise Malformed(served or f"there is no api {key}")
    begin = end = _REQUEST.size
    client_id = None
    if length >= 0:
        end += length
        if end > len(request):
            raise Malformed(f"a {APIS[key].name}Request v{version}: {length} bytes of client id in {len(request)}")
        client_id = request[begin:end].decode("utf-8", "replace")
    try:
        if has_tags:
            # no tagged fields, as almost always; a call costs more
            end = end + 1 if request[end] == 0 else _end_of_tags(request, end)
    except (Malformed, IndexError, struct.error) as error:
        raise Malformed(f"the header of a {APIS[key].name}Request v{version}: {error}") from None
    return RequestHeader(key, version, correlation_id, client_id), end


def repeats(request: bytes, earlier: bytes) -> bool:
    """Return whether a request equals an earlier one but for its correlation id."""
    return (
        len(request) == len(earlier)
        and request[_ID_ENDS:] == earlier[_ID_ENDS:]
        and request[:_ID_BEGINS] == earlier[:_ID_BEGINS]
    )


def with_correlation_id(frame: bytes, correlation_id: int) -> bytes:
    """Return the frame of a response, with its length, for another request of the same API and version."""
    return frame[:_ID_BEGINS] + _RESPONSE.pack(correlation_id) + frame[_ID_ENDS:]


def correlation_id_of(request: bytes) -> int:
    """Return the correlation id of a request."""
    return int.from_bytes(request[_ID_BEGINS:_ID_ENDS], "big", signed=True)


def _end_of_tags(data: bytes, offset: int) -> int:
    io = BytesIO(data)
    io.seek(offset)
    skip_tags(io)
    return io.tell()


def request_header(api_key: int, api_version: int, correlation_id: int, client_id: str | None) -> bytes:
    """Return the header of a request in a served version."""
    text = (client_id or "").encode()
    header = _REQUEST.pack(api_key, api_version, correlation_id, -1 if client_id is None else len(text)) + text
    return header + _NO_TAGS if _REQUEST_HAS_TAGS[api_key, api_version] else header


def response_header(api_key: int, api_version: int, correlation_id: int) -> bytes:
    """Return the header of the response to a request of this API and version."""
    header = _RESPONSE.pack(correlation_id)
    return header + _NO_TAGS if (api_key, api_version) in _RESPONSES_WITH_TAGS else header


def read_response_header(api_key: int, api_version: int, response: bytes) -> tuple[int, int]:
    """Return the correlation id of a response and the offset of its body; `response` is a whole frame.

    API and version of the request decide the header version. Raises Malformed for invalid bytes.
    """
    if len(response) < _RESPONSE.size:
        raise Malformed(f"{len(response)} bytes are too few for the header of a response")
    (correlation_id,) = _RESPONSE.unpack_from(response)
    end = _RESPONSE.size
    if (api_key, api_version) in _RESPONSES_WITH_TAGS:
        try:
            end = _end_of_tags(response, end)
        except (Malformed, IndexError, struct.error) as error:
            raise Malformed(f"the header of a {APIS[api_key].name}Response v{api_version}: {error}") from None
    return correlation_id, end


def frame(header: bytes, body: bytes = b"") -> bytes:
    """Return header and body after their total length as int32. Raises ValueError for 2 GiB and more."""
    return b"".join((pack_length(len(header) + len(body)), header, body))


def pack_length(length: int) -> bytes:
    """Return the length of a frame as int32. Raises ValueError for 2 GiB and more."""
    if length > _LENGTH_MAX:
        raise ValueError(f"{length} bytes are more than a frame can have")
    return _LENGTH.pack(length)


def _tagged(cls: type[Message], versions: Versions) -> Iterator[tuple[int, bool]]:
    flexible = declaration_of(cls).flexible
    return ((version, version in flexible) for version in versions)


# tables over all served versions: a lookup per request is faster than the range checks
_REQUEST_HAS_TAGS = {
    (key, version): tags for key, api in APIS.items() for version, tags in _tagged(api.request, api.versions)
}
_RESPONSES_WITH_TAGS = {
    (key, version)
    for key, api in APIS.items()
    for version, tags in _tagged(api.response, api.versions)
    if tags and key != ApiKey.API_VERSIONS
}
