"""A classic group and its members: the data, its invariants, and counters that keep every operation cheap.

This module answers no request and reads no time; `join`, `rebalance`, `sync` and the others work on it. The rules are
those of Kafka's `ClassicGroup` and `ClassicGroupMember`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field, replace
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_protocol import read_assignment, read_topics
from koordinator.wire.primitives import InvalidLength, Malformed
from koordinator.wire.values import mutable

from ...timers import PendingMemberExpiry, SessionExpiry
from ..group import CONSUMER, BaseGroup
from .records import group_tombstone

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from uuid import UUID

    from koordinator.wire.messages.offsets_topic import OffsetCommitValue

    from ...clock import GroupClock
    from ...data.topic import TopicState
    from ...dialect import Dialect
    from ...effects import Call
    from ...java.hash_order import NameOrder
    from ..records import CoordinatorRecord

CLASSIC = "classic"
"""The kind, as ListGroups shows it."""

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""The longest time a new member stays parked in its first JoinGroup (`classicGroupNewMemberJoinTimeoutMs`)."""

NAMES_SHOWN, NAME_SHOWN_MAX = 5, 40
"""The number and the length of the protocol names in the reason of a refusal."""

Protocols = tuple[tuple[str, bytes], ...]
"""The protocols a member supports, most preferred first: (protocol name, metadata)."""


class ClassicGroupState(Enum):
    """The states of Kafka's `ClassicGroupState`, spelled as in DescribeGroups and ListGroups."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@mutable
class ClassicMember:
    """A member. `parked_join` and `parked_sync` are its parked JoinGroup and SyncGroup, or None.

    `is_new` holds until the member's first join phase ends; until then the session timer runs while its JoinGroup is
    parked. `last_call` is the latest request of the member. `session_began_ms` is the node time at which its session
    last started. No rule depends on these two: clock advances use them to find live members.
    """

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    parked_join: Call | None = None
    parked_sync: Call | None = None
    last_call: Call | None = None
    session_began_ms: int = 0
    session: SessionExpiry = field(init=False)

    def __post_init__(self) -> None:
        self.session = SessionExpiry(self.id)

    @property
    def is_static(self) -> bool:
        """Whether the member has a `group.instance.id` (KIP-345)."""
        return self.instance_id is not None

    @property
    def is_parked(self) -> bool:
        """Whether a JoinGroup or SyncGroup of the member is parked."""
        return self.parked_join is not None or self.parked_sync is not None

    @property
    def session_held_by(self) -> str | None:
        """The API of the parked request that keeps the session from ending; None if it may end."""
        if self.is_new or not self.is_parked:
            return None
        return "JoinGroup" if self.parked_join is not None else "SyncGroup"

    @property
    def running_session_ms(self) -> int:
        """The length in ms of the session that runs; a new member's is longer while its JoinGroup is parked."""
        is_first = self.is_new and self.parked_join is not None
        return NEW_MEMBER_JOIN_TIMEOUT_MS if is_first else self.session_timeout_ms

    def metadata(self, protocol_name: str | None) -> bytes:
        """Return the member's metadata for a protocol, or b"" if it does not support it."""
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")

    def vote(self, candidates: Iterable[str]) -> str:
        """Return the first candidate in the member's order of preference."""
        return next(name for name, _ in self.protocols if name in candidates)


