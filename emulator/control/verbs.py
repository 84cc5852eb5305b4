"""What is done to groups and topics by name: rebalance, evict, fence, freeze, set offsets, and what grows or shrinks.

What a client could bring about is brought about the same way: a process that is not there sends the request. The trace
has the facts that follow, in Kafka's words, and not that request.
"""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from koordinator.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity

from ..config.settings import INT_MAX
from ..core import overrides
from ..core.effects import Call
from ..core.groups.classic.group import ClassicGroupState
from ..core.refusal import RefusedError
from ..trace.events import VerbUsed
from .resolve import coordinator_of, group_named, known, member_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ..broker.cluster_runtime import ClusterRuntime
    from ..broker.connections import Output
    from ..core.effects import Effect
    from ..core.groups.classic.group import ClassicMember
    from ..core.groups.coordinator import Coordinator

FORCED = "forced rebalance"
"""The reason of a rebalance that was asked for without one."""

POLL_TIMEOUT = "consumer poll timeout has expired."
"""What Java's consumer says when it leaves because `max.poll.interval.ms` is over (`AbstractCoordinator`, KIP-800)."""

AS_IF = ("poll_timeout", "session")
"""How a member can be made to go."""

STATES = tuple(state.value for state in ClassicGroupState if state is not ClassicGroupState.DEAD)
"""The states in which a group can be frozen."""

LEAVE_VERSION, JOIN_VERSION = 3, 5
"""Versions in which members are named as here: with instance ids (KIP-345)."""


