"""What happened to groups and their offsets, for the trace. Nothing depends on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.values import value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..effects import Call


@value
class StateChanged:
    """A group's change of state. `reason` has Kafka's wording, `cause` is its kind."""

    group_id: str
    group_now: int
    before: str
    after: str
    generation: int
    cause: str
    reason: str
    member_id: str | None = None
    client_reason: str | None = None


@value
class MemberChanged:
    """A change of membership; `change` is added, pending, loaded, removed or replaced.

    A loaded member has its `assignment`, as the record contains it.
    """

    group_id: str
    group_now: int
    member_id: str
    instance_id: str | None
    change: str
    cause: str
    reason: str
    assignment: bytes = b""


@value
class RebalanceAvoided:
    """The return of a static member to a Stable group without a rebalance (KIP-345)."""

    group_id: str
    group_now: int
    member_id: str
    instance_id: str
    generation: int
    reason: str


@value
class Superseded:
    """A parked call that will never be answered, as in Kafka.

    A newer request of the same member has replaced it; or it is a SyncGroup of a member that has left.
    """

    call: Call
    group_id: str
    member_id: str


@value
class TargetComputed:
    """The target of a consumer group for an epoch: by member id, the partitions of each topic (KIP-848)."""

    group_id: str
    group_now: int
    epoch: int
    assignor: str
    target: Mapping[str, Mapping[str, tuple[int, ...]]]


@value
class MemberReconciled:
    """A step of a member of a consumer group towards its target: revoke, wait, take, or reach the epoch (KIP-848).

    `state` is the member's (`MemberState`) in small letters; `revoking` are the partitions that it has to give up.
    """

    group_id: str
    group_now: int
    member_id: str
    instance_id: str | None
    epoch: int
    state: str
    assigned: Mapping[str, tuple[int, ...]]
    revoking: Mapping[str, tuple[int, ...]]


@value
class OffsetsExpired:
    """Committed offsets that were removed: by retention, by OffsetDelete, or with their topic."""

    group_id: str
    group_now: int
    partitions: tuple[tuple[str, int], ...]
    cause: str


@value
class PendingOffsetsDecided:
    """Offsets of a transaction (topic, partition, offset) that its marker committed or dropped."""

    group_id: str
    group_now: int
    producer_id: int
    offsets: tuple[tuple[str, int, int], ...]
    is_commit: bool


GroupFact = (
    StateChanged
    | MemberChanged
    | RebalanceAvoided
    | Superseded
    | TargetComputed
    | MemberReconciled
    | OffsetsExpired
    | PendingOffsetsDecided
)
