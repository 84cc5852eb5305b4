"""The API table of a Kafka release: which versions it serves, how they are decoded, and how responses are rendered."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from koordinator.wire.apis import APIS, ApiKey
from koordinator.wire.codec import decode
from koordinator.wire.errors import Error
from koordinator.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from koordinator.wire.primitives import Malformed

from .versions.adapters import ADAPTERS, NUMBERINGS
from .versions.releases import ACCEPTED, ADVERTISED

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.wire.apis import Message
    from koordinator.wire.headers import RequestHeader
    from koordinator.wire.versions import Versions

    from ..config.settings import Settings
    from ..core.effects import Call
    from .versions.adapters import Numbering

UNSUPPORTED_VERSION = ApiVersionsRequest()
"""Stands for an ApiVersions request of an unsupported version."""

SOFTWARE_SINCE = 3
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


@dataclass(frozen=True, slots=True)
class Service:
    """One version of an API: the request class, and the translations to and from the core's shape."""

    request: type[Message]
    normalize_request: Callable[[Message, int], Message]
    render_response: Callable[[Message, int, Numbering], Message]


class ApiTable:
    """The APIs of the configured release (`kafka.version`) and error numbering (`error.codes`)."""

    def __init__(self, settings: Settings) -> None:
        self._release = settings.kafka_version
        self._advertised = ADVERTISED[settings.kafka_version]
        self.numbering = NUMBERINGS[settings.error_codes]
        """Maps the core's errors to the codes on the wire."""
        self.services = {
            (key, version): Service(APIS[key].request, ADAPTERS[key].normalize_request, ADAPTERS[key].render_response)
            for key, versions in ACCEPTED[settings.kafka_version].items()
            for version in versions
        }
        """The services by API key and version. The broker reads this table directly: calls are expensive here."""

    def read(self, header: RequestHeader, body: bytes) -> tuple[int, Message]:
        """Return the version of the response and the decoded request; Malformed if that fails."""
        key, version = header.api_key, header.api_version
        service = self.services.get((key, version))
        if service is None:
            if key == ApiKey.API_VERSIONS:
                # the response has the layout of version 0 (KIP-511)
                return 0, UNSUPPORTED_VERSION
            raise self._unsupported(key, version)
        try:
            return version, decode(service.request, version, body)
        except Malformed as error:
            raise Malformed(f"{APIS[key].name} v{version}: {error}") from error

    def check(self, key: int, version: int) -> None:
        """Raise Malformed if the release does not serve this version of an API."""
        if (key, version) not in self.services:
            raise self._unsupported(key, version)

    def _unsupported(self, key: int, version: int) -> Malformed:
        return Malformed(f"{APIS[key].name} v{version}: not served by Kafka {self._release}")

    def versions(self, call: Call, request: ApiVersionsRequest) -> Message:
        """Return a row for each advertised API; INVALID_REQUEST if the client's name or version is malformed."""
        if request is UNSUPPORTED_VERSION:
            row = _row(ApiKey.API_VERSIONS, self._advertised[ApiKey.API_VERSIONS])
            return ApiVersionsResponse(error_code=Error.UNSUPPORTED_VERSION, api_keys=(row,))
        software = (request.client_software_name, request.client_software_version)
        if call.api_version >= SOFTWARE_SINCE and not all(map(_SOFTWARE.fullmatch, software)):
            return ApiVersionsResponse(error_code=Error.INVALID_REQUEST)
        return ApiVersionsResponse(api_keys=tuple(_row(key, versions) for key, versions in self._advertised.items()))


def _row(key: int, versions: Versions) -> ApiVersion:
    return ApiVersion(api_key=key, min_version=versions.min, max_version=versions.max)