class ClassicGroup(BaseGroup):
    """A group of the classic protocol."""

    __slots__ = (
        "_protocol_counts",
        "_subscribed_topics",
        "awaiting_join",
        "generation",
        "join_phase_failed",
        "leader_id",
        "members",
        "new_member_added",
        "pending_members",
        "pending_sync_members",
        "previous_state",
        "protocol_name",
        "protocol_type",
        "state",
        "state_changed_at",
        "static_members",
    )

    kind = CLASSIC
    generation: int
    static_members: dict[str, str]

    def __init__(self, group_id: str, partition: int, clock: GroupClock, now: int) -> None:
        super().__init__(group_id, partition, clock, now)
        self.state = ClassicGroupState.EMPTY
        self.previous_state = ClassicGroupState.DEAD
        self.state_changed_at = self.now
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.generation = 0
        self.leader_id: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        # dicts, not sets, where the order is visible: equal inputs must give equal responses
        self.pending_members: dict[str, Call] = {}
        self.pending_sync_members: dict[str, None] = {}
        self.awaiting_join = 0
        self.new_member_added = False
        self._protocol_counts: Counter[str] = Counter()
        self.join_phase_failed = False
        """Whether the last join phase failed to end, and never ends; see `Dialect.failed_join_phase_may_end`."""
        self._subscribed_topics: frozenset[str] | None = None

    def __repr__(self) -> str:
        return f"<Group {self.id!r} {self.state.value} generation={self.generation} members={len(self.members)}>"

    def add(self, member: ClassicMember) -> None:
        """Add a member; the first one defines the protocol type and is the provisional leader."""
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.id
        self.remove_pending(member.id)
        self._count_protocols((), member.protocols)
        self.members[member.id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.id

    def remove(self, member_id: str) -> ClassicMember | None:
        """Remove a member or a pending id, with its timer; the first remaining member succeeds a leader."""
        self.remove_pending(member_id)
        self.pending_sync_members.pop(member_id, None)
        member = self.members.get(member_id)
        if member is None:
            return None
        self.timers.cancel(member.session)
        self._count_protocols(member.protocols, ())
        del self.members[member_id]
        assert member.parked_join is None, "a removed member must have no parked JoinGroup"
        if member.instance_id is not None:
            self.static_members.pop(member.instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        return member

    def remove_pending(self, member_id: str) -> None:
        """Remove an id handed out with MEMBER_ID_REQUIRED; do nothing if it is not pending."""
        if member_id in self.pending_members:
            del self.pending_members[member_id]
            self.timers.cancel(PendingMemberExpiry(member_id))

    def update(
        self, member: ClassicMember, protocols: Protocols, session_timeout_ms: int, rebalance_timeout_ms: int
    ) -> None:
        """Replace the protocols and timeouts of a member that rejoins (KAFKA-14009)."""
        self._count_protocols(member.protocols, protocols)
        member.protocols = protocols
        member.session_timeout_ms = session_timeout_ms
        member.rebalance_timeout_ms = rebalance_timeout_ms

    def replace_static(self, old: ClassicMember, new_id: str, *, stays_new: bool = False) -> ClassicMember:
        """Give a static member a new member id; assignment, client and leadership are kept (KIP-345).

        The pending-sync set keeps the old id, as in Kafka: if it had not synced, no member can do so any more.
        """
        new = replace(
            old,
            id=new_id,
            is_new=old.is_new and stays_new,
            parked_join=None,
            parked_sync=None,
            last_call=None,
            session_began_ms=0,
        )
        del self.members[old.id]
        self.timers.cancel(old.session)
        self.members[new_id] = new
        if self.leader_id == old.id:
            self.leader_id = new_id
        assert old.instance_id is not None, "only a static member is replaced"
        self.static_members[old.instance_id] = new_id
        return new

    def take_join(self, member: ClassicMember) -> Call | None:
        """Unpark and return the JoinGroup of a member, or None."""
        call, member.parked_join = member.parked_join, None
        if call is not None:
            self.awaiting_join -= 1
        return call

    @property
    def state_name(self) -> str:
        """The state, as ListGroups shows it."""
        return self.state.value

    @property
    def listed_protocol_type(self) -> str:
        """The protocol type, as ListGroups shows it."""
        return self.protocol_type or ""

    @property
    def is_empty(self) -> bool:
        """Whether the group is Empty."""
        return self.state is ClassicGroupState.EMPTY

    @property
    def is_unused(self) -> bool:
        """Whether the group is Empty, without pending ids and offsets; commits may be in flight."""
        table = self.table
        nothing = not (self.pending_members or table.committed or table.refused or table.pending)
        return self.state is ClassicGroupState.EMPTY and nothing

    @property
    def leader(self) -> ClassicMember | None:
        """The leader, provisional until the join phase ends."""
        return None if self.leader_id is None else self.members[self.leader_id]

    @property
    def all_joined(self) -> bool:
        """Whether every member has a JoinGroup parked and no id handed out with MEMBER_ID_REQUIRED is pending."""
        return self.awaiting_join == len(self.members) and not self.pending_members

    def supports(self, protocol_type: str, names: Collection[str]) -> bool:
        """Return whether a joiner with these protocols is accepted (else INCONSISTENT_GROUP_PROTOCOL).

        The joiner counts if it is a member: even a sole member cannot switch to an entirely new list.
        """
        if self.state is ClassicGroupState.EMPTY:
            return bool(protocol_type) and bool(names)
        size, counts = len(self.members), self._protocol_counts
        return protocol_type == self.protocol_type and any(counts[name] == size for name in names)

    def inconsistency(self, protocol_type: str, names: Collection[str]) -> str:
        """Return why `supports` refuses a joiner, with the remedy, for the trace and the log."""
        if not protocol_type or not names:
            return "the request names no protocol"
        if protocol_type != self.protocol_type:
            other = protocol_type[:NAME_SHOWN_MAX]
            return f"the members of group {self.id!r} have the protocol type {self.protocol_type!r}, not {other!r}"
        common = [name for name, count in self._protocol_counts.items() if count == len(self.members)]
        return (
            f"it offers {_quoted(names)}, and all members of group {self.id!r} have {_quoted(common)};"
            " offer one of theirs, too"
        )

    def member_error(self, member_id: str, instance_id: str | None) -> Error:
        """Return why a member's request is refused, or NONE (`ClassicGroup.validateMember`).

        Fencing comes first: the old id of a replaced static member gets FENCED_INSTANCE_ID whatever else is wrong. The
        id of a static member passes without its instance id.
        """
        if instance_id is not None:
            current_id = self.static_members.get(instance_id)
            if current_id is None:
                return Error.UNKNOWN_MEMBER_ID
            if current_id != member_id:
                return Error.FENCED_INSTANCE_ID
        return Error.NONE if member_id in self.members else Error.UNKNOWN_MEMBER_ID

    def _count_protocols(self, old: Protocols, new: Protocols) -> None:
        """Count new protocols of a member instead of old ones; the caller changes the member at once."""
        for name, _ in new:
            self._protocol_counts[name] += 1
        for name, _ in old:
            self._protocol_counts[name] -= 1
            if not self._protocol_counts[name]:
                # clients choose the names freely: drop the unused ones
                del self._protocol_counts[name]

    def select_protocol(self, order: NameOrder) -> str:
        """Elect a protocol: each member votes for its first among those that all members support.

        Ties go to the first name in `order`, the order in which Kafka counts the votes.
        """
        size = len(self.members)
        candidates = {name for name, offers in self._protocol_counts.items() if offers == size}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return max(order(votes), key=votes.__getitem__)

    def form_generation(self, order: NameOrder) -> None:
        """Start the next generation with the current members and the protocol they elect.

        Raises InvalidLength for a subscription on which Kafka's coordinator fails.
        """
        self.generation += 1
        self.use_protocol(self.select_protocol(order) if self.members else None)

    def use_protocol(self, name: str | None) -> None:
        """Use a protocol in the current generation, with each member's metadata for it.

        Raises InvalidLength for a subscription on which Kafka's coordinator fails; the topics of the generation before
        stay then, until `forget_subscriptions`.
        """
        self.protocol_name = name
        topics: frozenset[str] | None = None
        if self.protocol_type == CONSUMER:
            # consumers of one program subscribe in the same words
            subscriptions = dict.fromkeys(member.metadata(name) for member in self.members.values())
            try:
                topics = frozenset[str]().union(*map(read_topics, subscriptions))
            except InvalidLength:
                raise
            except Malformed:
                pass
        self._subscribed_topics = topics

    def forget_subscriptions(self) -> None:
        """Count the subscriptions of the current generation as unreadable."""
        self._subscribed_topics = None

    def is_subscribed(self, topic: str) -> bool:
        """Return whether a consumer group uses a topic, by the subscriptions of its current generation.

        An unknown or unreadable subscription counts as subscribed, so that no offset in use is deleted (KIP-496).
        """
        if self.protocol_type != CONSUMER:
            return False
        return self._subscribed_topics is None or topic in self._subscribed_topics

    def subscribed_topics(self, member_id: str) -> Collection[str]:
        """Return the topics of a consumer's subscription; none if it cannot be read."""
        if self.protocol_type != CONSUMER:
            return ()
        try:
            return read_topics(self.members[member_id].metadata(self.protocol_name))
        except Malformed:
            return ()

    def partitions_of(self, member_id: str, topics: Mapping[UUID, TopicState]) -> dict[str, list[int]]:
        """Return the partitions of a consumer by topic, sorted, as the leader has named them."""
        del topics
        assignment = self.members[member_id].assignment
        if self.protocol_type != CONSUMER or not assignment:
            return {}
        try:
            return {row.topic: sorted(row.partitions) for row in read_assignment(assignment).assigned_partitions}
        except Malformed:
            # the coordinator treats the leader's assignments as opaque bytes
            return {}

    @property
    def unsettled(self) -> list[str]:
        """The ids of the members that have not synced in this generation."""
        # pending_sync_members may still have an id that a static member has replaced (KIP-345)
        return [member_id for member_id in self.pending_sync_members if member_id in self.members]

    def is_awaited(self, member_id: str) -> bool:
        """Return whether the JoinGroup or SyncGroup of a member is awaited."""
        member = self.members[member_id]
        if self.state is ClassicGroupState.PREPARING_REBALANCE:
            return member.parked_join is None
        return member_id in self.pending_sync_members and member.parked_sync is None

    def has_quiet_heartbeats(self, topics_version: int) -> bool:
        """Return whether the group is Stable: then heartbeats change nothing but sessions."""
        del topics_version
        return self.state is ClassicGroupState.STABLE

    def unused_since(self, topic: str, committed: OffsetCommitValue, dialect: Dialect) -> int | None:
        """Return the group time from which the group has not used a committed offset; None while it does."""
        if self.protocol_type is None:
            return committed.commit_timestamp
        if self.state is ClassicGroupState.EMPTY:
            return self.state_changed_at
        settled = self.state is ClassicGroupState.STABLE or not dialect.unstable_groups_keep_offsets
        if settled and self.protocol_type == CONSUMER and not self.is_subscribed(topic):
            return committed.commit_timestamp
        return None

    def tombstones(self, dialect: Dialect) -> list[CoordinatorRecord]:
        """Return the record that deletes the group; a group without a generation may have none in the log."""
        return [group_tombstone(self)] if self.generation > 0 or dialect.writes_tombstone_at_generation_0 else []


def _quoted(names: Collection[str]) -> str:
    """Return names that clients chose in a row, cut where they are many or long."""
    shown = ", ".join(repr(name[:NAME_SHOWN_MAX]) for name in islice(names, NAMES_SHOWN))
    return f"{shown}, …" if len(names) > NAMES_SHOWN else shown
