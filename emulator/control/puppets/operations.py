"""Operations on puppets: create, control and describe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from koordinator.wire.apis import APIS, ApiKey
from koordinator.wire.messages.connect_protocol import PROTOCOLS as WORKER_PROTOCOLS

from ...config.suggest import UnknownWord, did_you_mean
from ...core.groups.group import CONSUMER
from ..assignors import ASSIGNORS
from ..results import PuppetInfo
from .behaviours import EAGER_ONLY, NOT_OF_OTHERS, ONLY_CLASSIC, ONLY_CONSUMER, behaviour_of
from .classic_puppet import ClassicPuppet
from .consumer_puppet import CLIENT_IDS_SINCE, ConsumerPuppet
from .consumer_role import ConsumerRole
from .puppet import PuppetClient, PuppetOptions
from .share_puppet import SharePuppet
from .streams_puppet import StreamsPuppet
from .worker_role import MAX_DELAY_MS, WorkerRole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.connections import Output
    from .heartbeat_puppet import HeartbeatPuppet
    from .role import Role
    from .supervisor import PuppetSupervisor

SESSION_TIMEOUT_MS = 6_000
REBALANCE_TIMEOUT_MS = 30_000
"""Default timeouts of puppets, equal to those of `client_config`; valid under every profile."""

CONNECT = "connect"

KNOWN: Mapping[str, Mapping[str, object]] = {CONSUMER: ASSIGNORS, CONNECT: WORKER_PROTOCOLS}
"""Protocols by protocol type."""

OFFERED: Mapping[str, tuple[str, ...]] = {
    CONSUMER: ("range", "roundrobin"),
    CONNECT: tuple(reversed(WORKER_PROTOCOLS)),
}
"""Default protocols. Those of consumers are librdkafka's, which are compatible with the defaults of other clients."""

COOPERATIVE = {name for name, assignor in ASSIGNORS.items() if assignor.is_cooperative} | {"sessioned", "compatible"}
"""Protocols whose members keep their assignment during a rejoin (KIP-429, KIP-415)."""

PartitionsByTopic = Mapping[str, tuple[int, ...]]


