"""How a leader of Kafka Connect shares out connectors and tasks: all anew, or incrementally with a delay (KIP-415)."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from math import log

from koordinator.wire.messages.connect_protocol import CONNECTOR

Unit = tuple[str, int]
"""What is shared out: a connector's task; the task -1 is the connector itself."""

BACKOFF_MULTIPLIER = 40
"""Revocations round after round wait 40 ms, 1.6 s, 64 s …, but never longer than the delay (KAFKA-12495)."""


@dataclass(slots=True)
class Change:
    """What one worker is to start and to stop, in order."""

    started: list[Unit] = field(default_factory=list)
    stopped: list[Unit] = field(default_factory=list)


def units_of(connectors: Mapping[str, int]) -> list[Unit]:
    """All there is to run, of connectors with their numbers of tasks: connectors by name, then tasks."""
    tasks = ((connector, task) for connector in sorted(connectors) for task in range(connectors[connector]))
    return [*((connector, CONNECTOR) for connector in sorted(connectors)), *tasks]


def assign_eagerly(workers: Iterable[str], configured: Sequence[Unit]) -> dict[str, list[Unit]]:
    """Everything anew, in turns: connectors, then tasks (Kafka's EagerAssignor)."""
    assigned: dict[str, list[Unit]] = {worker: [] for worker in sorted(workers)}
    for worker, unit in zip(cycle(assigned), configured, strict=False):
        assigned[worker].append(unit)
    return assigned


class IncrementalLeader:
    """What a worker remembers as a leader (Kafka's IncrementalCooperativeAssignor).

    A worker that is gone leaves a gap. It is not filled at once but after `max_delay_ms`
    (scheduled.rebalance.max.delay.ms), and who has come with nothing in the meantime gets it, most likely the same
    worker after its restart. What too many have is revoked in one round and given away in the next one.

    Workers are gone through in the order of their member ids. (In Kafka it is that of a hash map.)
    """

    def __init__(self, max_delay_ms: int) -> None:
        self.delay_ms = 0
        """In how many ms the workers are to join again after the last assignment; 0: not for that."""
        self._max_delay_ms = max_delay_ms
        self._assigned: set[Unit] = set()
        self._revoked: set[Unit] = set()
        self._generation = -1
        self._workers: frozenset[str] = frozenset()
        self._due_at = 0
        self._came_empty: dict[str, None] = {}
        self._has_balanced = False
        self._balanced_in_a_row = 0

    def assign(
        self,
        now: int,
        generations: tuple[int, int],
        configured: Sequence[Unit],
        running: Mapping[str, Sequence[Unit]],
    ) -> dict[str, Change]:
        """What each worker is to start and to stop, of what is configured, considering what workers say they run.

        now is in ms; generations are the last one whose assignment this worker has got (-1: none) and the one at hand.
        """
        completed, generation = generations
        if completed != self._generation:
            self._assigned = set()
        active = {unit for units in running.values() for unit in units}
        if self._revoked & active:
            self._assigned = active
        deleted = self._assigned - set(configured)
        lost = self._assigned - active - deleted
        created = set(configured) - self._assigned - active

        gone = deleted | _duplicated(running)
        changes = {worker: Change(stopped=[u for u in running[worker] if u in gone]) for worker in sorted(running)}
        loads = {worker: [u for u in running[worker] if u not in gone] for worker in changes}
        fill = self._handle_lost(now, lost, loads, changes)
        self._balance(now, configured, loads, changes)
        for is_kind in (_is_connector, _is_task):
            units = [*sorted(filter(is_kind, created)), *sorted(filter(is_kind, fill))]
            _share_out(units, is_kind, loads, changes)

        self._revoked = {unit for change in changes.values() for unit in change.stopped}
        self._assigned = {unit for units in loads.values() for unit in units} - self._revoked | lost
        self._generation = generation
        self._workers = frozenset(changes)
        return changes

    def _handle_lost(
        self, now: int, lost: Collection[Unit], loads: dict[str, list[Unit]], changes: dict[str, Change]
    ) -> set[Unit]:
        """What is to be shared out at once of what nobody runs any more; the rest waits for its worker."""
        if not lost and not self._has_balanced:
            self._reset_delay()
            return set()
        nobody_left = self._due_at <= 0 and self._workers <= loads.keys()
        if nobody_left or self._max_delay_ms == 0:
            return set(lost)
        if not 0 < self._due_at <= now:
            self._came_empty |= dict.fromkeys(worker for worker, units in loads.items() if not units)
            self.delay_ms = min(self._due_at - now, self._max_delay_ms) if now < self._due_at else self._max_delay_ms
            self._due_at = now + self.delay_ms
            return set()
        waiting = [worker for worker in self._came_empty if worker in loads]
        self._reset_delay()
        self._has_balanced = False
        if not waiting:
            return set(lost)
        for is_kind in (_is_connector, _is_task):
            for worker, unit in zip(cycle(waiting), sorted(filter(is_kind, lost)), strict=False):
                _give(unit, worker, loads, changes)
        return set()

    def _balance(
        self, now: int, configured: Sequence[Unit], loads: dict[str, list[Unit]], changes: dict[str, Change]
    ) -> None:
        """Revoke what workers have too much of, unless a delay is on; twice in a row only after a while."""
        if self.delay_ms:
            self._has_balanced = False
            return
        revocations = _too_much(configured, loads)
        if not revocations:
            if self._has_balanced:
                self._balanced_in_a_row = 0
            self._has_balanced = False
            return
        if self._has_balanced:
            self._balanced_in_a_row += 1
            self.delay_ms = _back_off_ms(self._balanced_in_a_row, self._max_delay_ms)
            if self.delay_ms:
                self._due_at = now + self.delay_ms
                return
        self._has_balanced = True
        for worker, units in revocations.items():
            changes[worker].stopped += units
            changes[worker].started = [unit for unit in changes[worker].started if unit not in units]
            loads[worker] = [unit for unit in loads[worker] if unit not in units]

    def _reset_delay(self) -> None:
        self._came_empty = {}
        self._due_at = 0
        self.delay_ms = 0


