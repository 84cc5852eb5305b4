"""Worker role: a Kafka Connect worker, which runs connectors and tasks instead of consuming partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages.connect_protocol import (
    CONNECT,
    PROTOCOLS,
    ConnectorTasks,
    WorkerAssignment,
    WorkerSubscription,
    read_worker_assignment,
    read_worker_subscription,
    write_worker_assignment,
    write_worker_subscription,
)
from koordinator.wire.primitives import Malformed

from ..assignors.connect import IncrementalLeader, assign_eagerly, units_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from koordinator.wire.messages.join_group import JoinGroupResponseMember

    from ..assignors.connect import Unit

MAX_DELAY_MS = 300_000
"""Kafka's default of `scheduled.rebalance.max.delay.ms`."""


class WorkerRole:
    """A worker after Kafka's WorkerCoordinator. `connectors` maps connectors to numbers of tasks, equal on all workers.

    The first JoinGroup reports `running`, like a worker that kept running while its coordinator was unavailable. Times
    are group times, in ms. Raise ValueError for protocols that Connect does not have.
    """

    protocol_type = CONNECT

    def __init__(
        self,
        protocols: Sequence[str],
        connectors: Mapping[str, int],
        *,
        url: str = "",
        scheduled_rebalance_max_delay_ms: int = MAX_DELAY_MS,
        running: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        unknown = [protocol for protocol in protocols if protocol not in PROTOCOLS]
        if unknown:
            raise ValueError(f"workers support {', '.join(reversed(PROTOCOLS))}, not {', '.join(unknown)}")
        self._protocols = tuple(protocols)
        self._connectors = connectors
        self._url = url
        self._leading = IncrementalLeader(scheduled_rebalance_max_delay_ms)
        self._running: list[Unit] = [(name, task) for name, tasks in (running or {}).items() for task in tasks]
        self._last = WorkerAssignment(leader="", leader_url="", config_offset=-1) if running else None
        self._config_offset = -1
        self._completed = -1
        self._assigned_of: list[Unit] | None = None

    @property
    def holds(self) -> dict[str, list[int]]:
        """The running tasks by connector; -1 is the connector itself."""
        return {row.connector: sorted(row.tasks) for row in _by_connector(sorted(self._running))}

    def offers(self) -> tuple[tuple[str, bytes], ...]:
        """Return JoinGroup's protocols; all but the eager one report the running tasks."""
        return tuple((protocol, self._metadata(PROTOCOLS[protocol])) for protocol in self._protocols)

    def prepare(self, protocol: str | None) -> None:
        """Stop all tasks before a rejoin with the eager protocol; otherwise keep them."""
        if protocol == "default":
            self._running = []

    def lose(self) -> None:
        """Stop all tasks and discard all state; the next join is that of a new process.

        (A Java worker that lost its membership keeps running and later revokes tasks that other workers received. A
        puppet with `running` models that.)
        """
        self._running = []
        self._last = None
        self._completed = -1
        self._assigned_of = None

    def assign(
        self, now: int, protocol: str, generation: int, leader_id: str, members: Sequence[JoinGroupResponseMember]
    ) -> dict[str, bytes]:
        """As leader, return each worker's assignment: all tasks (eager), or the tasks to start and stop."""
        subscriptions = {member.member_id: _read_subscription(member.metadata) for member in members}
        config_offset = max(subscription.config_offset for subscription in subscriptions.values())
        leader_url = subscriptions[leader_id].url
        version = PROTOCOLS[protocol]
        self._assigned_of = configured = units_of(self._connectors)

        def encode(started: Iterable[Unit], stopped: Iterable[Unit] = (), delay: int = 0) -> bytes:
            return write_worker_assignment(
                WorkerAssignment(
                    leader=leader_id,
                    leader_url=leader_url,
                    config_offset=config_offset,
                    assignment=_by_connector(started),
                    revoked=_by_connector(stopped),
                    delay=delay,
                ),
                version,
            )

        if version == 0:
            return {worker: encode(units) for worker, units in assign_eagerly(subscriptions, configured).items()}
        running = {worker: _allocated(subscription) for worker, subscription in subscriptions.items()}
        changes = self._leading.assign(now, (self._completed, generation), configured, running)
        delay = self._leading.delay_ms
        return {worker: encode(change.started, change.stopped, delay) for worker, change in changes.items()}

    def take(self, _now: int, protocol: str, generation: int, assignment: bytes) -> int | None:
        """Start and stop tasks. Rejoin at once if tasks were stopped, else after the assignment's delay.

        A worker that the leader omitted keeps its tasks.
        """
        assigned = _read_assignment(assignment)
        stopped = set(_units(assigned.revoked))
        kept = [] if protocol == "default" else [unit for unit in self._running if unit not in stopped]
        self._running = list(dict.fromkeys([*_units(assigned.assignment), *kept]))
        self._last = assigned
        self._config_offset = max(self._config_offset, assigned.config_offset)
        self._completed = generation
        if stopped or assigned.error:
            return 0
        return assigned.delay or None

    def is_assignment_stale(self) -> bool:
        """Return whether connectors changed since this leader's last assignment."""
        return self._assigned_of is not None and self._assigned_of != units_of(self._connectors)

    def _metadata(self, version: int) -> bytes:
        allocation = None
        if self._last is not None:
            running = WorkerAssignment(
                leader=self._last.leader,
                leader_url=self._last.leader_url,
                config_offset=self._last.config_offset,
                assignment=_by_connector(self._running),
                delay=self._last.delay,
            )
            allocation = write_worker_assignment(running, version)
        return write_worker_subscription(
            WorkerSubscription(url=self._url, config_offset=self._config_offset, allocation=allocation), version
        )


def _read_subscription(metadata: bytes) -> WorkerSubscription:
    try:
        return read_worker_subscription(metadata)
    except Malformed:
        return WorkerSubscription(url="", config_offset=-1)


def _read_assignment(assignment: bytes) -> WorkerAssignment:
    try:
        return read_worker_assignment(assignment)
    except Malformed:
        return WorkerAssignment(leader="", leader_url="", config_offset=-1)


def _allocated(subscription: WorkerSubscription) -> list[Unit]:
    return [] if subscription.allocation is None else _units(_read_assignment(subscription.allocation).assignment)


def _units(tasks: Sequence[ConnectorTasks] | None) -> list[Unit]:
    return [(row.connector, task) for row in tasks or () for task in row.tasks]


def _by_connector(units: Iterable[Unit]) -> tuple[ConnectorTasks, ...]:
    by_connector: dict[str, list[int]] = {}
    for connector, task in units:
        by_connector.setdefault(connector, []).append(task)
    return tuple(ConnectorTasks(connector=name, tasks=tuple(tasks)) for name, tasks in by_connector.items())
