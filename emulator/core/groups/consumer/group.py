"""A consumer group: the state that its records describe. Every change is a record that is replayed.

Kafka: `ConsumerGroup`, and the `replay` methods of `GroupMetadataManager`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from koordinator.wire.messages import consumer_group_records as wire

from ...journal import JournaledTable
from ...timers import ClassicJoinTimeout, ClassicSyncTimeout, RevocationTimeout, SessionExpiry
from ..group import CONSUMER
from ..modern.group import GroupState, ModernGroup
from .assignment import Target
from .member import ConsumerMember
from .records import RECORD_TYPES, group_record, group_tombstones
from .target import preferred_assignor

if TYPE_CHECKING:
    from collections.abc import Collection
    from uuid import UUID

    from ....config.settings import Settings
    from ...clock import GroupClock
    from ...dialect import Dialect
    from ...effects import Call
    from ...journal import Journal
    from ..records import CoordinatorRecord


class ConsumerGroup(ModernGroup[ConsumerMember, Target]):
    """A group of the consumer protocol (KIP-848)."""

    kind = CONSUMER
    record_types = RECORD_TYPES
    member_timers = SessionExpiry, RevocationTimeout, ClassicJoinTimeout, ClassicSyncTimeout

    def __init__(self, group_id: str, partition: int, clock: GroupClock, now: int, dialect: Dialect) -> None:
        super().__init__(group_id, partition, clock, now, dialect)
        self._forgets_instance_ids = dialect.given_up_instance_ids_are_free
        self.topics: tuple[wire.TopicMetadata, ...] = ()
        """The topics that the group has seen, up to 4.0; later `metadata_hash` stands for them."""
        self.former_static_members: JournaledTable[str, str] = JournaledTable()
        """The last owner of each instance id that a member gave up for another one. Before 4.4 Kafka's table keeps such
        an entry even after its member is gone (`ConsumerGroup.updateStaticMember`)."""
        self.held: set[tuple[UUID, int]] = set()
        """The partitions that some member has, assigned or pending revocation."""
        self.patterns: JournaledTable[str, wire.ConsumerGroupRegularExpressionValue] = JournaledTable()
        """The topics of each resolved regular expression."""
        self.resolving_call: Call | None = None
        """The request after which the regular expressions are resolved: topics that its client may not describe are
        left out."""
        self.subscribers: JournaledTable[str, int] = JournaledTable()
        """The number of members with each regular expression that has any."""

    def assignor(self, settings: Settings) -> str:
        """Return the assignor that most members ask for, or the first of the settings."""
        return preferred_assignor(settings, self)

    def epoch_record(self, epoch: int) -> CoordinatorRecord:
        """Return the record of an epoch that rises for no other change."""
        return group_record(self.id, epoch, self.metadata_hash)

    def has_quiet_heartbeats(self, topics_version: int) -> bool:
        """Return whether heartbeats change nothing but sessions: they also notice changed topics."""
        has_patterns = any(member.regex for member in self.members.values())
        return self.state is GroupState.STABLE and self.has_seen_topics(topics_version) and not has_patterns

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

    def _replay_further(self, record: CoordinatorRecord, journal: Journal) -> None:
        match record.key, record.value:
            case wire.ConsumerGroupPartitionMetadataKey(), value:
                topics = value.topics if isinstance(value, wire.ConsumerGroupPartitionMetadataValue) else ()
                journal.set(self, "topics", topics)
            case wire.ConsumerGroupCurrentMemberAssignmentKey() as key, None:
                if key.member_id in self.members:
                    self._put_member(_reset(self.members[key.member_id]), journal)
            case wire.ConsumerGroupRegularExpressionKey() as key, wire.ConsumerGroupRegularExpressionValue() as value:
                journal.put(self.patterns, key.regular_expression, value)
            case wire.ConsumerGroupRegularExpressionKey() as key, None:
                journal.pop(self.patterns, key.regular_expression)
            case _:
                pass

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
        super()._put_member(member, journal)
        if member.instance_id is not None:
            journal.pop(self.former_static_members, member.instance_id)

    def _remove_member(self, member_id: str, journal: Journal) -> None:
        self._replace(self.members.get(member_id), None, journal)
        super()._remove_member(member_id, journal)

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
