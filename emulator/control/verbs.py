"""Overrides of groups and topics by name: rebalance, evict, fence, freeze, set offsets, and resize.

An override that a client could cause is performed as the request of an absent process. The trace has its effects, in
Kafka's words, but not that request.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeGuard

from koordinator.wire.apis import REQUEST_KEYS
from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from koordinator.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from koordinator.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from koordinator.wire.messages.streams_group_heartbeat import KeyValue, StreamsGroupHeartbeatRequest, Topology

from ..config.suggest import UnknownWord, did_you_mean
from ..config.value_rules import INT_MAX
from ..core import overrides
from ..core.data.metadata_changes import RecordsDeleted
from ..core.data.topic import NO_LEADER
from ..core.data.topic_rules import refuse_shape
from ..core.effects import Call
from ..core.groups.classic.group import CLASSIC, ClassicGroupState, ClassicMember
from ..core.groups.consumer.member import ConsumerMember
from ..core.groups.group import CONSUMER
from ..core.groups.modern.member import LEAVING_EPOCH, STATIC_LEAVING_EPOCH
from ..core.groups.share.group import SHARE
from ..core.groups.share.member import ShareMember
from ..core.groups.streams.group import StreamsGroup
from ..core.groups.streams.member import StreamsMember
from ..core.refusal import RefusedError
from ..trace.events import VerbUsed
from ..trace.vocabulary import ALL_GROUP_STATES
from .resolve import (
    coordinator_of,
    group_named,
    known,
    live_coordinator_of,
    member_named,
    perform,
    topic_named,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ..broker.cluster_runtime import ClusterRuntime
    from ..broker.connections import Output
    from ..core.data.topic import TopicState
    from ..core.groups.classic.group import Protocols
    from ..core.groups.group import BaseGroup, BaseMember
    from ..core.groups.group_store import GroupStore

FORCED = "forced rebalance"
"""The default reason of a forced rebalance."""

POLL_TIMEOUT = "consumer poll timeout has expired."
"""The reason in LeaveGroup when `max.poll.interval.ms` expires (Java's `AbstractCoordinator`, KIP-800)."""

AS_IF = ("poll_timeout", "session")
"""The ways to evict a member."""

STATES = tuple(state for state in ALL_GROUP_STATES if state != ClassicGroupState.DEAD.value)
"""The states in which a group can be frozen."""

JOIN_STATES = (ClassicGroupState.PREPARING_REBALANCE.value, ClassicGroupState.COMPLETING_REBALANCE.value)
"""The states of classic groups alone."""

LEAVE_VERSION, JOIN_VERSION = 3, 5
"""The first versions with instance ids (KIP-345)."""

HEARTBEAT_VERSION = 1
"""The version of ConsumerGroupHeartbeat with patterns (KIP-848)."""

SHARE_VERSION = 1
"""The version of ShareGroupHeartbeat (KIP-932)."""

STREAMS_VERSION = 0
"""The first version of StreamsGroupHeartbeat (KIP-1071)."""


class Verbs:
    """Overrides of groups and topics."""

    def __init__(self, runtime: ClusterRuntime, deliver: Callable[[Iterable[Output]], None]) -> None:
        self._runtime = runtime
        self._deliver = deliver

    def rebalance(self, now: int, *, group: str, cause: str = FORCED) -> None:
        """Start a rebalance of a group that is Stable or CompletingRebalance.

        `cause` is the reason in the trace, of kind `forced`.
        """
        verb = self._verb(now, "rebalance", group, cause=cause)
        self._override(now, group, verb, lambda store, target: overrides.force_rebalance(store, target, cause))

    def evict(self, now: int, *, group: str, member: str, as_if: str = "poll_timeout") -> None:
        """Remove a member as if its `max.poll.interval.ms` had expired, or as if its session had expired.

        A static member's client does not leave at a poll timeout (KIP-345): only its session can expire. One that uses
        the consumer or the streams protocol leaves for a while (KIP-848, KIP-1071).
        """
        if as_if not in AS_IF:
            choices = " or ".join(map(repr, AS_IF))
            raise UnknownWord(f"as_if={as_if!r}: must be {choices}{did_you_mean(as_if, AS_IF)}")
        target = group_named(self._runtime, group)
        victim = member_named(target, member)
        overrides.require_not_frozen(target)
        verb = self._verb(now, "evict", group, member=victim.id, as_if=as_if)
        if as_if == "session":
            return self._override(now, group, verb, lambda store, each: overrides.expire_session(store, each, victim))
        if isinstance(victim, ConsumerMember) and victim.classic is None:
            return self._send_as(now, verb, victim, HEARTBEAT_VERSION, _leave(group, victim))
        if isinstance(victim, ShareMember):
            leaving = ShareGroupHeartbeatRequest(group_id=group, member_id=victim.id, member_epoch=LEAVING_EPOCH)
            return self._send_as(now, verb, victim, SHARE_VERSION, leaving)
        if isinstance(victim, StreamsMember):
            return self._send_as(now, verb, victim, STREAMS_VERSION, _leave_streams(group, victim))
        if victim.is_static:
            raise ValueError(
                f"member {member!r} is static: its client does not leave the group at a poll timeout, its session"
                " expires later (KIP-345); use as_if='session'"
            )
        identity = MemberIdentity(member_id=victim.id, reason=POLL_TIMEOUT)
        request = LeaveGroupRequest(group_id=group, members=(identity,))
        return self._send_as(now, verb, victim, LEAVE_VERSION, request)

    def fence(self, now: int, *, group: str, member: str) -> None:
        """Make another process join as a static member, with the same subscription, then stay silent.

        The previous member is fenced: its next request, or its pending one, gets FENCED_INSTANCE_ID (82).
        """
        target = group_named(self._runtime, group)
        previous = member_named(target, member)
        if previous.instance_id is None:
            static = known(member, target.static_members)
            raise ValueError(f"member {member!r} of group {group!r} is dynamic: only a static one is fenced{static}")
        overrides.require_not_frozen(target)
        if isinstance(previous, ConsumerMember) and previous.classic is None:
            verb = self._verb(now, "fence", group, instance=previous.instance_id)
            # a member that has not left keeps its instance id from others
            self._send_as(now, verb, previous, HEARTBEAT_VERSION, _leave(group, previous))
            return self._send_as(now, None, previous, HEARTBEAT_VERSION, _rejoin(group, previous))
        if isinstance(target, StreamsGroup) and isinstance(previous, StreamsMember):
            verb = self._verb(now, "fence", group, instance=previous.instance_id)
            self._send_as(now, verb, previous, STREAMS_VERSION, _leave_streams(group, previous))
            return self._send_as(now, None, previous, STREAMS_VERSION, _rejoin_streams(target, previous))
        protocols, protocol_type = _offer(previous)
        offered = [JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols]
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=previous.session_timeout_ms,
            rebalance_timeout_ms=previous.rebalance_timeout_ms,
            group_instance_id=previous.instance_id,
            protocol_type=protocol_type,
            protocols=tuple(offered),
        )
        verb = self._verb(now, "fence", group, instance=previous.instance_id)
        return self._send_as(now, verb, previous, JOIN_VERSION, request)

    def freeze(self, now: int, *, group: str, state: str | None = None) -> None:
        """Freeze a group in its current state, or in `state` as soon as it enters that. It need not exist yet.

        No timer of a frozen group fires. Requests that would change its state are parked until `thaw`: JoinGroup and
        LeaveGroup, and in CompletingRebalance the leader's SyncGroup. In PreparingRebalance JoinGroup and LeaveGroup
        are processed, but the join phase does not complete. Other requests are answered normally.

        Of a consumer group the heartbeats that would change it are parked. It freezes in states in which it rests: one
        heartbeat may lead it through Assigning.
        """
        if state is not None and state not in STATES:
            choices = f"{', '.join(STATES[:-1])} or {STATES[-1]}"
            raise UnknownWord(f"state {state!r}: must be {choices}{did_you_mean(state, STATES)}")
        coordinator = coordinator_of(self._runtime, group)
        target = None if coordinator is None else coordinator.group(group)
        if state is None:
            target = group_named(self._runtime, group)
            state = target.state_name
        elif target is not None and target.kind != CLASSIC and state in JOIN_STATES:
            raise ValueError(f"state {state!r}: group {group!r} is a {target.kind} group, which has no such state")
        if target is not None and target.is_frozen and target.state_name != state:
            raise ValueError(f"group {group!r} is frozen in {target.state_name}: thaw it first")
        self._runtime.cluster.frozen_states[group] = state
        self._note(self._verb(now, "freeze", group, state=state))
        if target is not None and target.state_name == state:
            self._override(now, group, None, overrides.freeze)

    def thaw(self, now: int, *, group: str) -> None:
        """Thaw a group: its timers continue where they stopped, and parked requests are processed in order."""
        frozen_states = self._runtime.cluster.frozen_states
        if group not in frozen_states:
            raise ValueError(
                f"group {group!r} is not frozen{known(group, frozen_states) if frozen_states else '; no group is'}"
            )
        coordinator = coordinator_of(self._runtime, group)
        del frozen_states[group]
        self._note(self._verb(now, "thaw", group))
        if coordinator is not None and group in coordinator.groups:
            self._override(now, group, None, overrides.thaw)

    def set_offsets(self, now: int, *, group: str, offsets: Sequence[Mapping[str, object]]) -> None:
        """Commit offsets in any state of the group; each has `topic partition offset`.

        A group that does not exist is created, as by a commit from outside the group.
        """
        positions: dict[tuple[str, int], int] = {}
        for row in offsets:
            if missing := {"topic", "partition", "offset"} - row.keys():
                raise ValueError(f"an offset needs topic, partition and offset; no {min(missing)} in {row!r}")
            topic, partition, offset = str(row["topic"]), row["partition"], row["offset"]
            count = len(topic_named(self._runtime, topic).logs)
            if not isinstance(partition, int) or not 0 <= partition < count:
                raise ValueError(f"topic {topic!r} has partitions 0 to {count - 1}, and no {partition!r}")
            if not _is_integer(offset) or offset < 0:
                raise ValueError(f"{topic}-{partition}: the offset must be an integer from 0, not {offset!r}")
            positions[topic, partition] = offset
        coordinator = live_coordinator_of(self._runtime, group)
        existing = coordinator.group(group)
        if existing is not None and existing.kind == SHARE:
            raise ValueError(
                f"group {group!r} is a share group and commits no offsets: alter its start offsets while it is Empty"
                " (AlterShareGroupOffsets, kafka-share-groups.sh --reset-offsets)"
            )
        if positions:
            rows = [[topic, partition, offset] for (topic, partition), offset in positions.items()]
            self._note(self._verb(now, "set_offsets", group, offsets=rows))
            self._deliver(perform(self._runtime, now, group, coordinator.set_offsets(now, group, positions)))

    def set_group_max_size(self, now: int, *, size: int) -> None:
        """Set `group.max.size` on every node. Existing members stay until the next join phase (KIP-389)."""
        if not _is_integer(size) or not 1 <= size <= INT_MAX:
            raise ValueError(f"group.max.size={size!r}: must be an integer from 1 to {INT_MAX}")
        self._note(self._verb(now, "set_group_max_size", None, size=size))
        self._runtime.reconfigure(replace(self._runtime.cluster.settings, group_max_size=size))

    def add_partitions(self, now: int, *, topic: str, count: int) -> int:
        """Add `count` partitions to a topic, and return their new number.

        Raises RefusedError (a ValueError) where Kafka would refuse.
        """
        cluster = self._runtime.cluster
        if not _is_integer(count) or count < 1:
            raise ValueError(f"topic {topic!r}: count={count!r} partitions to add: must be an integer from 1")
        existing = topic_named(self._runtime, topic)
        total = len(existing.logs) + count
        if (refusal := refuse_shape(cluster, total, -1)) is not None:
            raise RefusedError(refusal)
        cluster.grow_topic(existing, total)
        self._note(self._verb(now, "add_partitions", None, topic=topic, count=count))
        return total

    def compact(self, now: int, *, topic: str) -> None:
        """Keep only the last record of each key of a topic, and no tombstones, as its cleaner does in the end.

        Raises ValueError unless `cleanup.policy` of the topic has `compact`.
        """
        existing = self._cleaned(topic, "compact", "compacts")
        self._runtime.compact(existing)
        self._note(self._verb(now, "compact", None, topic=topic))

    def expire_records(self, now: int, *, topic: str, before: int | None = None) -> None:
        """Delete the records of a topic as its retention does: all, or in each partition those before an offset.

        Raises ValueError unless `cleanup.policy` of the topic has `delete`.
        """
        if before is not None and (not _is_integer(before) or before < 0):
            raise ValueError(f"topic {topic!r}: before={before!r}: must be an offset, an integer from 0")
        existing = self._cleaned(topic, "delete", "expires records of")
        ends = [log.end if before is None else min(before, log.end) for log in existing.logs]
        changes = [RecordsDeleted(existing.topic_id, partition, end) for partition, end in enumerate(ends)]
        self._runtime.cluster.storage.propose(*changes)
        self._note(self._verb(now, "expire_records", None, topic=topic, before=before))

    def truncate(self, now: int, *, topic: str, partition: int, to: int) -> None:
        """Lose the records of a partition from an offset on, as if a replica that lacks them was elected as leader.

        That is an unclean election: a new leader epoch begins. A batch is lost as a whole. Commits stay. Raises
        ValueError for an offset outside the log, and for a partition without a leader.
        """
        existing = topic_named(self._runtime, topic)
        log = existing.log(partition)
        if log is None:
            raise ValueError(f"topic {topic!r} has partitions 0 to {len(existing.logs) - 1}, and no {partition!r}")
        if not _is_integer(to) or not log.start <= to <= log.end:
            raise ValueError(f"{topic}-{partition}: to={to!r}: must be an offset from {log.start} to {log.end}")
        if existing.leader(partition) == NO_LEADER:
            raise ValueError(f"{topic}-{partition} has no leader: start one of its brokers first")
        verb = self._verb(now, "truncate", None, topic=topic, partition=partition, to=to)
        outputs = self._runtime.truncate(now, existing, partition, to)
        self._note(verb)
        self._deliver(outputs)

    def _cleaned(self, topic: str, policy: str, does: str) -> TopicState:
        """Return a topic whose `cleanup.policy` has this word. Raises ValueError for any other."""
        existing = topic_named(self._runtime, topic)
        if not (existing.is_compacted if policy == "compact" else existing.has_retention):
            text = existing.configs.get("cleanup.policy", "delete")
            raise ValueError(
                f"topic {topic!r} has cleanup.policy={text}: Kafka {does} it only with {policy};"
                f" create it with configs={{'cleanup.policy': '{policy}'}}"
            )
        return existing

    def _override(
        self, now: int, group: str, verb: VerbUsed | None, action: Callable[[GroupStore, BaseGroup], None]
    ) -> None:
        group_named(self._runtime, group)
        effects = live_coordinator_of(self._runtime, group).override(now, group, action)
        # after the override: an override that is refused is not in the trace
        self._note(verb)
        self._deliver(perform(self._runtime, now, group, effects))

    def _send_as(
        self,
        now: int,
        verb: VerbUsed | None,
        member: BaseMember,
        version: int,
        request: JoinGroupRequest
        | LeaveGroupRequest
        | ConsumerGroupHeartbeatRequest
        | ShareGroupHeartbeatRequest
        | StreamsGroupHeartbeatRequest,
    ) -> None:
        """Process a request as if the member's client had sent it on another connection."""
        key = REQUEST_KEYS[type(request)]
        call = Call(overrides.NO_CONNECTION, 0, key, version, member.client_id, member.client_host)
        self._note(verb)
        coordinator = live_coordinator_of(self._runtime, request.group_id)
        effects = [*coordinator.tick(now), *coordinator.handle(now, call, request)]
        self._deliver(perform(self._runtime, now, request.group_id, effects))

    def _verb(self, now: int, name: str, group: str | None, **arguments: object) -> VerbUsed:
        group_now = now if group is None else self._runtime.cluster.clocks.of(group, now).read(now)
        return VerbUsed(name, group, group_now, arguments)

    def _note(self, verb: VerbUsed | None) -> None:
        if verb is not None:
            trace, cluster = self._runtime.trace, self._runtime.cluster
            node = cluster.brokers.controller_id if verb.group_id is None else cluster.coordinator_of(verb.group_id)
            trace.add(trace.now_us(), verb, node)


