"""Random consumer groups on a running broker: the emulator gives the same answers and the same assignments."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from brokers.kafka_releases import NEWEST
from brokers.real_kafka import RealKafka
from clients.raw_member import Rival
from scenes.random_groups import TOPICS, RandomHistory
from scenes.recorded_groups import Messages, Player, Recording, canonical

from koordinator.client.admin import Admin

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = {"group.consumer.assignment.interval.ms": "0"}

GROUPS = 40
ADMIN_S = 60


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    """Return a broker that computes a target with every change, with the topics of random groups."""
    with RealKafka(tmp_path_factory.mktemp("kafka-groups"), NEWEST, SETTINGS) as kafka:
        for name, count in TOPICS.items():
            kafka.create_topic(name, count)
        yield kafka


@pytest.fixture(scope="module")
def recording(broker: RealKafka) -> Recording:
    """Return the topics of the broker, without histories."""
    with Admin((broker.address,), ADMIN_S, "1") as admin:
        rows = {row.name: row.topic_id for row in admin.topics(list(TOPICS)).topics}
    return Recording(NEWEST.line, 1, [(name, count, rows[name]) for name, count in TOPICS.items()], [])


@pytest.mark.parametrize("seed", range(GROUPS))
def test_a_random_group_is_assigned_as_by_kafka(broker: RealKafka, recording: Recording, seed: int) -> None:
    group, messages, player = f"random-{seed}", Messages(recording), Player(recording)
    with Rival(broker.bootstrap_servers) as link:

        def ask(request: Any) -> Any:
            link.send(messages.request(group, request), 1)
            return messages.answer(link.receive())

        for request, answer in RandomHistory(random.Random(seed), ask).play():
            assert canonical(player.ask(group, request)) == canonical(answer), request
