"""What rules do to requests and answers: an action for `group.rule(api, action, …)` and `cluster.rule(api, action, …)`.

    from koordinator import faults

    group.rule("OffsetCommit", faults.lose_reply(), client_id="svc-*", nth=2)
    group.rule("JoinGroup", faults.delay(lognormal_ms=(90, 0.4)))
    group.rule("Heartbeat", faults.error("REBALANCE_IN_PROGRESS"), times=3)

Each is a small frozen dataclass (see `koordinator.emulator.control.faults.actions`); RuleError (a ValueError) is
raised for what cannot be. Times are in milliseconds, sizes in bytes.
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
    """Answer with an error, by its name in Kafka, instead of applying the request.

    `at` is "top", "partition" or "member": where the answer says it, if its API has several places for errors.
    """
    return ReturnError(name, at)


def delay(
    ms: int | None = None,
    *,
    uniform_ms: tuple[int, int] | None = None,
    lognormal_ms: tuple[float, float] | None = None,
    clock: str = "wall",
) -> Delay:
    """Apply the request at once and let its answer leave later: by `ms`, or a time drawn from the cluster's seed.

    `uniform_ms` is (from, to), `lognormal_ms` (median, sigma). `clock` "group": in the group's own time.
    """
    return Delay(ms, uniform_ms, lognormal_ms, clock)


def drop() -> Drop:
    """Close the connection; the request is not applied."""
    return Drop()


def lose_reply() -> LoseReply:
    """Apply the request, and close the connection instead of answering."""
    return LoseReply()


def never_answer(*, apply: bool = False) -> NeverAnswer:
    """Say nothing, and leave the connection open; `apply` says whether the request is applied."""
    return NeverAnswer(apply)


def truncate(at: int) -> Truncate:
    """Apply the request, send the first `at` bytes of the answer (its length included), and close the connection."""
    return Truncate(at)


def drip(piece_bytes: int, every_ms: int) -> Drip:
    """Apply the request, and send the answer in pieces of so many bytes, one every so many milliseconds."""
    return Drip(piece_bytes, every_ms)


def wrong_correlation_id() -> WrongCorrelationId:
    """Apply the request, and answer under another correlation id."""
    return WrongCorrelationId()


def throttle(ms: int) -> Throttle:
    """Say `throttle_time_ms` in the answer. Nothing is delayed by it: clients wait of themselves."""
    return Throttle(ms)


def evict(member: str | None = None, as_if: str = "poll_timeout") -> Evict:
    """Let a member go just before the request is looked at: who asks, or the one that is named. See `Group.evict`."""
    return Evict(member, as_if)


def fence(instance: str | None = None) -> Fence:
    """Let another take over a `group.instance.id` just before the request is looked at: that of who asks, or this."""
    return Fence(instance)


def rebalance(cause: str = FORCED) -> ForceRebalance:
    """Start a rebalance of the group just before the request is looked at."""
    return ForceRebalance(cause)
