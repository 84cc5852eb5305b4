"""A classic group and its members: the data, its invariants and the counts that keep every step cheap.

Nothing here answers a request or knows the time; `join`, `rebalance`, `sync` and the others do, on this data.
The source of the rules is Kafka's `ClassicGroup` and `ClassicGroupMember`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from koordinator.wire.messages.consumer_protocol import read_subscription
from koordinator.wire.primitives import ZERO_UUID, Malformed

from ...timers import PendingMemberExpiry, SessionExpiry, StoppedTimers, Timers

if TYPE_CHECKING:
    from uuid import UUID

    from koordinator.wire.apis import Message

    from ...clock import GroupClock
    from ...effects import Call
    from ...timers import TimerKey

    Handler = Callable[..., None]
    """What serves a request: called with the store, the node's time, the call and the request."""

CONSUMER = "consumer"
"""The protocol type of consumers; other groups (Kafka Connect, …) carry bytes the coordinator never reads."""

NameOrder = Callable[[Iterable[str]], list[str]]
"""The order in which a hash table has names."""

Protocols = tuple[tuple[str, bytes], ...]
"""What a member offers, most preferred first: (protocol name, metadata)."""


class ClassicGroupState(Enum):
    """The states of `ClassicGroupState`, spelled as DescribeGroups and ListGroups print them."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


MAY_COME_FROM = {
    ClassicGroupState.EMPTY: {ClassicGroupState.PREPARING_REBALANCE},
    ClassicGroupState.PREPARING_REBALANCE: {
        ClassicGroupState.EMPTY,
        ClassicGroupState.COMPLETING_REBALANCE,
        ClassicGroupState.STABLE,
    },
    ClassicGroupState.COMPLETING_REBALANCE: {ClassicGroupState.PREPARING_REBALANCE},
    ClassicGroupState.STABLE: {ClassicGroupState.COMPLETING_REBALANCE},
    ClassicGroupState.DEAD: set(ClassicGroupState),
}
"""The valid previous states of each state; the only door between them is `Stage.move`."""


@dataclass(slots=True, eq=False)
class ClassicMember:
    """One member. `joining` and `syncing` are its parked JoinGroup and SyncGroup, if it has any.

    `is_new` until its first join phase ends: so long its session timer runs even while its JoinGroup is parked.
    `last_call` is the newest of its requests that was served, `session_began_ms` when its session last began, in node
    time: nothing here depends on them, but whoever moves the group's clock wants to know who is alive.
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
    joining: Call | None = None
    syncing: Call | None = None
    last_call: Call | None = None
    session_began_ms: int = 0
    session: SessionExpiry = field(init=False)

    def __post_init__(self) -> None:
        self.session = SessionExpiry(self.id)

    @property
    def is_static(self) -> bool:
        """Whether it has a `group.instance.id` (KIP-345)."""
        return self.instance_id is not None

    def metadata(self, protocol_name: str | None) -> bytes:
        """What it offers for a protocol; empty if it does not offer that one."""
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")

    def vote(self, candidates: Iterable[str]) -> str:
        """The first candidate in its own order of preference."""
        return next(name for name, _ in self.protocols if name in candidates)


