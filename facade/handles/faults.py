"""Rules, holds and lock-steps on requests, of one group or of the whole cluster."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Self, TypedDict, Unpack

from koordinator.emulator.config.suggest import unknown
from koordinator.emulator.control.faults import actions
from koordinator.emulator.control.faults.actions import RuleError, action_data
from koordinator.emulator.control.faults.faults import Faults
from koordinator.emulator.control.faults.holds import Holds
from koordinator.emulator.control.results import Member, Request

from .durations import Duration, Milliseconds, seconds_of, whole_ms_of
from .errors import KoordinatorTimeout
from .handle import Handle
from .names import (
    GroupHandle,
    GroupLike,
    MemberLike,
    NodeHandle,
    NodeLike,
    PuppetHandle,
    exact_glob,
    member_name,
    member_names,
)
from .port import WAIT_S, ClusterStopped
from .renames import Renamed, renamed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from koordinator.emulator.control.faults.actions import Action
    from koordinator.emulator.control.results import HoldInfo, RuleInfo, UnusedRule

    from .port import Port

__all__ = ["ClusterFaults", "FaultControls", "Hold", "HoldTimeout", "Lockstep", "Request", "Rule"]


class HoldTimeout(KoordinatorTimeout):
    """The request that a hold or a lock-step awaited did not arrive in time, or cannot arrive. The text says why."""


class MatchConditions(TypedDict, total=False):
    """Conditions on requests besides their API (`emulator.control.faults.rules.Match`). Texts are globs (`svc-*`)."""

    version: str | int
    client_id: str
    group: GroupLike
    member: MemberLike
    instance_id: str
    broker: NodeLike
    generation: int
    state: str
    transaction: str


class HoldOptions(MatchConditions, total=False):
    """Conditions on requests, and whether a hold that stops none is fine."""

    optional: bool


class RuleOptions(MatchConditions, total=False):
    """Conditions on requests, at most one trigger (`once` to `probability`), and the rule's own options."""

    once: bool
    times: int
    nth: int
    every: int
    probability: float
    id: str
    optional: bool


CONDITIONS = tuple(MatchConditions.__annotations__)
TRIGGERS = ("once", "times", "nth", "every", "probability")
OWN_OPTIONS = ("id", "optional")


class Rule(Handle):
    """A rule of a cluster. Each property reads its current state, or that at its removal.

    As a context manager its end removes the rule, and raises AssertionError if it never acted and is not `optional`,
    unless its block raises another error.
    """

    id: str

    def __init__(self, port: Port, info: RuleInfo) -> None:
        self._port = port
        self._removed: RuleInfo | None = None
        self.id = info.id
        self._text = info.text

    def __repr__(self) -> str:
        return f"<Rule {self._text}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        # a rule that is already removed must not hide the exception of its block
        with suppress(ClusterStopped, ValueError):
            unused = [] if kind is not None else [each for each in _unused(self._port) if each.rule["id"] == self.id]
            self.remove()
            _refuse_unused(unused)

    @property
    def hits(self) -> int:
        """The number of requests that the rule acted on."""
        return self._info().hits

    @property
    def matched(self) -> int:
        """The number of requests that matched, including those that the trigger skipped."""
        return self._info().matched

    @property
    def requests(self) -> list[Request]:
        """The last 100 requests that the rule acted on, newest last."""
        return self._info().requests

    @property
    def last(self) -> Request | None:
        """The last request that the rule acted on."""
        return next(reversed(self.requests), None)

    def remove(self) -> None:
        """Remove the rule; its decisions about earlier requests stay. Raises RuleError if it was removed before."""
        self._removed = self._port.call(Faults.remove_rule, rule=self.id)

    def _info(self) -> RuleInfo:
        return self._removed or self._port.call(Faults.rule, rule=self.id)


class _HoldHandle(Handle):
    """The base of holds and lock-steps: its end removes the hold."""

    id: str

    def __init__(self, port: Port, info: HoldInfo) -> None:
        self._port = port
        self.id = info.id

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object = None, *_: object) -> None:
        # a hold that is already removed must not hide the exception of its block
        with suppress(ClusterStopped, ValueError):
            self._port.call(Holds.remove, hold=self.id)

    def _info(self) -> HoldInfo:
        return self._port.call(Holds.look, hold=self.id)


