"""Writes to `__consumer_offsets` under way: what to do when they are done, or have failed, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from koordinator.wire.errors import Error
    from koordinator.wire.messages.leave_group import LeaveGroupResponse
    from koordinator.wire.messages.offset_commit import OffsetCommitRequest
    from koordinator.wire.messages.offset_delete import OffsetDeleteResponse

    from ..effects import Call
    from .classic.group import ClassicGroup, ClassicMember, CommittedOffset, Protocols


@dataclass(slots=True)
class GroupCreated:
    """A new group's first record."""

    group: ClassicGroup


@dataclass(slots=True)
class GroupEmptied:
    """A join phase ended without members; `answers` wait for it, those to the LeaveGroup that brought it about."""

    group: ClassicGroup
    answers: list[tuple[Call, LeaveGroupResponse]] = field(default_factory=list)


@dataclass(slots=True)
class AssignmentStored:
    """The leader's assignment for a generation; the parked SyncGroups are answered afterwards."""

    group: ClassicGroup
    generation: int
    leader_id: str
    assignments: dict[str, bytes]


@dataclass(slots=True)
class StaticMemberReplaced:
    """A static member's new id, without a rebalance; with what it takes to go back to the old one."""

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
    """Offsets of one OffsetCommit; `refused` are those of its partitions, by their place in it, that are not stored."""

    group: ClassicGroup
    call: Call
    request: OffsetCommitRequest
    offsets: dict[tuple[str, int], CommittedOffset]
    refused: dict[tuple[int, int], Error]


@dataclass(slots=True)
class OffsetsDeleted:
    """Tombstones of offsets, already out of sight; with what it takes to bring them back."""

    group: ClassicGroup
    offsets: dict[tuple[str, int], CommittedOffset]
    call: Call | None = None
    response: OffsetDeleteResponse | None = None


@dataclass(slots=True)
class GroupDeleted:
    """Tombstones of a whole group, already out of the table; `answer` collects the rows of DeleteGroups."""

    group: ClassicGroup
    answer: PendingDeletion | None = None


@dataclass(slots=True)
class PendingDeletion:
    """The rows of one DeleteGroups, and how many writes it still waits for."""

    call: Call
    results: dict[str, Error]
    waiting: int = 0


Write = (
    GroupCreated
    | GroupEmptied
    | AssignmentStored
    | StaticMemberReplaced
    | OffsetsCommitted
    | OffsetsDeleted
    | GroupDeleted
)
