"""What each kind of group decides for itself: one `GroupKind` for each, listed in `kinds`.

The coordinator, the requests that every kind of group gets, and the levers of tests ask the group's kind; none asks for
the class of a group. What needs no more than the group's own data is a method of `BaseGroup`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from .group import BaseGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from koordinator.wire.errors import Error
    from koordinator.wire.messages.heartbeat import HeartbeatRequest
    from koordinator.wire.messages.join_group import JoinGroupRequest
    from koordinator.wire.messages.leave_group import LeaveGroupRequest
    from koordinator.wire.messages.offset_commit import OffsetCommitRequest
    from koordinator.wire.messages.offset_fetch import OffsetFetchRequestGroup
    from koordinator.wire.messages.sync_group import SyncGroupRequest
    from koordinator.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

    from ..effects import Answer, Call
    from ..timers import TimerKey
    from .causes import Reason
    from .group_store import GroupStore
    from .records import CoordinatorRecord

G = TypeVar("G", bound=BaseGroup)


def _nothing(*_: object) -> None:
    """Do what a kind does that has nothing to do."""


@dataclass(frozen=True, kw_only=True)
class GroupKind(Generic[G]):
    """The rules of one kind of group. Each gets the store, which has the settings and takes effects, and a group."""

    join: Callable[[GroupStore, G, Call, JoinGroupRequest], None]
    """Answers or parks a JoinGroup."""

    sync: Callable[[GroupStore, G, Call, SyncGroupRequest], None]
    """Answers or parks a SyncGroup."""

    heartbeat: Callable[[GroupStore, G, Call, HeartbeatRequest], Error]
    """Returns the error of a Heartbeat, and restarts the session of a valid member."""

    leave: Callable[[GroupStore, G, Call, LeaveGroupRequest], None]
    """Answers a LeaveGroup."""

    commit_error: Callable[[GroupStore, G, Call, OffsetCommitRequest], Error]
    """Returns why an OffsetCommit is refused, or NONE; of a classic member it restarts the session."""

    transactional_commit_error: Callable[[GroupStore, G, TxnOffsetCommitRequest], Error]
    """Returns why a TxnOffsetCommit is refused, or NONE."""

    fetch_error: Callable[[G, OffsetFetchRequestGroup], Error]
    """Returns why an OffsetFetch is refused, or NONE."""

    fire: Callable[[GroupStore, G, TimerKey], None]
    """Acts on a timer that is due."""

    end: Callable[[GroupStore, G, Reason], None]
    """Moves a group that is removed or unloaded to Dead."""

    restore: Callable[[GroupStore, G, str], None] = _nothing
    """Takes the end of an Empty group back, for a reason in words, because its tombstones could not be written."""

    unload: Callable[[GroupStore, G], None] = _nothing
    """Fails the parked requests with NOT_COORDINATOR."""

    keys: tuple[type, ...]
    """The classes of the keys of the group's records."""

    replaces: Callable[[CoordinatorRecord], bool]
    """Whether a record stands for the group as a whole, or deletes it, so that no earlier one counts."""

    load: Callable[[GroupStore, int, str, Sequence[CoordinatorRecord]], G]
    """Creates the group with this id at the node's time from its records that count, oldest first; maybe none."""

    force_rebalance: Callable[[GroupStore, G, Reason], None]
    """Starts a rebalance that a test asks for. Raises ValueError in a state that has none."""

    delete: Callable[[GroupStore, G, Iterable[Answer]], None]
    """Deletes an Empty group with its offsets; the answers wait for it."""

    topics_deleted: Callable[[GroupStore, G], None] = _nothing
    """Forgets topics that do not exist any more, besides committed offsets."""

    thaw: Callable[[GroupStore, G], None] = _nothing
    """Catches up on what was due while the group was frozen, besides timers and requests."""