class Puppets:
    """Operations on puppets. A puppet belongs to a group and has a unique name there.

    Operations on a puppet return its state as `describe` does, after all responses that need no waiting.
    """

    def __init__(
        self, runtime: ClusterRuntime, send: Callable[[Iterable[Output]], None], supervisor: PuppetSupervisor
    ) -> None:
        self._runtime = runtime
        self._send = send
        self._supervisor = supervisor

    def create(  # noqa: PLR0913 - the configuration of a consumer
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
        session_timeout_ms: int | None = None,
        rebalance_timeout_ms: int = REBALANCE_TIMEOUT_MS,
        heartbeat_interval_ms: int | None = None,
        client_id: str | None = None,
        protocol_type: str = CONSUMER,
        scheduled_rebalance_max_delay_ms: int | None = None,
        group_protocol: str = "classic",
        pattern: str | None = None,
        metadata: Mapping[str, bytes] | None = None,
    ) -> PuppetInfo:
        """Create a puppet outside the group; `join` lets it join. `behaviours` lists the behaviours.

        `protocols` are assignors, most preferred first (default: range, roundrobin). Any name is allowed: puppets lead
        with an assignor of an application, such as KafkaJS's RoundRobinAssigner, like with roundrobin. `metadata` is
        what such an assignor sends in place of a subscription, by protocol. `topics` is the subscription; None
        subscribes to all topics. The first JoinGroup claims the partitions in `owned`. Heartbeats are sent every
        `heartbeat_interval_ms` of group time; None: three per session timeout, and every 200 ms of node time, with more
        than 100 puppets less often. The session timeout is 6,000 by default, the client id the name.

        With group protocol "consumer" (KIP-848), the group has the session timeout and the heartbeat interval.
        `protocols` is then at most one assignor of the coordinator, and `pattern` a regular expression for topics.

        With group protocol "share" (KIP-932) the puppet is a member of a share group, and fetches no records; with
        "streams" (KIP-1071) it is a member of a streams group, and has tasks of its application, or else of `topics`.

        With protocol type "connect", the puppet is a Kafka Connect worker: `protocols` are "sessioned", "compatible"
        and "default" (eager), `topics` maps connectors to numbers of tasks, and `owned` maps connectors to the tasks
        reported as running. As leader it waits `scheduled_rebalance_max_delay_ms` (300,000) for a lost worker.

        Raise ValueError for invalid arguments and for a duplicate name.
        """
        if not name:
            raise ValueError("name '': must not be empty")
        if (group, name) in self._supervisor.puppets:
            raise ValueError(f"group {group!r} has a puppet {name!r} already: use another name")
        options = PuppetOptions(
            group_id=group,
            name=name,
            client_id=name if client_id is None else client_id,
            instance_id=instance_id,
            behaviour=behaviour_of(behaviour),
            session_timeout_ms=SESSION_TIMEOUT_MS if session_timeout_ms is None else session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            heartbeat_interval_ms=heartbeat_interval_ms,
        )
        if isinstance(topics, str):
            raise ValueError(f"topics {topics!r}: must be a list")  # noqa: TRY004 - operations raise ValueError
        claimed = {topic: tuple(numbers) for topic, numbers in (owned or {}).items()}
        settings_of_classic = {
            "session_timeout_ms": session_timeout_ms,
            "owned": owned,
            "protocol_type": None if protocol_type == CONSUMER else protocol_type,
            "scheduled_rebalance_max_delay_ms": scheduled_rebalance_max_delay_ms,
            "metadata": metadata,
        }
        _check_protocol(
            group_protocol,
            options,
            {"pattern": pattern},
            settings_of_classic,
            {"pattern": pattern, "instance_id": instance_id, "protocols": protocols, **settings_of_classic},
        )
        if group_protocol == ConsumerPuppet.group_protocol:
            puppet: PuppetClient = self._consumer_puppet(options, protocols, topics, pattern)
        elif group_protocol in (SharePuppet.group_protocol, StreamsPuppet.group_protocol):
            puppet = self._heartbeat_puppet(group_protocol, options, topics)
        else:
            offered = _protocols(protocol_type, protocols, eager_only=options.behaviour.kind == EAGER_ONLY)
            if not set(metadata or ()) <= (set() if protocol_type == CONNECT else set(offered)):
                raise ValueError(f"metadata for {', '.join(metadata or ())}: a consumer offers {', '.join(offered)}")
            if protocol_type == CONNECT:
                new_role = _worker(name, offered, topics, claimed, scheduled_rebalance_max_delay_ms)
            elif isinstance(topics, Mapping) or scheduled_rebalance_max_delay_ms is not None:
                raise ValueError(f"task counts in topics and scheduled_rebalance_max_delay_ms need type {CONNECT!r}")
            else:
                new_role = self._consumer(offered, topics, claimed, metadata or {})
            puppet = ClassicPuppet(self._supervisor, options, new_role)
        self._runtime.tickers[self._supervisor] = None
        self._runtime.heartbeat_sender = self._supervisor
        self._supervisor.puppets[group, name] = puppet
        self._supervisor.note(now, puppet, "created")
        return _info(puppet)

    def join(self, now: int, *, group: str, name: str, reason: str | None = None) -> PuppetInfo:
        """Join the group: the first join, a join after a leave or failure, or a rejoin."""
        return self._perform(now, group, name, lambda puppet, at: puppet.join(at, reason))

    def sync(self, now: int, *, group: str, name: str) -> PuppetInfo:
        """Send SyncGroup, or acknowledge the assignment of the consumer protocol, for a puppet that does not itself."""
        return self._perform(now, group, name, lambda puppet, at: puppet.sync(at))

    def heartbeat(self, now: int, *, group: str, name: str) -> PuppetInfo:
        """Send a heartbeat."""
        return self._perform(now, group, name, lambda puppet, at: puppet.heartbeat(at))

    def commit(self, now: int, *, group: str, name: str, offsets: Sequence[tuple[str, int, int]]) -> PuppetInfo:
        """Commit offsets, a list of (topic, partition, offset)."""
        by_partition = {(topic, partition): offset for topic, partition, offset in offsets}
        if not by_partition:
            raise ValueError(f"puppet {name!r} cannot commit: the list of offsets is empty")
        return self._perform(now, group, name, lambda puppet, at: puppet.commit(at, by_partition))

    def leave(
        self, now: int, *, group: str, name: str, reason: str | None = None, temporarily: bool = False
    ) -> PuppetInfo:
        """Leave the group. The puppet stays out until the next `join`.

        `temporarily` keeps the partitions of a static member of the consumer protocol until its session ends.
        """
        return self._perform(now, group, name, lambda puppet, at: puppet.leave(at, reason, temporarily=temporarily))

    def stop(self, now: int, *, group: str, name: str) -> PuppetInfo:
        """Stop a puppet without leaving, like a killed process; `join` restarts it without any state."""
        return self._perform(now, group, name, lambda puppet, at: puppet.stop(at))

    def describe(self, _now: int, *, group: str, name: str) -> PuppetInfo:
        """Return a puppet's configuration and state."""
        return _info(self._puppet(group, name))

    def meets(self, _now: int, *, group: str, name: str, state: str) -> bool:
        """Return whether a puppet is in a state."""
        return self._puppet(group, name).state.value == state

    def list(self, _now: int, *, group: str | None = None) -> list[PuppetInfo]:
        """Return the puppets of a group, or of all groups, in order of creation."""
        return [_info(puppet) for puppet in self._supervisor.puppets.values() if group in (None, puppet.group_id)]

    def _perform(self, now: int, group: str, name: str, action: Callable[[PuppetClient, int], None]) -> PuppetInfo:
        puppet = self._puppet(group, name)
        action(puppet, now)
        self._send(self._supervisor.tick(now))
        self._send(self._runtime.tick(now))
        return _info(puppet)

    def _puppet(self, group: str, name: str) -> PuppetClient:
        puppet = self._supervisor.puppets.get((group, name))
        if puppet is None:
            raise ValueError(f"group {group!r} has no puppet {name!r}: {self._names(group)}")
        return puppet

    def _names(self, group: str) -> str:
        names = [name for group_id, name in self._supervisor.puppets if group_id == group]
        return f"it has {', '.join(map(repr, names))}" if names else "it has none"

    def _consumer_puppet(
        self,
        options: PuppetOptions,
        assignors: Sequence[str] | None,
        topics: Sequence[str] | Mapping[str, int] | None,
        pattern: str | None,
    ) -> ConsumerPuppet:
        key = ApiKey.CONSUMER_GROUP_HEARTBEAT
        version = self._supervisor.versions.get(key, -1)
        if version < (0 if pattern is None else CLIENT_IDS_SINCE):
            wanted = "group_protocol 'consumer'" if pattern is None else f"pattern {pattern!r}"
            raise ValueError(
                f"{wanted}: the release serves no such ConsumerGroupHeartbeat; use kafka_version 4.0 or newer"
            )
        names = (assignors,) if isinstance(assignors, str) else tuple(assignors or ())
        if len(names) > 1 or isinstance(topics, Mapping):
            raise ValueError(
                f"protocols {list(names)!r}, topics {topics!r}: the consumer protocol has one assignor and a list"
            )
        return ConsumerPuppet(
            self._supervisor,
            options,
            self._runtime.cluster,
            topics=None if topics is None else tuple(topics),
            pattern=pattern,
            assignor=names[0] if names else None,
        )

    def _heartbeat_puppet(
        self, group_protocol: str, options: PuppetOptions, topics: Sequence[str] | Mapping[str, int] | None
    ) -> HeartbeatPuppet:
        is_share = group_protocol == SharePuppet.group_protocol
        key = ApiKey.SHARE_GROUP_HEARTBEAT if is_share else ApiKey.STREAMS_GROUP_HEARTBEAT
        if key not in self._supervisor.versions:
            api = APIS[key].name
            raise ValueError(
                f"group_protocol {group_protocol!r}: the release serves no {api}; use kafka_version 4.2 or newer"
            )
        if isinstance(topics, Mapping):
            raise ValueError(f"topics {topics!r}: must be a list")  # noqa: TRY004 - operations raise ValueError
        subscription = None if topics is None else tuple(topics)
        kind = SharePuppet if is_share else StreamsPuppet
        return kind(self._supervisor, options, self._runtime.cluster, subscription)

    def _consumer(
        self,
        protocols: Sequence[str],
        topics: Sequence[str] | None,
        owned: PartitionsByTopic,
        metadata: Mapping[str, bytes],
    ) -> Callable[[], Role]:
        # only the first role has claims; a restarted puppet has no state
        claims = [owned]
        subscription = None if topics is None else tuple(topics)
        cluster = self._runtime.cluster
        return lambda: ConsumerRole(cluster, protocols, subscription, claims.pop() if claims else {}, metadata)


