"""Online migration: a classic group becomes a consumer group, and a consumer group a classic one (KIP-848).

Kafka: `GroupMetadataManager.validateOnlineUpgrade`, `convertToConsumerGroup`, `convertToClassicGroup`,
`ConsumerGroup.fromClassicGroup`, `ClassicGroup.fromConsumerGroup`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_group_records import ClassicMemberMetadata, ClassicProtocol
from koordinator.wire.messages.consumer_protocol import (
    NEWEST,
    ConsumerProtocolAssignment,
    TopicPartition,
    read_assignment,
    read_subscription,
    write_assignment,
)
from koordinator.wire.primitives import InvalidLength, Malformed

from ...effects import StateChanged
from ...java.hash_tables import HashTable
from ...journal import Journal
from ...refusal import Refusal, RefusedError
from ..causes import Cause, Reason
from ..classic import rebalance
from ..classic.group import ClassicGroup, ClassicMember
from ..commit import GroupWrite, or_error
from ..group import CONSUMER
from ..records import group_record as classic_group_record
from ..records import group_tombstone, new_group_record
from .member import ConsumerMember, sorted_names
from .records import (
    current_record,
    group_record,
    group_tombstones,
    member_record,
    member_tombstones,
    target_epoch_record,
    target_record,
)
from .topics import metadata_hash

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from uuid import UUID

    from koordinator.wire.apis import Message

    from ...effects import Answer, Call
    from ..group import BaseGroup
    from ..group_store import GroupStore
    from ..records import CoordinatorRecord
    from .group import ConsumerGroup
    from .member import Partitions
    from .progress import Progress

BIDIRECTIONAL, UPGRADE, DOWNGRADE, DISABLED = "bidirectional", "upgrade", "downgrade", "disabled"
"""The values of `group.consumer.migration.policy`."""


def upgrade(store: GroupStore, now: int, classic: ClassicGroup) -> ConsumerGroup:
    """Convert a classic group with members; its parked requests get REBALANCE_IN_PROGRESS.

    The records of the conversion are written with those of the member that joins. Raises RefusedError with 69; or with
    -1 for a group without a generation, or with a member that lacks its protocol, whose parked requests are answered
    all the same.
    """
    _check_upgrade(store, classic)
    for classic_member in classic.members.values():
        again = Error.REBALANCE_IN_PROGRESS
        store.reply(classic.take_join(classic_member), rebalance.join_error(again, classic_member.id))
        rebalance.reply_to_sync(store, classic, classic_member, rebalance.sync_error(again))
    if classic.protocol_name is None:
        raise RefusedError(Refusal(Error.UNKNOWN_SERVER_ERROR, ""))
    members = [_upgraded(store, classic, classic.members[member_id]) for member_id in HashTable(classic.members)]
    group = store.create_consumer_group(now, classic.id)
    group.epoch = group.target_epoch = classic.generation
    journal = Journal()
    for member in members:
        group.replay(member_record(group.id, member), journal)
    names = {name for member in members for name in member.names}
    code = metadata_hash(store.cluster, names) if store.dialect.hashes_topics else 0
    ordered = [next(each for each in members if each.id == stored.id) for stored in group.ordered_members()]
    with_epochs = store.dialect.partitions_have_epochs
    records = [
        *(member_record(group.id, member) for member in ordered),
        group_record(group.id, classic.generation, code),
        *(target_record(group.id, member.id, _target(member.assigned)) for member in ordered),
        target_epoch_record(group.id, classic.generation, 0),
        *(current_record(group.id, member, with_epochs=with_epochs) for member in ordered),
    ]
    for record in records[len(ordered) :]:
        group.replay(record, journal)
    group.put_in_order(member.id for member in members)
    store.replace_group(classic, group)
    group.origin = classic, (group_tombstone(classic), *records)
    group.noted_state = group.state
    for member in members:
        assert member.classic is not None
        timeout_ms = member.classic.session_timeout_ms
        group.timers.set(member.session, group.now + timeout_ms)
        group.hear(member.id, classic.members[member.id].last_call, store.node_time(group), timeout_ms)
    text = f"Upgraded classic group {group.id} to a consumer group."
    states = (classic.state_name, group.state_name)
    store.emit(StateChanged(group.id, group.now, *states, group.generation, Cause.GROUP_UPGRADE.value, text))
    return group


def _check_upgrade(store: GroupStore, classic: ClassicGroup) -> None:
    settings = store.settings
    if store.migration_policy not in (UPGRADE, BIDIRECTIONAL):
        raise _cannot_upgrade(classic, "online upgrade is disabled.")
    if classic.protocol_type != CONSUMER:
        raise _cannot_upgrade(classic, "the group does not use the consumer embedded protocol.")
    if len(classic.members) > settings.group_consumer_max_size:
        raise _cannot_upgrade(classic, "the group size exceeds the consumer group maximum size.")


def _cannot_upgrade(classic: ClassicGroup, reason: str) -> RefusedError:
    text = f"Cannot upgrade classic group {classic.id} to consumer group because {reason}"
    return RefusedError(Refusal(Error.GROUP_ID_NOT_FOUND, text))


def _upgraded(store: GroupStore, classic: ClassicGroup, member: ClassicMember) -> ConsumerMember:
    """Return a classic member as one of a consumer group, with its last assignment at the group's generation.

    Raises RefusedError: 69 if its data cannot be converted, -1 if it does not support the group's protocol, or where
    Kafka's parser fails in a way that its coordinator does not expect.
    """
    if classic.protocol_name not in dict(member.protocols):
        raise RefusedError(Refusal(Error.UNKNOWN_SERVER_ERROR, ""))
    try:
        assignment = read_assignment(member.assignment) if member.assignment else ConsumerProtocolAssignment()
        subscription = read_subscription(member.metadata(classic.protocol_name))
    except InvalidLength:
        raise RefusedError(Refusal(Error.UNKNOWN_SERVER_ERROR, "")) from None
    except Malformed:
        raise _cannot_upgrade(classic, "the embedded consumer protocol is malformed.") from None
    if assignment.user_data:
        raise _cannot_upgrade(
            classic,
            "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
            "assignor before re-attempting the upgrade.",
        )
    epoch, topics = classic.generation, store.cluster.topics
    return ConsumerMember(
        id=member.id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        names=sorted_names(subscription.topics),
        classic=ClassicMemberMetadata(
            session_timeout_ms=member.session_timeout_ms,
            supported_protocols=tuple(
                ClassicProtocol(name=name, metadata=metadata) for name, metadata in member.protocols
            ),
        ),
        epoch=epoch,
        previous_epoch=epoch,
        assigned={
            topics[row.topic].topic_id: dict.fromkeys(row.partitions, epoch)
            for row in assignment.assigned_partitions
            if row.topic in topics and row.partitions
        },
    )


def _target(assigned: Partitions) -> dict[UUID, tuple[int, ...]]:
    return {topic: tuple(partitions) for topic, partitions in assigned.items()}


def may_downgrade(store: GroupStore, group: ConsumerGroup, leaving: Collection[str], joining: int = 0) -> bool:
    """Return whether only classic members stay behind, so that the group becomes a classic one."""
    staying = [member for member in group.members.values() if member.id not in leaving]
    is_last = joining == 0 or any(group.members[member_id].classic is None for member_id in leaving)
    return (
        is_last
        and len(staying) + joining > 0
        and all(member.classic is not None for member in staying)
        and store.migration_policy in (DOWNGRADE, BIDIRECTIONAL)
        and len(staying) + joining <= store.settings.group_max_size
    )


def downgrade(
    store: GroupStore,
    group: ConsumerGroup,
    leaving: Collection[str],
    why: Reason,
    waiting: tuple[Call | None, Message | None],
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
    store.transition(classic, Reason(Cause.GROUP_DOWNGRADE, text))
    currents, of_targets, subscriptions = zip(*(member_tombstones(group.id, [each]) for each in listed), strict=True)
    target_epoch, *epochs = group_tombstones(group.id, group.patterns)
    records += [
        *currents,
        *of_targets,
        target_epoch,
        *subscriptions,
        *epochs,
        classic_group_record(classic, assignments),
    ]
    _write_downgrade(store, group, classic, records, or_error(store, *waiting))
    for each in classic.members.values():
        store.restart_session(classic, each)
    if joining is None or joining.is_outdated:
        rebalance.prepare(store, classic, Reason(Cause.GROUP_DOWNGRADE, text))


def make_way(store: GroupStore, now: int, group: ConsumerGroup) -> ClassicGroup:
    """Put a new classic group in the place of an Empty consumer group; the offsets stay."""
    classic = store.create(now, group.id)
    store.replace_group(group, classic)
    records = [*group_tombstones(group.id, group.patterns), new_group_record(classic)]
    _write_downgrade(store, group, classic, records)
    return classic


def _write_downgrade(
    store: GroupStore,
    group: ConsumerGroup,
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
    topics = store.cluster.topics_by_id
    rows = tuple(
        TopicPartition(topic=topics[topic].name, partitions=tuple(HashTable(partitions[topic])))
        for topic in HashTable(partitions)
        if topic in topics
    )
    version = min(max(int.from_bytes(subscription[:2], "big", signed=True), 0), NEWEST)
    return write_assignment(ConsumerProtocolAssignment(assigned_partitions=rows, user_data=None), version)
