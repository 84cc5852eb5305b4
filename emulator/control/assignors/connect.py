"""Assignment of connectors and tasks by a Kafka Connect leader: eager, or incremental with a delay (KIP-415)."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from math import log

from koordinator.wire.messages.connect_protocol import CONNECTOR

Unit = tuple[str, int]
"""A connector and a task number; task -1 is the connector itself."""

BACKOFF_MULTIPLIER = 40
"""Consecutive revocations back off for 40 ms, 1.6 s, 64 s …, at most for the delay (KAFKA-12495)."""


@dataclass(slots=True)
class AssignmentChange:
    """The units that one worker is to start and to stop, in order."""

    started: list[Unit] = field(default_factory=list)
    stopped: list[Unit] = field(default_factory=list)


def units_of(connectors: Mapping[str, int]) -> list[Unit]:
    """Return all units of connectors with numbers of tasks: connectors by name, then tasks."""
    tasks = ((connector, task) for connector in sorted(connectors) for task in range(connectors[connector]))
    return [*((connector, CONNECTOR) for connector in sorted(connectors)), *tasks]


def assign_eagerly(workers: Iterable[str], configured: Sequence[Unit]) -> dict[str, list[Unit]]:
    """Assign all units to workers in turn: connectors, then tasks (Kafka's EagerAssignor)."""
    assigned: dict[str, list[Unit]] = {worker: [] for worker in sorted(workers)}
    for worker, unit in zip(cycle(assigned), configured, strict=False):
        assigned[worker].append(unit)
    return assigned


class IncrementalLeader:
    """State of an incremental leader between rounds (Kafka's IncrementalCooperativeAssignor).

    The units of a lost worker are reassigned after `max_delay_ms` (`scheduled.rebalance.max.delay.ms`), to workers that
    joined without units meanwhile: most likely the lost worker after its restart. Excess units are revoked in one round
    and assigned in the next.

    Workers are processed in the order of their member ids. (Kafka uses the order of a hash map.)
    """

    def __init__(self, max_delay_ms: int) -> None:
        self.delay_ms = 0
        """Delay in ms before the workers' next rejoin; 0 for no rejoin."""
        self._max_delay_ms = max_delay_ms
        self._assigned: set[Unit] = set()
        self._revoked: set[Unit] = set()
        self._generation = -1
        self._workers: frozenset[str] = frozenset()
        self._due_at = 0
        self._idle_workers: dict[str, None] = {}
        self._has_balanced = False
        self._consecutive_revocations = 0

    def assign(
        self,
        now: int,
        generations: tuple[int, int],
        configured: Sequence[Unit],
        running: Mapping[str, Sequence[Unit]],
    ) -> dict[str, AssignmentChange]:
        """Return the changes of each worker, given the configured units and the units that workers report as running.

        `now` is in ms. `generations` are that of the last assignment this worker received (-1 for none) and the current
        one.
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

        to_stop = deleted | _duplicated(running)
        changes = {
            worker: AssignmentChange(stopped=[u for u in running[worker] if u in to_stop]) for worker in sorted(running)
        }
        loads = {worker: [u for u in running[worker] if u not in to_stop] for worker in changes}
        reassigned = self._handle_lost(now, lost, loads, changes)
        self._balance(now, configured, loads, changes)
        for is_kind in (_is_connector, _is_task):
            units = [*sorted(filter(is_kind, created)), *sorted(filter(is_kind, reassigned))]
            _assign_to_least_loaded(units, is_kind, loads, changes)

        self._revoked = {unit for change in changes.values() for unit in change.stopped}
        self._assigned = {unit for units in loads.values() for unit in units} - self._revoked | lost
        self._generation = generation
        self._workers = frozenset(changes)
        return changes

    def _handle_lost(
        self, now: int, lost: Collection[Unit], loads: dict[str, list[Unit]], changes: dict[str, AssignmentChange]
    ) -> set[Unit]:
        """Return the lost units to reassign now; keep the others for the return of their worker."""
        if not lost and not self._has_balanced:
            self._reset_delay()
            return set()
        no_worker_left = self._due_at <= 0 and self._workers <= loads.keys()
        if no_worker_left or self._max_delay_ms == 0:
            return set(lost)
        if not 0 < self._due_at <= now:
            self._idle_workers |= dict.fromkeys(worker for worker, units in loads.items() if not units)
            self.delay_ms = min(self._due_at - now, self._max_delay_ms) if now < self._due_at else self._max_delay_ms
            self._due_at = now + self.delay_ms
            return set()
        waiting = [worker for worker in self._idle_workers if worker in loads]
        self._reset_delay()
        self._has_balanced = False
        if not waiting:
            return set(lost)
        for is_kind in (_is_connector, _is_task):
            for worker, unit in zip(cycle(waiting), sorted(filter(is_kind, lost)), strict=False):
                _give(unit, worker, loads, changes)
        return set()

    def _balance(
        self, now: int, configured: Sequence[Unit], loads: dict[str, list[Unit]], changes: dict[str, AssignmentChange]
    ) -> None:
        """Revoke excess units, unless a delay is active; back off between consecutive revocations."""
        if self.delay_ms:
            self._has_balanced = False
            return
        revocations = _excess(configured, loads)
        if not revocations:
            if self._has_balanced:
                self._consecutive_revocations = 0
            self._has_balanced = False
            return
        if self._has_balanced:
            self._consecutive_revocations += 1
            self.delay_ms = _backoff_ms(self._consecutive_revocations, self._max_delay_ms)
            if self.delay_ms:
                self._due_at = now + self.delay_ms
                return
        self._has_balanced = True
        for worker, units in revocations.items():
            changes[worker].stopped += units
            changes[worker].started = [unit for unit in changes[worker].started if unit not in units]
            loads[worker] = [unit for unit in loads[worker] if unit not in units]

    def _reset_delay(self) -> None:
        self._idle_workers = {}
        self._due_at = 0
        self.delay_ms = 0


def _backoff_ms(attempts: int, max_ms: int) -> int:
    """Return the backoff of Kafka's ExponentialBackoff, including its rounding errors (999 for 1,000)."""
    if max_ms == 0:
        return 0
    return int(BACKOFF_MULTIPLIER ** min(attempts, log(max_ms) / log(BACKOFF_MULTIPLIER)))


def _duplicated(running: Mapping[str, Sequence[Unit]]) -> set[Unit]:
    seen: set[Unit] = set()
    twice: set[Unit] = set()
    for units in running.values():
        twice |= seen.intersection(units)
        seen |= set(units)
    return twice


def _excess(configured: Sequence[Unit], loads: Mapping[str, Sequence[Unit]]) -> dict[str, list[Unit]]:
    """Return the units of each worker beyond its share of connectors and of tasks: the first ones it reports."""
    excess: dict[str, list[Unit]] = {}
    if not configured or not any(loads.values()):
        return excess
    for is_kind in (_is_connector, _is_task):
        share, remainder = divmod(sum(map(is_kind, configured)), len(loads))
        of_kind = {worker: list(filter(is_kind, units)) for worker, units in loads.items()}
        counts = sorted(map(len, of_kind.values()), reverse=True)
        if counts == [share + 1] * remainder + [share] * (len(loads) - remainder):
            continue
        for worker, units in of_kind.items():
            if len(units) <= share:
                continue
            most = share + (remainder > 0)
            remainder -= remainder > 0
            if len(units) > most:
                excess.setdefault(worker, []).extend(units[: len(units) - most])
    return excess


def _assign_to_least_loaded(
    units: Sequence[Unit],
    is_kind: Callable[[Unit], bool],
    loads: dict[str, list[Unit]],
    changes: dict[str, AssignmentChange],
) -> None:
    count = {worker: sum(map(is_kind, assigned)) for worker, assigned in loads.items()}
    order = sorted(count, key=lambda worker: (count[worker], worker))
    remaining = iter(units)
    while True:
        least = count[order[0]]
        for worker in order:
            if count[worker] > least:
                break
            unit = next(remaining, None)
            if unit is None:
                return
            _give(unit, worker, loads, changes)
            count[worker] += 1


def _give(unit: Unit, worker: str, loads: dict[str, list[Unit]], changes: dict[str, AssignmentChange]) -> None:
    loads[worker].append(unit)
    changes[worker].started.append(unit)


def _is_connector(unit: Unit) -> bool:
    return unit[1] == CONNECTOR


def _is_task(unit: Unit) -> bool:
    return unit[1] != CONNECTOR
