"""DescribeShareGroupOffsets, AlterShareGroupOffsets and DeleteShareGroupOffsets: where a group stands, for admin tools.

The share coordinators have the offsets; the group coordinator passes questions on, and notes which partitions have
state. Kafka: `GroupCoordinatorService`, `GroupMetadataManager.shareGroup…`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from koordinator.wire.errors import Error
from koordinator.wire.messages import alter_share_group_offsets as alter_wire
from koordinator.wire.messages import delete_share_group_offsets as delete_wire
from koordinator.wire.messages import delete_share_group_state as delete_state_wire
from koordinator.wire.messages import describe_share_group_offsets as describe_wire
from koordinator.wire.messages import initialize_share_group_state as initialize_wire
from koordinator.wire.messages import read_share_group_state_summary as summary_wire
from koordinator.wire.primitives import ZERO_UUID
from koordinator.wire.values import mutable

from ...java.longs import as_long
from ...java.uuids import uuid_text
from ...refusal import Refusal, RefusedError
from ..causes import Cause, Reason
from ..modern.changes import write
from ..modern.loading import create
from .group import ShareGroup
from .initialization import LATER, begun, finished, initialization
from .records import state_partitions_record
from .state_requests import ask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from uuid import UUID

    from ...data.log import PartitionLog
    from ...data.topic import TopicState
    from ...effects import Answer, Call
    from ..group_store import GroupStore
    from .initialization import StateTopics
    from .state_requests import Rows

    Wanted = tuple[str, TopicState | None, Sequence[int]]
    """The name of a topic, the topic, and numbers of partitions."""

UNKNOWN = -1
"""The start offset and the lag of a partition of which nothing was written."""

SUMMARY_VERSION = 1
"""The version of ReadShareGroupStateSummary, with the number of completed deliveries (KIP-1226)."""

NO_PARTITION = "This server does not host this topic-partition."
FAILED = "The server experienced an unexpected error when processing the request."
NO_OFFSETS = "There is no offset information to delete."

A = TypeVar("A", bound="alter_wire.AlterShareGroupOffsetsRequest | delete_wire.DeleteShareGroupOffsetsRequest")


# -- DescribeShareGroupOffsets -----------------------------------------------------------------------------------


@mutable
class _Describing:
    """A request that waits for the share coordinators of its groups."""

    call: Call
    rows: dict[int, describe_wire.DescribeShareGroupOffsetsResponseGroup]
    waiting: int

    def described(
        self,
        index: int,
        row: describe_wire.DescribeShareGroupOffsetsResponseGroup,
        wanted: Sequence[Wanted],
        store: GroupStore,
        _now: int,
        rows: Rows,
    ) -> None:
        """Take the offsets of a group; the last one answers the request."""
        self.rows[index] = replace(row, topics=_described(wanted, rows))
        self.waiting -= 1
        if not self.waiting:
            groups = tuple(self.rows[each] for each in sorted(self.rows))
            store.reply(self.call, describe_wire.DescribeShareGroupOffsetsResponse(groups=groups))


def describe(store: GroupStore, now: int, call: Call, request: describe_wire.DescribeShareGroupOffsetsRequest) -> None:
    """Answer with the start offset and the lag of partitions; a group need not exist, nor be a share group."""
    describing = _Describing(call, {}, len(request.groups))
    for index, asked in enumerate(request.groups):
        error, message = store.status(asked.group_id), None
        if not store.cluster.features.serves_share_groups:
            error = Error.UNSUPPORTED_VERSION
        wanted = [] if error is not Error.NONE else _wanted(store, now, asked)
        known = [(topic, partitions) for _, topic, partitions in wanted if topic is not None]
        if any(not partitions or min(partitions) < 0 for _, partitions in known):
            # `DefaultStatePersister.validateGroupTopicPartitionData`
            error, message, wanted, known = Error.UNKNOWN_SERVER_ERROR, FAILED, [], []

        row = describe_wire.DescribeShareGroupOffsetsResponseGroup(
            group_id=asked.group_id, error_code=error, error_message=message
        )
        done = partial(describing.described, index, row, wanted)
        places = dict.fromkeys(
            (topic.topic_id, each) for topic, partitions in known for each in partitions if topic.log(each) is not None
        )
        ask(store, now, asked.group_id, places, (SUMMARY_VERSION, partial(_summary_request, asked.group_id)), done)
    if not request.groups:
        store.reply(call, describe_wire.DescribeShareGroupOffsetsResponse())


def _wanted(store: GroupStore, now: int, asked: describe_wire.DescribeShareGroupOffsetsRequestGroup) -> list[Wanted]:
    """Return the topics with partitions: the named ones, or all with state."""
    topics = store.cluster.topics
    if asked.topics is not None:
        return [(row.topic_name, topics.get(row.topic_name), row.partitions) for row in asked.topics]
    group = store.find(now, asked.group_id)
    initialized = group.state_partitions.initialized if isinstance(group, ShareGroup) else {}
    return [(name, topics[name], tuple(partitions)) for name, partitions in initialized.values() if name in topics]


def _summary_request(group_id: str, topics: Mapping[UUID, list[int]]) -> summary_wire.ReadShareGroupStateSummaryRequest:
    rows = tuple(
        summary_wire.ReadStateSummaryData(
            topic_id=topic, partitions=tuple(summary_wire.PartitionData(partition=each) for each in partitions)
        )
        for topic, partitions in topics.items()
    )
    return summary_wire.ReadShareGroupStateSummaryRequest(group_id=group_id, topics=rows)


def _described(
    wanted: Iterable[Wanted], rows: Rows
) -> tuple[describe_wire.DescribeShareGroupOffsetsResponseTopic, ...]:
    """Return the rows of topics: first those that exist, each once, and then the others."""
    known: dict[str, tuple[TopicState, set[int]]] = {}
    for name, topic, partitions in wanted:
        if topic is not None:
            known.setdefault(name, (topic, set()))[1].update(partitions)
    found = [
        describe_wire.DescribeShareGroupOffsetsResponseTopic(
            topic_name=name,
            topic_id=topic.topic_id,
            partitions=tuple(
                _described_partition(each, rows.get((topic.topic_id, each)), topic.log(each))
                for each in sorted(partitions)
            ),
        )
        for name, (topic, partitions) in known.items()
    ]
    found += [
        describe_wire.DescribeShareGroupOffsetsResponseTopic(
            topic_name=name, partitions=tuple(_described_partition(each, None, None) for each in partitions)
        )
        for name, topic, partitions in wanted
        if topic is None
    ]
    return tuple(found)


def _described_partition(
    partition: int, row: summary_wire.PartitionResult | None, log: PartitionLog | None
) -> describe_wire.DescribeShareGroupOffsetsResponsePartition:
    # Kafka asks again for half a minute where an error may pass; another one is no offset
    if row is None or (row.error_code and row.error_code not in LATER):
        return describe_wire.DescribeShareGroupOffsetsResponsePartition(
            partition_index=partition, start_offset=UNKNOWN, lag=UNKNOWN
        )
    if row.error_code:
        return describe_wire.DescribeShareGroupOffsetsResponsePartition(
            partition_index=partition, start_offset=UNKNOWN, error_code=row.error_code, error_message=row.error_message
        )
    lag = UNKNOWN
    if UNKNOWN not in {row.start_offset, row.delivery_complete_count} and log is not None:
        lag = as_long(log.end - row.start_offset - row.delivery_complete_count)
    return describe_wire.DescribeShareGroupOffsetsResponsePartition(
        partition_index=partition,
        start_offset=row.start_offset,
        leader_epoch=row.leader_epoch,
        lag=lag,
    )


# -- AlterShareGroupOffsets --------------------------------------------------------------------------------------


@mutable
class _Altering:
    """A request that waits for the share coordinators of its partitions."""

    call: Call
    group_id: str
    starts: Mapping[tuple[UUID, int], int]
    response: alter_wire.AlterShareGroupOffsetsResponse

    def done(self, store: GroupStore, now: int, rows: Rows) -> None:
        """Write and answer what the share coordinators have done."""
        failed = {at: row for at, row in rows.items() if row.error_code}
        group = store.find(now, self.group_id)
        if isinstance(group, ShareGroup) and not failed and self.starts.keys() <= rows.keys():
            finished(store, group, self._topics(), succeeded=True)
        answers = tuple(
            replace(
                topic,
                partitions=tuple(
                    self._result(row, failed.get((topic.topic_id, row.partition_index))) for row in topic.partitions
                ),
            )
            for topic in self.response.responses
        )
        store.reply(self.call, replace(self.response, responses=answers))

    def _topics(self) -> dict[UUID, tuple[str, frozenset[int]]]:
        """Return the altered partitions by topic."""
        names = {topic.topic_id: topic.topic_name for topic in self.response.responses}
        return {
            topic_id: (names[topic_id], frozenset(each for topic, each in self.starts if topic == topic_id))
            for topic_id, _ in self.starts
        }

    @staticmethod
    def _result(
        row: alter_wire.AlterShareGroupOffsetsResponsePartition, failed: initialize_wire.PartitionResult | None
    ) -> alter_wire.AlterShareGroupOffsetsResponsePartition:
        if failed is None:
            return row
        # `PersisterStateManager.InitializeStateHandler`
        message = f"Error in initialize state RPC. {failed.error_message or ''}"
        return replace(row, error_code=failed.error_code, error_message=message)


def alter(store: GroupStore, now: int, call: Call, request: alter_wire.AlterShareGroupOffsetsRequest) -> None:
    """Move the start offsets of an Empty group; a topic that exists creates it, even without a partition to move.

    A topic that is given twice has one row, with all of its partitions (`AlterShareGroupOffsetsResponse.Builder`).
    """
    try:
        group = _changeable(store, now, request)
    except RefusedError as error:
        response = alter_wire.AlterShareGroupOffsetsResponse(
            error_code=error.error, error_message=error.refusal.error_message
        )
        return store.reply(call, response)
    if group is None and any(topic.topic_name in store.cluster.topics for topic in request.topics):
        group = create(store, now, request.group_id, ShareGroup)
    starts, topics, rows = _requested(store, request)
    response = alter_wire.AlterShareGroupOffsetsResponse(
        responses=tuple(
            alter_wire.AlterShareGroupOffsetsResponseTopic(
                topic_name=name, topic_id=_id_of(store.cluster.topics.get(name)), partitions=tuple(partitions)
            )
            for name, partitions in rows.items()
        )
    )
    if group is None or not topics:
        return store.reply(call, response)
    why = Reason(Cause.FORCED, f"The offsets of share group {group.id} are being altered.")
    records = [state_partitions_record(group.id, begun(group.state_partitions, topics))]
    epoch = group.epoch

    def written(store: GroupStore, _group: object, error: Error) -> None:
        if error is not Error.NONE:
            return store.reply(call, alter_wire.AlterShareGroupOffsetsResponse(error_code=error))
        if not starts:
            return store.reply(call, response)
        negative = next((at for at in starts if at[1] < 0), None)
        if negative is not None:
            # `DefaultStatePersister.validateGroupTopicPartitionData`
            place = f"{request.group_id} {uuid_text(negative[0])} {negative[1]}"
            message = f"Initialize share group parameters has invalid partitionId - {place}"
            failed = alter_wire.AlterShareGroupOffsetsResponse(
                error_code=Error.UNKNOWN_SERVER_ERROR, error_message=message
            )
            return store.reply(call, failed)
        altering = _Altering(call, request.group_id, starts, response)
        return ask(store, now, request.group_id, starts, initialization(request.group_id, epoch, starts), altering.done)

    return write(store, group, records, why, completed=written)


def _requested(
    store: GroupStore, request: alter_wire.AlterShareGroupOffsetsRequest
) -> tuple[
    dict[tuple[UUID, int], int],
    dict[UUID, tuple[str, frozenset[int]]],
    dict[str, list[alter_wire.AlterShareGroupOffsetsResponsePartition]],
]:
    """Return the start offsets, the existing topics with the partitions to begin, and the rows by topic."""
    starts: dict[tuple[UUID, int], int] = {}
    topics: dict[UUID, tuple[str, frozenset[int]]] = {}
    rows: dict[str, list[alter_wire.AlterShareGroupOffsetsResponsePartition]] = {}
    for asked in sorted(request.topics, key=lambda topic: topic.topic_name in store.cluster.topics):
        topic = store.cluster.topics.get(asked.topic_name)
        altered = []
        for row in asked.partitions:
            exists = topic is not None and row.partition_index < len(topic.logs)
            if topic is not None and exists:
                starts[topic.topic_id, row.partition_index] = row.start_offset
            altered.append(_altered(row.partition_index, exists=exists))
        if topic is not None:
            existing = frozenset(row.partition_index for row in altered if not row.error_code)
            topics[topic.topic_id] = topic.name, existing
        if topic is not None or altered:
            rows.setdefault(asked.topic_name, []).extend(altered)
    return starts, topics, rows


def _id_of(topic: TopicState | None) -> UUID:
    return ZERO_UUID if topic is None else topic.topic_id


def _changeable(store: GroupStore, now: int, request: A) -> ShareGroup | None:
    """Return the group of a request that only an Empty share group serves, or None for one that does not exist.

    Raises RefusedError with UNSUPPORTED_VERSION, INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP or an error of
    the coordinator.
    """
    error = store.status(request.group_id) if request.group_id else Error.INVALID_GROUP_ID
    message = "" if request.group_id else "The group id is invalid."
    if not store.cluster.features.serves_share_groups:
        error, message = Error.UNSUPPORTED_VERSION, ""
    group = store.find(now, request.group_id) if error is Error.NONE else None
    if group is not None and not isinstance(group, ShareGroup):
        error, message = Error.GROUP_ID_NOT_FOUND, f"Group {request.group_id} is not a share group."
    elif group is not None and group.members:
        error, message = Error.NON_EMPTY_GROUP, "The group is not empty."
    if error is not Error.NONE:
        raise RefusedError(Refusal(error, message))
    return group if isinstance(group, ShareGroup) else None


def _altered(partition: int, *, exists: bool) -> alter_wire.AlterShareGroupOffsetsResponsePartition:
    if exists:
        return alter_wire.AlterShareGroupOffsetsResponsePartition(partition_index=partition)
    return alter_wire.AlterShareGroupOffsetsResponsePartition(
        partition_index=partition, error_code=Error.UNKNOWN_TOPIC_OR_PARTITION, error_message=NO_PARTITION
    )


# -- DeleteShareGroupOffsets and DeleteGroups ---------------------------------------------------------------------


def delete(store: GroupStore, now: int, call: Call, request: delete_wire.DeleteShareGroupOffsetsRequest) -> None:
    """Delete the state of topics of an Empty group; the group stays.

    A group without a record of state has no rows. Kafka:
    `GroupMetadataManager.sharePartitionsEligibleForOffsetDeletion`.
    """
    try:
        group = _existing(store, now, request)
    except RefusedError as error:
        response = delete_wire.DeleteShareGroupOffsetsResponse(
            error_code=error.error, error_message=error.refusal.error_message
        )
        return store.reply(call, response)
    if not group.has_state_record:
        return store.reply(call, delete_wire.DeleteShareGroupOffsetsResponse())
    state = group.state_partitions
    having: dict[UUID, str] = {}
    refused: list[delete_wire.DeleteShareGroupOffsetsResponseTopic] = []
    for asked in request.topics:
        topic = store.cluster.topics.get(asked.topic_name)
        if topic is not None and (topic.topic_id in state.initialized or topic.topic_id in state.deleting):
            having[topic.topic_id] = topic.name
        else:
            refused.append(_without_offsets(asked.topic_name, topic))
    rows = (
        *(delete_wire.DeleteShareGroupOffsetsResponseTopic(topic_name=having[each], topic_id=each) for each in having),
        *refused,
    )
    response = delete_wire.DeleteShareGroupOffsetsResponse(responses=rows)
    if not having:
        why = Reason(Cause.REMOVED, f"No state of share group {group.id} is to be deleted.")
        return write(store, group, [state_partitions_record(group.id, state)], why, (call, response))

    def done(store: GroupStore, error: Error, message: str | None) -> None:
        if error is Error.NONE:
            current = group.state_partitions
            left = {topic: name for topic, name in current.deleting.items() if topic not in having}
            record = state_partitions_record(group.id, replace(current, deleting=left))
            why = Reason(Cause.REMOVED, f"The state of share group {group.id} is deleted.")
            return write(store, group, [record], why, (call, response))
        results = tuple(
            row if row.error_code else replace(row, topic_id=ZERO_UUID, error_code=error, error_message=message)
            for row in rows
        )
        return store.reply(call, replace(response, responses=results))

    return _delete_state(store, now, group, having, state.initializing, done)


def _existing(store: GroupStore, now: int, request: delete_wire.DeleteShareGroupOffsetsRequest) -> ShareGroup:
    """Return the Empty group of a request. Raises RefusedError as `_changeable`, or with GROUP_ID_NOT_FOUND."""
    group = _changeable(store, now, request)
    if group is None:
        raise RefusedError(Refusal(Error.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found."))
    return group


def _without_offsets(name: str, topic: TopicState | None) -> delete_wire.DeleteShareGroupOffsetsResponseTopic:
    message = NO_PARTITION if topic is None else NO_OFFSETS
    return delete_wire.DeleteShareGroupOffsetsResponseTopic(
        topic_name=name, error_code=Error.UNKNOWN_TOPIC_OR_PARTITION, error_message=message
    )


def delete_group(store: GroupStore, group: ShareGroup, answers: Iterable[Answer]) -> None:
    """Remove an Empty group: first its state at the share coordinators, then its records."""
    state = group.state_partitions
    topics = {
        **{topic: name for topic, (name, _) in (*state.initializing.items(), *state.initialized.items())},
        **state.deleting,
    }
    kept = [*answers]

    def done(store: GroupStore, error: Error, _message: str | None) -> None:
        current = store.groups.get(group.id)
        if error is Error.NONE and current is group and not group.members:
            return store.delete_empty_group(group, kept)
        for call, answer in kept:
            store.reply(call, answer(error if error is not Error.NONE else Error.NON_EMPTY_GROUP))
        return None

    if topics:
        return _delete_state(store, store.node_time(group), group, topics, {}, done)
    return store.delete_empty_group(group, kept)


def _delete_state(
    store: GroupStore,
    now: int,
    group: ShareGroup,
    topics: Mapping[UUID, str],
    initializing: StateTopics,
    done: Callable[[GroupStore, Error, str | None], None],
) -> None:
    """Write that the state of topics is to be deleted, and let the share coordinators delete it.

    `initializing` are the topics that go on being initialized.
    """
    state = group.state_partitions
    partitions = [
        (topic, each)
        for topic in topics
        for each in range(len(store.cluster.topics.by_id[topic].logs) if topic in store.cluster.topics.by_id else 0)
    ]
    during = replace(
        state,
        initializing=initializing,
        initialized={topic: row for topic, row in state.initialized.items() if topic not in topics},
        deleting={**state.deleting, **topics},
    )
    why = Reason(Cause.REMOVED, f"The state of share group {group.id} is being deleted.")

    def written(store: GroupStore, _group: object, error: Error) -> None:
        if error is not Error.NONE:
            return done(store, store.dialect.group_write_error(error), None)
        return ask(store, now, group.id, partitions, (0, partial(_deletion_request, group.id)), deleted)

    def deleted(store: GroupStore, now: int, rows: Rows) -> None:
        if store.groups.get(group.id) is not group:
            # another node coordinates the group now
            return done(store, Error.NOT_COORDINATOR, None)
        failed = next((row for row in rows.values() if row.error_code), None)
        if len(rows) < len(partitions):
            return done(store, Error.COORDINATOR_NOT_AVAILABLE, None)
        if failed is not None:
            return done(store, Error(failed.error_code), failed.error_message)
        store.touch(now, group)
        return done(store, Error.NONE, None)

    write(store, group, [state_partitions_record(group.id, during)], why, completed=written)


def _deletion_request(
    group_id: str, topics: Mapping[UUID, list[int]]
) -> delete_state_wire.DeleteShareGroupStateRequest:
    rows = tuple(
        delete_state_wire.DeleteStateData(
            topic_id=topic, partitions=tuple(delete_state_wire.PartitionData(partition=each) for each in partitions)
        )
        for topic, partitions in topics.items()
    )
    return delete_state_wire.DeleteShareGroupStateRequest(group_id=group_id, topics=rows)
