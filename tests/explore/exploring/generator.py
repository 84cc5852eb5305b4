"""Random generation of sequences: the same seed generates the same sequence.

A generator plays its sequence to the core at once, so it knows the group's state. Its clients mostly behave, with
mistakes strewn in, and it waits until shortly before or after a timer. Requests keep MARGIN_MS from every timer, so
that a broker that is slightly late has the same order of events. Timers may still be close to each other: each sequence
is replayed with random delays, and discarded if its answers depend on them.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from builders import requests
from builders.requests import within

from exploring.actors import OFFERS, Actor, Phase
from exploring.comparison import compare
from exploring.core import Core, play_to_core
from exploring.mistakes import MISTAKES
from exploring.releases import versions_of
from exploring.steps import GROUP, INSTANCE_SINCE, TOPIC_IDS, TOPICS, Id, Sequence, Step
from koordinator.emulator.core.groups.classic.group import ClassicGroupState
from koordinator.wire.messages.describe_groups import DescribeGroupsRequest
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.list_groups import ListGroupsRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from builders.requests import Partition

    from exploring.core import Choices
    from exploring.releases import Release
    from exploring.steps import MemberRef, Played, Setup
    from koordinator.wire.apis import Message

MARGIN_MS = 120
"""The least distance of a request from every timer, before and after."""

LATE_MS = 90
"""Sequences must give the same answers when everything is up to this late."""

LATE_TRIES = 12
ACTORS_MAX = 5
REQUESTS = (12, 28)
LENGTH_MS = 9_000
"""Nothing new begins after this time."""

GAPS_MS = (30, 90)
"""The range of gaps between requests that do not wait for a timer."""

TYPES = ("consumer",) * 8 + ("connect",)
"""Groups of other types have their own rule for OffsetDelete."""

FETCH_ALL_SINCE = 2
"""The first version of OffsetFetch that fetches all offsets."""

OLD_ONE_IN = 3
"""One request in this many uses an old version."""


class SequenceGenerator:
    """Generates one sequence."""

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
        """Return the sequence."""
        wanted = self.chance.randint(*REQUESTS)
        while len(self.steps) < wanted and self.core.now < LENGTH_MS:
            (idea,) = self.chance.choices(IDEAS, WEIGHTS)
            idea(self)
        self._let_pass(self.chance.choice((200, 200, 700, 1_500)))
        self.read_group()
        return Sequence(self._name, self._setup, tuple(self.steps), self.core.now + MARGIN_MS)

    def next_step(self) -> None:
        """Let a client take the next step of the protocol."""
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
                self.heartbeat(actor)
        return None

    def act_as_member(self) -> None:
        """Let a stable member heartbeat, commit, fetch, or rejoin."""
        actor = self.chance.choice(self.actors)
        what = self.chance.choice((self.heartbeat, self.commit, self.commit, self.fetch, self.rejoin, self.leave))
        what(actor)

    def make_mistake(self) -> None:
        """Let a client make a mistake."""
        self.chance.choice(MISTAKES)(self, self.chance.choice(self.actors))

    def read_group(self) -> None:
        """Let an outsider read the group."""
        version = self.version("DescribeGroups")
        if self.chance.random() < 0.85:
            operations = self.chance.random() < 0.2
            self.ask(None, DescribeGroupsRequest(groups=(GROUP,), include_authorized_operations=operations), version)
        else:
            version = self.version("ListGroups")
            states = self.chance.choice(((), ("Stable",), ("empty", "PreparingRebalance"), ("Dead",)))
            types = self.chance.choice(((), (), ("classic",), ("Consumer",)))
            self.ask(None, ListGroupsRequest(states_filter=states, types_filter=types), version)

    def wait(self) -> None:
        """Wait until shortly before or after a timer, while some members send heartbeats."""
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
                self.heartbeat(actor)
        self._let_pass(until - self.core.now)
        return None

    def join(self, actor: Actor) -> None:
        """Join with the client's id."""
        static = actor.instance_id is not None
        if actor.phase is Phase.MEMBER and self.chance.random() < 0.2:
            actor.protocols = self.chance.choice(OFFERS)
        version = self.version("JoinGroup", INSTANCE_SINCE["JoinGroup"] if static else 0)
        actor.phase, actor.current = Phase.JOINING, len(self.steps)
        self.ask(actor, actor.join(self.chance.choice((None, "because"))), version)

    def rejoin(self, actor: Actor) -> None:
        """Rejoin without a reason; a static client may restart without its id."""
        if actor.phase not in (Phase.MEMBER, Phase.JOINED, Phase.JOINING):
            return self.next_step()
        if actor.instance_id is not None and self.chance.random() < 0.6:
            actor.id = ""
        return self.join(actor)

    def sync(self, actor: Actor) -> None:
        """Sync; the leader brings the assignment."""
        version = self.version("SyncGroup", INSTANCE_SINCE["SyncGroup"] if actor.instance_id else 0)
        actor.phase, actor.current = Phase.SYNCING, len(self.steps)
        brings = actor.leads or self.chance.random() < 0.6
        self.ask(actor, self.syncing(actor, self.assignments() if brings else {}), version)

    def syncing(self, actor: Actor, assignments: dict[MemberRef, bytes]) -> Message:
        """Return the SyncGroup of this member."""
        who = (actor.generation, actor.id, assignments, actor.instance_id)
        return requests.sync_group(GROUP, *who, protocol=self.protocol)

    @staticmethod
    def beating(generation: int, who: MemberRef, instance_id: str | None, group: str = GROUP) -> Message:
        """Return a Heartbeat."""
        return HeartbeatRequest(group_id=group, generation_id=generation, member_id=who, group_instance_id=instance_id)

    @staticmethod
    def committing(
        generation: int,
        who: MemberRef,
        instance_id: str | None,
        offsets: dict[Partition, tuple[int, str | None]],
    ) -> Message:
        """Return an OffsetCommit of (offset, metadata) by partition; the leader epoch is the partition's number."""
        return requests.offset_commit(
            GROUP,
            {at: offset for at, (offset, _) in offsets.items()},
            generation,
            who,
            instance_id,
            metadata={at: metadata for at, (_, metadata) in offsets.items()},
            leader_epoch={at: at[1] for at in offsets},
            ids=TOPIC_IDS,
        )

    @property
    def protocol(self) -> tuple[str, str]:
        """Return the protocol type and name that the member believes in."""
        group = self.core.group
        return self.type, (group.protocol_name if group is not None else None) or "range"

    def assignments(self) -> dict[MemberRef, bytes]:
        """Return an assignment for most known members, different each time."""
        number = len(self.steps)
        known: Iterable[MemberRef] = {actor.id: None for actor in self.actors if actor.id}
        if self.chance.random() < 0.1:
            known = [*known, "ghost"][self.chance.randint(0, 1) :]
        return {who: f"a{number}.{n}".encode() for n, who in enumerate(known)}

    def heartbeat(self, actor: Actor) -> None:
        """Send a heartbeat."""
        version = self.version("Heartbeat", INSTANCE_SINCE["Heartbeat"] if actor.instance_id else 0)
        self.ask(actor, self.beating(actor.generation, actor.id, actor.instance_id), version)

    def commit(self, actor: Actor) -> None:
        """Commit one or two offsets."""
        version = self.version("OffsetCommit", INSTANCE_SINCE["OffsetCommit"] if actor.instance_id else 1)
        offsets = self.offsets(self.chance.choice(("t", "u")))
        self.ask(actor, self.committing(actor.generation, actor.id, actor.instance_id, offsets), version)

    def offsets(self, topic: str) -> dict[tuple[str, int], tuple[int, str | None]]:
        """Return some offsets of a topic."""
        metadata = self.chance.choice(("", "", "note", None, "m" * 64))
        count = self.chance.randint(1, 2)
        return {(topic, n): (10 * len(self.steps) + n, metadata) for n in range(count)}

    def fetch(self, actor: Actor) -> None:
        """Fetch committed offsets of all partitions, or of some."""
        version = self.version("OffsetFetch", 1)
        wanted = self.chance.choice((None, {"t": tuple(range(TOPICS["t"]))}, {"u": (0,), "t": (1,)}, {"t": (0, 9)}))
        stable = self.chance.random() < 0.3
        if wanted is None and version < FETCH_ALL_SINCE:
            wanted = {name: tuple(range(partitions)) for name, partitions in TOPICS.items()}
        rows = None if wanted is None else [(name, at) for name, partitions in wanted.items() for at in partitions]
        self.ask(actor, requests.offset_fetch(version, GROUP, rows, stable=stable, ids=TOPIC_IDS), version)

    def leave(self, actor: Actor) -> None:
        """Leave the group."""
        if not actor.id:
            return self.next_step()
        version = self.version("LeaveGroup")
        instance_id = actor.instance_id if self.chance.random() < 0.7 else None
        who = "" if instance_id is not None and self.chance.random() < 0.4 and version >= 3 else actor.id
        reason = self.chance.choice((None, "bye"))
        self.ask(actor, requests.leave_group(version, GROUP, (who, instance_id), reason=reason), version)
        return None

    def ask(self, actor: Actor | None, request: Message, version: int, *, heard: bool = True) -> None:
        """Add a step after a short gap, in the fields of its version. `heard`: the actor handles the response."""
        self._let_pass(self.chance.randint(*GAPS_MS))
        number = len(self.steps)
        step = Step(
            self.core.now, actor.client_id if actor is not None else "looker", within(request, version), version
        )
        self.steps.append(step)
        if actor is not None and heard:
            self._whose[number] = actor
        self.core.ask(step)
        self._listen()

    def version(self, api: str, lowest: int = 0) -> int:
        """Choose a version from the lowest on, mostly the newest; the release may have none so high."""
        first, last = versions_of(self.release, api)
        first = min(max(first, lowest), last)
        return self.chance.randint(first, last) if self.chance.random() < 1 / OLD_ONE_IN else last

    def any_member_id(self) -> MemberRef:
        """Choose an id issued at any time to any client."""
        told = [Id(number) for number, outcome in enumerate(self.core.outcomes) if outcome.member_id]
        return self.chance.choice(told) if told else "ghost"

    @property
    def _state(self) -> ClassicGroupState:
        return self.core.group.state if self.core.group is not None else ClassicGroupState.DEAD

    def _let_pass(self, ms: int) -> None:
        """Let at least this much time pass, until no timer is near."""
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
                actor.handle(number, self.core.outcomes[number])


