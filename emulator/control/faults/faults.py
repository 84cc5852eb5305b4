"""Operations on fault rules and on the jitter of requests."""

from __future__ import annotations

from dataclasses import replace
from glob import escape
from itertools import count
from typing import TYPE_CHECKING

from ...broker.releases import ACCEPTED
from ...config.suggest import unknown
from ...trace.events import RequestReceived
from ..resolve import error_name
from ..results import RuleInfo, UnusedRule
from .actions import NoSuchRule, ReturnError, RuleConflict, RuleError, Throttle, action_data
from .in_flight import RuleStats
from .request_context import RequestContext
from .rules import ANY_API, API_NAMES, FaultRule, Match

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...broker.cluster_runtime import ClusterRuntime
    from .fault_injector import FaultInjector


class Faults:
    """Operations on rules. Of the rules that match a request, the oldest of each slot acts (see `actions`)."""

    def __init__(self, runtime: ClusterRuntime, injector: FaultInjector) -> None:
        self._runtime = runtime
        self._injector = injector
        self._number = 0

    def add_rule(self, now: int, *, rule: Mapping[str, object]) -> RuleInfo:
        """Add a rule and return it.

        Raise RuleError (a ValueError) if the rule is invalid or can never match in this cluster.
        """
        rule_stats = self._injector.rule_stats
        number = next(number for number in count(self._number + 1) if f"rule-{number}" not in rule_stats)
        added = FaultRule.of(rule, f"rule-{number}")
        if isinstance(added.action, ReturnError):
            named = replace(added.action, name=error_name(self._runtime, added.action.name))
            added = replace(added, action=named)
        if added.id in rule_stats:
            raise RuleConflict(f"id {added.id!r}: a rule with this id exists already")
        check_match(self._runtime, added.match)
        self._number = number
        rule_stats[added.id] = RuleStats(added)
        self._injector.update_registration()
        self._injector.note_rule(now, "added", added)
        return _info(rule_stats[added.id])

    def throttle(self, now: int, *, group: str, ms: int) -> None:
        """Throttle the members of a group: responses carry the time, and their connections are muted for it.

        It lasts until it is called again; 0 ends it. Raise RuleError (a ValueError) for an invalid time.
        """
        action = Throttle(ms, mute=True)
        rule_id = f"throttle-{group.replace('%', '%25').replace(',', '%2C')}"
        if rule_id in self._injector.rule_stats:
            self.remove_rule(now, rule=rule_id)
        if ms:
            match = Match(ANY_API, group=escape(group))
            rule = FaultRule(rule_id, match, action, optional=True)
            self.add_rule(now, rule=rule.data())

    def remove_rule(self, now: int, *, rule: str) -> RuleInfo:
        """Remove a rule and return it. Its decisions on requests in flight stand."""
        stats = self._stats(rule)
        del self._injector.rule_stats[rule]
        self._injector.update_registration()
        self._injector.note_rule(now, "removed", stats.rule)
        return _info(stats)

    def rule(self, _now: int, *, rule: str) -> RuleInfo:
        """Return a rule with its `matched` and `hits` counts and the `requests` it acted on, newest last.

        A hit is a match on which the rule acted. A request has the keys `api`, `version`, `connection`,
        `correlation_id`, `client_id`, `group`, `member_id` and `node`.
        """
        return _info(self._stats(rule))

    def rules(self, _now: int) -> list[RuleInfo]:
        """Return all rules, oldest first."""
        return [_info(stats) for stats in self._injector.rule_stats.values()]

    def unused(self, _now: int) -> list[UnusedRule]:
        """Return the required rules that never acted: `rule`, its `text`, and `near`, the closest request seen."""
        return [
            UnusedRule(stats.rule.data(), str(stats.rule), self._near(stats))
            for stats in self._injector.rule_stats.values()
            if not stats.acted and not stats.rule.optional
        ]

    def add_jitter(self, _now: int, *, seed: int | None) -> None:
        """Add small random delays, drawn from `seed`, to requests and responses of group APIs.

        The jitter varies the order in which clients reach the coordinator. None turns it off.
        """
        self._injector.jitter_seed = seed
        self._injector.update_registration()

    def _stats(self, rule_id: str) -> RuleStats:
        rule_stats = self._injector.rule_stats
        if rule_id not in rule_stats:
            raise NoSuchRule("rule", unknown("rule", rule_id, rule_stats))
        return rule_stats[rule_id]

    def _near(self, stats: RuleStats) -> str:
        if stats.matched:
            times = "once" if stats.matched == 1 else f"{stats.matched} times"
            return f"it matched {times}, but its trigger never fired"
        return nearest(self._runtime, stats.rule.match)


def nearest(runtime: ClusterRuntime, match: Match) -> str:
    """Describe the traced request that differs least from a match that nothing matched."""
    received = [event for event in runtime.trace.events_after(0) if isinstance(event, RequestReceived)]
    contexts = [RequestContext(runtime, 0, event.call, event.request) for event in received]
    contexts = [context for context in contexts if match.api in (ANY_API, context.api)]
    api = "request" if match.api == ANY_API else match.api
    if not contexts:
        return f"no {api} was seen"
    closest = min(contexts, key=lambda context: len(match.differences(context)))
    fields = ", ".join(match.differences(closest)) or "its time, or the group's state at that time"
    return f"{len(contexts)} {api} seen; the closest is from client {closest.client_id!r} and differs in {fields}"


def check_match(runtime: ClusterRuntime, match: Match) -> None:
    """Raise RuleError if no request to this cluster can match."""
    if match.broker is not None and match.broker not in runtime.states:
        raise RuleError(unknown("broker", match.broker, map(str, runtime.states)))
    if match.api == ANY_API:
        return
    release = runtime.cluster.settings.kafka_version
    accepted = ACCEPTED[release].get(API_NAMES[match.api].key)
    low, high = match.versions
    if accepted is None or low > accepted.max or high < accepted.min:
        served = "no version" if accepted is None else f"versions {accepted}"
        raise RuleError(f"{match}: Kafka {release} serves {served} of {match.api}")


def _info(stats: RuleStats) -> RuleInfo:
    rule = stats.rule
    return RuleInfo(
        id=rule.id,
        match=rule.match.data(),
        action=action_data(rule.action),
        trigger=rule.trigger.data(),
        optional=rule.optional,
        text=str(rule),
        hits=stats.acted,
        matched=stats.matched,
        requests=list(stats.requests),
    )
