"""Actions of rules, for `group.rule(api, action, …)` and `cluster.rule(api, action, …)`.

    from koordinator import faults

    group.rule("OffsetCommit", faults.lose_reply(), client_id="svc-*", nth=2)
    group.rule("JoinGroup", faults.delay(lognormal_ms=(90, 0.4)))
    group.rule("Heartbeat", faults.error("REBALANCE_IN_PROGRESS"), times=3)

Each is a frozen dataclass of `koordinator.emulator.control.faults.actions`. An invalid action raises RuleError (a
ValueError). Times are in milliseconds, sizes in bytes.
"""

from __future__ import annotations

from koordinator.emulator.control.faults.actions import (
    Action,
    Delay,
    Drip,
    Drop,
    Evict,
    Fence,
    ForceRebalance,
    LoseReply,
    NeverAnswer,
    ReturnError,
    RuleError,
    Throttle,
    Truncate,
    WrongCorrelationId,
)
from koordinator.emulator.control.verbs import FORCED

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


def error(name: str, at: str | None = None) -> ReturnError:
    """Respond with an error, by its name in Kafka, instead of applying the request.

    `at` is the place of the error in the response, "top", "partition" or "member", if its API has several.
    """
    return ReturnError(name, at)


def delay(
    ms: int | None = None,
    *,
    uniform_ms: tuple[int, int] | None = None,
    lognormal_ms: tuple[float, float] | None = None,
    clock: str = "wall",
) -> Delay:
    """Apply the request at once and delay its response by `ms`, or by a time drawn from the cluster's seed.

    `uniform_ms` is (from, to), `lognormal_ms` (median, sigma). `clock` "group" measures in the group's time.
    """
    return Delay(ms, uniform_ms, lognormal_ms, clock)


def drop() -> Drop:
    """Close the connection without applying the request."""
    return Drop()


def lose_reply() -> LoseReply:
    """Apply the request, and close the connection instead of responding."""
    return LoseReply()


def never_answer(*, apply: bool = False) -> NeverAnswer:
    """Send no response and leave the connection open; apply the request only if `apply`."""
    return NeverAnswer(apply)


def truncate(at: int) -> Truncate:
    """Apply the request, send the first `at` bytes of the response, including its length, and close the connection."""
    return Truncate(at)


def drip(piece_bytes: int, every_ms: int) -> Drip:
    """Apply the request, and send the response in pieces of `piece_bytes`, one every `every_ms` milliseconds."""
    return Drip(piece_bytes, every_ms)


def wrong_correlation_id() -> WrongCorrelationId:
    """Apply the request, and respond with another correlation id."""
    return WrongCorrelationId()


def throttle(ms: int) -> Throttle:
    """Set `throttle_time_ms` in the response. The response is not delayed: clients delay their next request."""
    return Throttle(ms)


def evict(member: str | None = None, as_if: str = "poll_timeout") -> Evict:
    """Evict the request's member, or a named one, before the request is applied. See `Group.evict`."""
    return Evict(member, as_if)


def fence(instance: str | None = None) -> Fence:
    """Fence the request's `group.instance.id`, or a named one, before the request is applied. See `Group.fence`."""
    return Fence(instance)


def rebalance(cause: str = FORCED) -> ForceRebalance:
    """Start a rebalance of the group before the request is applied."""
    return ForceRebalance(cause)
