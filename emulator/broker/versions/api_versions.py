"""ApiVersions: the versions that this broker serves.

An unsupported version gets error 35 in the layout of v0, with a single row: the versions of ApiVersions (KIP-511).
From v3 on the client names its software, which must be well formed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from koordinator.wire.versions import Versions

SOFTWARE_SINCE = 3
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


def respond(request: ApiVersionsRequest, version: int, served: Mapping[int, Versions]) -> ApiVersionsResponse:
    """Return a row for each served API; INVALID_REQUEST if the client's software name or version is malformed."""
    if version >= SOFTWARE_SINCE and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=Error.INVALID_REQUEST)
    return ApiVersionsResponse(api_keys=tuple(_row(key, versions) for key, versions in served.items()))


def unsupported(served: Mapping[int, Versions]) -> ApiVersionsResponse:
    """Return the v0 response to an unsupported version of ApiVersions."""
    row = _row(ApiKey.API_VERSIONS, served[ApiKey.API_VERSIONS])
    return ApiVersionsResponse(error_code=Error.UNSUPPORTED_VERSION, api_keys=(row,))


def _row(key: int, versions: Versions) -> ApiVersion:
    return ApiVersion(api_key=key, min_version=versions.min, max_version=versions.max)
