"""The names that assertions accept: APIs, errors, states and causes. Any other name raises ValueError."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

from ..config.suggest import did_you_mean
from ..trace.vocabulary import GROUP_STATES, REBALANCE_CAUSES

if TYPE_CHECKING:
    from collections.abc import Iterable

GROUP_APIS = (
    "FindCoordinator",
    "JoinGroup",
    "SyncGroup",
    "Heartbeat",
    "LeaveGroup",
    "OffsetCommit",
    "OffsetFetch",
    "OffsetDelete",
)
"""The APIs whose requests name one group; the trace files their lines under that group."""

ERRORS = tuple(error.name for error in Error)
"""Every error name of Kafka; NONE stands for success."""


def require_known(noun: str, name: str, known: Iterable[str]) -> str:
    """Return the name if it is known; else raise ValueError with the closest match, or with every known name."""
    names = list(known)
    if name in names:
        return name
    hint = did_you_mean(name, names) or f"; known: {', '.join(names) or 'none'}"
    raise ValueError(f"{noun} {name!r} is not known{hint}")


def require_group_api(name: str) -> str:
    """Return the name of an API whose requests name one group; raise ValueError for any other."""
    return require_known("of the requests that name one group, the API", name, GROUP_APIS)


def require_error(name: str) -> str:
    """Return the name of an error of Kafka; raise ValueError for any other."""
    return require_known("the error", name, ERRORS)


def require_cause(name: str) -> str:
    """Return the cause of a rebalance; raise ValueError for any other."""
    return require_known("the cause of a rebalance", name, REBALANCE_CAUSES)


def require_state(name: str) -> str:
    """Return a group state as DescribeGroups spells it; raise ValueError for any other."""
    return require_known("the state of a group", name, GROUP_STATES)


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()
