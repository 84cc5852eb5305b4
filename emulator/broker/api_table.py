"""What a release serves: requests read from frames, and answers made frames, each in the version that was asked."""

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
"""Stands for an ApiVersions of a version that is not served."""


@dataclass(frozen=True, slots=True)
class Service:
    """The request class and the conversions (`versions.adapters`) of one version of an API."""

    request: type[Message]
    normalize_request: Callable[[Message, int], Message]
    render_response: Callable[[Message, int, Numbering], Message]


class ApiTable:
    """The services of the release that is set (`kafka.version`), in the error numbering that is set."""

    def __init__(self, settings: Settings) -> None:
        self._release = settings.kafka_version
        self._advertised = ADVERTISED[settings.kafka_version]
        self.number = NUMBERINGS[settings.error_codes]
        """What puts the errors' numbers into an answer."""
        self.table = {
            (key, version): Service(APIS[key].request, ADAPTERS[key].normalize_request, ADAPTERS[key].render_response)
            for key, versions in ACCEPTED[settings.kafka_version].items()
            for version in versions
        }
        """The services by API and version. The broker ring looks there itself: a call for each step is dear."""

    def read(self, header: RequestHeader, body: bytes) -> tuple[int, Message]:
        """The version a request is answered in, and its message; what cannot be read is Malformed."""
        key, version = header.api_key, header.api_version
        service = self.table.get((key, version))
        if service is None:
            if key == ApiKey.API_VERSIONS:
                # its answer has the layout of version 0 whatever was asked (KIP-511)
                return 0, UNSUPPORTED_VERSION
            raise self._unserved(key, version)
        try:
            return version, decode(service.request, version, body)
        except Malformed as error:
            raise Malformed(f"{APIS[key].name} v{version}: {error}") from error

    def check(self, key: int, version: int) -> None:
        """Malformed if this version of this API is not served."""
        if (key, version) not in self.table:
            raise self._unserved(key, version)

    def _unserved(self, key: int, version: int) -> Malformed:
        return Malformed(f"{APIS[key].name} v{version}: not served by Kafka {self._release}")

    def versions(self, call: Call, request: ApiVersionsRequest) -> Message:
        """The answer to ApiVersions, which is a matter of the release alone."""
        if request is UNSUPPORTED_VERSION:
            return api_versions.unsupported(self._advertised)
        return api_versions.respond(request, call.api_version, self._advertised)