def _worker(
    name: str,
    protocols: Sequence[str],
    connectors: Sequence[str] | Mapping[str, int] | None,
    running: PartitionsByTopic,
    max_delay_ms: int | None,
) -> Callable[[], Role]:
    if not isinstance(connectors, Mapping):
        expected = "topics of a connect puppet must map connectors to numbers of tasks"
        raise ValueError(f"{expected}, not {connectors!r}")  # noqa: TRY004 - operations raise ValueError
    delay_ms = MAX_DELAY_MS if max_delay_ms is None else max_delay_ms
    claims = [running]
    return lambda: WorkerRole(
        protocols,
        connectors,
        url=f"http://{name}:8083/",
        scheduled_rebalance_max_delay_ms=delay_ms,
        running=claims.pop() if claims else None,
    )


def _protocols(protocol_type: str, protocols: Sequence[str] | None, *, eager_only: bool) -> tuple[str, ...]:
    if protocol_type not in KNOWN:
        types = ", ".join(KNOWN)
        raise UnknownWord(f"protocol_type {protocol_type!r}: puppets have {types}{did_you_mean(protocol_type, KNOWN)}")
    known = KNOWN[protocol_type]
    if protocols is None:
        names = OFFERED[protocol_type]
    else:
        names = (protocols,) if isinstance(protocols, str) else tuple(protocols)
    for name in names:
        if not name or (name not in known and protocol_type == CONNECT):
            raise UnknownWord(f"protocol {name!r} is not known; known: {', '.join(known)}{did_you_mean(name, known)}")
    if eager_only:
        names = tuple(name for name in names if name not in COOPERATIVE)
    if not names or len(set(names)) != len(names):
        eager = [name for name in known if name not in COOPERATIVE]
        hint = f"; {EAGER_ONLY!r} offers only eager ones, such as {', '.join(eager)}" if eager_only else ""
        raise ValueError(f"protocols {protocols!r}: must be one or more distinct names{hint}")
    return names


