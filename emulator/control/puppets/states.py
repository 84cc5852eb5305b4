"""Where a puppet is, what it waits for, and the errors after which it knows how to go on."""

from __future__ import annotations

from enum import Enum

from koordinator.wire.errors import Error

NO_GENERATION = -1

COORDINATOR_GONE = frozenset({Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE})
TRY_AGAIN = frozenset({Error.COORDINATOR_LOAD_IN_PROGRESS, Error.REBALANCE_IN_PROGRESS})
"""What a JoinGroup is refused with that is worth another try on the same connection."""

JOIN_AGAIN = COORDINATOR_GONE | {Error.REBALANCE_IN_PROGRESS, Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION}
"""What a SyncGroup is refused with that a JoinGroup helps with at once; after other errors it comes a little later."""


class PuppetState(Enum):
    """Where a puppet is; not what the coordinator thinks of it."""

    OUT = "out"
    JOINING = "joining"
    JOINED = "joined"
    SYNCING = "syncing"
    STABLE = "stable"
    LEAVING = "leaving"
    FAILED = "failed"


class Alarm(Enum):
    """What a puppet waits for in the time of its group."""

    BEAT = "beat"
    REJOIN = "rejoin"
    BEHAVE = "behave"

    # alarms are parts of keys, and hashed all the time: an enumeration's own is a function in Python
    __hash__ = object.__hash__
