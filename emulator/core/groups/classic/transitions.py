"""The transitions of a classic group: every cause that changes its state, and the state it leads to.

`changes.transition` looks up each change of state here; a change that is not in the table raises TransitionError.
The pairs of states are those of Kafka's `ClassicGroupState`. Some rows are additions: Kafka's coordinator loads a
group, or converts a consumer group, directly into Stable, and it never makes a deletion visible before it is durable,
so that it has none to undo.
"""

from __future__ import annotations

from ...refusal import TransitionError
from ..causes import Cause
from .group import ClassicGroupState

_EMPTY, _PREPARING, _COMPLETING, _STABLE, _DEAD = ClassicGroupState

TRANSITIONS: dict[tuple[ClassicGroupState, Cause], ClassicGroupState] = {
    (_EMPTY, Cause.MEMBER_JOIN): _PREPARING,
    (_EMPTY, Cause.LOADED): _STABLE,
    (_EMPTY, Cause.GROUP_DOWNGRADE): _STABLE,
    (_EMPTY, Cause.REMOVED): _DEAD,
    (_EMPTY, Cause.UNLOADED): _DEAD,
    (_PREPARING, Cause.JOINED): _COMPLETING,
    (_PREPARING, Cause.EMPTIED): _EMPTY,
    (_PREPARING, Cause.REMOVED): _DEAD,
    (_PREPARING, Cause.UNLOADED): _DEAD,
    (_COMPLETING, Cause.ASSIGNED): _STABLE,
    (_COMPLETING, Cause.STORE_ERROR): _PREPARING,
    (_COMPLETING, Cause.MEMBER_JOIN): _PREPARING,
    (_COMPLETING, Cause.METADATA_CHANGE): _PREPARING,
    (_COMPLETING, Cause.MEMBER_LEAVE): _PREPARING,
    (_COMPLETING, Cause.SESSION_EXPIRED): _PREPARING,
    (_COMPLETING, Cause.SYNC_TIMEOUT): _PREPARING,
    (_COMPLETING, Cause.FORCED): _PREPARING,
    (_COMPLETING, Cause.REMOVED): _DEAD,
    (_COMPLETING, Cause.UNLOADED): _DEAD,
    (_STABLE, Cause.MEMBER_JOIN): _PREPARING,
    (_STABLE, Cause.LEADER_REJOIN): _PREPARING,
    (_STABLE, Cause.METADATA_CHANGE): _PREPARING,
    (_STABLE, Cause.PROTOCOL_CHANGE): _PREPARING,
    (_STABLE, Cause.MEMBER_LEAVE): _PREPARING,
    (_STABLE, Cause.SESSION_EXPIRED): _PREPARING,
    (_STABLE, Cause.SYNC_TIMEOUT): _PREPARING,
    (_STABLE, Cause.OVER_CAPACITY): _PREPARING,
    (_STABLE, Cause.FORCED): _PREPARING,
    (_STABLE, Cause.GROUP_DOWNGRADE): _PREPARING,
    (_STABLE, Cause.UNLOADED): _DEAD,
    (_DEAD, Cause.STORE_ERROR): _EMPTY,
}
"""The next state by state and cause."""


def next_state(state: ClassicGroupState, cause: Cause) -> ClassicGroupState:
    """Return the state that a cause leads to. Raises TransitionError if the table has no such row."""
    try:
        return TRANSITIONS[state, cause]
    except KeyError:
        raise TransitionError(f"no transition from {state.value} for {cause.value}") from None
