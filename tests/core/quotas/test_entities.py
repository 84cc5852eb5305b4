"""The quota of a client: the most special entity counts, and its clients share the limit."""

from __future__ import annotations

from koordinator.emulator.core.data.client_metadata import Entity, entity_of
from koordinator.emulator.core.quotas.entities import CONSUMER_BYTES, PRODUCER_BYTES, ClientQuota, quota_of

KEY = PRODUCER_BYTES

BY_PRECEDENCE: list[tuple[dict[str, str | None], tuple[str, str]]] = [
    ({"user": "alice", "client-id": "c"}, ("alice", "c")),
    ({"user": "alice", "client-id": None}, ("alice", "c")),
    ({"user": "alice"}, ("alice", "")),
    ({"user": None, "client-id": "c"}, ("alice", "c")),
    ({"user": None, "client-id": None}, ("alice", "c")),
    ({"user": None}, ("alice", "")),
    ({"client-id": "c"}, ("", "c")),
    ({"client-id": None}, ("", "c")),
]
"""Kafka's order of the entities of a client, most special first, with the clients that share each limit."""


def test_the_most_special_entity_counts_and_its_clients_share_the_limit() -> None:
    quotas: dict[Entity, dict[str, float]] = {}
    for limit, (names, sharers) in enumerate(reversed(BY_PRECEDENCE), 1):
        quotas[entity_of(names)] = {KEY: float(limit)}
        assert quota_of(quotas, KEY, "alice", "c") == ClientQuota(float(limit), *sharers), names


def test_an_entity_without_a_value_for_the_key_does_not_count() -> None:
    quotas: dict[Entity, dict[str, float]] = {
        entity_of({"user": "alice", "client-id": "c"}): {CONSUMER_BYTES: 1.0},
        entity_of({"client-id": "c"}): {KEY: 2.0},
    }
    assert quota_of(quotas, KEY, "alice", "c") == ClientQuota(2.0, "", "c")


def test_a_client_without_an_entity_has_no_quota() -> None:
    quotas: dict[Entity, dict[str, float]] = {
        entity_of({"user": "bob"}): {KEY: 1.0},
        entity_of({"client-id": "d"}): {KEY: 1.0},
        entity_of({"user": "alice", "client-id": "d"}): {KEY: 1.0},
    }
    assert quota_of(quotas, KEY, "alice", "c") is None


def test_a_limit_that_is_not_positive_is_none() -> None:
    assert quota_of({entity_of({"user": "alice"}): {KEY: -1.0}}, KEY, "alice", "c") is None
