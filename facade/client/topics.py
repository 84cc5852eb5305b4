"""Making and deleting topics, which is the controller's affair; brokers without ZooKeeper pass it on (KIP-590)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState

from .offsets import LEADING, leaders
from .problems import Need, Refusal, refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .admin import Admin, ClusterNode
    from .link import Link

AS_THE_BROKER_HAS_IT = -1
"""So many partitions, and copies of each, as the broker's settings say (KIP-464)."""

PASSING = frozenset({Error.NOT_CONTROLLER, Error.REQUEST_TIMED_OUT})
"""What is said while another broker becomes the controller."""

_CREATE = Need(ApiKey.CREATE_TOPICS, 4, "2.4")
_DELETE = Need(ApiKey.DELETE_TOPICS, 0, "0.10.1")
_DELETE_BY_STATE_SINCE = 6
_TIMEOUT_MS = 30_000


def create_topic(admin: Admin, name: str, partitions: int = AS_THE_BROKER_HAS_IT) -> Refusal | None:
    """Make a topic, and wait until all its partitions have a leader. Needs CreateTopics v4 (Apache Kafka 2.4)."""

    def ask(link: Link, _: ClusterNode, names: list[str]) -> dict[str, Refusal | None]:
        row = CreatableTopic(name=name, num_partitions=partitions, replication_factor=AS_THE_BROKER_HAS_IT)
        request = CreateTopicsRequest(topics=(row,), timeout_ms=_TIMEOUT_MS)
        answer = link.ask(request, link.version(_CREATE), CreateTopicsResponse)
        said = {each.name: _outcome(each.error_code, each.error_message) for each in answer.topics}
        return {each: said[each] for each in names if each in said}

    outcome = _at_controller(admin, [name], ask)[name]
    return outcome if isinstance(outcome, Refusal) else _led(admin, name)


def delete_topics(admin: Admin, names: Sequence[str]) -> dict[str, Refusal | None]:
    """Delete topics with their records."""

    def ask(link: Link, _: ClusterNode, pending: list[str]) -> dict[str, Refusal | None]:
        version = link.version(_DELETE)
        if version >= _DELETE_BY_STATE_SINCE:
            states = tuple(DeleteTopicState(name=name) for name in pending)
            request = DeleteTopicsRequest(topics=states, timeout_ms=_TIMEOUT_MS)
        else:
            request = DeleteTopicsRequest(topic_names=tuple(pending), timeout_ms=_TIMEOUT_MS)
        answer = link.ask(request, version, DeleteTopicsResponse)
        return {each.name or "": _outcome(each.error_code, each.error_message) for each in answer.responses}

    return _at_controller(admin, names, ask)


def _at_controller(
    admin: Admin, names: Sequence[str], ask: Callable[[Link, ClusterNode, list[str]], Mapping[str, Refusal | None]]
) -> dict[str, Refusal | None]:
    def attempt(pending: list[str]) -> dict[str, Refusal | None]:
        controller = admin.controller()
        return admin.at_nodes(dict.fromkeys(pending, controller), ask, resend=False)

    return admin.persist(names, attempt)


def _led(admin: Admin, name: str) -> Refusal | None:
    """Wait until every partition of a topic that has just been made has a leader."""

    def attempt(pending: list[str]) -> dict[str, Refusal | None]:
        answer = admin.topics(pending)
        there = [(name, row.partition_index) for each in answer.topics for row in each.partitions]
        if not there:
            return dict.fromkeys(pending, refusal(Error.LEADER_NOT_AVAILABLE, again=LEADING))
        refused = [each for each in leaders(answer, there).values() if isinstance(each, Refusal)]
        return dict.fromkeys(pending, refused[0] if refused else None)

    return admin.persist([name], attempt)[name]


def _outcome(error_code: int, said: str | None) -> Refusal | None:
    return None if error_code == Error.NONE else refusal(error_code, said, again=PASSING)