@dataclass(slots=True)
class CommittedOffset:
    """A committed position. Timestamps in ms of the group's clock; `expire_timestamp` -1: by retention.

    `topic_id` is the zero UUID if it is not known.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int = -1
    topic_id: UUID = ZERO_UUID


class ClassicGroup:
    """A group with everything the coordinator keeps of it (coordinator state of one `group.id`).

    `partition` of `__consumer_offsets` keeps it. It has its own clock, in whose time its timers are due; `now` is what
    that shows at the present input.
    """

    def __init__(self, group_id: str, partition: int, clock: GroupClock, now: int) -> None:
        self.id = group_id
        self.partition = partition
        self.clock = clock
        self.now = now = clock.read(now)
        self.timers: Timers[TimerKey] = Timers()
        self.state = ClassicGroupState.EMPTY
        self.previous_state = ClassicGroupState.DEAD
        self.state_changed_at = now
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.generation = 0
        self.leader_id: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        # dicts, not sets, where the order shows: the same inputs give the same answers
        self.pending_members: dict[str, Call] = {}
        self.pending_sync_members: dict[str, None] = {}
        self.awaiting_join = 0
        self.new_member_added = False
        self.offsets: dict[tuple[str, int], CommittedOffset] = {}
        self.earliest_offset_expiry = 0
        """No committed offset expires before, unless offsets or the state change: so most checks need not look."""
        self.unwritten_commits: dict[tuple[str, int], int] = {}
        """How many commits of a partition are being written; no `Counter`, which does much of this in Python."""
        self.held_requests: list[tuple[Handler, Call, Message]] = []
        """Requests that would take a frozen group out of its state, with what serves them; they wait for it to thaw."""
        self.frozen_at = 0
        self.stored = False
        self._protocol_counts: Counter[str] = Counter()
        self._generation_metadata: tuple[bytes, ...] | None = None
        self._subscribed_topics: frozenset[str] | None = None

    def __repr__(self) -> str:
        return f"<Group {self.id!r} {self.state.value} generation={self.generation} members={len(self.members)}>"

    @property
    def is_frozen(self) -> bool:
        """Whether the group stays in its state, whatever comes; see `Stage.freeze`."""
        return isinstance(self.timers, StoppedTimers)

    # -- membership ------------------------------------------------------------------------------------------

    def add(self, member: ClassicMember) -> None:
        """Take a member in; the first one defines the protocol type and is the provisional leader."""
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.id
        self.remove_pending(member.id)
        self.members[member.id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.id
        self._protocol_counts.update(name for name, _ in member.protocols)

    def remove(self, member_id: str) -> ClassicMember | None:
        """Forget a member or a pending id, with its timer; a leader is followed by any other member."""
        self.remove_pending(member_id)
        self.pending_sync_members.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        self.timers.cancel(member.session)
        self._remove_protocols(member)
        assert member.joining is None, "whoever removes a member answers its JoinGroup first"
        if member.instance_id is not None:
            self.static_members.pop(member.instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        return member

    def remove_pending(self, member_id: str) -> None:
        """An id handed out with MEMBER_ID_REQUIRED is not outstanding any more; nothing happens if it was not."""
        if member_id in self.pending_members:
            del self.pending_members[member_id]
            self.timers.cancel(PendingMemberExpiry(member_id))

    def update(
        self, member: ClassicMember, protocols: Protocols, session_timeout_ms: int, rebalance_timeout_ms: int
    ) -> None:
        """A rejoin replaces what the member offers and both its timeouts (KAFKA-14009)."""
        self._remove_protocols(member)
        self._protocol_counts.update(name for name, _ in protocols)
        member.protocols = protocols
        member.session_timeout_ms = session_timeout_ms
        member.rebalance_timeout_ms = rebalance_timeout_ms

    def replace_static(self, old: ClassicMember, new_id: str, *, stays_new: bool = False) -> ClassicMember:
        """The instance continues under a new member id: assignment, client and leadership go with it (KIP-345).

        The pending-sync set is not touched, as in Kafka: if the old id still owed a SyncGroup nobody can send it.
        """
        del self.members[old.id]
        self.timers.cancel(old.session)
        new = ClassicMember(
            id=new_id,
            instance_id=old.instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            session_timeout_ms=old.session_timeout_ms,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            protocol_type=old.protocol_type,
            protocols=old.protocols,
            assignment=old.assignment,
            is_new=old.is_new and stays_new,
        )
        self.members[new_id] = new
        if self.leader_id == old.id:
            self.leader_id = new_id
        assert old.instance_id is not None, "only a static member is replaced"
        self.static_members[old.instance_id] = new_id
        return new

    def park_join(self, member: ClassicMember, call: Call) -> Call | None:
        """Let a JoinGroup wait; returns the one it supersedes, which is never answered."""
        superseded, member.joining = member.joining, call
        member.last_call = call
        if superseded is None:
            self.awaiting_join += 1
        return superseded

    def take_join(self, member: ClassicMember) -> Call | None:
        """The parked JoinGroup of a member, to be answered now."""
        call, member.joining = member.joining, None
        if call is not None:
            self.awaiting_join -= 1
        return call

    @property
    def is_unused(self) -> bool:
        """Nobody and nothing is in it, or on the way into it."""
        nothing = not self.pending_members and not self.offsets and not self.unwritten_commits
        return self.state is ClassicGroupState.EMPTY and nothing

    @property
    def leader(self) -> ClassicMember | None:
        """The leader, provisional until the join phase ends."""
        return None if self.leader_id is None else self.members[self.leader_id]

    @property
    def all_joined(self) -> bool:
        """Every member has a JoinGroup parked, and no id handed out with MEMBER_ID_REQUIRED is outstanding."""
        return self.awaiting_join == len(self.members) and not self.pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long a join phase may last: the longest of the members' rebalance timeouts (KIP-62)."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # -- offsets ---------------------------------------------------------------------------------------------

    def begin_commit(self, places: Iterable[tuple[str, int]]) -> None:
        """Offsets of these partitions are being written from now on."""
        unwritten = self.unwritten_commits
        for place in places:
            unwritten[place] = unwritten.get(place, 0) + 1

    def end_commit(self, places: Iterable[tuple[str, int]]) -> None:
        """They are not any more, whatever has become of it."""
        unwritten = self.unwritten_commits
        for place in places:
            others = unwritten.pop(place) - 1
            if others:
                unwritten[place] = others

    # -- protocols -------------------------------------------------------------------------------------------

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a joiner with these protocols can be in this group (INCONSISTENT_GROUP_PROTOCOL if not).

        The joiner itself is counted if it is a member: even the only one cannot switch to an entirely new list.
        """
        if self.state is ClassicGroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        size = len(self.members)
        return protocol_type == self.protocol_type and any(self._protocol_counts[name] == size for name, _ in protocols)

    def _remove_protocols(self, member: ClassicMember) -> None:
        for name, _ in member.protocols:
            self._protocol_counts[name] -= 1
            if not self._protocol_counts[name]:
                # clients may name what they like: what nobody offers any more is forgotten
                del self._protocol_counts[name]

    def select_protocol(self, order: NameOrder) -> str:
        """The vote: every member votes for its first candidate; candidates are what all members offer.

        Of names with as many votes the first in `order` wins: that in which Kafka happens to count them.
        """
        size = len(self.members)
        candidates = {name for name, offers in self._protocol_counts.items() if offers == size}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return max(order(votes), key=votes.__getitem__)

    def form_generation(self, order: NameOrder) -> None:
        """The join phase is over: the next generation, with the members there are, and the protocol they vote for."""
        self.generation += 1
        self.use_protocol(self.select_protocol(order) if self.members else None)

    def use_protocol(self, name: str | None) -> None:
        """The members use this protocol in the present generation, with what each has requested_protocols for it."""
        self.protocol_name = name
        self._generation_metadata = tuple(member.metadata(self.protocol_name) for member in self.members.values())
        self._subscribed_topics = None

    def is_subscribed(self, topic: str) -> bool:
        """Whether a consumer group uses a topic, by the subscriptions of the last generation formed.

        Not known yet, or not readable: it counts as subscribed, so that nothing in use is deleted (KIP-496).
        """
        if self.protocol_type != CONSUMER:
            return False
        if self._generation_metadata is None:
            return True
        if self._subscribed_topics is None:
            try:
                subscriptions = [read_subscription(metadata) for metadata in self._generation_metadata]
            except Malformed:
                self._generation_metadata = None
                return True
            self._subscribed_topics = frozenset(name for subscription in subscriptions for name in subscription.topics)
        return topic in self._subscribed_topics