class Hold(_HoldHandle):
    """A hold on requests, as a context manager. Its end releases the requests that are still parked.

    It raises AssertionError if no request has entered and the hold is not `optional`, unless its block raises another
    error.
    """

    def __init__(self, port: Port, info: HoldInfo, *, optional: bool = True) -> None:
        super().__init__(port, info)
        self._text = f"{self.id} on {_match_text(info.match)}"
        self._is_optional = optional

    def __exit__(self, kind: object = None, *_: object) -> None:
        near = None
        with suppress(ClusterStopped, ValueError):
            if kind is None and not self._is_optional and not self._info().entered:
                near = self._port.call(Holds.near, hold=self.id)
        super().__exit__(kind)
        if near is not None:
            raise AssertionError(f"nothing entered {self._text} (optional=True allows it): {near}")

    def __repr__(self) -> str:
        return f"<Hold {self._text}>"

    @property
    def parked(self) -> list[Request]:
        """The requests that are parked now."""
        return self._info().parked

    entered: Renamed[list[Request]] = Renamed("parked")

    @property
    def behind(self) -> list[Request]:
        """The requests queued behind parked ones: a connection is answered in order."""
        return self._info().behind

    def wait_entered(self, timeout: Duration = WAIT_S) -> Request:
        """Wait up to `timeout` until a request is parked, and return it.

        Raises HoldTimeout (an AssertionError); at once, if the request is queued behind another hold.
        """
        timeout_s = seconds_of(timeout)
        entry = self._port.wait(Holds.entered, timeout_s, hold=self.id)
        if entry.deadlock:
            raise HoldTimeout(entry.deadlock)
        if entry.first is None:
            near = self._port.call(Holds.near, hold=self.id)
            message = f"nothing entered {self._text} within {timeout_s:g} s: {near}"
            raise HoldTimeout("\n".join([message, *self._parked_requests()]))
        return entry.first

    def release(self, error: str | int | None = None, at: str | None = None) -> None:
        """Release the parked requests and park no more. With an error, by name or number, they are refused.

        Raises RuleError (a ValueError) before the first request, and after a release.
        """
        self._port.call(Holds.release, hold=self.id, error=error, at=at)

    def _parked_requests(self) -> list[str]:
        parked = self._port.call(Holds.parked)
        return ["parked requests:", *(f"  {each}" for each in parked)] if parked else []


class Lockstep(_HoldHandle):
    """Requests of named clients, applied in rounds: one of each client, in an order drawn from the seed."""

    def __init__(self, port: Port, info: HoldInfo) -> None:
        super().__init__(port, info)
        self._api = str(info.match["api"])
        self._rounds_seen = 0

    def __repr__(self) -> str:
        return f"<Lockstep {self.id} on {self._api}>"

    @property
    def rounds(self) -> int:
        """The number of complete rounds."""
        return self._info().rounds

    def wait_round(self, timeout: Duration = WAIT_S) -> None:
        """Wait up to `timeout` for the next complete round; the first call waits for the first round.

        Raises HoldTimeout (an AssertionError) with the names of the missing clients.
        """
        number, timeout_s = self._rounds_seen + 1, seconds_of(timeout)
        state = self._port.wait(Holds.round, timeout_s, hold=self.id, number=number)
        if not state.ok:
            missing = ", ".join(map(repr, state.missing))
            raise HoldTimeout(f"{self._api} round {number} of {self.id}: none of {missing} in {timeout_s:g} s")
        self._rounds_seen = number


class FaultControls(GroupHandle):
    """The part of `Group` that acts on requests."""

    def add_rule(self, api: str, action: Action, **options: Unpack[RuleOptions]) -> Rule:
        """Add a rule for requests of this group: `group.add_rule("OffsetCommit", faults.lose_reply(), nth=2)`.

        Options are conditions (`version client_id member instance_id broker generation state transaction`), at most one
        trigger (`once times nth every probability`; without one the rule always acts), the rule's `id`, and `optional`:
        other rules fail the test if they never act. A request without a group, such as Fetch, belongs to this group if
        one of its members has the client id. Raises RuleError (a ValueError) for an invalid rule, or one that cannot
        match.
        """
        return add_rule(self._port, api, action, scoped(options, "group", self, self.id))

    rule = renamed(add_rule)

    def throttle(self, ms: Milliseconds) -> None:
        """Throttle the members of the group, as a quota does: `group.throttle("2s")`, until `group.throttle(0)`.

        Each response to a member carries `throttle_time_ms`, and the next request of its connection is served after
        that time. It is the rule `throttle-` with the group's id. Raises RuleError (a ValueError) for an invalid time.
        """
        self._port.call(Faults.throttle, group=self.id, ms=whole_ms_of(ms))

    def hold(self, api: str, **options: Unpack[HoldOptions]) -> Hold:
        """Park requests of this group before they are applied, until they are released.

            with group.hold("OffsetCommit", client_id="svc-1") as hold:
                hold.wait_entered()
                …
                hold.release()

        The conditions are those of `add_rule`. A block that ends without a held request fails, unless the hold is
        `optional`. Raises RuleError (a ValueError) for a hold that cannot match.
        """
        return add_hold(self._port, api, scoped(options, "group", self, self.id))

    def lockstep(self, api: str, clients: Sequence[MemberLike]) -> Lockstep:
        """Apply these requests of the group in rounds, one of each client, in any order of arrival.

        Clients are named by client id or `group.instance.id`. Raises RuleError (a ValueError) for invalid arguments.
        """
        info = self._port.call(Holds.lockstep, api=api, group=exact_glob(self.id), clients=member_names(clients))
        return Lockstep(self._port, info)


