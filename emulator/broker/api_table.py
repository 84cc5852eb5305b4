"""The API table of a Kafka release: which versions it serves, how they are decoded, and how responses are rendered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from koordinator.wire.apis import APIS, ApiKey
from koordinator.wire.codec import decode
from koordinator.wire.messages.api_versions import ApiVersionsRequest
from koordinator.wire.primitives import Malformed

from .versions import api_versions
from .versions.adapters import ADAPTERS
from .versions.error_numbering import NUMBERINGS
from .versions.releases import ACCEPTED, ADVERTISED

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.wire.apis import Message
    from koordinator.wire.headers import RequestHeader

    from ..config.settings import Settings
    from ..core.effects import Call
    from .versions.error_numbering import Numbering

UNSUPPORTED_VERSION = ApiVersionsRequest()
"""Stands for an ApiVersions request of an unsupported version."""


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
        """Return the response to ApiVersions, which depends on the release alone."""
        if request is UNSUPPORTED_VERSION:
            return api_versions.unsupported(self._advertised)
        return api_versions.respond(request, call.api_version, self._advertised)