def _back_off_ms(times: int, max_ms: int) -> int:
    """Kafka's ExponentialBackoff, which computes in floating point and so may say 999 for 1,000."""
    if max_ms == 0:
        return 0
    return int(BACKOFF_MULTIPLIER ** min(times, log(max_ms) / log(BACKOFF_MULTIPLIER)))


def _duplicated(running: Mapping[str, Sequence[Unit]]) -> set[Unit]:
    seen: set[Unit] = set()
    twice: set[Unit] = set()
    for units in running.values():
        twice |= seen.intersection(units)
        seen |= set(units)
    return twice


def _too_much(configured: Sequence[Unit], loads: Mapping[str, Sequence[Unit]]) -> dict[str, list[Unit]]:
    """What each worker runs beyond its share: of connectors, and of tasks, those it names first."""
    too_much: dict[str, list[Unit]] = {}
    if not configured or not any(loads.values()):
        return too_much
    for is_kind in (_is_connector, _is_task):
        share, with_one_more = divmod(sum(map(is_kind, configured)), len(loads))
        of_kind = {worker: list(filter(is_kind, units)) for worker, units in loads.items()}
        counts = sorted(map(len, of_kind.values()), reverse=True)
        if counts == [share + 1] * with_one_more + [share] * (len(loads) - with_one_more):
            continue
        for worker, units in of_kind.items():
            if len(units) <= share:
                continue
            most = share + (with_one_more > 0)
            with_one_more -= with_one_more > 0
            if len(units) > most:
                too_much.setdefault(worker, []).extend(units[: len(units) - most])
    return too_much


def _share_out(
    units: Sequence[Unit], is_kind: Callable[[Unit], bool], loads: dict[str, list[Unit]], changes: dict[str, Change]
) -> None:
    """One for each of those that have least, again and again."""
    count = {worker: sum(map(is_kind, has)) for worker, has in loads.items()}
    order = sorted(count, key=lambda worker: (count[worker], worker))
    left = iter(units)
    while True:
        least = count[order[0]]
        for worker in order:
            if count[worker] > least:
                break
            unit = next(left, None)
            if unit is None:
                return
            _give(unit, worker, loads, changes)
            count[worker] += 1


def _give(unit: Unit, worker: str, loads: dict[str, list[Unit]], changes: dict[str, Change]) -> None:
    loads[worker].append(unit)
    changes[worker].started.append(unit)


def _is_connector(unit: Unit) -> bool:
    return unit[1] == CONNECTOR


def _is_task(unit: Unit) -> bool:
    return unit[1] != CONNECTOR
