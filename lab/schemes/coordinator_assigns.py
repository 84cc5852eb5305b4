"""The second scheme: a coordinator of the group that also assigns. Kafka never released it; the article describes it.

A member sends heartbeats. When the coordinator begins a rebalance, it answers them with ILLEGAL_GENERATION (22). The
member then finishes its batch, stops, and sends JoinGroup. When all have joined, or the session timeout has passed, the
coordinator assigns ranges, writes the mapping to ZooKeeper, and each JoinGroup response has the member's partitions.
No request leaves the group: the coordinator notices a closed member when its session expires.

The layout of the messages, in the style of Kafka's protocol before version 0.9 (a STRING has two bytes of length):

    JoinGroupRequest  => group STRING, session_timeout INT32, member STRING, topics [STRING]
    JoinGroupResponse => error INT16, generation INT32, member STRING, assigned [topic STRING, partitions [INT32]]
    HeartbeatRequest  => group STRING, generation INT32, member STRING
    HeartbeatResponse => error INT16
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from koordinator.emulator.control.assignors.eager import assign_ranges
from koordinator.emulator.control.assignors.members import Candidate

from ..load import GROUP, TOPIC
from ..record import FactKind
from .clockwork import Clockwork, Process, Steps
from .scheme import Scheme

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..load import Load
    from .clockwork import SimulatedTask

    Answer = Callable[[int, list[int]], None]

ROUND_TRIP_MS = 1
NO_GENERATION = -1
LOOKUP_MS = 100
"""The backoff before a member asks for its coordinator again (`retry.backoff.ms`)."""

FAILOVER_MS = 1_000
"""The time until another broker is the coordinator."""

REQUEST_BYTES, RESPONSE_BYTES = 14, 8
"""The length, and the header without the client id."""


@dataclass(slots=True)
class MemberRegistration:
    """A member as the coordinator knows it; `answer` is its parked JoinGroup."""

    answer: Answer | None
    last_heard_ms: int


class AssigningCoordinator:
    """The coordinator of one group."""

    def __init__(self, scheme: AssigningScheme) -> None:
        self._scheme = scheme
        self._clockwork = scheme.clockwork
        self._session_ms = round(scheme.load.session_timeout_s * 1000)
        self.generation, names = scheme.mapping
        self._members: dict[str, MemberRegistration] = {}
        self._is_joining = False
        for member_id in names:
            self._register(member_id, None)

    def stop(self) -> None:
        """Stop: parked requests fail, and all else is forgotten but the mapping."""
        for member in self._members.values():
            if member.answer is not None:
                member.answer(NO_GENERATION, [])
        self._members = {}

    def heartbeat(self, member_id: str, generation: int) -> bool:
        """Return whether the member's generation is current; if not, the response is ILLEGAL_GENERATION."""
        member = self._members.get(member_id)
        if member is not None:
            member.last_heard_ms = self._clockwork.now_ms
        return member is not None and not self._is_joining and generation == self.generation

    def join(self, member_id: str, answer: Answer) -> None:
        """Park a member's JoinGroup until the rebalance ends."""
        self._register(member_id, answer)
        self.rebalance()
        self._complete_if_all_joined()

    def rebalance(self) -> None:
        """Begin a rebalance, unless one is running."""
        if not self._is_joining and self._members:
            self._is_joining = True
            generation = self.generation
            self._clockwork.after(self._session_ms, lambda: self._joining_timed_out(generation))

    def _register(self, member_id: str, answer: Answer | None) -> None:
        if member_id not in self._members:
            self._clockwork.after(self._session_ms, lambda: self._expect_heartbeat(member_id))
        self._members[member_id] = MemberRegistration(answer, self._clockwork.now_ms)
        self._scheme.record.keep(member_id, len(member_id) + len(TOPIC))

    def _expect_heartbeat(self, member_id: str) -> None:
        member = self._members.get(member_id)
        if member is None:
            return
        silent_ms = self._clockwork.now_ms - member.last_heard_ms
        if member.answer is None and silent_ms >= self._session_ms:
            self._remove(member_id)
            self.rebalance()
            self._complete_if_all_joined()
        else:
            self._clockwork.after(max(1, self._session_ms - silent_ms), lambda: self._expect_heartbeat(member_id))

    def _remove(self, member_id: str) -> None:
        del self._members[member_id]
        self._scheme.record.forget(member_id)
        self._scheme.fence(member_id)

    def _joining_timed_out(self, generation: int) -> None:
        if self._is_joining and generation == self.generation:
            for member_id in [member_id for member_id, member in self._members.items() if member.answer is None]:
                self._remove(member_id)
            self._complete_if_all_joined()

    def _complete_if_all_joined(self) -> None:
        if not self._is_joining or any(member.answer is None for member in self._members.values()):
            return
        self._is_joining = False
        if not self._members:
            return
        self.generation += 1
        self._scheme.record.rebalances[""] += 1
        candidates = [Candidate(member_id, None, (TOPIC,)) for member_id in self._members]
        assigned = assign_ranges(candidates, {TOPIC: self._scheme.partitions})
        self._scheme.mapping = self.generation, tuple(self._members)
        self._scheme.record.request("setData", 4 * self._scheme.partitions + sum(map(len, self._members)))
        for member_id, member in self._members.items():
            answer, member.answer, member.last_heard_ms = member.answer, None, self._clockwork.now_ms
            assert answer is not None
            answer(self.generation, assigned[member_id].get(TOPIC, []))


