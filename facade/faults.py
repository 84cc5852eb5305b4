"""Actions of rules, for `group.rule(api, action, …)` and `cluster.rule(api, action, …)`.

    from koordinator import faults

    group.rule("OffsetCommit", faults.lose_reply(), client_id="svc-*", nth=2)
    group.rule("JoinGroup", faults.delay(lognormal_ms=(90, 0.4)))
    group.rule("Heartbeat", faults.error("REBALANCE_IN_PROGRESS"), times=3)

Each is a dataclass of `koordinator.emulator.control.faults.actions`, under the name of its kind. An invalid
action raises RuleError (a ValueError). Times are in milliseconds, sizes in bytes.
"""

from __future__ import annotations

from koordinator.emulator.control.faults import actions
from koordinator.emulator.control.faults.actions import Action, RuleError

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

delay = actions.Delay
drip = actions.Drip
drop = actions.Drop
error = actions.ReturnError
evict = actions.Evict
fence = actions.Fence
lose_reply = actions.LoseReply
never_answer = actions.NeverAnswer
rebalance = actions.ForceRebalance
throttle = actions.Throttle
truncate = actions.Truncate
wrong_correlation_id = actions.WrongCorrelationId
