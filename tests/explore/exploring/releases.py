"""The releases to explore, and the API versions their brokers serve."""

from __future__ import annotations

from brokers.kafka_releases import NEWEST, RELEASES, Release

from koordinator.emulator.broker.releases import ACCEPTED
from koordinator.wire.apis import APIS
from koordinator.wire.versions import Versions

__all__ = ["NEWEST", "RELEASES", "Release", "settings_here", "versions_of"]

_KEYS = {api.name: key for key, api in APIS.items()}


def versions_of(release: Release, api: str) -> tuple[int, int]:
    """Return the first and last version of an API in a release; 0 and -1 if it has none."""
    versions = ACCEPTED[release.line].get(_KEYS[api], Versions("none"))
    return versions.min, versions.max


def settings_here(release: Release) -> dict[str, str]:
    """Return the settings that make the core follow a release."""
    return {"kafka.version": release.line, **release.settings}
