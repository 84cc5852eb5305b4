"""Handles that are awaited: made from those that block by tools/aio_handles.py, not by hand."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from koordinator.aio.waiting import entered, in_thread
from koordinator.handles.emulator import Emulator as BlockingEmulator

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Any, Literal, Self, Unpack

    from koordinator.emulator.control.faults.actions import Action
    from koordinator.emulator.control.record_inputs import RecordLike
    from koordinator.emulator.core.data.direct_records import StoredRecord
    from koordinator.emulator.verify.conformance import Verdict
    from koordinator.emulator.verify.rebalances import Rebalance
    from koordinator.handles.checks import ExpectedRebalance
    from koordinator.handles.clocks import Duration, Fired, KeepAlive, Timer
    from koordinator.handles.cluster import Cluster as BlockingCluster
    from koordinator.handles.faults import Held as BlockingHeld
    from koordinator.handles.faults import Lockstep as BlockingLockstep
    from koordinator.handles.faults import MatchWords, Request, RuleWords
    from koordinator.handles.faults import Rule as BlockingRule
    from koordinator.handles.group import Group as BlockingGroup
    from koordinator.handles.group import Member, Snapshot
    from koordinator.handles.nodes import Node as BlockingNode
    from koordinator.handles.puppets import Puppet as BlockingPuppet
    from koordinator.handles.seeding import GroupLines

__all__ = ["Cluster", "Emulator", "Group", "Held", "Lockstep", "Node", "Puppet", "Rule"]


class Emulator:
    """A cluster inside this process, as a context manager.

    Its cluster is for asyncio and Trio: `async with Emulator(…) as cluster:`.
    """

    def __init__(
        self,
        topics: Mapping[str, int] | None = None,
        config: Mapping[str, object] | None = None,
        *,
        profile: str | None = None,
        kafka_version: str | None = None,
        error_codes: str | None = None,
        clock: str | None = None,
        seed: int | None = None,
        trace: str | Path | None = None,
        data_dir: str | Path | None = None,
        brokers: int = 1,
        host: str = "127.0.0.1",
        port: int = 0,
        listeners: Mapping[str, str] | None = None,
        advertised: Mapping[str, str] | None = None,
        about: Mapping[str, object] | None = None,
    ) -> None:
        self.blocking = BlockingEmulator(
            topics,
            config,
            profile=profile,
            kafka_version=kafka_version,
            error_codes=error_codes,
            clock=clock,
            seed=seed,
            trace=trace,
            data_dir=data_dir,
            brokers=brokers,
            host=host,
            port=port,
            listeners=listeners,
            advertised=advertised,
            about=about,
        )
        """The one that blocks."""
        self._clusters: list[Cluster] = []

    async def start(self) -> Cluster:
        """Start a cluster, which runs until its `stop`."""
        return Cluster(await in_thread(self.blocking.start))

    async def __aenter__(self) -> Cluster:
        self._clusters.append(await self.start())
        return self._clusters[-1]

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await in_thread(self._clusters.pop().blocking.stop, whatever_happens=True)


class Cluster:
    """A running cluster, as `Emulator` and the pytest fixtures give it."""

    def __init__(self, blocking: BlockingCluster) -> None:
        self.blocking = blocking
        """The one that blocks."""

    def __repr__(self) -> str:
        return repr(self.blocking)

    async def rule(self, api: str, action: Action, **words: Unpack[RuleWords]) -> Rule:
        """Let a rule act on requests, as `Group.rule` does; of every group, unless `group=` says which. "*" is any API."""
        return Rule(await in_thread(lambda: self.blocking.rule(api, action, **words)))

    @asynccontextmanager
    async def hold(self, api: str, **words: Unpack[MatchWords]) -> AsyncIterator[Held]:
        """Stop requests before they are applied, as `Group.hold` does; of every group, unless `group=` says which."""
        async with entered(await in_thread(lambda: self.blocking.hold(api, **words))) as given:
            yield Held(given)

    @property
    def rules(self) -> Awaitable[list[Rule]]:
        """The rules there are, the oldest first."""

        async def ask() -> list[Rule]:
            return [Rule(each) for each in await in_thread(lambda: self.blocking.rules)]

        return ask()

    @property
    def holds(self) -> Awaitable[list[Held]]:
        """The holds there are, the oldest first."""

        async def ask() -> list[Held]:
            return [Held(each) for each in await in_thread(lambda: self.blocking.holds)]

        return ask()

    async def unused_rules(self) -> list[Rule]:
        """The rules that have never acted and are not optional."""
        return [Rule(each) for each in await in_thread(self.blocking.unused_rules)]

    async def check(self) -> None:
        """Raise AssertionError if a rule that is not optional has never acted; the pytest plugin does so at the end."""
        await in_thread(self.blocking.check)

    async def disturb(self, seed: int | None) -> None:
        """Delay requests and answers of group APIs by a few milliseconds, as a seed decides; None ends it."""
        await in_thread(lambda: self.blocking.disturb(seed))

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to: `127.0.0.1:40123`; for each of several brokers, with commas between them."""
        return self.blocking.bootstrap_servers

    @property
    def seed(self) -> int:
        """What decides the ids of this cluster; `Emulator(seed=…)` repeats them."""
        return self.blocking.seed

    async def create_topic(
        self, name: str, partitions: int = 1, records: int | Iterable[RecordLike] | None = None
    ) -> None:
        """Make a topic, with records in it if some are given (see `produce`; a number makes that many)."""
        await in_thread(lambda: self.blocking.create_topic(name, partitions, records))

    async def produce(self, topic: str, *records: RecordLike) -> int:
        """Append records to a topic, all or none; returns how many."""
        return await in_thread(lambda: self.blocking.produce(topic, *records))

    async def records(self, topic: str) -> list[StoredRecord]:
        """Every record of a topic, partition by partition: `partition offset timestamp key value headers`."""
        return await in_thread(lambda: self.blocking.records(topic))

    def group(self, group_id: str) -> Group:
        """The handle of a consumer group, which need not exist yet."""
        return Group(self.blocking.group(group_id))

    async def groups(self) -> list[Group]:
        """The groups there are, by id."""
        return [Group(each) for each in await in_thread(self.blocking.groups)]

    @property
    def nodes(self) -> Awaitable[dict[int, Node]]:
        """The brokers, by node id, from 1 on."""

        async def ask() -> dict[int, Node]:
            found = await in_thread(lambda: self.blocking.nodes)
            return {key: Node(each) for key, each in found.items()}

        return ask()

    async def add_node(self) -> Node:
        """Take one more broker into the cluster, and start it. It leads nothing until something is moved to it."""
        return Node(await in_thread(self.blocking.add_node))

    async def coordinator(self, group: str) -> Node | None:
        """The broker that coordinates a group, whether it exists or not; None while there is none."""
        found = await in_thread(lambda: self.blocking.coordinator(group))
        return None if found is None else Node(found)

    async def leader(self, topic: str, partition: int) -> Node | None:
        """The broker that leads a partition; None while there is none, or no such partition."""
        found = await in_thread(lambda: self.blocking.leader(topic, partition))
        return None if found is None else Node(found)

    async def move_coordinator(self, group: str, to: int, load_s: float = 0) -> None:
        """Let node `to` coordinate a group, and every group that is kept in the same partition, after `load_s` seconds."""
        await in_thread(lambda: self.blocking.move_coordinator(group, to, load_s))

    async def move_leader(self, topic: str, partition: int, to: int) -> None:
        """Let node `to` lead a partition. Raises ValueError if there is no such partition or node, or it is down."""
        await in_thread(lambda: self.blocking.move_leader(topic, partition, to))

    async def add_partitions(self, topic: str, count: int) -> int:
        """Let a topic have so many partitions more; returns how many it has then. RefusedError as Kafka refuses it."""
        return await in_thread(lambda: self.blocking.add_partitions(topic, count))

    async def set_max_size(self, size: int) -> None:
        """Set `group.max.size` (KIP-389); who is in a group stays until its next join phase."""
        await in_thread(lambda: self.blocking.set_max_size(size))

    async def load_groups(self, source: GroupLines) -> None:
        """Let groups, with members and committed offsets, be as a file says, or lines of one (text or mappings)."""
        await in_thread(lambda: self.blocking.load_groups(source))

    async def dump_groups(self) -> list[dict[str, object]]:
        """What `__consumer_offsets` says of all groups, as the lines of a file: see `load_groups`."""
        return await in_thread(self.blocking.dump_groups)

    async def snapshot(self) -> dict[str, Any]:
        """Topics, records, groups, offsets and clocks as one JSON document (see `control.snapshots.document`)."""
        return await in_thread(self.blocking.snapshot)

    async def restore(self, document: Mapping[str, Any]) -> None:
        """Let everything be as a snapshot says, whatever it was; the answers of Kafka's APIs are those of then."""
        await in_thread(lambda: self.blocking.restore(document))

    async def reset(self, *scopes: str) -> None:
        """Empty the cluster, or only some of rules, holds, puppets, groups, topics, trace. Connections stay."""
        await in_thread(lambda: self.blocking.reset(*scopes))

    def client_config(self, kind: str, **extra: object) -> dict[str, object]:
        """Settings for a consumer of "kafka-python", "confluent-kafka" or "aiokafka", with short timeouts."""
        return self.blocking.client_config(kind, **extra)

    async def trace(self, since: int = 0, group: str | None = None) -> list[dict[str, object]]:
        """What happened, the oldest first: the events after sequence number `since`, of one group if it is given."""
        return await in_thread(lambda: self.blocking.trace(since, group))

    async def stop(self) -> None:
        """Stop the cluster: its port is closed, and so is every connection. A second stop does nothing."""
        await in_thread(self.blocking.stop)


