"""The part that all kinds of groups share: an id, a clock with timers, and committed offsets."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Protocol

from ..timers import StoppedTimers, Timers
from .offset_table import OffsetTable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from uuid import UUID

    from koordinator.wire.apis import Message
    from koordinator.wire.messages.offsets_topic import OffsetCommitValue

    from ..clock import GroupClock
    from ..data.topic import TopicState
    from ..dialect import Dialect
    from ..effects import Call
    from ..timers import SessionExpiry, TimerKey
    from .offset_table import PendingCommit
    from .records import CoordinatorRecord

CONSUMER = "consumer"
"""The protocol type of consumers; the coordinator never reads the metadata of other types (Kafka Connect, …)."""


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
    def session_held_by(self) -> str | None: ...  # noqa: D102
    @property
    def running_session_ms(self) -> int: ...  # noqa: D102
    @property
    def last_call(self) -> Call | None: ...  # noqa: D102
    @property
    def session(self) -> SessionExpiry: ...  # noqa: D102
    @property
    def session_began_ms(self) -> int: ...  # noqa: D102
    @property
    def session_timeout_ms(self) -> int: ...  # noqa: D102


class BaseGroup:
    """The coordinator's state of one `group.id`, whatever its protocol. `kind` is its type in ListGroups (KIP-848).

    `partition` of `__consumer_offsets` stores it. Timers are due in the time of the group's own `clock`; `now` is the
    clock's reading at the current input. It is no ABC, because every ConsumerGroupHeartbeat asks with
    `isinstance` whether its group is a consumer group, which takes an ABC many times as long.
    """

    __slots__ = (
        "clock",
        "earliest_offset_expiry",
        "frozen_at",
        "held_requests",
        "id",
        "now",
        "partition",
        "stored",
        "table",
        "timers",
    )

    kind: ClassVar[str]

    expires: ClassVar[bool] = True
    """Whether an Empty group without offsets is removed by itself (`Group.shouldExpire`)."""

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
        self.table = OffsetTable()
        self.earliest_offset_expiry = 0
        """A lower bound: no committed offset expires earlier, unless the offsets or the state change. Most checks end
        here."""
        self.held_requests: list[tuple[Call, Message]] = []
        """Requests that would end the state of a frozen group; they wait for the thaw."""
        self.frozen_at = 0
        self.stored = False

    @property
    def offsets(self) -> dict[tuple[str, int], OffsetCommitValue]:
        """The committed offsets; their timestamps are in ms of the group's clock."""
        return self.table.committed

    @property
    def pending_offsets(self) -> dict[int, dict[tuple[str, int], PendingCommit]]:
        """The offsets of open transactions, by producer id (KIP-98)."""
        return self.table.pending

    @property
    @abstractmethod
    def state_name(self) -> str:
        """The state, as ListGroups shows it."""

    @property
    @abstractmethod
    def listed_protocol_type(self) -> str:
        """The protocol type, as ListGroups shows it."""

    @property
    def names_its_topics(self) -> bool:
        """Whether it is known which topics the group uses, so that offsets of others may be deleted (KIP-496)."""
        return self.listed_protocol_type == CONSUMER

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether the group is Empty: it has no members."""

    @property
    @abstractmethod
    def is_unused(self) -> bool:
        """Whether the group is Empty, without pending ids and offsets; commits may be in flight."""

    @abstractmethod
    def is_subscribed(self, topic: str) -> bool:
        """Return whether the group uses a topic, by the subscriptions of its members."""

    @abstractmethod
    def subscribed_topics(self, member_id: str) -> Collection[str]:
        """Return the topics that a member subscribes to; none if the group's members are no consumers."""

    @abstractmethod
    def partitions_of(self, member_id: str, topics: Mapping[UUID, TopicState]) -> dict[str, list[int]]:
        """Return the partitions of a member by topic, sorted; `topics` are those that exist.

        None if the group's members are no consumers, or the assignment cannot be read.
        """

    @property
    @abstractmethod
    def unsettled(self) -> list[str]:
        """The ids of the members without their part of the current assignment."""

    @abstractmethod
    def is_awaited(self, member_id: str) -> bool:
        """Return whether the group waits for a member's next step: a request, or its way to its target."""

    @abstractmethod
    def has_quiet_heartbeats(self, topics_version: int) -> bool:
        """Return whether heartbeats change nothing but sessions, at this version of the cluster's topics."""

    @abstractmethod
    def unused_since(self, topic: str, committed: OffsetCommitValue, dialect: Dialect) -> int | None:
        """Return the group time from which the group has not used a committed offset; None while it does (KIP-211)."""

    @abstractmethod
    def tombstones(self, dialect: Dialect) -> list[CoordinatorRecord]:
        """Return the records that delete the group from the log while it is Empty; offsets have their own."""

    @property
    def rebalance_timeout_ms(self) -> int:
        """The limit of a join phase in ms: the longest of the members' rebalance timeouts (KIP-62)."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def is_frozen(self) -> bool:
        """Whether the group is frozen in its state; see `GroupStore.freeze`."""
        return isinstance(self.timers, StoppedTimers)