def _check_protocol(
    group_protocol: str,
    options: PuppetOptions,
    of_consumer: Mapping[str, object],
    of_classic: Mapping[str, object],
    of_others: Mapping[str, object],
) -> None:
    """Raise ValueError for an unknown protocol, and for a behaviour or settings that it lacks.

    Those of consumer members alone, those of classic ones alone, and those that a share member lacks.
    """
    known: Mapping[str, tuple[tuple[str, ...], Mapping[str, object]]] = {
        ClassicPuppet.group_protocol: (ONLY_CONSUMER, of_consumer),
        ConsumerPuppet.group_protocol: (ONLY_CLASSIC, of_classic),
        SharePuppet.group_protocol: (NOT_OF_OTHERS, of_others),
        StreamsPuppet.group_protocol: (NOT_OF_OTHERS, of_others),
    }
    if group_protocol not in known:
        hint = did_you_mean(group_protocol, known)
        raise UnknownWord(f"group_protocol {group_protocol!r} is not known{hint}; known: {', '.join(known)}")
    kinds, settings = known[group_protocol]
    wrong = [f"{name}={value!r}" for name, value in settings.items() if value is not None]
    if options.behaviour.kind in kinds:
        wrong.append(f"behaviour={options.behaviour.kind!r}")
    if wrong:
        raise ValueError(
            f"{', '.join(wrong)}: members with group_protocol {group_protocol!r} do not have it; remove it"
        )


def _info(puppet: PuppetClient) -> PuppetInfo:
    return PuppetInfo(
        name=puppet.name,
        group=puppet.group_id,
        client_id=puppet.client_id,
        instance_id=puppet.instance_id,
        protocol_type=puppet.protocol_type,
        group_protocol=puppet.group_protocol,
        behaviour=puppet.behaviour.plain(),
        state=puppet.state.value,
        member_id=puppet.member_id,
        generation=puppet.generation,
        protocol=puppet.protocol,
        is_leader=puppet.is_leader,
        assignment=puppet.holds,
        waits_for=puppet.pending_api,
        error=puppet.error.name if puppet.error else None,
    )