def _leaving_epoch(member: BaseMember) -> int:
    """Return the epoch of a member's last heartbeat; a static one leaves for a while."""
    return STATIC_LEAVING_EPOCH if member.is_static else LEAVING_EPOCH


def _leave(group: str, member: ConsumerMember) -> ConsumerGroupHeartbeatRequest:
    """Return the last heartbeat of a member of a consumer group."""
    return ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=member.id, member_epoch=_leaving_epoch(member), instance_id=member.instance_id
    )


def _rejoin(group: str, member: ConsumerMember) -> ConsumerGroupHeartbeatRequest:
    """Return the first heartbeat of a static member's successor."""
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=f"{member.id}-successor",
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        subscribed_topic_names=member.names,
        subscribed_topic_regex=member.regex,
        server_assignor=member.assignor,
        topic_partitions=(),
    )


def _leave_streams(group: str, member: StreamsMember) -> StreamsGroupHeartbeatRequest:
    """Return the last heartbeat of a member of a streams group."""
    return StreamsGroupHeartbeatRequest(
        group_id=group, member_id=member.id, member_epoch=_leaving_epoch(member), instance_id=member.instance_id
    )


def _rejoin_streams(group: StreamsGroup, member: StreamsMember) -> StreamsGroupHeartbeatRequest:
    """Return the first heartbeat of a static member's successor: an instance of the application that restarts."""
    assert group.topology is not None, f"streams group {group.id} has members and no topology"
    return StreamsGroupHeartbeatRequest(
        group_id=group.id,
        member_id=f"{member.id}-successor",
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology=Topology(epoch=group.topology.epoch, subtopologies=group.topology.subtopologies),
        active_tasks=(),
        standby_tasks=(),
        warmup_tasks=(),
        process_id=member.process_id,
        user_endpoint=member.endpoint,
        client_tags=tuple(KeyValue(key=key, value=text) for key, text in member.tags.items()),
    )


def _offer(member: BaseMember) -> tuple[Protocols, str]:
    """Return the protocols and the protocol type of a member that uses the classic protocol."""
    if isinstance(member, ClassicMember):
        return member.protocols, member.protocol_type
    assert isinstance(member, ConsumerMember)
    assert member.classic is not None
    return tuple((each.name, each.metadata) for each in member.classic.supported_protocols), CONSUMER


def _is_integer(number: object) -> TypeGuard[int]:
    # bool is a subclass of int
    return isinstance(number, int) and not isinstance(number, bool)
