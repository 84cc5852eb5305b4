"""Whose rules are played by, and in which versions its broker can be asked."""

from __future__ import annotations

from brokers.kafka_releases import NEWEST, RELEASES, Release

from koordinator.emulator.broker.versions.releases import ACCEPTED
from koordinator.wire.apis import APIS

__all__ = ["NEWEST", "RELEASES", "Release", "settings_here", "versions_of"]

_KEYS = {api.name: key for key, api in APIS.items()}


def versions_of(release: Release, api: str) -> tuple[int, int]:
    """The first and the last version of an API that it serves."""
    versions = ACCEPTED[release.line][_KEYS[api]]
    return versions.min, versions.max


def settings_here(release: Release) -> dict[str, str]:
    """What makes the core follow its rules."""
    return {"kafka.version": release.line, **release.settings}
