"""Writes to `__consumer_offsets` under way: what to do when they are done, or have failed, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from koordinator.emulator.core.effects import Call
    from koordinator.emulator.core.group import CommittedOffset, Group, Member, Protocols
    from koordinator.wire.messages.join_group import JoinGroupRequest
    from koordinator.wire.messages.offset_commit import OffsetCommitResponse
    from koordinator.wire.messages.offset_delete import OffsetDeleteResponse


@dataclass(slots=True)
class GroupCreated:
    """A new group's first record; the JoinGroup that made it goes on afterwards."""

    group: Group
    call: Call
    request: JoinGroupRequest


@dataclass(slots=True)
class GroupEmptied:
    """A join phase ended without members."""

    group: Group


@dataclass(slots=True)
class AssignmentStored:
    """The leader's assignment for a generation; the parked SyncGroups are answered afterwards."""

    group: Group
    generation: int
    leader_id: str
    assignments: dict[str, bytes]


@dataclass(slots=True)
class StaticMemberReplaced:
    """A static member's new id, without a rebalance; with what it takes to go back to the old one."""

    group: Group
    call: Call
    member: Member
    old_id: str
    old_leader_id: str
    old_protocols: Protocols
    old_session_timeout_ms: int
    old_rebalance_timeout_ms: int


@dataclass(slots=True)
class OffsetsCommitted:
    """Offsets of one OffsetCommit; `response` is the answer if they are stored."""

    group: Group
    call: Call
    offsets: dict[tuple[str, int], CommittedOffset]
    response: OffsetCommitResponse


@dataclass(slots=True)
class OffsetsDeleted:
    """Tombstones of offsets, already out of sight; with what it takes to bring them back."""

    group: Group
    offsets: dict[tuple[str, int], CommittedOffset]
    call: Call | None = None
    response: OffsetDeleteResponse | None = None


@dataclass(slots=True)
class GroupDeleted:
    """Tombstones of a whole group, already out of the table; `answer` collects the rows of DeleteGroups."""

    group: Group
    answer: DeletionAnswer | None = None


@dataclass(slots=True)
class DeletionAnswer:
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


def group_write_error(error: Error) -> Error:
    """What a request is told when a record of its group, or a tombstone, could not be written.

    Kafka's `appendGroupMetadataErrorToResponseError` of the new coordinator.
    """
    match error:
        case Error.UNKNOWN_TOPIC_OR_PARTITION | Error.NOT_ENOUGH_REPLICAS | Error.REQUEST_TIMED_OUT:
            return Error.COORDINATOR_NOT_AVAILABLE
        case Error.NOT_LEADER_OR_FOLLOWER | Error.KAFKA_STORAGE_ERROR:
            return Error.NOT_COORDINATOR
        case Error.MESSAGE_TOO_LARGE | Error.RECORD_LIST_TOO_LARGE | Error.INVALID_FETCH_SIZE:
            return Error.UNKNOWN_SERVER_ERROR
        case _:
            return error


def offset_write_error(error: Error) -> Error:
    """What an OffsetCommit is told, for each partition, when its offsets could not be written."""
    match error:
        case (
            Error.UNKNOWN_TOPIC_OR_PARTITION
            | Error.NOT_ENOUGH_REPLICAS
            | Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            | Error.REQUEST_TIMED_OUT
        ):
            return Error.COORDINATOR_NOT_AVAILABLE
        case Error.NOT_LEADER_OR_FOLLOWER | Error.KAFKA_STORAGE_ERROR:
            return Error.NOT_COORDINATOR
        case Error.MESSAGE_TOO_LARGE | Error.RECORD_LIST_TOO_LARGE | Error.INVALID_FETCH_SIZE:
            return Error.INVALID_COMMIT_OFFSET_SIZE
        case _:
            return error
