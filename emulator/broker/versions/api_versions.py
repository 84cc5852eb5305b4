"""ApiVersions (18), versions 0-4: what this broker speaks.

A version it does not speak is answered all the same: error 35 in the layout of v0, with the one row that says which
versions of ApiVersions there are (KIP-511). v3 software name and version, which have to be well formed | v3 features.
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
    """One row for each API served; INVALID_REQUEST if the client does not name itself properly."""
    if version >= SOFTWARE_SINCE and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=Error.INVALID_REQUEST)
    return ApiVersionsResponse(api_keys=tuple(_row(key, versions) for key, versions in served.items()))


def unsupported(served: Mapping[int, Versions]) -> ApiVersionsResponse:
    """The answer, in version 0, to a version of ApiVersions that is not served."""
    row = _row(ApiKey.API_VERSIONS, served[ApiKey.API_VERSIONS])
    return ApiVersionsResponse(error_code=Error.UNSUPPORTED_VERSION, api_keys=(row,))


def _row(key: int, versions: Versions) -> ApiVersion:
    return ApiVersion(api_key=key, min_version=versions.min, max_version=versions.max)
