"""Puppets, as tests ask for them: made, told what to do, looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from koordinator.wire.messages.connect_protocol import PROTOCOLS as WORKER_PROTOCOLS

from ...core.groups.classic.group import CONSUMER
from ..assignors import ASSIGNORS
from .behaviours import DUPLICATE_INSTANCE_ID, EAGER_ONLY, behaviour_of, nearest
from .consumer_role import ConsumerRole
from .puppet import PuppetClient
from .supervisor import PuppetSupervisor
from .worker_role import MAX_DELAY_MS, WorkerRole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.connections import Output
    from .role import Role

SESSION_TIMEOUT_MS = 6_000
REBALANCE_TIMEOUT_MS = 30_000
"""The timeouts of puppets, as `client_config` has them: legal under every profile."""

CONNECT = "connect"

KNOWN: Mapping[str, Mapping[str, object]] = {CONSUMER: ASSIGNORS, CONNECT: WORKER_PROTOCOLS}
"""The protocols there are of each protocol type."""

OFFERED: Mapping[str, tuple[str, ...]] = {
    CONSUMER: ("range", "roundrobin"),
    CONNECT: tuple(reversed(WORKER_PROTOCOLS)),
}
"""What is offered if nothing is said: as librdkafka does, which goes with what any client offers by default."""

COOPERATIVE = {name for name, assignor in ASSIGNORS.items() if assignor.is_cooperative} | {"sessioned", "compatible"}
"""The protocols whose members keep what they have while they join again (KIP-429, KIP-415)."""

Described = dict[str, object]
Held = Mapping[str, tuple[int, ...]]


class Puppets:
    """Makes puppets and tells them what to do.

    A puppet belongs to a group and has a name of its own there. What is told to a puppet returns how it is then, as
    `describe` does: what needs no waiting has been answered.
    """

    def __init__(
        self, brokers: ClusterRuntime, leave: Callable[[Iterable[Output]], None], troupe: PuppetSupervisor | None = None
    ) -> None:
        self._brokers = brokers
        self._leave = leave
        self._troupe = troupe or PuppetSupervisor(brokers)

    def create(  # noqa: PLR0913 - what a consumer is configured with
        self,
        now: int,
        *,
        group: str,
        name: str,
        protocols: Sequence[str] | None = None,
        instance_id: str | None = None,
        topics: Sequence[str] | Mapping[str, int] | None = None,
        owned: Mapping[str, Sequence[int]] | None = None,
        behaviour: str | Mapping[str, object] = "healthy",
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        rebalance_timeout_ms: int = REBALANCE_TIMEOUT_MS,
        heartbeat_interval_ms: int | None = None,
        client_id: str | None = None,
        protocol_type: str = CONSUMER,
        scheduled_rebalance_max_delay_ms: int | None = None,
    ) -> Described:
        """Make a puppet, which is in no group yet: see `behaviours` for what it will do once it has joined.

        `protocols` are assignors, most preferred first (range and roundrobin). `topics` it is subscribed to; None: all
        there are. `owned` are partitions by topic it claims to hold when it first joins. It beats every
        `heartbeat_interval_ms` of the group's time; None: every third of the session timeout, and every 200 ms of the
        node's time. The client id is its name, if none is given.

        Of protocol type "connect" it is a worker of Kafka Connect: `protocols` are "sessioned", "compatible" and
        "default" (eager), `topics` the connectors with their numbers of tasks, `owned` the tasks it says it runs, by
        connector, and `scheduled_rebalance_max_delay_ms` (300,000) how long it waits, as the leader, for a lost one.

        ValueError for what cannot be, and for a name that is taken.
        """
        if not name:
            raise ValueError("a puppet has a name")
        if (group, name) in self._troupe.puppets:
            raise ValueError(f"group {group!r} has a puppet {name!r} already: {self._named(group)}")
        wanted = behaviour_of(behaviour)
        offered = _protocols(protocol_type, protocols, eager_only=wanted.kind == EAGER_ONLY)
        if wanted.kind == DUPLICATE_INSTANCE_ID and instance_id is None:
            raise ValueError(f"behaviour {DUPLICATE_INSTANCE_ID!r} wants the instance_id that somebody else has")
        for what, given in (("session_timeout_ms", session_timeout_ms), ("rebalance_timeout_ms", rebalance_timeout_ms)):
            _check_time(what, given)
        if heartbeat_interval_ms is not None:
            _check_time("heartbeat_interval_ms", heartbeat_interval_ms)
        if instance_id == "" or isinstance(topics, str):
            raise ValueError(
                f"instance_id {instance_id!r} and topics {topics!r}: an id is not empty, topics are a list"
            )
        claimed = {topic: tuple(held) for topic, held in (owned or {}).items()}
        if protocol_type == CONNECT:
            new_role = _worker(name, offered, topics, claimed, scheduled_rebalance_max_delay_ms)
        elif isinstance(topics, Mapping) or scheduled_rebalance_max_delay_ms is not None:
            raise ValueError(f"topics with numbers and scheduled_rebalance_max_delay_ms are for {CONNECT!r} only")
        else:
            new_role = self._consumer(offered, topics, claimed)
        puppet = PuppetClient(
            self._troupe,
            group_id=group,
            name=name,
            client_id=name if client_id is None else client_id,
            instance_id=instance_id,
            behaviour=wanted,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            heartbeat_interval_ms=heartbeat_interval_ms,
            new_role=new_role,
        )
        if not self._troupe.puppets:
            self._brokers.tickers.append(self._troupe)
            self._brokers.heartbeat_sender = self._troupe
        self._troupe.puppets[group, name] = puppet
        self._troupe.note(now, puppet, "created")
        return _described(puppet)

    def join(self, now: int, *, group: str, name: str, reason: str | None = None) -> Described:
        """Let it send JoinGroup: for the first time, after it has left or failed, or anew."""
        puppet = self._puppet(group, name)
        return self._tell(now, puppet, lambda at: puppet.join(at, reason))

    def sync(self, now: int, *, group: str, name: str) -> Described:
        """Let it send SyncGroup, if it has joined and does not do so itself."""
        puppet = self._puppet(group, name)
        return self._tell(now, puppet, puppet.sync)

    def heartbeat(self, now: int, *, group: str, name: str) -> Described:
        """Let it send a heartbeat now."""
        puppet = self._puppet(group, name)
        return self._tell(now, puppet, puppet.heartbeat)

    def commit(self, now: int, *, group: str, name: str, offsets: Sequence[tuple[str, int, int]]) -> Described:
        """Let it commit offsets: (topic, partition, offset) each."""
        puppet = self._puppet(group, name)
        by_partition = {(topic, partition): offset for topic, partition, offset in offsets}
        if not by_partition:
            raise ValueError(f"puppet {name!r} cannot commit: no offsets are given")
        return self._tell(now, puppet, lambda at: puppet.commit(at, by_partition))

    def leave(self, now: int, *, group: str, name: str, reason: str | None = None) -> Described:
        """Let it send LeaveGroup; it stays out until it is told to join."""
        puppet = self._puppet(group, name)
        return self._tell(now, puppet, lambda at: puppet.leave(at, reason))

    def stop(self, now: int, *, group: str, name: str) -> Described:
        """End it without a word, as a process that is killed. To `join` is to start it again, with nothing known."""
        puppet = self._puppet(group, name)
        return self._tell(now, puppet, puppet.stop)

    def describe(self, now: int, *, group: str, name: str) -> Described:
        """How it is: `name group client_id instance_id protocol_type behaviour state member_id generation protocol`.

        Also `is_leader`, `assignment` (what it holds, partitions by topic), `waits_for` (the API whose answer it waits
        for, or None) and `error` (the name of what its last request was answered with, None if all was well).
        States are out, joining, joined (SyncGroup is to be sent), syncing, stable, leaving, failed.
        """
        del now
        return _described(self._puppet(group, name))

    def meets(self, now: int, *, group: str, name: str, state: str) -> bool:
        """Whether it is in a state."""
        del now
        return self._puppet(group, name).state.value == state

    def list(self, now: int, *, group: str | None = None) -> list[Described]:
        """Every puppet, of one group or of all, in the order in which they were made."""
        del now
        return [_described(puppet) for puppet in self._troupe.puppets.values() if group in (None, puppet.group_id)]

    # -- inside ----------------------------------------------------------------------------------------------

    def _tell(self, now: int, puppet: PuppetClient, verb: Callable[[int], None]) -> Described:
        verb(now)
        self._leave(self._troupe.tick(now))
        self._leave(self._brokers.tick(now))
        return _described(puppet)

    def _puppet(self, group: str, name: str) -> PuppetClient:
        puppet = self._troupe.puppets.get((group, name))
        if puppet is None:
            raise ValueError(f"group {group!r} has no puppet {name!r}: {self._named(group)}")
        return puppet

    def _named(self, group: str) -> str:
        names = [name for in_group, name in self._troupe.puppets if in_group == group]
        return f"it has {', '.join(map(repr, names))}" if names else "it has none"

    def _consumer(self, protocols: Sequence[str], topics: Sequence[str] | None, owned: Held) -> Callable[[], Role]:
        claims = [owned]
        wanted = None if topics is None else tuple(topics)
        cluster = self._brokers.cluster
        # it claims something only the first time: later it has forgotten everything
        return lambda: ConsumerRole(cluster, protocols, wanted, claims.pop() if claims else {})


def _worker(
    name: str,
    protocols: Sequence[str],
    connectors: Sequence[str] | Mapping[str, int] | None,
    running: Held,
    max_delay_ms: int | None,
) -> Callable[[], Role]:
    if not isinstance(connectors, Mapping):
        given = "a connect puppet has connectors with numbers of tasks for topics"
        raise ValueError(f"{given}, not {connectors!r}")  # noqa: TRY004 - a lever refuses with ValueErrors
    delay_ms = MAX_DELAY_MS if max_delay_ms is None else max_delay_ms
    claims = [running]
    return lambda: WorkerRole(
        protocols,
        connectors,
        url=f"http://{name}:8083/",
        scheduled_rebalance_max_delay_ms=delay_ms,
        running=claims.pop() if claims else None,
    )


def _protocols(protocol_type: str, given: Sequence[str] | None, *, eager_only: bool) -> tuple[str, ...]:
    if protocol_type not in KNOWN:
        there = ", ".join(KNOWN)
        raise ValueError(f"protocol_type {protocol_type!r}: puppets have {there}{nearest(protocol_type, KNOWN)}")
    known = KNOWN[protocol_type]
    names = OFFERED[protocol_type] if given is None else (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if name not in known:
            raise ValueError(f"protocol {name!r} is not known; known: {', '.join(known)}{nearest(name, known)}")
    eager = [name for name in known if name not in COOPERATIVE]
    if eager_only:
        names = tuple(name for name in names if name in eager)
    if not names or len(set(names)) != len(names):
        hint = f"; {EAGER_ONLY!r} offers only {', '.join(eager)}" if eager_only else ""
        raise ValueError(f"protocols {given!r}: at least one, and none twice{hint}")
    return names


def _check_time(what: str, given: int) -> None:
    if given <= 0:
        raise ValueError(f"{what} must be a whole number of milliseconds above 0, not {given!r}")


def _described(puppet: PuppetClient) -> Described:
    return {
        "name": puppet.name,
        "group": puppet.group_id,
        "client_id": puppet.client_id,
        "instance_id": puppet.instance_id,
        "protocol_type": puppet.role.protocol_type,
        "behaviour": puppet.behaviour.plain(),
        "state": puppet.state.value,
        "member_id": puppet.member_id,
        "generation": puppet.generation,
        "protocol": puppet.protocol,
        "is_leader": puppet.is_leader,
        "assignment": puppet.role.holds,
        "waits_for": puppet.waits_for,
        "error": puppet.error.name if puppet.error else None,
    }
