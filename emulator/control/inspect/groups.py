"""Operations on groups as a whole: describe, compare with an expectation, load and dump."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ...broker.offsets_log import records_of
from ...core.data.topic import OFFSETS_TOPIC
from ...core.groups.classic.group import CLASSIC, ClassicGroupState
from ...core.groups.group import CONSUMER
from ...core.groups.share.group import SHARE
from ...core.groups.streams.group import STREAMS
from ...core.groups.streams.tasks import NO_TASKS
from ...formats.groups_file import parse_groups, to_lines
from ...verify.names import require_state
from ...verify.ownership import ownership_errors
from ..resolve import group_if_any
from ..results import GroupInfo, Member, PartitionOffset, SilentMember
from .owners import named, owners_of, partition_counts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from koordinator.wire.messages.offsets_topic import OffsetCommitValue

    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.connections import Output
    from ...config.settings import Settings
    from ...core.cluster import ClusterState
    from ...core.groups.classic.group import ClassicGroup
    from ...core.groups.consumer.group import ConsumerGroup
    from ...core.groups.consumer.member import ConsumerMember
    from ...core.groups.group import BaseGroup, BaseMember
    from ...core.groups.modern.group import ModernGroup
    from ...core.groups.share.group import ShareGroup
    from ...core.groups.share.member import ShareMember
    from ...core.groups.streams.group import StreamsGroup
    from ...core.groups.streams.member import StreamsMember
    from ...core.groups.streams.tasks import Tasks

SILENT_MS = 6_000
"""After this time a connected member counts as silent: clients send a heartbeat every 3 s by default."""


class Groups:
    """Describes, loads and dumps groups."""

    def __init__(self, runtime: ClusterRuntime, deliver: Callable[[Iterable[Output]], None]) -> None:
        self._runtime = runtime
        self._deliver = deliver

    def ids(self, _now: int) -> list[str]:
        """Return the ids of all groups, sorted."""
        return sorted(self._runtime.groups())

    def describe(self, _now: int, *, group: str) -> GroupInfo:
        """Return a group at this moment. A group that does not exist is Dead, in generation -1."""
        existing = group_if_any(self._runtime, group)
        cluster = self._runtime.cluster
        return GroupInfo() if existing is None else SNAPSHOTS[existing.kind](cluster, cluster.settings, existing)

    def meets(
        self,
        _now: int,
        *,
        group: str,
        state: str | None = None,
        members: int | None = None,
        after_generation: int | None = None,
        all_owned: bool = False,
    ) -> bool:
        """Return whether a group has a state, a number of members, and a generation above `after_generation`.

        Conditions that are None are ignored. A group counts as Stable when every member has its assignment. With
        `all_owned` exactly one member also owns each partition of the subscribed topics, of a share group at least
        one. Raises UnknownWord (a ValueError) for another state.
        """
        if state is not None:
            require_state(state)
        existing = group_if_any(self._runtime, group)
        if existing is None:
            return state == ClassicGroupState.DEAD.value and not members
        return (
            (state is None or existing.state_name == state)
            and (state != ClassicGroupState.STABLE.value or not existing.unsettled)
            and members in (None, len(existing.members))
            and (after_generation is None or existing.generation > after_generation)
            and (not all_owned or not _ownership_errors(self._runtime.cluster, existing))
        )

    def silent(self, now: int, *, group: str) -> list[SilentMember]:
        """Return the members that have closed their connection without leaving, or have sent nothing for 6 s.

        A member whose JoinGroup or SyncGroup waits for the others is not silent.
        """
        existing = group_if_any(self._runtime, group)
        if existing is None:
            return []
        members = [_silent(self._runtime, now, existing, each) for each in existing.members.values()]
        return [each for each in members if each is not None]

    def offsets(self, _now: int, *, group: str) -> list[PartitionOffset]:
        """Return the committed offsets of a group; an empty list if it does not exist."""
        existing = group_if_any(self._runtime, group)
        return [_offset(at, each) for at, each in (existing.offsets if existing is not None else {}).items()]

    def pending_offsets(self, _now: int, *, group: str) -> list[PartitionOffset]:
        """Return the offsets that open transactions will commit; of several for a partition the one that would win."""
        existing = group_if_any(self._runtime, group)
        pending = (
            [] if existing is None else [each for rows in existing.pending_offsets.values() for each in rows.items()]
        )
        # by position: the later record wins
        latest = dict(sorted(pending, key=lambda row: row[1].position))
        return [_offset(at, each.value) for at, each in latest.items()]

    def load(self, now: int, *, lines: Sequence[str | bytes], source: str = "groups") -> None:
        """Replace groups with those of a groups file (`emulator.formats.groups_file`).

        Raises LineError (a ValueError) at the first invalid line.
        """
        topics = self._runtime.cluster.topics
        records = parse_groups(lines, source, now, lambda name: topics[name].topic_id if name in topics else None)
        self._deliver(self._runtime.load_groups(now, records))

    def dump(self, _now: int) -> list[dict[str, object]]:
        """Return all groups in `__consumer_offsets`, as the lines of a groups file."""
        cluster = self._runtime.cluster
        topic = cluster.topics.get(OFFSETS_TOPIC)
        logs = topic.logs if topic is not None else []
        names = {each.topic_id: name for name, each in cluster.topics.items()}
        return to_lines((record for log in logs for record in records_of(log.records())), names.get)


def _silent(runtime: ClusterRuntime, now: int, group: BaseGroup, member: BaseMember) -> SilentMember | None:
    call = member.last_call
    if call is None:
        # it was loaded, and has not been heard from since
        return None
    is_connected, silent_ms = runtime.is_open(call.connection), now - member.session_began_ms
    if is_connected and (member.is_parked or silent_ms < SILENT_MS):
        return None
    due = group.timers.get(member.session)
    ends_ms = None if due is None else due - group.clock.read(now)
    return SilentMember(member.id, member.instance_id, member.client_id, is_connected, silent_ms, ends_ms)


def _offset(at: tuple[str, int], committed: OffsetCommitValue) -> PartitionOffset:
    return PartitionOffset(
        *at, committed.offset, committed.leader_epoch, committed.metadata, committed.commit_timestamp
    )


def _ownership_errors(cluster: ClusterState, group: BaseGroup) -> list[str]:
    return ownership_errors(owners_of(cluster, group), partition_counts(cluster), may_share=group.kind == SHARE)


def _modern_snapshot(
    cluster: ClusterState, settings: Settings, group: ModernGroup[Any, Any], member: Callable[..., Member]
) -> GroupInfo:
    return GroupInfo(
        type=group.kind,
        state=group.state_name,
        generation=group.generation,
        epoch=group.epoch,
        protocol_type=group.kind,
        protocol=group.assignor(settings),
        members=tuple(member(cluster, group, each) for each in group.members.values()),
        waiting_for=tuple(group.unsettled),
    )


def _classic_snapshot(_cluster: ClusterState, _settings: Settings, group: ClassicGroup) -> GroupInfo:
    return GroupInfo(
        state=group.state_name,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol_name,
        leader=group.leader_id,
        members=tuple(
            _member(each, group.partitions_of(each.id, {}), protocols=tuple(name for name, _ in each.protocols))
            for each in group.members.values()
        ),
        waiting_for=tuple(group.unsettled),
    )


def _member(member: BaseMember, assignment: dict[str, list[int]], **more: Any) -> Member:  # noqa: ANN401 - of its kind
    return Member(
        member_id=member.id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        assignment=assignment,
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        **more,
    )


def _consumer_member(cluster: ClusterState, group: ConsumerGroup, member: ConsumerMember) -> Member:
    protocols = () if member.classic is None else member.classic.supported_protocols
    return _member(
        member,
        named(cluster, member.assigned),
        protocols=tuple(each.name for each in protocols),
        type=CONSUMER if member.classic is None else "classic",
        epoch=member.epoch,
        target=named(cluster, group.targets.get(member.id, {})),
        pending_revocation=named(cluster, member.pending),
    )


def _share_member(cluster: ClusterState, group: ShareGroup, member: ShareMember) -> Member:
    target = named(cluster, group.targets.get(member.id, {}))
    return _member(member, named(cluster, member.assigned), type=SHARE, epoch=member.epoch, target=target)


def _streams_member(cluster: ClusterState, group: StreamsGroup, member: StreamsMember) -> Member:
    """Return a member; its partitions are the inputs of its active tasks."""

    def inputs(tasks: Tasks) -> dict[str, list[int]]:
        return group.inputs_of(tasks.active, cluster.topics.partition_count)

    return _member(
        member,
        inputs(member.assigned),
        type=STREAMS,
        epoch=member.epoch,
        target=inputs(group.targets.get(member.id, NO_TASKS)),
        pending_revocation=inputs(member.pending),
    )


SNAPSHOTS: Mapping[str, Callable[[ClusterState, Settings, Any], GroupInfo]] = {
    CLASSIC: _classic_snapshot,
    CONSUMER: partial(_modern_snapshot, member=_consumer_member),
    SHARE: partial(_modern_snapshot, member=_share_member),
    STREAMS: partial(_modern_snapshot, member=_streams_member),
}
"""The snapshot of a group, by its kind."""
