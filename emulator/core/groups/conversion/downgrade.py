"""A consumer group becomes a classic one (KIP-848).

Kafka: `GroupMetadataManager.validateOnlineDowngrade`, `convertToClassicGroup`, `ClassicGroup.fromConsumerGroup`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_protocol import (
    NEWEST,
    ConsumerProtocolAssignment,
    TopicPartition,
    write_assignment,
)

from ...java.hash_tables import HashTable
from ...journal import Journal
from ..causes import Cause, Reason
from ..classic import rebalance
from ..classic.changes import create, restart_session, transition
from ..classic.group import ClassicGroup, ClassicMember
from ..classic.records import group_record, new_group_record
from ..commit import GroupWrite, or_error
from ..consumer.records import RECORD_TYPES, group_tombstones
from ..group import CONSUMER
from .policy import BIDIRECTIONAL, DOWNGRADE, migration_policy

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from uuid import UUID

    from ...effects import Answer
    from ..consumer.group import ConsumerGroup
    from ..consumer.member import ConsumerMember
    from ..consumer.progress import Progress
    from ..group import BaseGroup
    from ..group_store import GroupStore
    from ..modern.changes import Answer as WriteAnswer
    from ..records import CoordinatorRecord


def may_downgrade(store: GroupStore, group: ConsumerGroup, leaving: Collection[str], joining: int = 0) -> bool:
    """Return whether only classic members stay behind, so that the group becomes a classic one."""
    staying = [member for member in group.members.values() if member.id not in leaving]
    is_last = joining == 0 or any(group.members[member_id].classic is None for member_id in leaving)
    return (
        is_last
        and len(staying) + joining > 0
        and all(member.classic is not None for member in staying)
        and migration_policy(store) in (DOWNGRADE, BIDIRECTIONAL)
        and len(staying) + joining <= store.settings.group_max_size
    )


def downgrade(
    store: GroupStore,
    group: ConsumerGroup,
    leaving: Collection[str],
    why: Reason,
    answer: WriteAnswer,
    joining: Progress | None = None,
) -> None:
    """Convert a consumer group to a classic one, in the generation of the group epoch.

    It rebalances, unless the last static member of the consumer protocol joins as a classic one (`joining`) while the
    target is up to date. The response waits for the write.
    """
    classic = ClassicGroup(group.id, group.partition, group.clock, store.node_time(group))
    members = [member for member in group.ordered_members() if member.id not in leaving]
    records: list[CoordinatorRecord] = []
    targets = dict(group.targets)
    listed = [member.id for member in group.ordered_members()]
    if joining is not None:
        successor, records = joining.member, joining.records
        members.append(successor)
        (replaced_id,) = leaving
        targets[successor.id] = targets.get(replaced_id, {})
        listed = [successor.id if member_id == replaced_id else member_id for member_id in listed]
    for member in members:
        classic.add(_downgraded(member))
    classic.generation = group.epoch
    classic.use_protocol(classic.select_protocol(store.dialect.vote_order))
    assignments: dict[str, bytes] = {}
    for each in classic.members.values():
        metadata = each.metadata(classic.protocol_name)
        each.assignment = assignments[each.id] = assignment_of(store, metadata, targets.get(each.id, {}))
    store.replace_group(group, classic)
    classic.stored = True
    for member_id in leaving:
        if member_id not in classic.members:
            store.member_changed(group, group.members[member_id], "removed", why)
    text = f"Downgrade group {group.id} from consumer to classic."
    transition(store, classic, Reason(Cause.GROUP_DOWNGRADE, text))
    currents, of_targets, subscriptions = zip(
        *(RECORD_TYPES.member_tombstones(group.id, [each]) for each in listed), strict=True
    )
    target_epoch, *epochs = group_tombstones(group.id, group.patterns)
    records += [
        *currents,
        *of_targets,
        target_epoch,
        *subscriptions,
        *epochs,
        group_record(classic, assignments),
    ]
    _write_downgrade(store, group, classic, records, or_error(store, *(answer or (None, None))))
    for each in classic.members.values():
        restart_session(store, classic, each)
    if joining is None or joining.is_outdated:
        rebalance.prepare(store, classic, Reason(Cause.GROUP_DOWNGRADE, text))


def make_way(store: GroupStore, group: BaseGroup) -> ClassicGroup:
    """Put a new classic group in the place of an Empty group of another kind; the offsets stay."""
    classic = create(store, store.node_time(group), group.id)
    store.replace_group(group, classic)
    records = [*group.tombstones(store.dialect), new_group_record(classic)]
    _write_downgrade(store, group, classic, records)
    return classic


def _write_downgrade(
    store: GroupStore,
    group: BaseGroup,
    classic: ClassicGroup,
    records: Sequence[CoordinatorRecord],
    answers: Iterable[Answer] = (),
) -> None:
    journal = Journal()
    journal.note(partial(store.replace_group, classic, group))
    store.append(GroupWrite(classic, records, list(answers), journal, _downgraded_group))


def _downgraded_group(store: GroupStore, group: BaseGroup, error: Error) -> None:
    """Answer what is parked in a classic group whose records could not be written."""
    if error is not Error.NONE and isinstance(group, ClassicGroup):
        code = store.dialect.group_write_error(error)
        for member in group.members.values():
            store.reply(group.take_join(member), rebalance.join_error(code, ""))
            rebalance.reply_to_sync(store, group, member, rebalance.sync_error(code))


def _downgraded(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None, "only classic members stay behind"
    return ClassicMember(
        id=member.id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.classic.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocol_type=CONSUMER,
        protocols=tuple((each.name, each.metadata) for each in member.classic.supported_protocols),
        last_call=member.last_call,
    )


def assignment_of(store: GroupStore, subscription: bytes, partitions: Mapping[UUID, Iterable[int]]) -> bytes:
    """Return an assignment for a classic member, in the version of its own subscription, without user data."""
    topics = store.cluster.topics.by_id
    rows = tuple(
        TopicPartition(topic=topics[topic].name, partitions=tuple(HashTable(partitions[topic])))
        for topic in HashTable(partitions)
        if topic in topics
    )
    version = min(max(int.from_bytes(subscription[:2], "big", signed=True), 0), NEWEST)
    return write_assignment(ConsumerProtocolAssignment(assigned_partitions=rows, user_data=None), version)
