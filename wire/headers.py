"""The headers of requests and responses.

Request header v1: int16 api key, int16 api version, int32 correlation id, nullable string client id.
Request header v2, of flexible versions: v1 and tagged fields (KIP-482); *the client id keeps its int16 length*. v0,
without the client id, belongs to ControlledShutdown only. Response header v0: int32 correlation id. v1, of flexible
versions: v0 and tagged fields.

ApiVersions is an exception, because clients send it before they know the server's versions (KIP-511). Its response has
header v0 in every version. An unsupported version of it is not rejected; only the part of its header that all versions
share is read. Kafka: RequestHeader, ApiKeys.responseHeaderVersion.
"""

import struct
from collections.abc import Iterator
from io import BytesIO

from .apis import APIS, ApiKey
from .primitives import Malformed, read_nullable_string, skip_tags, write_nullable_string
from .schema import Message, declaration_of
from .values import value
from .versions import Versions

_REQUEST = struct.Struct(">hhi")
_RESPONSE = struct.Struct(">i")
_LENGTH = struct.Struct(">i")
_LENGTH_MAX = 0x7FFFFFFF
_NO_TAGS = b"\0"


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
    io = BytesIO(request)
    fixed = io.read(_REQUEST.size)
    if len(fixed) < _REQUEST.size:
        raise Malformed(f"{len(request)} bytes are too few for the header of a request")
    key, version, correlation_id = _REQUEST.unpack(fixed)
    has_tags = _REQUEST_HAS_TAGS.get((key, version))
    if has_tags is None and key != ApiKey.API_VERSIONS:
        api = APIS.get(key)
        served = f"{api.name} is served in the versions {api.versions}, not {version}" if api else None
        raise Malformed(served or f"there is no api {key}")
    try:
        client_id = read_nullable_string(io)
        if has_tags:
            skip_tags(io)
    except (Malformed, IndexError, struct.error, UnicodeDecodeError) as error:
        raise Malformed(f"the header of a {APIS[key].name}Request v{version}: {error}") from None
    return RequestHeader(key, version, correlation_id, client_id), io.tell()


def request_header(api_key: int, api_version: int, correlation_id: int, client_id: str | None) -> bytes:
    """Return the header of a request in a served version."""
    io = BytesIO()
    io.write(_REQUEST.pack(api_key, api_version, correlation_id))
    write_nullable_string(client_id, io)
    if _REQUEST_HAS_TAGS[api_key, api_version]:
        io.write(_NO_TAGS)
    return io.getvalue()


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
    io = BytesIO(response)
    io.seek(_RESPONSE.size)
    if (api_key, api_version) in _RESPONSES_WITH_TAGS:
        try:
            skip_tags(io)
        except (Malformed, IndexError, struct.error) as error:
            raise Malformed(f"the header of a {APIS[api_key].name}Response v{api_version}: {error}") from None
    return correlation_id, io.tell()


def frame(*parts: bytes) -> bytes:
    """Return the parts after their total length as int32. Raises ValueError for 2 GiB and more."""
    length = sum(map(len, parts))
    if length > _LENGTH_MAX:
        raise ValueError(f"{length} bytes are more than a frame can have")
    return b"".join((_LENGTH.pack(length), *parts))


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
