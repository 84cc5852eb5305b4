"""What the handlers of the coordinator share: the group table, the outbox and the one door between states.

Handlers are functions of a `GroupStore`, a group and a request. They park calls on members and set timers on groups;
whatever leaves the core goes through the methods below.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

from ..dialect import Dialect
from ..effects import Append, MemberChanged, Reply, StateChanged, Superseded
from ..timers import OffsetExpiryCheck, StoppedTimers, Timers
from .classic.group import MAY_COME_FROM, ClassicGroup, ClassicGroupState, ClassicMember
from .coordinator_records import offsets_partition
from .group_records import group_tombstone, offset_tombstone
from .pending_writes import GroupDeleted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from koordinator.wire.apis import Message
    from koordinator.wire.messages.offset_fetch import OffsetFetchRequest

    from ...config.settings import Settings
    from ..cluster import ClusterState
    from ..effects import Call, Effect
    from .classic.group import Handler
    from .coordinator_records import CoordinatorRecord
    from .pending_writes import PendingDeletion, Write


NONE = Error.NONE
"""Looked up once: on Python 3.11 that takes as long as a call."""


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason of a rebalance or removal: its kind, Kafka's own wording, and who gave what reason (KIP-800)."""

    cause: str
    reason: str
    member_id: str | None = None
    client_reason: str | None = None