class RegisteredMember(Process):
    """A consumer process: heartbeats, and a rejoin when the coordinator asks for it."""

    def __init__(self, scheme: AssigningScheme, name: str, batch_ms: int) -> None:
        super().__init__(scheme.clockwork)
        self._scheme = scheme
        self._id = scheme.process_id(name)
        self._batch_ms = batch_ms
        self._generation = 0
        self._owned: list[int] = []
        self._task: SimulatedTask | None = None
        self._task = self.run(self._consume())

    def _consume(self) -> Steps[None]:
        heartbeat_ms = round(self._scheme.load.heartbeat_interval_s * 1000)
        while True:
            yield from self._join()
            while True:
                yield heartbeat_ms
                coordinator = self._scheme.coordinator
                self._count("Heartbeat", len(GROUP) + len(self._id) + 8, 2)
                if coordinator is not None and not coordinator.heartbeat(self._id, self._generation):
                    self._scheme.record.notifications += 1
                    break

    def _join(self) -> Steps[None]:
        if self._owned:
            yield self._batch_ms
            self._hold([])
        while (coordinator := self._scheme.coordinator) is None:
            self._count("FindCoordinator", len(GROUP) + 2, 2)
            yield LOOKUP_MS
        yield ROUND_TRIP_MS
        coordinator.join(self._id, self._answered)
        yield None
        self._scheme.record.request("JoinGroup", self._size(len(GROUP) + 16, 18 + 4 * len(self._owned)))

    def _answered(self, generation: int, partitions: list[int]) -> None:
        def receive() -> None:
            self._generation = generation
            self._hold(partitions)
            if self._task is not None:
                self._task.wake()

        self.clockwork.after(ROUND_TRIP_MS, lambda: self.call(receive))

    def _hold(self, partitions: list[int]) -> None:
        if self._owned or partitions:
            self._owned = partitions
            self._scheme.hold(self._id, partitions)

    def _count(self, name: str, request: int, response: int) -> None:
        self._scheme.record.request(name, self._size(request, response))

    def _size(self, request: int, response: int) -> int:
        return REQUEST_BYTES + RESPONSE_BYTES + len(self._id) + request + response


class AssigningScheme(Scheme):
    """Members and their coordinator; another broker takes its place when it stops.

    `mapping` is the node in ZooKeeper: the generation with its members.
    """

    def __init__(self, load: Load) -> None:
        super().__init__(load)
        self.clockwork = Clockwork()
        self.mapping: tuple[int, tuple[str, ...]] = (0, ())
        self.coordinator: AssigningCoordinator | None = AssigningCoordinator(self)
        self._members: dict[str, RegisteredMember] = {}
        self._fenced: set[str] = set()

    @property
    def now_ms(self) -> int:
        """The virtual time."""
        return self.clockwork.now_ms

    def pass_time(self, seconds: float) -> None:
        """Advance time, with everything that is due."""
        self.clockwork.run(self.now_ms + round(seconds * 1000))

    def start(self, name: str, batch_s: float | None = None) -> None:
        """Start a process, which joins."""
        self._members[name] = RegisteredMember(self, name, self._up(name, batch_s))

    def close(self, name: str) -> None:
        """Close a process: it commits, and is heard no more."""
        self._end(name, is_clean=True)

    def kill(self, name: str) -> None:
        """Kill a process."""
        self._end(name, is_clean=False)

    def cut_off(self, name: str) -> None:
        """Keep a member from its coordinator."""
        self._members[name].is_paused = True

    def reconnect(self, name: str) -> None:
        """End a `cut_off`."""
        self._members[name].resume()

    def grow(self, count: int) -> None:
        """Add partitions; the coordinator watches the topic in ZooKeeper."""
        self.partitions += count
        self.record.add(self.now_ms, FactKind.GREW, partitions=range(self.partitions))
        if self.coordinator is not None:
            self.coordinator.rebalance()

    def stop_broker(self) -> None:
        """Stop the coordinator; its successor reads the mapping."""
        assert self.coordinator is not None
        self.coordinator.stop()
        self.coordinator = None
        self.clockwork.after(FAILOVER_MS, self._fail_over)

    def start_broker(self) -> None:
        """Start the stopped broker again: the coordinator stays with its successor."""

    def fence(self, member_id: str) -> None:
        """Note that the group has removed a member: it can commit no more."""
        name = member_id.rpartition("-")[0]
        self._fenced.add(member_id)
        if name in self._members and self.process_id(name) == member_id:
            self.record.add(self.now_ms, FactKind.FENCED, name)

    def hold(self, member_id: str, partitions: list[int]) -> None:
        """Note the partitions that a member processes from now on."""
        name, is_clean = member_id.rpartition("-")[0], member_id not in self._fenced
        self.record.add(self.now_ms, FactKind.HOLDS, name, partitions, is_clean=is_clean)
        self._fenced.discard(member_id)

    def _fail_over(self) -> None:
        self.coordinator = AssigningCoordinator(self)

    def _end(self, name: str, *, is_clean: bool) -> None:
        self._members.pop(name).is_alive = False
        self.record.add(self.now_ms, FactKind.DOWN, name, is_clean=is_clean)
