"""A consumer group: the state that its records describe. Every change is a record that is replayed.

Kafka: `ConsumerGroup`, and the `replay` methods of `GroupMetadataManager`.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from koordinator.wire.messages import consumer_group_records as wire

from ...java.hash_tables import TimelineTable
from ..group import CONSUMER
from ..modern.group import ModernGroup
from .member import ConsumerMember, MemberState
from .records import group_tombstones

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from uuid import UUID

    from koordinator.wire.messages.offsets_topic import OffsetCommitValue

    from ...clock import GroupClock
    from ...data.topic import TopicState
    from ...dialect import Dialect
    from ...effects import Call
    from ...journal import Journal
    from ..group import BaseGroup
    from ..records import CoordinatorRecord
    from .assignment import Target


class ConsumerGroupState(Enum):
    """The states of Kafka's `ConsumerGroup.ConsumerGroupState`."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerGroup(ModernGroup[ConsumerMember]):
    """A group of the consumer protocol (KIP-848)."""

    kind = CONSUMER

    def __init__(self, group_id: str, partition: int, clock: GroupClock, now: int, dialect: Dialect) -> None:
        super().__init__(group_id, partition, clock, now, dialect)
        self._forgets_instance_ids = dialect.given_up_instance_ids_are_free
        self.topics: tuple[wire.TopicMetadata, ...] = ()
        """The topics that the group has seen, up to 4.0; later `metadata_hash` stands for them."""
        self.targets: dict[str, Target] = {}
        self.former_static_members: dict[str, str] = {}
        """The last owner of each instance id that a member gave up for another one. Before 4.4 Kafka's table keeps such
        an entry even after its member is gone (`ConsumerGroup.updateStaticMember`)."""
        self.held: set[tuple[UUID, int]] = set()
        """The partitions that some member has, assigned or pending revocation."""
        self.patterns: dict[str, wire.ConsumerGroupRegularExpressionValue] = {}
        """The topics of each resolved regular expression."""
        self.resolving_call: Call | None = None
        """The request after which the regular expressions are resolved: topics that its client may not describe are
        left out."""
        self.subscribers: dict[str, int] = {}
        """The number of members with each regular expression that has any."""
        self.origin: tuple[BaseGroup, tuple[CoordinatorRecord, ...]] | None = None
        """The classic group in whose place this one is, and the records of the conversion, until the first request
        writes them before its own."""
        self.noted_state = ConsumerGroupState.EMPTY
        """The state in the trace."""

    @property
    def state(self) -> ConsumerGroupState:
        """The state, which follows from the epochs (`ConsumerGroup.maybeUpdateGroupState`)."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        if not all(map(self.is_settled, self.members.values())):
            return ConsumerGroupState.RECONCILING
        return ConsumerGroupState.STABLE

    def is_settled(self, member: ConsumerMember) -> bool:
        """Return whether a member has its target."""
        return member.state is MemberState.STABLE and member.epoch == self.target_epoch

    @property
    def is_unused(self) -> bool:
        """Whether the group has no members and no offsets; commits may be in flight."""
        return not (self.members or self.offsets or self.pending_offsets)

    def put_in_order(self, member_ids: Iterable[str]) -> None:
        """Put the members into a new table, whose order follows from this one."""
        self._order = TimelineTable(member_ids)

    def is_subscribed(self, topic: str) -> bool:
        """Return whether a member subscribes to a topic."""
        return any(topic in self.topics_of(member) for member in self.members.values())

    def subscribed_topics(self, member_id: str) -> Collection[str]:
        """Return the topics that a member subscribes to, by name or by a resolved pattern."""
        return self.topics_of(self.members[member_id])

    def partitions_of(self, member_id: str, topics: Mapping[UUID, TopicState]) -> dict[str, list[int]]:
        """Return the assigned partitions of a member by topic, sorted."""
        assigned = self.members[member_id].assigned
        return {topics[topic].name: sorted(assigned[topic]) for topic in assigned if topic in topics}

    @property
    def unsettled(self) -> list[str]:
        """The ids of the members without their target."""
        return [each.id for each in self.members.values() if not self.is_settled(each)]

    def is_awaited(self, member_id: str) -> bool:
        """Return whether a member has not reached its target yet."""
        return not self.is_settled(self.members[member_id])

    def has_quiet_heartbeats(self, topics_version: int) -> bool:
        """Return whether heartbeats change nothing but sessions: they also notice changed topics."""
        has_patterns = any(member.regex for member in self.members.values())
        return self.state is ConsumerGroupState.STABLE and self.has_seen_topics(topics_version) and not has_patterns

    def unused_since(self, topic: str, committed: OffsetCommitValue, dialect: Dialect) -> int | None:
        """Return the time of a commit, unless a member subscribes to its topic."""
        del dialect
        return None if self.is_subscribed(topic) else committed.commit_timestamp

    def tombstones(self, dialect: Dialect) -> list[CoordinatorRecord]:
        """Return the records that delete the group while it is Empty."""
        del dialect
        return group_tombstones(self.id, self.patterns)

    def topics_of(self, member: ConsumerMember) -> Collection[str]:
        """Return the topics that a member subscribes to, by name or by a resolved pattern."""
        found = self.matches(member.regex)
        return {*member.names, *found} if found else member.names

    def matches(self, pattern: str) -> tuple[str, ...]:
        """Return the topics of a resolved pattern, sorted; none if it is not resolved."""
        resolved = self.patterns.get(pattern)
        return () if resolved is None else resolved.topics

    def owner_of(self, instance_id: str) -> str | None:
        """Return the member id that Kafka's table has for an instance id; the member may be gone."""
        return self.static_members.get(instance_id) or self.former_static_members.get(instance_id)

    def replay(self, record: CoordinatorRecord, journal: Journal) -> None:  # noqa: C901, PLR0912 - one case for each record
        """Apply a record; one of a member that does not exist creates it. The journal gets what it replaces."""
        match record.key, record.value:
            case wire.ConsumerGroupPartitionMetadataKey(), value:
                topics = value.topics if isinstance(value, wire.ConsumerGroupPartitionMetadataValue) else ()
                journal.set(self, "topics", topics)
            case wire.ConsumerGroupMetadataKey(), wire.ConsumerGroupMetadataValue() as value:
                journal.set(self, "epoch", value.epoch)
                journal.set(self, "metadata_hash", value.metadata_hash)
            case (
                wire.ConsumerGroupTargetAssignmentMetadataKey(),
                wire.ConsumerGroupTargetAssignmentMetadataValue() as v,
            ):
                journal.set(self, "target_epoch", v.assignment_epoch)
                journal.set(self, "target_time", v.assignment_timestamp)
            case wire.ConsumerGroupMemberMetadataKey() as key, wire.ConsumerGroupMemberMetadataValue() as value:
                self._put_member(_subscribed(self._member(key.member_id), value), journal)
            case wire.ConsumerGroupMemberMetadataKey() as key, None:
                self._remove_member(key.member_id, journal)
            case (
                wire.ConsumerGroupTargetAssignmentMemberKey() as key,
                wire.ConsumerGroupTargetAssignmentMemberValue() as v,
            ):
                target = {row.topic_id: tuple(row.partitions) for row in v.topic_partitions}
                journal.put(self.targets, key.member_id, target)
            case wire.ConsumerGroupTargetAssignmentMemberKey() as key, None:
                journal.pop(self.targets, key.member_id)
            case (
                wire.ConsumerGroupCurrentMemberAssignmentKey() as key,
                wire.ConsumerGroupCurrentMemberAssignmentValue() as v,
            ):
                self._put_member(_reconciled(self._member(key.member_id), v), journal)
            case wire.ConsumerGroupCurrentMemberAssignmentKey() as key, None:
                if key.member_id in self.members:
                    self._put_member(_reset(self.members[key.member_id]), journal)
            case wire.ConsumerGroupRegularExpressionKey() as key, wire.ConsumerGroupRegularExpressionValue() as value:
                journal.put(self.patterns, key.regular_expression, value)
            case wire.ConsumerGroupRegularExpressionKey() as key, None:
                journal.pop(self.patterns, key.regular_expression)
            case _:
                pass

    def _member(self, member_id: str) -> ConsumerMember:
        return self.members.get(member_id) or ConsumerMember(member_id)

    def _put_member(self, member: ConsumerMember, journal: Journal) -> None:
        before = self.members.get(member.id)
        if before is not None:
            # another member may have taken the instance id over
            is_own = self.static_members.get(before.instance_id or "") == before.id
            if before.instance_id is not None and before.instance_id != member.instance_id and is_own:
                journal.pop(self.static_members, before.instance_id)
                if not self._forgets_instance_ids:
                    journal.put(self.former_static_members, before.instance_id, before.id)
        self._replace(before, member, journal)
        journal.put(self.members, member.id, member)
        self._order.put(member.id, journal)
        if member.instance_id is not None:
            journal.put(self.static_members, member.instance_id, member.id)
            journal.pop(self.former_static_members, member.instance_id)

    def _remove_member(self, member_id: str, journal: Journal) -> None:
        member = journal.pop(self.members, member_id)
        if member is None:
            return
        self._replace(member, None, journal)
        self._order.remove(member_id, journal)
        if member.instance_id is not None:
            journal.pop(self.static_members, member.instance_id)

    def _replace(self, before: ConsumerMember | None, after: ConsumerMember | None, journal: Journal) -> None:
        """Note the partitions and the pattern of a member instead of those that it had."""
        lost, got = ({*member.held()} if member else set() for member in (before, after))
        old, new = (member.regex if member else "" for member in (before, after))
        self._hold(lost, got)
        journal.note(partial(self._hold, got, lost))
        if old and old != new:
            if self.subscribers[old] > 1:
                journal.put(self.subscribers, old, self.subscribers[old] - 1)
            else:
                journal.pop(self.subscribers, old)
        if new and old != new:
            journal.put(self.subscribers, new, self.subscribers.get(new, 0) + 1)

    def _hold(self, lost: set[tuple[UUID, int]], got: set[tuple[UUID, int]]) -> None:
        self.held.difference_update(lost)
        self.held.update(got)


def _subscribed(member: ConsumerMember, value: wire.ConsumerGroupMemberMetadataValue) -> ConsumerMember:
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        names=tuple(value.subscribed_topic_names),
        regex=value.subscribed_topic_regex or "",
        assignor=value.server_assignor,
        classic=value.classic_member_metadata,
    )


def _reconciled(member: ConsumerMember, value: wire.ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember:
    def epochs(rows: Iterable[wire.CurrentPartitions]) -> dict[UUID, dict[int, int]]:
        # an older log lacks the epochs
        unknown = max(value.member_epoch, 0)
        return {
            row.topic_id: dict(
                zip(row.partitions, row.assignment_epochs or (unknown,) * len(row.partitions), strict=True)
            )
            for row in rows
        }

    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state),
        assigned=epochs(value.assigned_partitions),
        pending=epochs(value.partitions_pending_revocation),
    )


def _reset(member: ConsumerMember) -> ConsumerMember:
    blank = ConsumerMember(member.id)
    return replace(
        member,
        epoch=-1,
        previous_epoch=-1,
        state=blank.state,
        assigned=blank.assigned,
        pending=blank.pending,
    )