class Group:
    """A consumer group of a cluster. Each property asks anew; `snapshot` asks for all at one moment."""

    def __init__(self, blocking: BlockingGroup) -> None:
        self.blocking = blocking
        """The one that blocks."""

    def __repr__(self) -> str:
        return repr(self.blocking)

    @property
    def id(self) -> str:
        """As it was made."""
        return self.blocking.id

    async def rebalance(self, cause: str = "forced rebalance") -> None:
        """Begin a join phase; the trace gives `cause` as its reason. The group is Stable or CompletingRebalance."""
        await in_thread(lambda: self.blocking.rebalance(cause))

    async def evict(self, member: str, as_if: Literal["poll_timeout", "session"] = "poll_timeout") -> None:
        """Let a member go: as one whose `max.poll.interval.ms` is over, which leaves; or as one whose session ends."""
        await in_thread(lambda: self.blocking.evict(member, as_if))

    async def fence(self, instance: str) -> None:
        """Let another process join with an instance id (KIP-345): who has held it is told FENCED_INSTANCE_ID (82)."""
        await in_thread(lambda: self.blocking.fence(instance))

    async def freeze(
        self, state: Literal["Empty", "PreparingRebalance", "CompletingRebalance", "Stable"] | None = None
    ) -> None:
        """Let the group stay in its state, or in a state once it is in that, until `thaw`. It need not exist yet."""
        await in_thread(lambda: self.blocking.freeze(state))

    async def thaw(self) -> None:
        """Let the group go on; its timers have stood still meanwhile."""
        await in_thread(self.blocking.thaw)

    async def set_offsets(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets, `{("orders", 0): 5}`, whoever is in the group; Kafka lets only members, if there are any."""
        await in_thread(lambda: self.blocking.set_offsets(offsets))

    async def puppet(
        self,
        name: str,
        protocols: Sequence[str] | None = None,
        *,
        instance_id: str | None = None,
        topics: Sequence[str] | Mapping[str, int] | None = None,
        owned: Mapping[str, Sequence[int]] | None = None,
        behaviour: str | Mapping[str, object] = "healthy",
        session_timeout_s: float = 6,
        rebalance_timeout_s: float = 30,
        heartbeat_interval_s: float | None = None,
        client_id: str | None = None,
        protocol_type: str = "consumer",
        scheduled_rebalance_max_delay_s: float | None = None,
    ) -> Puppet:
        """Make a puppet, which is in no group until it is told to `join`."""
        return Puppet(
            await in_thread(
                lambda: self.blocking.puppet(
                    name,
                    protocols,
                    instance_id=instance_id,
                    topics=topics,
                    owned=owned,
                    behaviour=behaviour,
                    session_timeout_s=session_timeout_s,
                    rebalance_timeout_s=rebalance_timeout_s,
                    heartbeat_interval_s=heartbeat_interval_s,
                    client_id=client_id,
                    protocol_type=protocol_type,
                    scheduled_rebalance_max_delay_s=scheduled_rebalance_max_delay_s,
                )
            )
        )

    @property
    def puppets(self) -> Awaitable[dict[str, Puppet]]:
        """The puppets there are, by name."""

        async def ask() -> dict[str, Puppet]:
            found = await in_thread(lambda: self.blocking.puppets)
            return {key: Puppet(each) for key, each in found.items()}

        return ask()

    async def rule(self, api: str, action: Action, **words: Unpack[RuleWords]) -> Rule:
        """Let a rule act on requests of this group: `group.rule("OffsetCommit", faults.lose_reply(), nth=2)`."""
        return Rule(await in_thread(lambda: self.blocking.rule(api, action, **words)))

    @asynccontextmanager
    async def hold(self, api: str, **words: Unpack[MatchWords]) -> AsyncIterator[Held]:
        """Stop requests of this group before they are applied, until they are released."""
        async with entered(await in_thread(lambda: self.blocking.hold(api, **words))) as given:
            yield Held(given)

    @asynccontextmanager
    async def lockstep(self, api: str, clients: Iterable[str]) -> AsyncIterator[Lockstep]:
        """Serve these requests of this group in rounds, one of each client, whatever the order in which they come."""
        async with entered(await in_thread(lambda: self.blocking.lockstep(api, clients))) as given:
            yield Lockstep(given)

    @property
    def clock(self) -> Awaitable[str]:
        """How the group's clock runs: real, manual or auto."""

        async def ask() -> str:
            return await in_thread(lambda: self.blocking.clock)

        return ask()

    @property
    def now_ms(self) -> Awaitable[int]:
        """What the group's clock shows, in milliseconds since the epoch."""

        async def ask() -> int:
            return await in_thread(lambda: self.blocking.now_ms)

        return ask()

    async def set_clock(self, mode: Literal["real", "manual", "auto"]) -> None:
        """Let the group's clock run as the node's (real); stand still until it is moved (manual); or jump (auto)."""
        await in_thread(lambda: self.blocking.set_clock(mode))

    async def timers(self) -> list[Timer]:
        """The timers that are running, the next one first; those of kind `offsets` look for old offsets."""
        return await in_thread(self.blocking.timers)

    async def awaited(self) -> list[str]:
        """Whom the group waits for: who has not joined in its join phase, or not sent SyncGroup in its generation."""
        return await in_thread(self.blocking.awaited)

    async def advance(
        self, duration: Duration, keep_alive: KeepAlive = "connected", expire: Sequence[str] = ()
    ) -> list[Fired]:
        """Move the group's clock ahead by seconds, `"7d"`, or a timedelta; what was due meanwhile happens, in order."""
        return await in_thread(lambda: self.blocking.advance(duration, keep_alive, expire))

    async def expire_session(self, member: str) -> list[Fired]:
        """Move on to where the session of a member ends, named by instance, member or client id; the others live on."""
        return await in_thread(lambda: self.blocking.expire_session(member))

    async def expire_join_barrier(
        self, without: str | Sequence[str] | None = None, timeout: float = 30.0
    ) -> list[Fired]:
        """Move on to where the group waits no longer for members to join; all sessions live on."""
        return await in_thread(lambda: self.blocking.expire_join_barrier(without, timeout))

    async def expire_sync(self, without: str | Sequence[str] | None = None, timeout: float = 30.0) -> list[Fired]:
        """Move on to where members that have not sent their SyncGroup are removed; all sessions live on."""
        return await in_thread(lambda: self.blocking.expire_sync(without, timeout))

    async def expire_pending(self, member: str) -> list[Fired]:
        """Move on to where a handed-out member id is forgotten (KIP-394), named by itself or by its client id."""
        return await in_thread(lambda: self.blocking.expire_pending(member))

    async def expire_offsets(self) -> list[Fired]:
        """Move on to where every offset expires that the group does without; all sessions live on (KIP-211)."""
        return await in_thread(self.blocking.expire_offsets)

    async def wait_stable(
        self,
        members: int | None = None,
        timeout: float = 30.0,
        *,
        owned: str | None = None,
        after_generation: int | None = None,
    ) -> Self:
        """Wait until the group is Stable and every member has its assignment; returns the group."""
        await in_thread(
            lambda: self.blocking.wait_stable(members, timeout, owned=owned, after_generation=after_generation)
        )
        return self

    async def wait_state(self, state: str, timeout: float = 30.0) -> Self:
        """Wait until the group is in a state: Empty, PreparingRebalance, CompletingRebalance, Stable or Dead."""
        await in_thread(lambda: self.blocking.wait_state(state, timeout))
        return self

    async def rebalances(self) -> list[Rebalance]:
        """Every rebalance the trace has of this group, the oldest first: causes, generations, times, the straggler."""
        return await in_thread(self.blocking.rebalances)

    @asynccontextmanager
    async def expect_rebalance(
        self, cause: str | None = None, timeout: float = 30.0
    ) -> AsyncIterator[ExpectedRebalance]:
        """A block in which a rebalance (with this cause) begins; waits at its end until it has completed."""
        async with entered(self.blocking.expect_rebalance(cause, timeout)) as given:
            yield given

    @asynccontextmanager
    async def assert_no_rebalance(self) -> AsyncIterator[None]:
        """A block in which no rebalance begins. One that was going on before may go on. Raises AssertionError."""
        async with entered(self.blocking.assert_no_rebalance()):
            yield

    async def assert_rebalances(self, exactly: int) -> Self:
        """So many rebalances have begun since the cluster was started; one that was superseded counts, too."""
        await in_thread(lambda: self.blocking.assert_rebalances(exactly))
        return self

    async def assert_assignment(
        self, expected: Mapping[str, Mapping[str, Collection[int]]], timeout: float = 0
    ) -> Self:
        """The members, and what they own (topic -> partitions), are exactly these."""
        await in_thread(lambda: self.blocking.assert_assignment(expected, timeout))
        return self

    async def assert_owned_exactly_once(self, topics: Collection[str] | None = None, timeout: float = 0) -> Self:
        """The group is Stable, and each partition of these topics is owned by exactly one member."""
        await in_thread(lambda: self.blocking.assert_owned_exactly_once(topics, timeout))
        return self

    async def assert_committed(self, offsets: Mapping[tuple[str, int], int], timeout: float = 0) -> Self:
        """These offsets, by topic and partition, are committed. Others may be, too."""
        await in_thread(lambda: self.blocking.assert_committed(offsets, timeout))
        return self

    async def assert_request(
        self,
        api: str,
        *,
        error: str | None = None,
        times: int | None = None,
        at_least: int | None = None,
        client_id: str | None = None,
        member: str | None = None,
        instance_id: str | None = None,
        generation: int | None = None,
        timeout: float = 0,
    ) -> Self:
        """Such requests came: exactly so many `times`, or `at_least` so many; nothing said is at least one."""
        await in_thread(
            lambda: self.blocking.assert_request(
                api,
                error=error,
                times=times,
                at_least=at_least,
                client_id=client_id,
                member=member,
                instance_id=instance_id,
                generation=generation,
                timeout=timeout,
            )
        )
        return self

    async def assert_left(self, member: str, timeout: float = 0) -> Self:
        """A member, by instance id, member id or client id, has left by LeaveGroup: it was not thrown out."""
        await in_thread(lambda: self.blocking.assert_left(member, timeout))
        return self

    async def assert_did_not_leave(self, member: str) -> Self:
        """A member, likewise, has sent no LeaveGroup, nor anybody for it."""
        await in_thread(lambda: self.blocking.assert_did_not_leave(member))
        return self

    async def assert_fenced(self, instance_id: str, timeout: float = 0) -> Self:
        """Somebody was told FENCED_INSTANCE_ID as this instance: another has taken its place (KIP-345)."""
        await in_thread(lambda: self.blocking.assert_fenced(instance_id, timeout))
        return self

    async def assert_no_zombie_commits(self) -> Self:
        """Nobody has committed in an old generation, after it was out of the group, or what another member owned."""
        await in_thread(self.blocking.assert_no_zombie_commits)
        return self

    async def assert_conformant(self, ignore: Collection[str] = (), *, auto_commit: bool | None = None) -> Self:
        """None of the client checks C01 to C10 fails over the trace so far; docs/assertions.md explains them."""
        await in_thread(lambda: self.blocking.assert_conformant(ignore, auto_commit=auto_commit))
        return self

    async def conformance(self, *, auto_commit: bool | None = None) -> dict[str, Verdict]:
        """The verdicts of the client checks, by id; "inconclusive" is what the coordinator cannot see."""
        return await in_thread(lambda: self.blocking.conformance(auto_commit=auto_commit))

    async def snapshot(self) -> Snapshot:
        """State, generation, protocol, leader and members at one moment."""
        return await in_thread(self.blocking.snapshot)

    @property
    def state(self) -> Awaitable[str]:
        """Empty, PreparingRebalance, CompletingRebalance or Stable; Dead if there is no such group."""

        async def ask() -> str:
            return await in_thread(lambda: self.blocking.state)

        return ask()

    @property
    def generation(self) -> Awaitable[int]:
        """How many times the group has formed; 0 before the first time, -1 if there is no such group."""

        async def ask() -> int:
            return await in_thread(lambda: self.blocking.generation)

        return ask()

    @property
    def protocol(self) -> Awaitable[str | None]:
        """The assignor the members have agreed on, such as "range"; None before the group has formed."""

        async def ask() -> str | None:
            return await in_thread(lambda: self.blocking.protocol)

        return ask()

    @property
    def leader(self) -> Awaitable[str | None]:
        """The member id of the leader, who assigns."""

        async def ask() -> str | None:
            return await in_thread(lambda: self.blocking.leader)

        return ask()

    @property
    def members(self) -> Awaitable[list[Member]]:
        """The members, in the order in which they came."""

        async def ask() -> list[Member]:
            return await in_thread(lambda: self.blocking.members)

        return ask()

    @property
    def assignment(self) -> Awaitable[dict[str, dict[str, list[int]]]]:
        """The partitions of each topic, for each member: by `group.instance.id` if it is static, else by member id."""

        async def ask() -> dict[str, dict[str, list[int]]]:
            return await in_thread(lambda: self.blocking.assignment)

        return ask()

    @property
    def offsets(self) -> Awaitable[dict[tuple[str, int], int]]:
        """The committed offsets, by topic and partition."""

        async def ask() -> dict[tuple[str, int], int]:
            return await in_thread(lambda: self.blocking.offsets)

        return ask()

    async def events(self) -> list[dict[str, object]]:
        """What the trace has of this group, the oldest first."""
        return await in_thread(self.blocking.events)


class Node:
    """One broker of a cluster."""

    def __init__(self, blocking: BlockingNode) -> None:
        self.blocking = blocking
        """The one that blocks."""

    def __repr__(self) -> str:
        return repr(self.blocking)

    @property
    def id(self) -> int:
        """As it was made."""
        return self.blocking.id

    @property
    def state(self) -> Awaitable[str]:
        """up, paused, down, or removed."""

        async def ask() -> str:
            return await in_thread(lambda: self.blocking.state)

        return ask()

    async def address(self, listener: str = "PLAINTEXT") -> str:
        """`host:port`, as clients that came in by a listener are told; ValueError if there is none of the name."""
        return await in_thread(lambda: self.blocking.address(listener))

    async def stop(self) -> None:
        """Shut it down in order: others lead what it led, who waits for an answer is told so, its port is closed."""
        await in_thread(self.blocking.stop)

    async def kill(self) -> None:
        """End it at once, without a word to anybody who waits for an answer."""
        await in_thread(self.blocking.kill)

    async def start(self) -> None:
        """Start it again, at its old port. It reads the groups it coordinates from `__consumer_offsets`."""
        await in_thread(self.blocking.start)

    async def remove(self) -> None:
        """Take it out of the cluster for good; it is stopped, if it is not down."""
        await in_thread(self.blocking.remove)

    async def pause(self) -> None:
        """Let it accept and read what comes, and do nothing, while time goes on. It leads what it led."""
        await in_thread(self.blocking.pause)

    async def resume(self) -> None:
        """Let it go on: what was due in the meantime happens, then what has come in."""
        await in_thread(self.blocking.resume)

    async def advertise(self, host: str, port: int, listener: str = "PLAINTEXT") -> None:
        """Tell clients that came in by a listener another address of this node, from now on."""
        await in_thread(lambda: self.blocking.advertise(host, port, listener))

    async def believe(self, group: str, coordinator: int | None) -> None:
        """Name another node as a group's coordinator to who asks here, while it is up; None: the right one again."""
        await in_thread(lambda: self.blocking.believe(group, coordinator))


class Puppet:
    """A member of a group that lives in the emulator. Each property asks anew."""

    def __init__(self, blocking: BlockingPuppet) -> None:
        self.blocking = blocking
        """The one that blocks."""

    def __repr__(self) -> str:
        return repr(self.blocking)

    @property
    def group_id(self) -> str:
        """As it was made."""
        return self.blocking.group_id

    @property
    def name(self) -> str:
        """As it was made."""
        return self.blocking.name

    async def join(self, reason: str | None = None) -> Puppet:
        """Send JoinGroup: for the first time, after it has left or failed, or anew. `reason` as in KIP-800."""
        return Puppet(await in_thread(lambda: self.blocking.join(reason)))

    async def sync(self) -> Puppet:
        """Send SyncGroup; a leader assigns."""
        return Puppet(await in_thread(self.blocking.sync))

    async def heartbeat(self) -> Puppet:
        """Send a heartbeat now; `error` is what it was told."""
        return Puppet(await in_thread(self.blocking.heartbeat))

    async def commit(self, offsets: Mapping[tuple[str, int], int]) -> Puppet:
        """Commit offsets, by topic and partition; `error` is what it was told."""
        return Puppet(await in_thread(lambda: self.blocking.commit(offsets)))

    async def leave(self, reason: str | None = None) -> Puppet:
        """Send LeaveGroup, also as a static member; it stays out until it is told to join."""
        return Puppet(await in_thread(lambda: self.blocking.leave(reason)))

    async def stop(self) -> Puppet:
        """End without a word, as a process that is killed; `join` starts it again, with nothing known."""
        return Puppet(await in_thread(self.blocking.stop))

    async def wait(self, state: str, timeout: float = 30.0) -> Puppet:
        """Wait until it is in a state; `timeout` in seconds. Raises PuppetTimeout, and BlockingCallInLoop in a loop."""
        return Puppet(await in_thread(lambda: self.blocking.wait(state, timeout)))

    async def describe(self) -> dict[str, Any]:
        """All of it at one moment: see `koordinator.emulator.control.puppets.operations.Puppets.describe`."""
        return await in_thread(self.blocking.describe)

    @property
    def state(self) -> Awaitable[str]:
        """out, joining, joined (it has its generation, and no assignment), syncing, stable, leaving or failed."""

        async def ask() -> str:
            return await in_thread(lambda: self.blocking.state)

        return ask()

    @property
    def member_id(self) -> Awaitable[str]:
        """Its member id; empty while it has none."""

        async def ask() -> str:
            return await in_thread(lambda: self.blocking.member_id)

        return ask()

    @property
    def generation(self) -> Awaitable[int]:
        """The generation it takes itself for a member of; -1 if of none."""

        async def ask() -> int:
            return await in_thread(lambda: self.blocking.generation)

        return ask()

    @property
    def is_leader(self) -> Awaitable[bool]:
        """Whether it leads the group, as far as it knows."""

        async def ask() -> bool:
            return await in_thread(lambda: self.blocking.is_leader)

        return ask()

    @property
    def assignment(self) -> Awaitable[dict[str, list[int]]]:
        """The partitions it holds, by topic; for Connect the tasks, by connector, -1 being the connector itself."""

        async def ask() -> dict[str, list[int]]:
            return await in_thread(lambda: self.blocking.assignment)

        return ask()

    @property
    def error(self) -> Awaitable[str | None]:
        """The name of the error its last request was answered with; None if all was well."""

        async def ask() -> str | None:
            return await in_thread(lambda: self.blocking.error)

        return ask()

    @property
    def waits_for(self) -> Awaitable[str | None]:
        """The API whose answer it waits for, or None."""

        async def ask() -> str | None:
            return await in_thread(lambda: self.blocking.waits_for)

        return ask()


class Rule:
    """A rule of a cluster. Each property asks anew."""

    def __init__(self, blocking: BlockingRule) -> None:
        self.blocking = blocking
        """The one that blocks."""

    def __repr__(self) -> str:
        return repr(self.blocking)

    @property
    def id(self) -> str:
        """As it was made."""
        return self.blocking.id

    @property
    def hits(self) -> Awaitable[int]:
        """How many requests it has acted on."""

        async def ask() -> int:
            return await in_thread(lambda: self.blocking.hits)

        return ask()

    @property
    def matched(self) -> Awaitable[int]:
        """How many requests it has matched, whether it was to act on them or not."""

        async def ask() -> int:
            return await in_thread(lambda: self.blocking.matched)

        return ask()

    @property
    def requests(self) -> Awaitable[list[Request]]:
        """What it has acted on, the newest last; at most the last 100."""

        async def ask() -> list[Request]:
            return await in_thread(lambda: self.blocking.requests)

        return ask()

    @property
    def last(self) -> Awaitable[Request | None]:
        """What it has acted on last."""

        async def ask() -> Request | None:
            return await in_thread(lambda: self.blocking.last)

        return ask()

    async def remove(self) -> None:
        """End it; what it has decided about requests stays so. RuleError (a ValueError) if it has ended."""
        await in_thread(self.blocking.remove)


class Held:
    """A hold, from when it is made to the end of its block. What it has entered is let go at the end, at the latest."""

    def __init__(self, blocking: BlockingHeld) -> None:
        self.blocking = blocking
        """The one that blocks."""

    def __repr__(self) -> str:
        return repr(self.blocking)

    @property
    def id(self) -> str:
        """As it was made."""
        return self.blocking.id

    @property
    def entered(self) -> Awaitable[list[Request]]:
        """The requests in it now."""

        async def ask() -> list[Request]:
            return await in_thread(lambda: self.blocking.entered)

        return ask()

    @property
    def behind(self) -> Awaitable[list[Request]]:
        """The requests that wait on the same connections behind what is held; a connection is answered in order."""

        async def ask() -> list[Request]:
            return await in_thread(lambda: self.blocking.behind)

        return ask()

    async def wait_entered(self, timeout: float = 30.0) -> Request:
        """Wait until a request has entered, and return it. `timeout` is in seconds."""
        return await in_thread(lambda: self.blocking.wait_entered(timeout))

    async def release(self, error: str | None = None, at: str | None = None) -> None:
        """Let go what is held, and hold nothing more. With an error's name it is answered so, and not applied."""
        await in_thread(lambda: self.blocking.release(error, at))


class Lockstep:
    """Requests of declared clients, served in rounds: when there is one of each, in an order that the seed gives."""

    def __init__(self, blocking: BlockingLockstep) -> None:
        self.blocking = blocking
        """The one that blocks."""

    def __repr__(self) -> str:
        return repr(self.blocking)

    @property
    def id(self) -> str:
        """As it was made."""
        return self.blocking.id

    @property
    def rounds(self) -> Awaitable[int]:
        """How many rounds there have been."""

        async def ask() -> int:
            return await in_thread(lambda: self.blocking.rounds)

        return ask()

    async def wait_round(self, timeout: float = 30.0) -> None:
        """Wait until the next round is complete: the first, when it is first called. `timeout` is in seconds."""
        await in_thread(lambda: self.blocking.wait_round(timeout))
