"""Writing sequences by chance: the same seed writes the same ones.

An author plays what it writes to the core at once, and so knows in which state the group is: its clients mostly do
what they should, with mistakes strewn in, and it waits until shortly before or after a timer. Between a request and a
timer there are MARGIN_MS at least, so that a broker that is a little late has the same order of events. Timers may
still be close to each other: what is written is played again with everything late by chance, and a sequence whose
answers depend on that is not used.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from exploring import requests
from exploring.actors import OFFERS, Actor, Phase
from exploring.comparing import compare
from exploring.core import Core, play_to_core
from exploring.mistakes import MISTAKES
from exploring.releases import versions_of
from exploring.requests import INSTANCE_SINCE, Who
from exploring.steps import TOPICS, Id, Sequence, Step
from koordinator.emulator.core.groups.classic.group import ClassicGroupState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from exploring.core import Choices
    from exploring.releases import Release
    from exploring.steps import Played, Setup
    from koordinator.wire.apis import Message

MARGIN_MS = 120
"""A request is so far from every timer, before and after."""

LATE_MS = 90
"""Sequences say the same if everything is up to so much late."""

LATE_TRIES = 12
ACTORS_MAX = 5
REQUESTS = (12, 28)
LENGTH_MS = 9_000
"""No new idea is begun after so long."""

GAPS_MS = (30, 90)
"""Between two requests that do not wait for a timer."""

TYPES = ("consumer",) * 8 + ("connect",)
"""Groups that are not of consumers have their own rule for OffsetDelete."""

OLD_ONE_IN = 3
"""One request in so many is of an old version."""


class Author:
    """Writes one sequence."""

    def __init__(self, name: str, setup: Setup, release: Release) -> None:
        self.chance = Random(name)
        self.release = release
        self.core = Core(setup, release)
        self.steps: list[Step] = []
        self.type = self.chance.choice(TYPES)
        count = self.chance.randint(1, ACTORS_MAX)
        self.actors = [Actor.by_chance(self.chance, 1 + number, self.type) for number in range(count)]
        self._name = name
        self._setup = setup
        self._whose: dict[int, Actor] = {}
        self._heard: set[int] = set()

    def write(self) -> Sequence:
        """The sequence."""
        wanted = self.chance.randint(*REQUESTS)
        while len(self.steps) < wanted and self.core.now < LENGTH_MS:
            (idea,) = self.chance.choices(IDEAS, WEIGHTS)
            idea(self)
        self._let_pass(self.chance.choice((200, 200, 700, 1_500)))
        self.look()
        return Sequence(self._name, self._setup, tuple(self.steps), self.core.now + MARGIN_MS)

    # -- ideas -----------------------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Somebody does what the protocol wants of him next."""
        ready = [actor for actor in self.actors if actor.phase not in (Phase.JOINING, Phase.SYNCING)]
        waiting = [actor for actor in ready if actor.phase is not Phase.MEMBER] or ready
        if self._state is ClassicGroupState.PREPARING_REBALANCE and self.chance.random() < 0.7:
            waiting = ready
        if not waiting:
            return self.wait()
        actor = self.chance.choice(waiting)
        match actor.phase:
            case Phase.OUT | Phase.PENDING:
                self.join(actor)
            case Phase.JOINED:
                self.sync(actor)
            case Phase.MEMBER if self._state is ClassicGroupState.PREPARING_REBALANCE:
                self.join(actor)
            case _:
                self.beat(actor)
        return None

    def live(self) -> None:
        """A member does what members do between rebalances."""
        actor = self.chance.choice(self.actors)
        what = self.chance.choice((self.beat, self.commit, self.commit, self.fetch, self.rejoin, self.leave))
        what(actor)

    def err(self) -> None:
        """Somebody does something wrong."""
        self.chance.choice(MISTAKES)(self, self.chance.choice(self.actors))

    def look(self) -> None:
        """Somebody who is not a member looks at the group."""
        version = self.version("DescribeGroups")
        if self.chance.random() < 0.85:
            self.ask(None, requests.describe(version, operations=self.chance.random() < 0.2), version)
        else:
            version = self.version("ListGroups")
            states = self.chance.choice(((), ("Stable",), ("empty", "PreparingRebalance"), ("Dead",)))
            types = self.chance.choice(((), (), ("classic",), ("Consumer",)))
            self.ask(None, requests.listing(version, states, types), version)

    def wait(self) -> None:
        """Until shortly before or after some timer, while some members send heartbeats."""
        due = [at for at in self.core.deadlines() if at <= self.core.now + 3_200][:4]
        if not due:
            return self._let_pass(self.chance.randint(100, 400))
        until = self.chance.choice(due) + self.chance.choice((-1, 1)) * self.chance.randint(MARGIN_MS, 2 * MARGIN_MS)
        alive = [actor for actor in self.actors if actor.phase in (Phase.MEMBER, Phase.JOINED, Phase.PENDING)]
        alive = [actor for actor in alive if actor.generation >= 0]
        keepers = self.chance.sample(alive, min(len(alive), self.chance.choice((0, 1, 1, 2, 3))))
        while keepers and len(self.steps) < REQUESTS[1]:
            pause = max(min(actor.session_ms for actor in keepers) // 2, 300)
            if self.core.now + pause + MARGIN_MS > until:
                break
            self._let_pass(pause)
            for actor in keepers:
                self.beat(actor)
        self._let_pass(until - self.core.now)
        return None

    # -- what members do -------------------------------------------------------------------------------------

    def join(self, actor: Actor) -> None:
        """Join, with the id it has."""
        static = actor.instance_id is not None
        if actor.phase is Phase.MEMBER and self.chance.random() < 0.2:
            actor.protocols = self.chance.choice(OFFERS)
        version = self.version("JoinGroup", INSTANCE_SINCE["JoinGroup"] if static else 0)
        actor.phase, actor.current = Phase.JOINING, len(self.steps)
        self.ask(actor, actor.join(version, self.chance.choice((None, "because"))), version)

    def rejoin(self, actor: Actor) -> None:
        """Join again with nothing to do so; or, if static, start anew without an id."""
        if actor.phase not in (Phase.MEMBER, Phase.JOINED, Phase.JOINING):
            return self.go_on()
        if actor.instance_id is not None and self.chance.random() < 0.6:
            actor.id = ""
        return self.join(actor)

    def sync(self, actor: Actor) -> None:
        """Get, and as the leader bring, the assignment."""
        version = self.version("SyncGroup", INSTANCE_SINCE["SyncGroup"] if actor.instance_id else 0)
        actor.phase, actor.current = Phase.SYNCING, len(self.steps)
        brings = actor.leads or self.chance.random() < 0.6
        self.ask(actor, self.syncing(actor, version, self.assignments() if brings else {}), version)

    def syncing(self, actor: Actor, version: int, assignments: dict[Who, bytes]) -> Message:
        """SyncGroup as this member sends it."""
        return requests.sync(
            version, actor.generation, actor.id, actor.instance_id, assignments=assignments, protocol=self.protocol
        )

    @property
    def protocol(self) -> tuple[str, str]:
        """The type and the name that a member says there are."""
        group = self.core.group
        return self.type, (group.protocol_name if group is not None else None) or "range"

    def assignments(self) -> dict[Who, bytes]:
        """Something for everybody who is known, mostly; each time something else."""
        number = len(self.steps)
        known: Iterable[Who] = {actor.id: None for actor in self.actors if actor.id}
        if self.chance.random() < 0.1:
            known = [*known, "ghost"][self.chance.randint(0, 1) :]
        return {who: f"a{number}.{n}".encode() for n, who in enumerate(known)}

    def beat(self, actor: Actor) -> None:
        """Say that it lives."""
        version = self.version("Heartbeat", INSTANCE_SINCE["Heartbeat"] if actor.instance_id else 0)
        self.ask(actor, requests.heartbeat(version, actor.generation, actor.id, actor.instance_id), version)

    def commit(self, actor: Actor) -> None:
        """Commit an offset or two."""
        version = self.version("OffsetCommit", INSTANCE_SINCE["OffsetCommit"] if actor.instance_id else 1)
        offsets = self.offsets(self.chance.choice(("t", "u")))
        self.ask(actor, requests.commit(version, actor.generation, actor.id, actor.instance_id, offsets), version)

    def offsets(self, topic: str) -> dict[tuple[str, int], tuple[int, str | None]]:
        """Some positions in a topic."""
        metadata = self.chance.choice(("", "", "note", None, "m" * 64))
        count = self.chance.randint(1, 2)
        return {(topic, n): (10 * len(self.steps) + n, metadata) for n in range(count)}

    def fetch(self, actor: Actor) -> None:
        """Ask for committed offsets: of all partitions, or of some."""
        version = self.version("OffsetFetch", 1)
        wanted = self.chance.choice((None, {"t": tuple(range(TOPICS["t"]))}, {"u": (0,), "t": (1,)}, {"t": (0, 9)}))
        self.ask(actor, requests.fetch(version, wanted, stable=self.chance.random() < 0.3), version)

    def leave(self, actor: Actor) -> None:
        """Leave."""
        if not actor.id:
            return self.go_on()
        version = self.version("LeaveGroup")
        instance_id = actor.instance_id if self.chance.random() < 0.7 else None
        who = "" if instance_id is not None and self.chance.random() < 0.4 and version >= 3 else actor.id
        self.ask(actor, requests.leave(version, [(who, instance_id)], self.chance.choice((None, "bye"))), version)
        return None

    # -- asking ----------------------------------------------------------------------------------------------

    def ask(self, actor: Actor | None, request: Message, version: int, *, heard: bool = True) -> None:
        """One more step, after a short while. `heard`: the answer tells the actor something."""
        self._let_pass(self.chance.randint(*GAPS_MS))
        number = len(self.steps)
        step = Step(self.core.now, actor.client_id if actor is not None else "looker", request, version)
        self.steps.append(step)
        if actor is not None and heard:
            self._whose[number] = actor
        self.core.ask(step)
        self._listen()

    def version(self, api: str, lowest: int = 0) -> int:
        """A version to ask in, the newest mostly."""
        first, last = versions_of(self.release, api)
        return self.chance.randint(max(first, lowest), last) if self.chance.random() < 1 / OLD_ONE_IN else last

    def somebody(self) -> Who:
        """An id that somebody was told, now or long ago."""
        told = [Id(number) for number, outcome in enumerate(self.core.outcomes) if outcome.member_id]
        return self.chance.choice(told) if told else "ghost"

    @property
    def _state(self) -> ClassicGroupState:
        return self.core.group.state if self.core.group is not None else ClassicGroupState.DEAD

    def _let_pass(self, ms: int) -> None:
        """Time; at least so much, and until no timer is near."""
        at = self.core.now + max(ms, GAPS_MS[0])
        while (due := min(self.core.deadlines(), default=None)) is not None and due < at + MARGIN_MS:
            self.core.run(due)
            at = max(at, due + MARGIN_MS)
        self.core.run(at)
        self._listen()

    def _listen(self) -> None:
        for number, actor in self._whose.items():
            if number not in self._heard and self.core.outcomes[number].answer is not None:
                self._heard.add(number)
                actor.hears(number, self.core.outcomes[number])


IDEAS = (Author.go_on, Author.live, Author.err, Author.look, Author.wait)
WEIGHTS = (46, 16, 18, 7, 13)


def is_steady(sequence: Sequence, release: Release, exact: Played, choices: Choices | None = None) -> bool:
    """Whether it says the same when everything is a little late, and when timers due at once change their order."""
    for number in range(LATE_TRIES):
        late_max_ms = (1, LATE_MS)[number % 2]
        late, _ = play_to_core(sequence, release, choices, chance=Random(number), late_max_ms=late_max_ms)
        if compare(sequence, exact, late, late_ms=None) is not None:
            return False
    return True


def write(seed: str, setup: Setup, release: Release) -> Sequence:
    """The sequence of a seed; what is not steady is written anew."""
    for attempt in range(ATTEMPTS_MAX):
        sequence = Author(f"{seed}.{attempt}", setup, release).write()
        if is_steady(sequence, release, play_to_core(sequence, release)[0]):
            return sequence
    raise AssertionError(f"seed {seed}: no steady sequence in {ATTEMPTS_MAX} attempts")


ATTEMPTS_MAX = 30
