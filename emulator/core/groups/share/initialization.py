"""Before a partition is assigned, the share coordinator gets state for it: the group and the partition, no offset yet.

A heartbeat writes which partitions are to be initialized, and asks for it; the answer is written, too. The next
heartbeat raises the epoch and assigns them. Kafka: `GroupMetadataManager.maybeCreateInitializeShareGroupStateRequest`,
`GroupCoordinatorService.persisterInitialize`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from koordinator.wire.errors import Error
from koordinator.wire.messages import initialize_share_group_state as wire

from ..causes import Cause, Reason
from ..modern.changes import write
from .group import ShareGroup
from .records import state_partitions_record
from .state_requests import ask

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from ..group import BaseGroup
    from ..group_store import GroupStore
    from .group import StatePartitions
    from .member import ShareMember
    from .state_requests import Rows

    StateTopics = Mapping[UUID, tuple[str, frozenset[int]]]

RETRY_MS = 30_000
"""The time after which an initialization that got no answer is asked for again
(`group.share.initialize.retry.interval.ms`, an internal setting)."""

NO_OFFSET = -1
"""The start offset of a share partition whose first reader will find it by `share.auto.offset.reset`."""

FIRST_OFFSET = 0
"""The start offset of a share partition that was added to a topic whose other partitions the group reads."""

LATER = (Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR)
"""The errors of a share coordinator that will be there later."""


class ToInitialize(NamedTuple):
    """The partitions that a heartbeat has initialized with their start offsets, and the group's state with them."""

    partitions: StateTopics
    starts: Mapping[UUID, int]
    after: StatePartitions


def to_initialize(store: GroupStore, group: ShareGroup, updated: ShareMember) -> ToInitialize:
    """Return the partitions of subscribed topics that have no state, and are not about to get it.

    Those that a topic was extended by begin at their first record, since 4.4.
    """
    state = group.state_partitions
    names = dict.fromkeys(name for each in group.members.values() if each.id != updated.id for name in each.names)
    found: dict[UUID, tuple[str, frozenset[int]]] = {}
    for name in {**names, **dict.fromkeys(updated.names)}:
        topic = store.cluster.topics.get(name)
        if topic is None:
            continue
        known = _partitions(state.initialized, topic.topic_id)
        if group.now - group.initializing_since.get(topic.topic_id, group.now) < RETRY_MS:
            known |= _partitions(state.initializing, topic.topic_id)
        missing = frozenset(range(len(topic.logs))) - known
        if missing:
            found[topic.topic_id] = name, missing
    extended = (
        {*state.initialized, *state.initializing} if store.dialect.share_groups_read_all_of_new_partitions else ()
    )
    starts = {topic: FIRST_OFFSET if topic in extended else NO_OFFSET for topic in found}
    return ToInitialize(found, starts, begun(state, found) if found else state)


def begun(state: StatePartitions, topics: StateTopics) -> StatePartitions:
    """Return the state partitions with topics that are being initialized."""
    added = {
        topic: (name, partitions | _partitions(state.initializing, topic))
        for topic, (name, partitions) in topics.items()
    }
    return replace(state, initializing={**state.initializing, **added})


def _partitions(topics: StateTopics, topic: UUID) -> frozenset[int]:
    return topics[topic][1] if topic in topics else frozenset()


def _without(topics: StateTopics, others: StateTopics) -> StateTopics:
    left = {topic: (name, partitions - _partitions(others, topic)) for topic, (name, partitions) in topics.items()}
    return {topic: row for topic, row in left.items() if row[1] or topic not in others}


def send(store: GroupStore, group: BaseGroup, error: Error, *, state: ToInitialize, epoch: int) -> None:
    """Ask the share coordinators for state of these partitions, once the record that says so is written."""
    if error is Error.NONE:
        every = [(topic, each) for topic, (_, partitions) in state.partitions.items() for each in sorted(partitions)]
        question = initialization(group.id, epoch, {at: state.starts[at[0]] for at in every})
        done = partial(_initialized, group.id, state.partitions)
        ask(store, store.node_time(group), group.id, every, question, done)


def initialization(
    group_id: str, epoch: int, starts: Mapping[tuple[UUID, int], int]
) -> tuple[int, partial[wire.InitializeShareGroupStateRequest]]:
    """Return the question for new state, with the epoch of the group and a start offset for each partition."""
    return 0, partial(_request, group_id, epoch, starts)


def _request(
    group_id: str, epoch: int, starts: Mapping[tuple[UUID, int], int], topics: Mapping[UUID, list[int]]
) -> wire.InitializeShareGroupStateRequest:
    rows = tuple(
        wire.InitializeStateData(
            topic_id=topic,
            partitions=tuple(
                wire.PartitionData(partition=each, state_epoch=epoch, start_offset=starts[topic, each])
                for each in partitions
            ),
        )
        for topic, partitions in topics.items()
    )
    return wire.InitializeShareGroupStateRequest(group_id=group_id, topics=rows)


def _initialized(group_id: str, state: StateTopics, store: GroupStore, now: int, rows: Rows) -> None:
    """Write which partitions have got their state; a failure lets the next heartbeat ask again for all of them."""
    group = store.find(now, group_id)
    if not isinstance(group, ShareGroup):
        return
    every = [(topic, each) for topic, (_, partitions) in state.items() for each in partitions]
    errors = {Error(rows[at].error_code) if at in rows else Error.COORDINATOR_NOT_AVAILABLE for at in every}
    if errors.intersection(LATER):
        return
    finished(store, group, state, succeeded=errors == {Error.NONE})


def finished(store: GroupStore, group: ShareGroup, state: StateTopics, *, succeeded: bool) -> None:
    """Write that partitions have got their state, or failed to; topics that are gone are left out."""
    before = group.state_partitions
    known = {topic: row for topic, row in state.items() if topic in before.initializing}
    after = replace(before, initializing=_without(before.initializing, known))
    if succeeded:
        added = {
            topic: (name, partitions | _partitions(before.initialized, topic))
            for topic, (name, partitions) in known.items()
        }
        after = replace(after, initialized={**before.initialized, **added})
    if after != before:
        why = Reason(Cause.TOPIC_CHANGE, "The share coordinator has initialized partitions.")
        write(store, group, [state_partitions_record(group.id, after)], why)


def topics_deleted(store: GroupStore, group: ShareGroup) -> None:
    """Forget the state of topics that do not exist any more."""
    state, topics = group.state_partitions, store.cluster.topics.by_id
    after = replace(
        state,
        initializing={topic: row for topic, row in state.initializing.items() if topic in topics},
        initialized={topic: row for topic, row in state.initialized.items() if topic in topics},
        deleting={topic: name for topic, name in state.deleting.items() if topic in topics},
    )
    if after != state:
        why = Reason(Cause.TOPIC_CHANGE, "A topic of the share group was deleted.")
        write(store, group, [state_partitions_record(group.id, after)], why)
