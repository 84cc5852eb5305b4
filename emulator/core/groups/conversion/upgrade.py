"""A classic group becomes a consumer group (KIP-848).

Kafka: `GroupMetadataManager.validateOnlineUpgrade`, `convertToConsumerGroup`, `ConsumerGroup.fromClassicGroup`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_group_records import ClassicMemberMetadata, ClassicProtocol
from koordinator.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    read_assignment,
    read_subscription,
)
from koordinator.wire.primitives import InvalidLength, Malformed

from ...java.hash_tables import HashTable
from ...journal import Journal
from ...refusal import refused
from ..causes import Cause
from ..classic import rebalance
from ..classic.records import group_tombstone
from ..consumer.group import ConsumerGroup
from ..consumer.member import ConsumerMember
from ..consumer.records import RECORD_TYPES, current_record, group_record, member_record, target_record
from ..facts import StateChanged
from ..group import CONSUMER
from ..modern.loading import create
from ..modern.member import sorted_names
from ..modern.topics import metadata_hash
from .policy import BIDIRECTIONAL, UPGRADE, migration_policy

if TYPE_CHECKING:
    from uuid import UUID

    from ...refusal import RefusedError
    from ..classic.group import ClassicGroup, ClassicMember
    from ..consumer.member import Partitions
    from ..group_store import GroupStore


def upgrade(store: GroupStore, now: int, classic: ClassicGroup) -> ConsumerGroup:
    """Convert a classic group with members; its parked requests get REBALANCE_IN_PROGRESS.

    The records of the conversion are written with those of the member that joins. Raises RefusedError with
    GROUP_ID_NOT_FOUND; or with UNKNOWN_SERVER_ERROR for a group without a generation, with a member that lacks its
    protocol, or with a partition of two members. The parked requests are answered all the same.
    """
    _check_upgrade(store, classic)
    for classic_member in classic.members.values():
        again = Error.REBALANCE_IN_PROGRESS
        store.reply(classic.take_join(classic_member), rebalance.join_error(again, classic_member.id))
        rebalance.reply_to_sync(store, classic, classic_member, rebalance.sync_error(again))
    if classic.protocol_name is None:
        raise refused(Error.UNKNOWN_SERVER_ERROR)
    members = _upgraded_members(store, classic)
    group = create(store, now, classic.id, ConsumerGroup)
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
        RECORD_TYPES.target_epoch_record(group.id, classic.generation, 0),
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
        heard = group.members[member.id].heard
        heard.call, heard.timeout_ms = classic.members[member.id].last_call, timeout_ms
        heard.began_ms = store.node_time(group)
    text = f"Upgraded classic group {group.id} to a consumer group."
    states = (classic.state_name, group.state_name)
    store.emit(StateChanged(group.id, group.now, *states, group.generation, Cause.GROUP_UPGRADE.value, text))
    return group


def _check_upgrade(store: GroupStore, classic: ClassicGroup) -> None:
    settings = store.settings
    if migration_policy(store) not in (UPGRADE, BIDIRECTIONAL):
        raise _cannot_upgrade(classic, "online upgrade is disabled.")
    if classic.protocol_type != CONSUMER:
        raise _cannot_upgrade(classic, "the group does not use the consumer embedded protocol.")
    if len(classic.members) > settings.group_consumer_max_size:
        raise _cannot_upgrade(classic, "the group size exceeds the consumer group maximum size.")


def _cannot_upgrade(classic: ClassicGroup, reason: str) -> RefusedError:
    text = f"Cannot upgrade classic group {classic.id} to consumer group because {reason}"
    return refused(Error.GROUP_ID_NOT_FOUND, text)


def _upgraded_members(store: GroupStore, classic: ClassicGroup) -> list[ConsumerMember]:
    """Return the members in the order of Kafka's table; raises as `_upgraded` does, at the first that it refuses.

    It refuses with UNKNOWN_SERVER_ERROR, too, if the leader gave a partition to two of them (Kafka:
    `ConsumerGroup.addPartitionEpochs`).
    """
    members: list[ConsumerMember] = []
    given: set[tuple[UUID, int]] = set()
    for member_id in HashTable(classic.members):
        member = _upgraded(store, classic, classic.members[member_id])
        held = {(topic, partition) for topic, partitions in member.assigned.items() for partition in partitions}
        if held & given:
            raise refused(Error.UNKNOWN_SERVER_ERROR)
        given |= held
        members.append(member)
    return members


def _upgraded(store: GroupStore, classic: ClassicGroup, member: ClassicMember) -> ConsumerMember:
    """Return a classic member as one of a consumer group, with its last assignment at the group's generation.

    Raises RefusedError with GROUP_ID_NOT_FOUND if its data cannot be converted, and with UNKNOWN_SERVER_ERROR if it
    does not support the group's protocol, or where Kafka's parser fails in a way that its coordinator does not expect.
    """
    if classic.protocol_name not in dict(member.protocols):
        raise refused(Error.UNKNOWN_SERVER_ERROR)
    try:
        assignment = read_assignment(member.assignment) if member.assignment else ConsumerProtocolAssignment()
        subscription = read_subscription(member.metadata(classic.protocol_name))
    except Malformed as malformed:
        if isinstance(malformed, InvalidLength) and store.dialect.fails_at_invalid_lengths:
            raise refused(Error.UNKNOWN_SERVER_ERROR) from None
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