IDEAS = (
    SequenceGenerator.next_step,
    SequenceGenerator.act_as_member,
    SequenceGenerator.make_mistake,
    SequenceGenerator.read_group,
    SequenceGenerator.wait,
)
WEIGHTS = (46, 16, 18, 7, 13)


def is_steady(sequence: Sequence, release: Release, exact: Played, choices: Choices | None = None) -> bool:
    """Whether the answers stay the same when everything is slightly late and simultaneous timers change their order."""
    for number in range(LATE_TRIES):
        late_max_ms = (1, LATE_MS)[number % 2]
        late, _ = play_to_core(sequence, release, choices, chance=Random(number), late_max_ms=late_max_ms)
        if compare(sequence, exact, late, late_ms=None) is not None:
            return False
    return True


def write(seed: str, setup: Setup, release: Release) -> Sequence:
    """Return the sequence of a seed; an unsteady one is generated again."""
    for attempt in range(ATTEMPTS_MAX):
        sequence = SequenceGenerator(f"{seed}.{attempt}", setup, release).write()
        if is_steady(sequence, release, play_to_core(sequence, release)[0]):
            return sequence
    raise AssertionError(f"seed {seed}: no steady sequence in {ATTEMPTS_MAX} attempts")


ATTEMPTS_MAX = 30