class Verbs:
    """Acts on groups and topics. Every operation raises ValueError for what cannot be, with nothing changed."""

    def __init__(self, brokers: ClusterRuntime, leave: Callable[[Iterable[Output]], None]) -> None:
        self._brokers = brokers
        self._leave = leave

    def rebalance(self, now: int, *, group: str, cause: str = FORCED) -> None:
        """Begin a join phase in a group that is Stable or CompletingRebalance.

        `cause` is the reason the trace gives, of kind `forced`.
        """
        used = self._used(now, "rebalance", group, cause=cause)
        self._reach_in(now, group, used, lambda store, found: overrides.force_rebalance(store, found, cause))

    def evict(self, now: int, *, group: str, member: str, as_if: str = "poll_timeout") -> None:
        """Let a member go: as one that leaves because `max.poll.interval.ms` is over, or as one whose session ends.

        A static member's client leaves in neither case (KIP-345): it goes by its session only.
        """
        if as_if not in AS_IF:
            near = get_close_matches(as_if, AS_IF, n=1)
            hint = f"; the nearest is {near[0]!r}" if near else ""
            raise ValueError(f"as_if={as_if!r}: must be {' or '.join(map(repr, AS_IF))}{hint}")
        found = group_named(self._brokers, group)
        victim = member_named(found, member)
        overrides.require_not_frozen(found)
        used = self._used(now, "evict", group, member=victim.id, as_if=as_if)
        if as_if == "session":
            return self._reach_in(now, group, used, lambda store, there: overrides.expire_session(store, there, victim))
        if victim.is_static:
            raise ValueError(
                f"member {member!r} is static: when max.poll.interval.ms is over its client does not leave the group, "
                "its session ends later (KIP-345); evict it as_if='session'"
            )
        identity = MemberIdentity(member_id=victim.id, reason=POLL_TIMEOUT)
        return self._ask(now, used, victim, LEAVE_VERSION, LeaveGroupRequest(group_id=group, members=(identity,)))

    def fence(self, now: int, *, group: str, instance: str) -> None:
        """Let another process join with an instance id, ask for the same, and not be heard of again.

        Whoever has held it is fenced: FENCED_INSTANCE_ID (82) is the answer to its next request, and to one that waits.
        """
        found = group_named(self._brokers, group)
        if instance not in found.static_members:
            static = list(found.static_members)
            raise ValueError(f"group {group!r} has no static member {instance!r}{known(instance, static)}")
        overrides.require_not_frozen(found)
        holder = found.members[found.static_members[instance]]
        offered = [JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in holder.protocols]
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=holder.session_timeout_ms,
            rebalance_timeout_ms=holder.rebalance_timeout_ms,
            group_instance_id=instance,
            protocol_type=holder.protocol_type,
            protocols=tuple(offered),
        )
        self._ask(now, self._used(now, "fence", group, instance=instance), holder, JOIN_VERSION, request)

    def freeze(self, now: int, *, group: str, state: str | None = None) -> None:
        """Let a group stay in a state: the present one, or once it is in the one that is named. It need not exist yet.

        While it is frozen no timer of it fires, and requests that would take it out of the state wait for `thaw`:
        JoinGroup and LeaveGroup (in PreparingRebalance they are served, but the join phase does not end), and in
        CompletingRebalance the leader's SyncGroup. Heartbeats, commits and whatever only looks are answered as ever.
        """
        if state is not None and state not in STATES:
            near = get_close_matches(state, STATES, n=1)
            hint = f"; the nearest is {near[0]!r}" if near else ""
            raise ValueError(f"state {state!r}: must be {', '.join(STATES[:-1])} or {STATES[-1]}{hint}")
        coordinator = coordinator_of(self._brokers, group)
        found = None if coordinator is None else coordinator.groups.get(group)
        if state is None:
            found = group_named(self._brokers, group)
        wanted = found.state if state is None and found is not None else ClassicGroupState(state)
        if found is not None and found.is_frozen and found.state is not wanted:
            raise ValueError(f"group {group!r} is frozen in {found.state.value}: thaw it first")
        self._brokers.cluster.freeze_group(group, wanted)
        self._note(self._used(now, "freeze", group, state=wanted.value))
        if found is not None and found.state is wanted:
            self._reach_in(now, group, None, overrides.freeze)

    def thaw(self, now: int, *, group: str) -> None:
        """Let a group go on. Its timers have stood still meanwhile; what was held is served in the order it came in."""
        if group not in self._brokers.cluster.frozen_states:
            raise ValueError(f"group {group!r} is not frozen{known(group, self._brokers.cluster.frozen_states)}")
        coordinator = coordinator_of(self._brokers, group)
        self._brokers.cluster.thaw_group(group)
        self._note(self._used(now, "thaw", group))
        if coordinator is not None and group in coordinator.groups:
            self._reach_in(now, group, None, overrides.thaw)

    def set_offsets(self, now: int, *, group: str, offsets: Sequence[Mapping[str, object]]) -> None:
        """Commit offsets, whoever is in the group, and whatever its state: `topic partition offset` of each.

        A group that does not exist is made, as by a commit without a member.
        """
        positions: dict[tuple[str, int], int] = {}
        for row in offsets:
            if missing := {"topic", "partition", "offset"} - row.keys():
                raise ValueError(
                    f"an offset to be set has a topic, a partition and an offset; no {min(missing)} in {row!r}"
                )
            topic, partition, offset = str(row["topic"]), row["partition"], row["offset"]
            count = self._brokers.cluster.partition_count(topic)
            if not count:
                raise ValueError(f"there is no topic {topic!r}{known(topic, self._brokers.cluster.topics)}")
            if not isinstance(partition, int) or not 0 <= partition < count:
                raise ValueError(f"topic {topic!r} has partitions 0 to {count - 1}, and no {partition!r}")
            if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
                raise ValueError(f"the offset of {topic}-{partition} is to be a number from 0, not {offset!r}")
            positions[topic, partition] = offset
        coordinator = self._coordinator(group)
        if positions:
            rows = [[topic, partition, offset] for (topic, partition), offset in positions.items()]
            self._note(self._used(now, "set_offsets", group, offsets=rows))
            self._perform(now, group, coordinator.set_offsets(now, group, positions))

    def set_max_size(self, now: int, *, size: int) -> None:
        """Set `group.max.size` on every node; who is in a group stays until its next join phase (KIP-389)."""
        if not _is_whole(size) or not 1 <= size <= INT_MAX:
            raise ValueError(f"group.max.size={size!r}: must be an integer from 1 to {INT_MAX}")
        self._note(self._used(now, "set_max_size", None, size=size))
        self._brokers.reconfigure(replace(self._brokers.cluster.settings, group_max_size=size))

    def add_partitions(self, now: int, *, topic: str, count: int) -> int:
        """Let a topic have so many partitions more; returns how many it has then. RefusedError as Kafka refuses it."""
        cluster = self._brokers.cluster
        grown = cluster.topics.get(topic)
        if grown is None:
            raise ValueError(f"there is no topic {topic!r}{known(topic, cluster.topics)}")
        if not _is_whole(count) or count < 1:
            raise ValueError(f"topic {topic!r}: partitions are added from 1 on, not {count!r}")
        wanted = len(grown.logs) + count
        refusal = cluster.refuse_shape(wanted, -1)
        if refusal is not None:
            raise RefusedError(refusal)
        cluster.grow_topic(grown, wanted)
        self._note(self._used(now, "add_partitions", None, topic=topic, count=count))
        return wanted

    # -- inside ----------------------------------------------------------------------------------------------

    def _coordinator(self, group: str) -> Coordinator:
        coordinator = coordinator_of(self._brokers, group)
        if coordinator is None:
            raise ValueError(f"the node that coordinates group {group!r} is down")
        return coordinator

    def _reach_in(self, now: int, group: str, used: VerbUsed | None, action: Callable[..., None]) -> None:
        group_named(self._brokers, group)
        effects = self._coordinator(group).override(now, group, action)
        # it was not refused
        self._note(used)
        self._perform(now, group, effects)

    def _ask(
        self,
        now: int,
        used: VerbUsed,
        member: ClassicMember,
        version: int,
        request: JoinGroupRequest | LeaveGroupRequest,
    ) -> None:
        key = ApiKey.JOIN_GROUP if isinstance(request, JoinGroupRequest) else ApiKey.LEAVE_GROUP
        call = Call(overrides.NO_CONNECTION, 0, key, version, member.client_id, member.client_host)
        self._note(used)
        self._perform(now, request.group_id, self._coordinator(request.group_id).handle(now, call, request))

    def _used(self, now: int, verb: str, group: str | None, **arguments: object) -> VerbUsed:
        group_now = now if group is None else self._brokers.cluster.clock_of(group, now).read(now)
        return VerbUsed(verb, group, group_now, arguments)

    def _note(self, used: VerbUsed | None) -> None:
        if used is not None:
            trace, cluster = self._brokers.trace, self._brokers.cluster
            node = cluster.controller_id if used.group_id is None else cluster.coordinator_of(used.group_id)
            trace.add(trace.now_us(), used, node)

    def _perform(self, now: int, group: str, effects: Iterable[Effect]) -> None:
        broker = self._brokers.broker_of_group(group)
        assert broker is not None, "there is a coordinator"
        self._leave(broker.perform(now, effects))


def _is_whole(number: object) -> bool:
    # a bool is an int to Python
    return isinstance(number, int) and not isinstance(number, bool)
