"""Actions of rules, for `group.add_rule(api, action, …)` and `cluster.add_rule(api, action, …)`.

    from koordinator import faults

    group.add_rule("OffsetCommit", faults.lose_reply(), client_id="svc-*", nth=2)
    group.add_rule("JoinGroup", faults.delay("2s"))
    group.add_rule("SyncGroup", faults.delay(lognormal_ms=(90, 0.4)))
    group.add_rule("Heartbeat", faults.error("REBALANCE_IN_PROGRESS"), times=3)

Each makes a dataclass of `koordinator.emulator.control.faults.actions`, and has the name of its kind. An invalid
action raises RuleError, an invalid duration InvalidDuration (each a ValueError). A number is in milliseconds or bytes.
"""

from __future__ import annotations

from typing import Literal

from koordinator.emulator.control.faults import actions
from koordinator.emulator.control.faults.actions import Action, RuleError

from .handles.durations import Milliseconds, whole_ms_of

__all__ = [
    "Action",
    "RuleError",
    "delay",
    "drip",
    "drop",
    "error",
    "evict",
    "fence",
    "lose_reply",
    "never_answer",
    "rebalance",
    "throttle",
    "truncate",
    "wrong_correlation_id",
]


def delay(
    ms: Milliseconds | None = None,
    uniform_ms: tuple[int, int] | None = None,
    lognormal_ms: tuple[float, float] | None = None,
    clock: Literal["wall", "group"] = "wall",
) -> Action:
    """Apply the request at once and delay the response: by a time, or one drawn from (low, high) or (median, sigma).

    `delay("2s")` and `delay(2000)` are the same. `clock` is the node's or the group's.
    """
    return actions.Delay(None if ms is None else whole_ms_of(ms), uniform_ms, lognormal_ms, clock)


def drip(piece_bytes: int, every_ms: Milliseconds) -> Action:
    """Apply the request and send the response in pieces: `drip(4, "10ms")`."""
    return actions.Drip(piece_bytes, whole_ms_of(every_ms))


def throttle(ms: Milliseconds, mute: bool = False) -> Action:  # noqa: FBT001, FBT002 - as the field of the rule
    """Set `throttle_time_ms` in the response, as on an exceeded quota: `throttle("2s")`.

    With `mute` the connection's next request waits for that time, also in versions without the field (KIP-219).
    """
    return actions.Throttle(whole_ms_of(ms), mute)


drop = actions.Drop
error = actions.ReturnError
evict = actions.Evict
fence = actions.Fence
lose_reply = actions.LoseReply
never_answer = actions.NeverAnswer
rebalance = actions.ForceRebalance
truncate = actions.Truncate
wrong_correlation_id = actions.WrongCorrelationId
