"""Creating and deleting topics at the controller; brokers without ZooKeeper forward the requests (KIP-590)."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from koordinator.wire.primitives import ZERO_UUID

from .errors import Failure, RequiredVersion, broker_failure
from .offsets import LEADER_MOVES, leaders

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from uuid import UUID

    from .admin import Admin, BrokerNode
    from .connection import BrokerConnection

BROKER_DEFAULT = -1
"""Partitions or replicas as the broker configs set them (KIP-464)."""

CONTROLLER_MOVES = frozenset({Error.NOT_CONTROLLER, Error.REQUEST_TIMED_OUT})
"""Retriable errors while another broker becomes the controller."""

_CREATE = RequiredVersion(ApiKey.CREATE_TOPICS, 4, "2.4")
_DELETE = RequiredVersion(ApiKey.DELETE_TOPICS, 0, "0.10.1")
_DELETE_BY_STATE_VERSION = 6
_TIMEOUT_MS = 30_000


def create_topic(
    admin: Admin, name: str, partitions: int = BROKER_DEFAULT, configs: Mapping[str, str] = MappingProxyType({})
) -> Failure | None:
    """Create a topic and wait until every partition has a leader. Needs CreateTopics v4 (Apache Kafka 2.4)."""

    def call(connection: BrokerConnection, _: BrokerNode, names: list[str]) -> dict[str, Failure | None]:
        rows = tuple(CreatableTopicConfig(name=key, value=text) for key, text in configs.items())
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=BROKER_DEFAULT, configs=rows)
        request = CreateTopicsRequest(topics=(topic,), timeout_ms=_TIMEOUT_MS)
        response = connection.send(request, connection.version(_CREATE), CreateTopicsResponse)
        results = [row for row in response.topics if row.name in names]
        return {row.name: _failure(row.error_code, row.error_message) for row in results}

    failure = _at_controller(admin, [name], call)[name]
    return failure if isinstance(failure, Failure) else _wait_for_leaders(admin, name)


def delete_topics(admin: Admin, names: Sequence[str]) -> dict[str, Failure | None]:
    """Delete topics with their records."""

    def call(connection: BrokerConnection, _: BrokerNode, pending: list[str]) -> dict[str, Failure | None]:
        version = connection.version(_DELETE)
        if version >= _DELETE_BY_STATE_VERSION:
            states = tuple(DeleteTopicState(name=name) for name in pending)
            request = DeleteTopicsRequest(topics=states, timeout_ms=_TIMEOUT_MS)
        else:
            request = DeleteTopicsRequest(topic_names=tuple(pending), timeout_ms=_TIMEOUT_MS)
        response = connection.send(request, version, DeleteTopicsResponse)
        return {row.name or "": _failure(row.error_code, row.error_message) for row in response.responses}

    return _at_controller(admin, names, call)


def topic_ids(admin: Admin) -> dict[str, UUID]:
    """Return the ids of all topics, by name; none before Apache Kafka 2.8 (KIP-516)."""
    return {row.name: row.topic_id for row in admin.topics().topics if row.name and row.topic_id != ZERO_UUID}


def _at_controller(
    admin: Admin,
    names: Sequence[str],
    call: Callable[[BrokerConnection, BrokerNode, list[str]], Mapping[str, Failure | None]],
) -> dict[str, Failure | None]:
    def attempt(pending: list[str]) -> dict[str, Failure | None]:
        controller = admin.controller()
        return admin.at_brokers(dict.fromkeys(pending, controller), call, idempotent=False)

    return admin.retry(names, attempt)


def _wait_for_leaders(admin: Admin, name: str) -> Failure | None:
    def attempt(pending: list[str]) -> dict[str, Failure | None]:
        response = admin.topics(pending)
        partitions = [(name, row.partition_index) for topic in response.topics for row in topic.partitions]
        if not partitions:
            return dict.fromkeys(pending, broker_failure(Error.LEADER_NOT_AVAILABLE, retriable=LEADER_MOVES))
        failures = [leader for leader in leaders(response, partitions).values() if isinstance(leader, Failure)]
        return dict.fromkeys(pending, failures[0] if failures else None)

    return admin.retry([name], attempt)[name]


def _failure(error_code: int, message: str | None) -> Failure | None:
    return None if error_code == Error.NONE else broker_failure(error_code, message, retriable=CONTROLLER_MOVES)