class GroupStore:
    """One node's share of the groups: those whose `__consumer_offsets` partition it leads."""

    def __init__(
        self,
        cluster: ClusterState,
        settings: Settings,
        new_uuid: Callable[[], UUID],
        owned: Iterable[int] | None = None,
    ) -> None:
        self.cluster = cluster
        self.settings = settings
        self.dialect = Dialect.of(settings.kafka_version, new_coordinator=settings.group_coordinator_new_enable)
        self.groups: dict[str, ClassicGroup] = {}
        self.deadlines: Timers[str] = Timers()
        self.owned = set(range(settings.offsets_topic_num_partitions) if owned is None else owned)
        self.loading: set[int] = set()
        self.writes: dict[int, Write] = {}
        self.waiting_fetches: dict[int, list[tuple[Call, OffsetFetchRequest]]] = defaultdict(list)
        self.started_at = 0
        self._new_uuid = new_uuid
        self._out: list[Effect] = []
        self._touched: dict[ClassicGroup, int] = {}
        self._token = 0

    # -- which groups ----------------------------------------------------------------------------------------

    def partition_of(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that keeps the group."""
        group = self.groups.get(group_id)
        if group is not None:
            return group.partition
        return offsets_partition(group_id, self.settings.offsets_topic_num_partitions)

    def status(self, group_id: str) -> Error:
        """Whether this node answers for the group: NONE, COORDINATOR_LOAD_IN_PROGRESS or NOT_COORDINATOR."""
        group = self.groups.get(group_id)
        partition = self.partition_of(group_id) if group is None else group.partition
        if partition in self.loading:
            return Error.COORDINATOR_LOAD_IN_PROGRESS
        return NONE if partition in self.owned else Error.NOT_COORDINATOR

    def find(self, now: int, group_id: str) -> ClassicGroup | None:
        """The group, its clock set to this input; `now` is the node's time in ms."""
        group = self.groups.get(group_id)
        if group is not None:
            self.touch(now, group)
        return group

    def touch(self, now: int, group: ClassicGroup) -> None:
        """This input concerns the group: set its clock, and look at its timers when all is done."""
        clock = group.clock
        # `clock.read(now)`, without the call: this is done for every request
        group.now = clock.origin + now if clock.pace else clock.origin
        self._touched[group] = now

    def create(self, now: int, group_id: str) -> ClassicGroup:
        """A new, empty group at generation 0."""
        group = ClassicGroup(group_id, self.partition_of(group_id), self.cluster.clock_of(group_id, now), now)
        self.groups[group_id] = group
        self.schedule_expiry_check(group)
        self.touch(now, group)
        self._freeze_if_requested(group)
        return group

    def freeze(self, group: ClassicGroup) -> None:
        """The group stays in its state until it is thawed: no timer fires, and requests are held (`hold_if_frozen`)."""
        group.frozen_at = group.now
        group.timers = group.timers.copy_shifted(0, StoppedTimers)

    def thaw(self, group: ClassicGroup) -> None:
        """It goes on where it was: its timers have stood still meanwhile, and requests that were held are served."""
        group.timers = group.timers.copy_shifted(group.now - group.frozen_at, Timers)
        self.schedule_expiry_check(group)
        self.serve_held_requests(group)

    def hold_if_frozen(self, group: ClassicGroup, handle: Handler, call: Call, request: Message) -> bool:
        """Hold a request that may take a group out of its state, if it is frozen there."""
        if not group.is_frozen:
            return False
        group.held_requests.append((handle, call, request))
        return True

    def serve_held_requests(self, group: ClassicGroup) -> None:
        """Serve what was held, in the order in which it came; the group may be gone."""
        held, group.held_requests = group.held_requests, []
        for handle, call, request in held:
            handle(self, self._touched[group], call, request)

    def remove_group(self, group: ClassicGroup) -> None:
        """The group is no more; who still holds it finds it Dead. Since when it was Empty is kept: it may come back."""
        reason = f"Group {group.id} transitioned to Dead in generation {group.generation}"
        self._change(group, ClassicGroupState.DEAD, Reason("removed", reason))
        del self.groups[group.id]
        self.deadlines.cancel(group.id)
        if group.clock.is_plain:
            # one like it is made with the next group of this name; nothing is kept of groups that are gone
            self.cluster.group_clocks.pop(group.id, None)
        self.serve_held_requests(group)

    def delete_empty_group(self, group: ClassicGroup, answer: PendingDeletion | None = None) -> None:
        """An empty group goes, with its offsets; `answer` waits for the tombstones."""
        records = [offset_tombstone(group, topic, partition) for topic, partition in group.offsets]
        if group.generation > 0 or self.dialect.writes_tombstone_at_generation_0:
            records.append(group_tombstone(group))
        self.remove_group(group)
        if records:
            self.append(group.id, records, GroupDeleted(group, answer))

    def unload(self, group: ClassicGroup) -> None:
        """Somebody else coordinates the group from now on; here it is forgotten, not removed."""
        self._change(
            group,
            ClassicGroupState.DEAD,
            Reason("unloaded", f"Unloading group metadata for generation {group.generation}."),
        )
        del self.groups[group.id]
        self.deadlines.cancel(group.id)
        self.serve_held_requests(group)

    def restore(self, group: ClassicGroup, state: ClassicGroupState, why: Reason) -> None:
        """A group that was loaded is in the state its record says; that is not a step from another one."""
        self._change(group, state, why)

    def undo_delete(self, group: ClassicGroup) -> None:
        """The removal of an empty group could not be written: it is there again, as if it had never been away."""
        self._change(
            group,
            ClassicGroupState.EMPTY,
            Reason("store_error", f"The removal of group {group.id} could not be written"),
        )
        self.groups[group.id] = group
        group.clock = self.cluster.group_clocks.setdefault(group.id, group.clock)
        self.schedule_expiry_check(group)

    def discard_if_unused(self, group: ClassicGroup) -> None:
        """A commit to a new group has failed: it never was, unless something else has come into it meanwhile."""
        if not self.is_visible(group) and group.is_unused and self.groups.get(group.id) is group:
            self.remove_group(group)

    def is_visible(self, group: ClassicGroup) -> bool:
        """Whether the group is there for those who only read."""
        return group.stored or not self.dialect.waits_for_log

    def schedule_expiry_check(self, group: ClassicGroup) -> None:
        """The next multiple of the check interval since the node started, on the group's clock."""
        interval = self.settings.offsets_retention_check_interval_ms
        checks = (group.now - self.started_at) // interval + 1
        group.timers.set(OffsetExpiryCheck(), self.started_at + checks * interval)

    def update_deadlines(self) -> None:
        """Enter the next deadline of every group concerned into the deadlines, in the node's time.

        A group whose deadline is the same as before keeps its turn: an input that changes nothing changes no order.
        """
        for group, now in self._touched.items():
            if self.groups.get(group.id) is not group:
                continue
            deadline, clock = group.timers.deadline(), group.clock
            if deadline is not None:
                # of a clock that runs without the call
                deadline = deadline - clock.origin if clock.pace else clock.due_at(deadline, now)
            if deadline is None:
                self.deadlines.cancel(group.id)
            elif self.deadlines.get(group.id) != deadline:
                self.deadlines.set(group.id, deadline)
        self._touched.clear()

    # -- what leaves the core --------------------------------------------------------------------------------

    def drain(self) -> list[Effect]:
        """Everything that happened since the last drain, in order; the end of every input."""
        self.update_deadlines()
        out, self._out = self._out, []
        return out

    def reply(self, call: Call | None, response: Message | None) -> None:
        """Answer a call; one that was not there (None) needs none."""
        if call is not None:
            self._out.append(Reply(call, response))

    def emit(self, fact: Effect) -> None:
        """Record a fact for the trace."""
        self._out.append(fact)

    def append(self, group_id: str, records: Iterable[CoordinatorRecord], write: Write) -> None:
        """Write records of the group; `write` says what is to be done when `appended` comes back."""
        self._token += 1
        self.writes[self._token] = write
        self._out.append(Append(self._token, self.partition_of(group_id), tuple(records)))

    @property
    def newest_write(self) -> Write | None:
        """What was last asked to be written, if anything is under way."""
        return next(reversed(self.writes.values()), None)

    def transition(self, group: ClassicGroup, state: ClassicGroupState, why: Reason) -> None:
        """The only way from one state of a living group to another."""
        assert group.state in MAY_COME_FROM[state], f"{group.id}: {group.state.value} -> {state.value}"
        self._change(group, state, why)
        group.state_changed_at = group.now

    def _change(self, group: ClassicGroup, state: ClassicGroupState, why: Reason) -> None:
        self.emit(
            StateChanged(
                group_id=group.id,
                group_now=group.now,
                before=group.state.value,
                after=state.value,
                generation=group.generation,
                cause=why.cause,
                reason=why.reason,
                member_id=why.member_id,
                client_reason=why.client_reason,
            )
        )
        group.previous_state = group.state
        group.state = state
        group.earliest_offset_expiry = 0
        if group.clock.mode == "auto":
            self.cluster.auto_clock_groups[group.id] = None
        self._freeze_if_requested(group)

    def _freeze_if_requested(self, group: ClassicGroup) -> None:
        if self.cluster.frozen_states.get(group.id) is group.state:
            self.freeze(group)

    def member_changed(self, group: ClassicGroup, member: ClassicMember, change: str, why: Reason) -> None:
        """A member of the group came, went or was replaced."""
        self.emit(MemberChanged(group.id, group.now, member.id, member.instance_id, change, why.cause, why.reason))

    # -- members ---------------------------------------------------------------------------------------------

    def new_member_id(self, prefix: str) -> str:
        """`<client id or instance id>-<uuid>`, as Kafka makes them."""
        return f"{prefix}-{self._new_uuid()}"

    def park_join(self, group: ClassicGroup, member: ClassicMember, call: Call) -> None:
        """Let a JoinGroup wait; an earlier one of the same member is never answered, as in Kafka."""
        superseded = group.park_join(member, call)
        if superseded is not None:
            self.emit(Superseded(superseded, group.id, member.id))

    def park_sync(self, group: ClassicGroup, member: ClassicMember, call: Call) -> None:
        """Let a SyncGroup wait, likewise."""
        self.drop_sync(group, member)
        member.syncing = call

    def drop_sync(self, group: ClassicGroup, member: ClassicMember) -> None:
        """Forget the parked SyncGroup of a member, if there is one; it is never answered."""
        superseded, member.syncing = member.syncing, None
        if superseded is not None:
            self.emit(Superseded(superseded, group.id, member.id))

    def restart_session(self, group: ClassicGroup, member: ClassicMember) -> None:
        """The member was heard of: its session starts anew."""
        member.session_began_ms = self._touched[group]
        if member.is_new and not self.dialect.new_member_session_begins_with_join:
            return group.timers.cancel(member.session)
        return group.timers.set(member.session, group.now + member.session_timeout_ms)
