"""A worker of Kafka Connect as a puppet: it runs connectors and tasks instead of consuming partitions."""

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
"""Kafka's default of scheduled.rebalance.max.delay.ms."""


class WorkerRole:
    """What Kafka's WorkerCoordinator does; the connectors, with their numbers of tasks, are the same for all workers.

    running is what it says it runs when it first joins, as a worker does that has kept running while its coordinator
    was away. Times are the group's, in ms. ValueError for protocols that workers do not speak.
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
            raise ValueError(f"workers speak {', '.join(reversed(PROTOCOLS))}, and not {', '.join(unknown)}")
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
        """The tasks it runs, by connector; -1 is the connector itself."""
        return {each.connector: sorted(each.tasks) for each in _by_connector(sorted(self._running))}

    def offers(self) -> tuple[tuple[str, bytes], ...]:
        """JoinGroup's protocols, with what it runs in all but the eager one."""
        return tuple((protocol, self._metadata(PROTOCOLS[protocol])) for protocol in self._protocols)

    def prepare(self, protocol: str | None) -> None:
        """It is about to join again: with the eager protocol it stops everything, otherwise nothing."""
        if protocol == "default":
            self._running = []

    def lose(self) -> None:
        """It runs nothing any more, and remembers nothing: what comes back is a new process.

        (A Java worker that was merely thrown out goes on running, and is told to stop what others have got meanwhile:
        that is a puppet with `running`.)
        """
        self._running = []
        self._last = None
        self._completed = -1
        self._assigned_of = None

    def assign(
        self, now: int, protocol: str, generation: int, leader_id: str, members: Sequence[JoinGroupResponseMember]
    ) -> dict[str, bytes]:
        """As the leader: what each worker is to run (eager), or to start and to stop."""
        said = {member.member_id: _said(member.metadata) for member in members}
        config_offset = max(subscription.config_offset for subscription in said.values())
        leader_url = said[leader_id].url
        version = PROTOCOLS[protocol]
        self._assigned_of = configured = units_of(self._connectors)

        def blob(started: Iterable[Unit], stopped: Iterable[Unit] = (), delay: int = 0) -> bytes:
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
            return {worker: blob(units) for worker, units in assign_eagerly(said, configured).items()}
        running = {worker: _allocated(subscription) for worker, subscription in said.items()}
        changes = self._leading.assign(now, (self._completed, generation), configured, running)
        delay = self._leading.delay_ms
        return {worker: blob(change.started, change.stopped, delay) for worker, change in changes.items()}

    def take(self, _now: int, protocol: str, generation: int, assignment: bytes) -> int | None:
        """Start and stop what the assignment says; join again at once if something was stopped, or after its delay.

        Who is left out by the leader goes on with what it has.
        """
        given = _given(assignment)
        stopped = set(_units(given.revoked))
        kept = [] if protocol == "default" else [unit for unit in self._running if unit not in stopped]
        self._running = list(dict.fromkeys([*_units(given.assignment), *kept]))
        self._last = given
        self._config_offset = max(self._config_offset, given.config_offset)
        self._completed = generation
        if stopped or given.error:
            return 0
        return given.delay or None

    def is_outdated(self) -> bool:
        """Whether connectors have come or gone since it led."""
        return self._assigned_of is not None and self._assigned_of != units_of(self._connectors)

    def _metadata(self, version: int) -> bytes:
        allocation = None
        if self._last is not None:
            runs = WorkerAssignment(
                leader=self._last.leader,
                leader_url=self._last.leader_url,
                config_offset=self._last.config_offset,
                assignment=_by_connector(self._running),
                delay=self._last.delay,
            )
            allocation = write_worker_assignment(runs, version)
        return write_worker_subscription(
            WorkerSubscription(url=self._url, config_offset=self._config_offset, allocation=allocation), version
        )


def _said(metadata: bytes) -> WorkerSubscription:
    try:
        return read_worker_subscription(metadata)
    except Malformed:
        return WorkerSubscription(url="", config_offset=-1)


def _given(assignment: bytes) -> WorkerAssignment:
    try:
        return read_worker_assignment(assignment)
    except Malformed:
        return WorkerAssignment(leader="", leader_url="", config_offset=-1)


def _allocated(subscription: WorkerSubscription) -> list[Unit]:
    return [] if subscription.allocation is None else _units(_given(subscription.allocation).assignment)


def _units(tasks: Sequence[ConnectorTasks] | None) -> list[Unit]:
    return [(each.connector, task) for each in tasks or () for task in each.tasks]


def _by_connector(units: Iterable[Unit]) -> tuple[ConnectorTasks, ...]:
    by_connector: dict[str, list[int]] = {}
    for connector, task in units:
        by_connector.setdefault(connector, []).append(task)
    return tuple(ConnectorTasks(connector=name, tasks=tuple(tasks)) for name, tasks in by_connector.items())
