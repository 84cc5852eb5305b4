"""Online migration of groups on a running broker: the scenes of the emulator's own tests (KIP-848)."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from brokers.kafka_releases import NEWEST
from brokers.real_kafka import RealKafka
from clients.raw_member import Rival
from scenes.coordinator_requests import Exchange
from scenes.migrations import SCENES, MigrationPlay

from koordinator.client.admin import Admin
from koordinator.emulator.core.effects import Call
from koordinator.wire.apis import REQUEST_KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from koordinator.wire.apis import ApiKey

SETTINGS = {
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
}
TOPICS = {"t": 4, "u": 2}
ADMIN_S = 60

LEAVE_GROUP_VERSION = 5

NUMBERS = itertools.count()


class KafkaPlay(MigrationPlay):
    """A running broker, with a group of its own in place of g."""

    def __init__(self, kafka: RealKafka, link: Rival) -> None:
        with Admin((kafka.address,), ADMIN_S, "1") as admin:
            rows = {row.name: row.topic_id for row in admin.topics(list(TOPICS)).topics}
        self.names = {topic_id: name for name, topic_id in rows.items()}
        self.cluster: Any = SimpleNamespace(
            topics={name: SimpleNamespace(topic_id=topic_id) for name, topic_id in rows.items()}
        )
        self._link = link
        self._group = f"migration-{next(NUMBERS)}"

    def send(self, request: Any, version: int, client_id: str = "c") -> Exchange[Any]:
        """Send a request to the broker and await its response."""
        if getattr(request, "group_id", ""):
            request = replace(request, group_id=self._group)
        if hasattr(request, "group_ids"):
            request = replace(request, group_ids=(self._group,))
        if hasattr(request, "groups"):
            request = replace(request, groups=tuple(replace(each, group_id=self._group) for each in request.groups))
        self._link.send(request, version)
        call = Call(1, 1, REQUEST_KEYS[type(request)], version, client_id, "")
        return Exchange(call, [self._link.receive()])

    def newest(self, key: ApiKey) -> int:
        """Return the version of LeaveGroup."""
        del key
        return LEAVE_GROUP_VERSION

    def settle(self) -> None:
        """Do nothing: a response has been awaited."""

    def listed(self) -> tuple[str, str]:
        """Return the type and the state of the group."""
        rows = self.list_groups()
        return next((row.group_type, row.group_state) for row in rows if row.group_id == self._group)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    """Return a broker that computes a target with every change."""
    with RealKafka(tmp_path_factory.mktemp("kafka-migration"), NEWEST, SETTINGS) as kafka:
        for name, count in TOPICS.items():
            kafka.create_topic(name, count)
        yield kafka


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_a_scene_of_migration_is_played_to_a_broker(broker: RealKafka, scene: Callable[[MigrationPlay], None]) -> None:
    with Rival(broker.bootstrap_servers) as link:
        scene(KafkaPlay(broker, link))
