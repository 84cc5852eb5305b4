"""What stands before the body of a request or an answer.

Request header v1: int16 api key, int16 api version, int32 correlation id, nullable string client id.
Request header v2, of flexible versions: the same, *the client id still with an int16 length*, and tagged
fields (KIP-482). v0, without the client id, is only of ControlledShutdown. Response header v0: int32 correlation
id. v1, of flexible versions: the same and tagged fields.

ApiVersions is different, because with it the client finds out what the server speaks (KIP-511): its
answer has header v0 in every version, and a version that is not served is no reason to refuse it, so its
header is then read no further than all versions have it. Kafka: RequestHeader, ApiKeys.responseHeaderVersion.
"""

import struct
from dataclasses import dataclass
from io import BytesIO

from koordinator.wire.apis import APIS, ApiKey
from koordinator.wire.primitives import (
    Malformed,
    read_nullable_string,
    skip_tags,
    write_nullable_string,
)
from koordinator.wire.schema import Message, declaration_of

_REQUEST = struct.Struct(">hhi")
_RESPONSE = struct.Struct(">i")
_LENGTH = struct.Struct(">i")
_NO_TAGS = b"\0"


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """Who asks for what. A client_id of None was sent as null, which Kafka treats as ""."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


class _Unserved(Malformed):
    def __init__(self, reason: str, api_key: int, api_version: int, correlation_id: int) -> None:
        super().__init__(reason)
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id


class UnknownApi(_Unserved):
    """The api key is none that is served."""


class UnsupportedVersion(_Unserved):
    """The API is served, but not in this version."""


def read_request_header(request: bytes) -> tuple[RequestHeader, int]:
    """The header of a request, and where the body begins; `request` is a whole frame.

    Raises Malformed for bytes that are no header, UnknownApi and UnsupportedVersion (which are Malformed,
    too, and know api_key, api_version and correlation_id) for what is not served; ApiVersions never
    raises UnsupportedVersion. Kafka closes the connection in all of these cases.
    """
    if len(request) < _REQUEST.size:
        raise Malformed(f"{len(request)} bytes are too few for the header of a request")
    key, version, correlation_id = _REQUEST.unpack_from(request)
    api = APIS.get(key)
    if api is None:
        raise UnknownApi(f"there is no api {key}", key, version, correlation_id)
    if version not in api.versions and key != ApiKey.API_VERSIONS:
        reason = f"{api.name} is served in the versions {api.versions}, not {version}"
        raise UnsupportedVersion(reason, key, version, correlation_id)
    io = BytesIO(request)
    io.seek(_REQUEST.size)
    try:
        client_id = read_nullable_string(io)
        if version in api.versions and _is_flexible(api.request, version):
            skip_tags(io)
    except (Malformed, IndexError, struct.error, UnicodeDecodeError) as error:
        raise Malformed(f"the header of a {api.name}Request v{version}: {error}") from None
    return RequestHeader(key, version, correlation_id, client_id), io.tell()


def request_header(api_key: int, api_version: int, correlation_id: int, client_id: str | None) -> bytes:
    """The header of a request in a version that is served."""
    io = BytesIO()
    io.write(_REQUEST.pack(api_key, api_version, correlation_id))
    write_nullable_string(client_id, io)
    if _is_flexible(APIS[api_key].request, api_version):
        io.write(_NO_TAGS)
    return io.getvalue()


def response_header(api_key: int, api_version: int, correlation_id: int) -> bytes:
    """The header of the answer to a request of this api and version."""
    header = _RESPONSE.pack(correlation_id)
    if api_key == ApiKey.API_VERSIONS or not _is_flexible(APIS[api_key].response, api_version):
        return header
    return header + _NO_TAGS


def frame(*parts: bytes) -> bytes:
    """The parts, one after the other, behind their length together: int32, in bytes."""
    return b"".join((_LENGTH.pack(sum(map(len, parts))), *parts))


def _is_flexible(cls: type[Message], version: int) -> bool:
    return version in declaration_of(cls).flexible
