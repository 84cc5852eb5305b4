"""States and timers of puppets, and the errors that they recover from."""

from __future__ import annotations

from enum import Enum

from koordinator.wire.errors import Error

NO_GENERATION = -1

COORDINATOR_MOVED = frozenset({Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE})
RETRIABLE = frozenset({Error.COORDINATOR_LOAD_IN_PROGRESS, Error.REBALANCE_IN_PROGRESS})
"""JoinGroup errors that are retried on the same connection."""

REJOIN_AT_ONCE = COORDINATOR_MOVED | {Error.REBALANCE_IN_PROGRESS, Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION}
"""SyncGroup errors after which a puppet rejoins at once; after other errors it backs off first."""

INSTANCE_IN_USE = (Error.FENCED_INSTANCE_ID, Error.UNRELEASED_INSTANCE_ID)
"""The fatal errors of a member whose instance id another member has."""


class PuppetState(Enum):
    """The state of a puppet from its own view, not the coordinator's."""

    OUT = "out"
    JOINING = "joining"
    JOINED = "joined"
    SYNCING = "syncing"
    RECONCILING = "reconciling"
    STABLE = "stable"
    LEAVING = "leaving"
    FAILED = "failed"


MEMBERS = (PuppetState.JOINED, PuppetState.RECONCILING, PuppetState.STABLE)
"""The states of a member that waits for no response to a join or sync."""


class PuppetTimer(Enum):
    """A puppet's timers in group time."""

    HEARTBEAT = "heartbeat"
    REJOIN = "rejoin"
    BEHAVE = "behave"

    # timer keys are hashed often, and Enum.__hash__ is a Python function
    __hash__ = object.__hash__
