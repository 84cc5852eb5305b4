"""Writes to `__consumer_offsets` in flight: the data that completes or undoes each of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from koordinator.wire.errors import Error
    from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
    from koordinator.wire.messages.join_group import JoinGroupResponse
    from koordinator.wire.messages.leave_group import LeaveGroupResponse
    from koordinator.wire.messages.offset_commit import OffsetCommitRequest
    from koordinator.wire.messages.offset_delete import OffsetDeleteResponse
    from koordinator.wire.messages.offsets_topic import OffsetCommitValue
    from koordinator.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

    from ..effects import Call
    from .classic.group import ClassicGroup, ClassicMember, Protocols
    from .consumer.group import ConsumerGroup, SavedState
    from .group import BaseGroup

    Refused = dict[tuple[str, int], Error]
    """The errors of partitions that are refused while others are not."""
    Response = ConsumerGroupHeartbeatResponse | JoinGroupResponse | LeaveGroupResponse
    """The response of a request that changes the members of a consumer group."""


@dataclass(slots=True)
class GroupCreated:
    """The first record of a new group."""

    group: ClassicGroup


@dataclass(slots=True)
class GroupEmptied:
    """A join phase that ended without members; `responses` are the LeaveGroup responses that wait for the write."""

    group: ClassicGroup
    responses: list[tuple[Call, LeaveGroupResponse]] = field(default_factory=list)


@dataclass(slots=True)
class AssignmentStored:
    """The leader's assignment for a generation; the parked SyncGroups wait for the write."""

    group: ClassicGroup
    generation: int
    leader_id: str
    assignments: dict[str, bytes]


@dataclass(slots=True)
class StaticMemberReplaced:
    """A static member's new id, written without a rebalance, and the old data for an undo."""

    group: ClassicGroup
    call: Call
    member: ClassicMember
    old_id: str
    old_leader_id: str
    old_protocols: Protocols
    old_session_timeout_ms: int
    old_rebalance_timeout_ms: int


@dataclass(slots=True)
class OffsetsCommitted:
    """The offsets of one OffsetCommit; `refused` maps (topic index, partition index) of the request to an error."""

    group: BaseGroup
    call: Call
    request: OffsetCommitRequest
    offsets: dict[tuple[str, int], OffsetCommitValue]
    refused: dict[tuple[int, int], Error]
    position: int


@dataclass(slots=True)
class OffsetsToVerify:
    """A TxnOffsetCommit that waits for the transaction coordinator."""

    call: Call
    request: TxnOffsetCommitRequest
    refused: Refused


@dataclass(slots=True)
class TransactionalOffsetsWritten:
    """The offsets of one TxnOffsetCommit; `refused` maps partitions to errors, `position` orders the records."""

    group: BaseGroup
    call: Call
    request: TxnOffsetCommitRequest
    offsets: dict[tuple[str, int], OffsetCommitValue]
    refused: Refused
    position: int


@dataclass(slots=True)
class OffsetsDeleted:
    """Tombstones of offsets that are removed already, and the offsets for an undo."""

    group: BaseGroup
    offsets: dict[tuple[str, int], OffsetCommitValue]
    call: Call | None = None
    response: OffsetDeleteResponse | None = None


@dataclass(slots=True)
class GroupDeleted:
    """Tombstones of a group that is removed already; `deletion` collects the rows of the DeleteGroups response."""

    group: BaseGroup
    deletion: PendingDeletion | None = None


@dataclass(slots=True)
class ConsumerGroupChanged:
    """Records of a consumer group; the responses wait for them, and `undo` is the state before."""

    group: ConsumerGroup
    responses: list[tuple[Call | None, Response | None]]
    undo: SavedState


@dataclass(slots=True)
class GroupDowngraded:
    """Records of a consumer group that has become a classic one; the responses wait for them."""

    group: ClassicGroup
    consumer_group: ConsumerGroup
    responses: list[tuple[Call | None, Response | None]]


@dataclass(slots=True)
class PendingDeletion:
    """The rows of one DeleteGroups response, and the number of writes it waits for."""

    call: Call
    results: dict[str, Error]
    waiting: int = 0


def calls_of(write: Write) -> tuple[Call, ...]:
    """Return the calls whose responses wait for a write, except those parked on members."""
    deletion: PendingDeletion | None = getattr(write, "deletion", None)
    found = [getattr(write, "call", None), None if deletion is None else deletion.call]
    found += [call for call, _ in getattr(write, "responses", ())]
    return tuple(call for call in found if call is not None)


Write = (
    GroupCreated
    | GroupEmptied
    | AssignmentStored
    | StaticMemberReplaced
    | OffsetsCommitted
    | TransactionalOffsetsWritten
    | OffsetsDeleted
    | GroupDeleted
    | ConsumerGroupChanged
    | GroupDowngraded
)
