"""What a test may do to requests: rules, holds and lock-steps of a group or of the whole cluster."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from koordinator.emulator.control.faults.actions import RuleError, action_data
from koordinator.emulator.control.suggest import unknown

from .checks import WAIT_S
from .port import ClusterStopped

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType

    from koordinator.emulator.control.faults.actions import Action

    from .port import Port


class HoldTimeout(AssertionError):
    """What a hold or a lock-step waited for did not come in time, or cannot come. The text says what keeps it back."""


class MatchWords(TypedDict, total=False):
    """Which requests, besides their API; see `emulator.control.faults.rules.Match`. Texts are globs (`svc-*`)."""

    version: str | int
    client_id: str
    group: str
    member: str
    instance_id: str
    broker: int
    generation: int
    state: str


class RuleWords(MatchWords, total=False):
    """Which requests; when, as at most one of the next five says; and what else a rule may be."""

    once: bool
    times: int
    nth: int
    every: int
    probability: float
    id: str
    optional: bool


MATCH_WORDS = tuple(MatchWords.__annotations__)
TRIGGER_WORDS = ("once", "times", "nth", "every", "probability")
OTHER_WORDS = ("id", "optional")


@dataclass(frozen=True, slots=True)
class Request:
    """A request that a rule has acted on, or that is held. Numbers are those of the trace."""

    api: str
    version: int
    connection: int
    correlation_id: int
    client_id: str
    group: str | None
    member_id: str | None
    node: int


class Rule:
    """A rule of a cluster. Each property asks anew."""

    def __init__(self, port: Port, data: Mapping[str, Any]) -> None:
        self._port = port
        self.id: str = data["id"]
        self._text: str = data["text"]

    def __repr__(self) -> str:
        return f"<Rule {self._text}>"

    @property
    def hits(self) -> int:
        """How many requests it has acted on."""
        return int(self._look()["hits"])

    @property
    def matched(self) -> int:
        """How many requests it has matched, whether it was to act on them or not."""
        return int(self._look()["matched"])

    @property
    def requests(self) -> list[Request]:
        """What it has acted on, the newest last; at most the last 100."""
        return [Request(**each) for each in self._look()["requests"]]

    @property
    def last(self) -> Request | None:
        """What it has acted on last."""
        return next(reversed(self.requests), None)

    def remove(self) -> None:
        """End it; what it has decided about requests stays so. RuleError (a ValueError) if it has ended."""
        self._port.call("faults.remove_rule", rule=self.id)

    def _look(self) -> Mapping[str, Any]:
        looked: Mapping[str, Any] = self._port.call("faults.rule", rule=self.id)
        return looked


class Held:
    """A hold, from when it is made to the end of its block. What it has entered is let go at the end, at the latest."""

    def __init__(self, port: Port, data: Mapping[str, Any]) -> None:
        self._port = port
        self.id: str = data["id"]
        self._text = f"{self.id} on {_said(data['match'])}"

    def __repr__(self) -> str:
        return f"<Held {self._text}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end_hold(self._port, self.id)

    @property
    def entered(self) -> list[Request]:
        """The requests in it now."""
        return [Request(**each) for each in self._look()["inside"]]

    @property
    def behind(self) -> list[Request]:
        """The requests that wait on the same connections behind what is held; a connection is answered in order."""
        return [Request(**each) for each in self._look()["behind"]]

    def wait_entered(self, timeout: float = WAIT_S) -> Request:
        """Wait until a request has entered, and return it. `timeout` is in seconds.

        Raises HoldTimeout (an AssertionError); at once, if the request that would enter stands behind another hold.
        """
        given = self._port.wait("holds.entered", timeout, hold=self.id)
        if given["deadlock"]:
            raise HoldTimeout(given["deadlock"])
        if not given["ok"]:
            near = self._port.call("holds.near", hold=self.id)
            said = f"nothing entered {self._text} within {timeout:g} s: {near}"
            raise HoldTimeout("\n".join([said, *self._others()]))
        return Request(**given["first"])

    def release(self, error: str | None = None, at: str | None = None) -> None:
        """Let go what is held, and hold nothing more. With an error's name it is answered so, and not applied.

        RuleError (a ValueError) if nothing has entered yet, or if it was released before.
        """
        self._port.call("holds.release", hold=self.id, error=error, at=at)

    def _look(self) -> Mapping[str, Any]:
        looked: Mapping[str, Any] = self._port.call("holds.look", hold=self.id)
        return looked

    def _others(self) -> list[str]:
        held: list[str] = self._port.call("holds.blocked")
        return ["what is held just now:", *(f"  {each}" for each in held)] if held else []


class Lockstep:
    """Requests of declared clients, served in rounds: when there is one of each, in an order that the seed gives."""

    def __init__(self, port: Port, data: Mapping[str, Any]) -> None:
        self._port = port
        self.id: str = data["id"]
        self._api: str = data["match"]["api"]
        self._waited = 0

    def __repr__(self) -> str:
        return f"<Lockstep {self.id} on {self._api}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end_hold(self._port, self.id)

    @property
    def rounds(self) -> int:
        """How many rounds there have been."""
        return int(self._port.call("holds.look", hold=self.id)["rounds"])

    def wait_round(self, timeout: float = WAIT_S) -> None:
        """Wait until the next round is complete: the first, when it is first called. `timeout` is in seconds.

        Raises HoldTimeout (an AssertionError), which names the clients that are missing.
        """
        given = self._port.wait("holds.round", timeout, hold=self.id, number=self._waited + 1)
        if not given["ok"]:
            missing = ", ".join(map(repr, given["missing"]))
            raise HoldTimeout(f"{self._api} round {self._waited + 1} of {self.id}: none of {missing} in {timeout:g} s")
        self._waited += 1


class FaultControls:
    """The part of `Group` that does something to requests."""

    _port: Port
    id: str

    def rule(self, api: str, action: Action, **words: Unpack[RuleWords]) -> Rule:
        """Let a rule act on requests of this group: `group.rule("OffsetCommit", faults.lose_reply(), nth=2)`.

        The words say which requests (`version client_id member instance_id broker generation state`), when it acts
        (`once times nth every probability`; always, if none is given), its `id`, and whether it is `optional`: a rule
        that is not and never acts fails the test. A request that names no group, such as a Fetch, is one of this group
        if a member of it has its client id. Raises RuleError (a ValueError) for what cannot be, or can never match.
        """
        return add_rule(self._port, api, action, {**words, "group": _glob(self.id)})

    def hold(self, api: str, **words: Unpack[MatchWords]) -> Held:
        """Stop requests of this group before they are applied, until they are released.

            with group.hold("OffsetCommit", client_id="svc-1") as held:
                held.wait_entered()
                …
                held.release()

        The words are those of `rule` that say which requests. Raises RuleError (a ValueError) for what can never be.
        """
        return add_hold(self._port, api, {**words, "group": _glob(self.id)})

    def lockstep(self, api: str, clients: Iterable[str]) -> Lockstep:
        """Serve these requests of this group in rounds, one of each client, whatever the order in which they come.

        Clients are named by client id or `group.instance.id`. Raises RuleError (a ValueError) for what can never be.
        """
        made = self._port.call("holds.lockstep", api=api, group=_glob(self.id), clients=list(clients))
        return Lockstep(self._port, made)


class ClusterFaults:
    """The part of `Cluster` that does something to requests."""

    _port: Port

    def rule(self, api: str, action: Action, **words: Unpack[RuleWords]) -> Rule:
        """Let a rule act on requests, as `Group.rule` does; of every group, unless `group=` says which. "*" is any API.

        Of the rules that match a request at most one that answers it acts, one that delays it, one that throttles and
        one that does something to the group: the oldest of each kind.
        """
        return add_rule(self._port, api, action, words)

    def hold(self, api: str, **words: Unpack[MatchWords]) -> Held:
        """Stop requests before they are applied, as `Group.hold` does; of every group, unless `group=` says which."""
        return add_hold(self._port, api, words)

    @property
    def rules(self) -> list[Rule]:
        """The rules there are, the oldest first."""
        return [Rule(self._port, each) for each in self._port.call("faults.rules")]

    @property
    def holds(self) -> list[Held]:
        """The holds there are, the oldest first."""
        return [Held(self._port, each) for each in self._port.call("holds.all") if not each["clients"]]

    def unused_rules(self) -> list[Rule]:
        """The rules that have never acted and are not optional."""
        unused = {each["rule"]["id"] for each in self._port.call("faults.unused")}
        return [rule for rule in self.rules if rule.id in unused]

    def check(self) -> None:
        """Raise AssertionError if a rule that is not optional has never acted; the pytest plugin does so at the end."""
        unused = self._port.call("faults.unused")
        if unused:
            lines = [f"  {each['text']}: {each['near']}" for each in unused]
            raise AssertionError("\n".join(["rules that were never used (optional=True allows it):", *lines]))

    def disturb(self, seed: int | None) -> None:
        """Delay requests and answers of group APIs by a few milliseconds, as a seed decides; None ends it."""
        self._port.call("faults.disturb", seed=seed)


def add_rule(port: Port, api: str, action: Action, words: Mapping[str, object]) -> Rule:
    """Add a rule that is said in words."""
    _check(words, (*MATCH_WORDS, *TRIGGER_WORDS, *OTHER_WORDS))
    rule: dict[str, object] = {
        "match": {"api": api, **_among(words, MATCH_WORDS)},
        "trigger": _among(words, TRIGGER_WORDS),
        "action": action_data(action),
        **_among(words, OTHER_WORDS),
    }
    return Rule(port, port.call("faults.add_rule", rule=rule))


def add_hold(port: Port, api: str, words: Mapping[str, object]) -> Held:
    """Add a hold that is said in words."""
    _check(words, MATCH_WORDS)
    return Held(port, port.call("holds.add", match={"api": api, **words}))


def end_hold(port: Port, hold: str) -> None:
    """End a hold. That it has ended already, with its cluster or by a reset, is no reason to hide what a test says."""
    with suppress(ClusterStopped, ValueError):
        port.call("holds.remove", hold=hold)


def _check(words: Mapping[str, object], known: Iterable[str]) -> None:
    for name in words:
        if name not in known:
            raise RuleError(unknown("word", name, known))


def _among(words: Mapping[str, object], names: Iterable[str]) -> dict[str, object]:
    return {name: words[name] for name in names if words.get(name) is not None}


def _said(match: Mapping[str, object]) -> str:
    more = ", ".join(f"{name}={value!r}" for name, value in match.items() if name != "api")
    return f"{match['api']}({more})"


def _glob(text: str) -> str:
    """A glob that matches this text alone."""
    return "".join(f"[{each}]" if each in "*?[" else each for each in text)
