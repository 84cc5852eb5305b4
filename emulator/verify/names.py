"""The names that assertions may use: APIs, errors, states and causes. What is none of them is refused at once."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

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
"""The APIs whose requests name one group: the trace has them under that group."""

ERRORS = tuple(error.name for error in Error)
"""Every error of Kafka; NONE is the answer that all went well."""


def checked(what: str, name: str, known: Iterable[str]) -> str:
    """The name, if it is a known one. Else ValueError, with the nearest, or all of them if none is near."""
    names = list(known)
    if name in names:
        return name
    # a name in other letters is near, too: stable, offset_commit
    plain = {re.sub(r"[\W_]", "", each).lower(): each for each in names}
    near = get_close_matches(re.sub(r"[\W_]", "", str(name)).lower(), list(plain), n=1, cutoff=0.6)
    hint = f"did you mean {plain[near[0]]!r}?" if near else f"known: {', '.join(names) or 'none'}"
    raise ValueError(f"{what} {name!r} is not known; {hint}")


def api(name: str) -> str:
    """An API whose requests name one group."""
    return checked("of the requests that name one group, the API", name, GROUP_APIS)


def error(name: str) -> str:
    """An error by its name in Kafka."""
    return checked("the error", name, ERRORS)


def cause(name: str) -> str:
    """The cause of a rebalance."""
    return checked("the cause of a rebalance", name, REBALANCE_CAUSES)


def state(name: str) -> str:
    """The state of a group, as DescribeGroups spells it."""
    return checked("the state of a group", name, GROUP_STATES)
