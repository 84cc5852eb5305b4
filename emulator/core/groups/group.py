"""The part that all kinds of groups share: an id, a clock with timers, and committed offsets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from ..timers import StoppedTimers, Timers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from koordinator.wire.apis import Message
    from koordinator.wire.messages.offsets_topic import OffsetCommitValue

    from ..clock import GroupClock
    from ..effects import Call
    from ..timers import SessionExpiry, TimerKey

    Handler = Callable[..., None]
    """A request handler, called with the store, the node's time, the call and the request."""

CONSUMER = "consumer"
"""The protocol type of consumers; the coordinator never reads the metadata of other types (Kafka Connect, …)."""


@dataclass(frozen=True, slots=True)
class PendingCommit:
    """An offset of an open transaction; `position` orders it among the records of the group's partition.

    A `refused` one is in no record; see `Dialect.refused_offsets_stay_pending`.
    """

    value: OffsetCommitValue
    position: int
    refused: bool = False


class BaseMember(Protocol):
    """The part that members of all kinds of groups share; see `ClassicMember` and `ConsumerMember`."""

    @property
    def id(self) -> str: ...  # noqa: D102 - described by the class
    @property
    def instance_id(self) -> str | None: ...  # noqa: D102
    @property
    def client_id(self) -> str: ...  # noqa: D102
    @property
    def client_host(self) -> str: ...  # noqa: D102
    @property
    def rebalance_timeout_ms(self) -> int: ...  # noqa: D102
    @property
    def is_static(self) -> bool: ...  # noqa: D102
    @property
    def is_parked(self) -> bool: ...  # noqa: D102
    @property
    def last_call(self) -> Call | None: ...  # noqa: D102
    @property
    def session(self) -> SessionExpiry: ...  # noqa: D102
    @property
    def session_began_ms(self) -> int: ...  # noqa: D102
    @property
    def session_timeout_ms(self) -> int: ...  # noqa: D102


class BaseGroup(ABC):
    """The coordinator's state of one `group.id`, whatever its protocol. `kind` is its type in ListGroups (KIP-848).

    `partition` of `__consumer_offsets` stores it. Timers are due in the time of the group's own `clock`; `now` is the
    clock's reading at the current input.
    """

    __slots__ = (
        "clock",
        "earliest_offset_expiry",
        "frozen_at",
        "held_requests",
        "id",
        "now",
        "offset_positions",
        "offsets",
        "partition",
        "pending_offsets",
        "refused_commits",
        "stored",
        "timers",
        "unwritten_commits",
    )

    kind: ClassVar[str]

    if TYPE_CHECKING:

        @property
        def members(self) -> Mapping[str, BaseMember]:
            """The members by id."""

        @property
        def static_members(self) -> Mapping[str, str]:
            """The member ids of static members by `group.instance.id`."""

        @property
        def generation(self) -> int:
            """The generation of a classic group; the epoch of a consumer group's target."""

    def __init__(self, group_id: str, partition: int, clock: GroupClock, now: int) -> None:
        self.id = group_id
        self.partition = partition
        self.clock = clock
        self.now = clock.read(now)
        self.timers: Timers[TimerKey] = Timers()
        self.offsets: dict[tuple[str, int], OffsetCommitValue] = {}
        """The committed offsets; their timestamps are in ms of the group's clock."""
        self.pending_offsets: dict[int, dict[tuple[str, int], PendingCommit]] = {}
        """The offsets of open transactions, by producer id (KIP-98)."""
        self.offset_positions: dict[tuple[str, int], int] = {}
        """The order of the committed offsets' records in the log, kept while a transaction may decide another one."""
        self.earliest_offset_expiry = 0
        """A lower bound: no committed offset expires earlier, unless the offsets or the state change. Most checks end
        here."""
        self.unwritten_commits: dict[tuple[str, int], int] = {}
        """The number of commits in flight per partition; a `Counter` is slower, because it is written in Python."""
        self.refused_commits: frozenset[tuple[str, int]] = frozenset()
        """The partitions that stay pending after a refused commit; see `Dialect.refused_offsets_stay_pending`."""
        self.held_requests: list[tuple[Handler, Call, Message]] = []
        """Requests that would end the state of a frozen group, with their handlers; they wait for the thaw."""
        self.frozen_at = 0
        self.stored = False

    @property
    @abstractmethod
    def state_name(self) -> str:
        """The state, as ListGroups shows it."""

    @property
    @abstractmethod
    def listed_protocol_type(self) -> str:
        """The protocol type, as ListGroups shows it."""

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether the group is Empty: it has no members."""

    @property
    @abstractmethod
    def is_unused(self) -> bool:
        """Whether the group is Empty, without pending ids, offsets and commits in flight or in a transaction."""

    @abstractmethod
    def is_subscribed(self, topic: str) -> bool:
        """Return whether the group uses a topic, by the subscriptions of its members."""

    @property
    def rebalance_timeout_ms(self) -> int:
        """The limit of a join phase in ms: the longest of the members' rebalance timeouts (KIP-62)."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def is_frozen(self) -> bool:
        """Whether the group is frozen in its state; see `GroupStore.freeze`."""
        return isinstance(self.timers, StoppedTimers)

    def begin_commit(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Count a commit in flight for each of these partitions."""
        unwritten = self.unwritten_commits
        for partition in partitions:
            unwritten[partition] = unwritten.get(partition, 0) + 1
        self.refused_commits = self.refused_commits.difference(partitions)

    def end_commit(self, partitions: Iterable[tuple[str, int]]) -> None:
        """End the commit in flight of each of these partitions."""
        unwritten = self.unwritten_commits
        for partition in partitions:
            others = unwritten.pop(partition) - 1
            if others:
                unwritten[partition] = others

    def unstable_partitions(self) -> frozenset[tuple[str, int]]:
        """Return the partitions with a commit in flight or in an open transaction."""
        return frozenset(self.unwritten_commits).union(self.refused_commits, *self.pending_offsets.values())

    def pending_partitions(self) -> list[tuple[str, int]]:
        """Return the partitions with an offset in an open transaction, in order."""
        return sorted(set().union(*self.pending_offsets.values()))

    def discard_pending_offsets(self, partitions: Iterable[tuple[str, int]], *, keeps_producers: bool) -> None:
        """Discard the pending offsets of these partitions: a later marker brings nothing back.

        A kept producer counts as pending until its marker, also without offsets.
        """
        self.refused_commits = self.refused_commits.difference(partitions)
        for producer_id in list(self.pending_offsets):
            self.discard_offsets_of(producer_id, partitions)
            if keeps_producers:
                self.pending_offsets.setdefault(producer_id, {})

    def discard_offsets_of(self, producer_id: int, partitions: Iterable[tuple[str, int]]) -> None:
        """Discard the pending offsets of one producer."""
        pending = self.pending_offsets.get(producer_id, {})
        for partition in partitions:
            pending.pop(partition, None)
        if not pending:
            self.pending_offsets.pop(producer_id, None)