class ClusterFaults(Handle):
    """The part of `Cluster` that acts on requests."""

    def add_rule(self, api: str, action: Action, **options: Unpack[RuleOptions]) -> Rule:
        """Add a rule as `Group.add_rule` does, for every group unless `group=` is given. "*" is any API.

        At most four rules act on a request: the oldest matching rule that answers it, that delays it, that throttles
        its client, and that changes its group.
        """
        return add_rule(self._port, api, action, options)

    rule = renamed(add_rule)

    def hold(self, api: str, **options: Unpack[HoldOptions]) -> Hold:
        """Park requests as `Group.hold` does, of every group unless `group=` is given."""
        return add_hold(self._port, api, options)

    @property
    def rules(self) -> list[Rule]:
        """The rules, oldest first."""
        return [Rule(self._port, info) for info in self._port.call(Faults.rules)]

    @property
    def holds(self) -> list[Hold]:
        """The holds, oldest first, without lock-steps."""
        return [Hold(self._port, info) for info in self._port.call(Holds.all) if not info.clients]

    def unused_rules(self) -> list[Rule]:
        """Return the rules that have never acted and are not optional."""
        unused = {each.rule["id"] for each in _unused(self._port)}
        return [rule for rule in self.rules if rule.id in unused]

    def assert_rules_used(self) -> Self:
        """Raise AssertionError if a rule that is not optional never acted. The pytest plugin calls it at teardown."""
        _refuse_unused(_unused(self._port))
        return self

    check = renamed(assert_rules_used)

    def add_jitter(self, seed: int | None) -> None:
        """Delay group requests and responses by a few milliseconds, drawn from a seed; None ends it."""
        self._port.call(Faults.add_jitter, seed=seed)

    disturb = renamed(add_jitter)


def _unused(port: Port) -> list[UnusedRule]:
    return port.call(Faults.unused)


def _refuse_unused(unused: list[UnusedRule]) -> None:
    """Raise AssertionError if there are rules that never acted."""
    if unused:
        lines = [f"  {each.text}: {each.near}" for each in unused]
        raise AssertionError("\n".join(["rules that were never used (optional=True allows it):", *lines]))


def add_rule(port: Port, api: str, action: Action, options: Mapping[str, object]) -> Rule:
    """Add a rule; a wrong action or option raises RuleError."""
    if not isinstance(action, actions.Action):
        raise RuleError(f"action {action!r}: must be one of koordinator.faults, such as faults.drop()")
    _check_names(options, (*CONDITIONS, *TRIGGERS, *OWN_OPTIONS))
    rule: dict[str, object] = {
        "match": {"api": api, **_conditions(options)},
        "trigger": _subset(options, TRIGGERS),
        "action": action_data(action),
        **_subset(options, OWN_OPTIONS),
    }
    return Rule(port, port.call(Faults.add_rule, rule=rule))


def add_hold(port: Port, api: str, options: Mapping[str, object]) -> Hold:
    """Add a hold; a wrong option raises RuleError."""
    _check_names(options, (*CONDITIONS, "optional"))
    info = port.call(Holds.add, match={"api": api, **_conditions(options)})
    return Hold(port, info, optional=bool(options.get("optional")))


def scoped(options: Mapping[str, object], name: str, value: object, own: str) -> dict[str, object]:
    """Return options of a rule or hold with a condition of their handle. Raises RuleError if they name another one."""
    if name in options:
        raise RuleError(f"{name}={options[name]!r}: this is for {name} {own!r}; call the method of the cluster")
    return {**options, name: value}


def _check_names(options: Mapping[str, object], known: Iterable[str]) -> None:
    for name in options:
        if name not in known:
            raise RuleError(unknown("option", name, known))


def _subset(options: Mapping[str, object], names: Iterable[str]) -> dict[str, object]:
    return {name: options[name] for name in names if options.get(name) is not None}


def _match_text(match: Mapping[str, object]) -> str:
    conditions = ", ".join(f"{name}={value!r}" for name, value in match.items() if name != "api")
    return f"{match['api']}({conditions})"


def _conditions(options: Mapping[str, object]) -> dict[str, object]:
    """Return the conditions as data; texts are globs, and a handle matches exactly its own name."""
    found = _subset(options, CONDITIONS)
    for name, value in found.items():
        if isinstance(value, GroupHandle):
            found[name] = exact_glob(value.id)
        elif isinstance(value, NodeHandle):
            found[name] = value.id
        elif isinstance(value, Member | PuppetHandle):
            found[name] = exact_glob(member_name(value))
    return found
