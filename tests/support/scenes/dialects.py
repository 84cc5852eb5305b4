"""Parametrization of tests by emulated broker, for rules that changed between releases.

A test lists its expectations by broker, each valid from that broker on. Brokers older than the first entry lack the API
version and are skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from builders.requests import RANGE, subscription

from koordinator.wire.errors import Error
from scenes.play import Play

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BROKERS: dict[str, dict[str, object]] = {
    "2.4": {"kafka_version": "2.4"},
    "2.8": {"kafka_version": "2.8"},
    "3.9 OLD": {"kafka_version": "3.9"},
    "3.9 NEW": {"kafka_version": "3.9", "group_coordinator_new_enable": True},
    "4.0": {"kafka_version": "4.0"},
    "4.2": {"kafka_version": "4.2"},
    "4.3": {"kafka_version": "4.3"},
    "4.4": {"kafka_version": "4.4"},
}
"""Broker settings by name, in order of release."""

T, U = ("t", 0), ("u", 0)
RANGE_AND_OTHER = (*RANGE, ("roundrobin", subscription("t")))
OTHER = (("roundrobin", subscription("t")),)
FAILURE = Error.NOT_ENOUGH_REPLICAS
AWAY = [Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR]


def by_broker(changes: Mapping[str, object]) -> pytest.MarkDecorator:
    """Parametrize `on`, a factory of plays on a broker, and the expectation `seen`."""
    rows, seen = [], None
    for broker in BROKERS:
        seen = changes.get(broker, seen)
        if rows or broker in changes:
            rows.append(pytest.param(on_broker(broker), seen, id=broker))
    return pytest.mark.parametrize(("on", "seen"), rows)


def old_and_new(old: object, new: object) -> pytest.MarkDecorator:
    """Parametrize for a rule that changed with the group coordinator."""
    return by_broker({"2.4": old, "3.9 NEW": new})


def on_broker(broker: str) -> Callable[..., Play]:
    return lambda **settings: Play(**BROKERS[broker], **settings)


On = Any
"""Creates a play on the broker of the test; its arguments are further settings."""


def send_away(play: Play, reason: Error) -> None:
    """Make the node stop serving group g."""
    partition = play.coordinator.store.partition_of("g")
    if reason is Error.COORDINATOR_LOAD_IN_PROGRESS:
        play.coordinator.store.loading.add(partition)
    else:
        play.coordinator.store.owned.remove(partition)
