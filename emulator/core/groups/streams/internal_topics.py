"""The broker creates the repartition topics and changelogs that a topology needs, after the answer to a heartbeat.

A topic that could not be created is tried again after two heartbeat intervals; until then responses give the reason.
Kafka: `KafkaApis.handleStreamsGroupHeartbeat`, `AutoTopicCreationManager.createStreamsInternalTopics`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

from ...acls.acl import CLUSTER_NAME, Operation, ResourceType
from .group import StreamsGroup

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from koordinator.wire.messages.create_topics import CreateTopicsResponse
    from koordinator.wire.messages.streams_group_heartbeat import Status

    from ...effects import Call
    from ..commit import Completion
    from ..group import BaseGroup
    from ..group_store import GroupStore
    from .topology import InternalTopic

CREATION_VERSION = 7
"""The version of CreateTopics that brokers use."""

REQUEST_TIMEOUT_MS = 30_000
"""The time that the controller has (`request.timeout.ms`)."""

SHOWN_ERRORS = 3

UNREACHABLE = "The controller could not be reached."
"""Why topics were not created if there was no answer."""


def forbidden(store: GroupStore, call: Call, names: Iterable[str]) -> list[str]:
    """Return the topics that the client of a call may not create."""
    authorizer = store.cluster.authorizer
    if authorizer is None or authorizer.allows(call, Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME):
        return []
    return [name for name in names if not authorizer.allows(call, Operation.CREATE, ResourceType.TOPIC, name)]


def told(status: Status, group: StreamsGroup, missing: Iterable[InternalTopic], not_allowed: Iterable[str]) -> Status:
    """Return the status of missing topics, with the reason why the broker does not create them, if there is one."""
    detail = status.status_detail
    names = list(not_allowed)
    if names:
        return replace(status, status_detail=f"{detail}; Unauthorized to CREATE on topics {', '.join(names)}.")
    errors = [f"{topic.name} ({_error(group, topic.name)})" for topic in missing if _error(group, topic.name)]
    if not errors:
        return status
    shown = ", ".join(errors[:SHOWN_ERRORS])
    more = f" and {len(errors) - SHOWN_ERRORS} more" if len(errors) > SHOWN_ERRORS else ""
    return replace(status, status_detail=f"{detail}; Creation failed: {shown}{more}.")


def _error(group: StreamsGroup, name: str) -> str:
    """Return why a topic was not created; "" if it has not been tried, or may be tried again."""
    text, until = group.soft.creation_errors.get(name, ("", 0))
    return text if group.now < until else ""


def creation(topics: Sequence[InternalTopic]) -> Completion:
    """Return what creates missing internal topics, to be called once the records of the heartbeat are durable."""
    return partial(_create, topics=topics)


def _create(store: GroupStore, group: BaseGroup, error: Error, *, topics: Sequence[InternalTopic]) -> None:
    if error is not Error.NONE or not isinstance(group, StreamsGroup):
        return
    soft = group.soft
    due = [topic for topic in topics if topic.name not in soft.creating and not _error(group, topic.name)]
    if not due:
        return
    names = tuple(topic.name for topic in due)
    soft.creating.update(names)
    request = CreateTopicsRequest(topics=tuple(map(_creatable, due)), timeout_ms=REQUEST_TIMEOUT_MS)
    done = partial(_created, group.id, names)
    store.send(store.cluster.brokers.controller_id, CREATION_VERSION, request, done)


def _creatable(topic: InternalTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor or -1,
        configs=tuple(CreatableTopicConfig(name=name, value=text) for name, text in topic.configs.items()),
    )


def _created(
    group_id: str, names: tuple[str, ...], store: GroupStore, now: int, response: CreateTopicsResponse | None
) -> None:
    """Remember which topics could not be created, for two heartbeat intervals."""
    group = store.find(now, group_id)
    if not isinstance(group, StreamsGroup):
        return
    until = group.now + 2 * group.setting(store.cluster, "heartbeat.interval.ms")
    group.soft.creating.difference_update(names)
    errors = dict.fromkeys(names, UNREACHABLE)
    if response is not None:
        errors = {
            row.name: row.error_message or Error(row.error_code).name for row in response.topics if row.error_code
        }
    group.soft.creation_errors |= {name: (text, until) for name, text in errors.items()}
