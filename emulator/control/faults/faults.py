"""Rules, and the disturbance: what becomes of requests and answers, as data."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from ...broker.versions.releases import ACCEPTED
from ...trace.lines import RequestReceived
from ..suggest import unknown
from .actions import RuleError
from .in_flight import RuleStats
from .request_context import RequestContext
from .rules import ANY_API, API_NAMES, FaultRule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...broker.cluster_runtime import ClusterRuntime
    from .fault_injector import FaultInjector
    from .rules import Match


class Faults:
    """Rules on requests. Of those that match one, the oldest of each slot acts (`controls.actions`)."""

    def __init__(self, brokers: ClusterRuntime, gatekeeper: FaultInjector) -> None:
        self._brokers = brokers
        self._gatekeeper = gatekeeper
        self._number = 0

    def add_rule(self, now: int, *, rule: Mapping[str, object]) -> dict[str, object]:
        """Add a rule; gives it as `rule` does. RuleError (a ValueError) if it cannot be, or can never match here."""
        uses = self._gatekeeper.uses
        number = next(number for number in count(self._number + 1) if f"rule-{number}" not in uses)
        made = FaultRule.of(rule, f"rule-{number}")
        if made.id in uses:
            raise RuleError(f"id {made.id!r}: there is such a rule already")
        check_match(self._brokers, made.match)
        self._number = number
        uses[made.id] = RuleStats(made)
        self._gatekeeper.changed()
        self._gatekeeper.note_rule(now, "added", made)
        return _data(uses[made.id])

    def remove_rule(self, now: int, *, rule: str) -> dict[str, object]:
        """Remove a rule; gives what it was. What it has decided about requests stays so."""
        use = self._use(rule)
        del self._gatekeeper.uses[rule]
        self._gatekeeper.changed()
        self._gatekeeper.note_rule(now, "removed", use.rule)
        return _data(use)

    def rule(self, now: int, *, rule: str) -> dict[str, object]:
        """A rule: its data, how often it `matched`, its `hits` (it acted), and the `requests` it acted on, newest last.

        A request is `api version connection correlation_id client_id group member_id node`.
        """
        del now
        return _data(self._use(rule))

    def rules(self, now: int) -> list[dict[str, object]]:
        """The rules, the oldest first."""
        del now
        return [_data(use) for use in self._gatekeeper.uses.values()]

    def unused(self, now: int) -> list[dict[str, object]]:
        """The rules that are not optional and have never acted: `rule`, its `text`, and `near`, what came nearest."""
        del now
        return [
            {"rule": use.rule.data(), "text": str(use.rule), "near": self._near(use)}
            for use in self._gatekeeper.uses.values()
            if not use.acted and not use.rule.optional
        ]

    def disturb(self, now: int, *, seed: int | None) -> None:
        """Delay requests and answers of group APIs a little, as a seed decides, so that clients meet in other orders.

        None ends it.
        """
        del now
        self._gatekeeper.disturbed_by = seed
        self._gatekeeper.changed()

    def _use(self, rule_id: str) -> RuleStats:
        uses = self._gatekeeper.uses
        if rule_id not in uses:
            raise RuleError(unknown("rule", rule_id, uses))
        return uses[rule_id]

    def _near(self, use: RuleStats) -> str:
        if use.matched:
            times = "once" if use.matched == 1 else f"{use.matched} times"
            return f"it matched {times}, and was not to act then"
        return nearest(self._brokers, use.rule.match)


def nearest(brokers: ClusterRuntime, match: Match) -> str:
    """Which request of the trace is nearest to a match that has had none, in words."""
    asked = [each for each in brokers.trace.happenings(0) if isinstance(each, RequestReceived)]
    seen = [RequestContext(brokers, 0, each.call, each.request) for each in asked]
    sights = [sight for sight in seen if match.api in (ANY_API, sight.api)]
    what = "request" if match.api == ANY_API else match.api
    if not sights:
        return f"no {what} was seen"
    best = min(sights, key=lambda sight: len(match.differences(sight)))
    how = ", ".join(match.differences(best)) or "when it came, or how the group was then"
    return f"{len(sights)} {what} seen; the nearest is of client {best.client_id!r}, and differs in {how}"


def check_match(brokers: ClusterRuntime, match: Match) -> None:
    """RuleError if nothing in this cluster can match."""
    if match.broker is not None and match.broker not in brokers.states:
        raise RuleError(unknown("broker", match.broker, map(str, brokers.states)))
    if match.api == ANY_API:
        return
    release = brokers.cluster.settings.kafka_version
    accepted = ACCEPTED[release].get(API_NAMES[match.api].key)
    low, high = match.versions
    if accepted is None or low > accepted.max or high < accepted.min:
        served = "no version" if accepted is None else f"the versions {accepted}"
        raise RuleError(f"{match}: Kafka {release} serves {served} of {match.api}")


def _data(use: RuleStats) -> dict[str, object]:
    return {
        **use.rule.data(),
        "text": str(use.rule),
        "hits": use.acted,
        "matched": use.matched,
        "requests": list(use.requests),
    }
