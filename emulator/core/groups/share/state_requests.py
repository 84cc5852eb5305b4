"""Requests of the group coordinator to the share coordinators, which keep the state of share partitions.

A share coordinator is the leader of a partition of `__share_group_state`; a request goes to each of them that has some
of the partitions. Kafka: `PersisterStateManager`, which asks again for half a minute if one is not there.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field
from typing import TYPE_CHECKING, Any

from koordinator.wire.values import mutable

from ...data.topic import SHARE_STATE_TOPIC, share_state_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from uuid import UUID

    from koordinator.wire.apis import Message

    from ..group_store import GroupStore

    Rows = Mapping[tuple[UUID, int], Any]
    """The rows of responses, by topic id and partition; those of a coordinator that could not be reached are absent."""

    Done = Callable[[GroupStore, int, Rows], None]


@mutable
class _Gathering:
    """The responses to one question."""

    done: Done
    waiting: int
    rows: dict[tuple[UUID, int], Any] = field(default_factory=dict)

    def answered(self, store: GroupStore, now: int, response: Any) -> None:  # noqa: ANN401 - one of five messages
        """Take a response; None if the coordinator could not be reached."""
        if response is not None:
            for topic in response.results:
                self.rows |= {(topic.topic_id, row.partition): row for row in topic.partitions}
        self.waiting -= 1
        if not self.waiting:
            self.done(store, now, self.rows)


def ask(
    store: GroupStore,
    now: int,
    group_id: str,
    partitions: Iterable[tuple[UUID, int]],
    question: tuple[int, Callable[[Mapping[UUID, list[int]]], Message]],
    done: Done,
) -> None:
    """Send a question about partitions to their coordinators, and call `done` with all rows.

    The question is a version and the request for partitions of topics. Without partitions `done` is called at once.
    """
    version, request_for = question
    by_node: defaultdict[int, defaultdict[UUID, list[int]]] = defaultdict(lambda: defaultdict(list))
    for topic, partition in partitions:
        key = share_state_key(group_id, topic, partition)
        by_node[store.cluster.coordinator_of(key, SHARE_STATE_TOPIC)][topic].append(partition)
    if not by_node:
        return done(store, now, {})
    gathering = _Gathering(done, len(by_node))
    for node_id, topics in by_node.items():
        store.send(node_id, version, request_for(topics), gathering.answered)
    return None
