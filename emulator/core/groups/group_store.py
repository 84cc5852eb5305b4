"""The state that all request handlers share: groups, writes in flight, pending effects.

Handlers are functions of a `GroupStore`, a group and a request. They park calls on members and set timers on groups.
Effects leave the core, and groups change state, only through the methods below.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any

from koordinator.wire.apis import APIS
from koordinator.wire.errors import Error
from koordinator.wire.messages.offsets_topic import OffsetCommitKey
from koordinator.wire.primitives import InvalidLength

from ..dialect import dialect_of
from ..effects import Append, Reply, SendRequest
from ..journal import Journal
from ..timers import OffsetExpiryCheck, StoppedTimers, Timers
from .causes import Cause, Reason
from .commit import GroupWrite
from .facts import MemberChanged
from .offset_table import in_table_order
from .records import offset_tombstone, offsets_partition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from uuid import UUID

    from koordinator.wire.apis import Message
    from koordinator.wire.messages.offset_fetch import OffsetFetchRequest

    from ...config.settings import Settings
    from ..cluster import ClusterState
    from ..effects import Answer, Call, Effect
    from .group import BaseGroup, BaseMember
    from .kind import GroupKind

    Answered = Callable[["GroupStore", int, Any], None]
    """Goes on with the response to a request; None if the broker could not be reached."""

    Handler = Callable[..., None]
    """Serves a request; called with the store, the node's time in ms, the call and the request."""

NONE = Error.NONE
"""Bound once: on Python 3.11 the attribute lookup takes as long as a call."""


class GroupStore:
    """The groups of one node: those whose `__consumer_offsets` partition it leads.

    `kinds` has each kind of group by its name, and `handlers` the handler of each API.
    """

    def __init__(
        self,
        cluster: ClusterState,
        settings: Settings,
        new_uuid: Callable[[], UUID],
        owned: Iterable[int] | None = None,
        *,
        kinds: Mapping[str, GroupKind[Any]],
        handlers: Mapping[int, Handler],
    ) -> None:
        self.kinds = kinds
        self.cluster = cluster
        self.settings = settings
        self.dialect = dialect_of(settings)
        self.groups: dict[str, BaseGroup] = {}
        self.forgotten: dict[str, BaseGroup] = {}
        """Removed groups whose records stay in the log (`forget`)."""
        self.seen_forgotten: set[str] = set()
        """Those that read-only requests still see, since nothing was written to their partition after them."""
        self.deadlines: Timers[str] = Timers()
        self.owned = set(range(settings.offsets_topic_num_partitions) if owned is None else owned)
        self.loading: set[int] = set()
        self.writes: dict[int, GroupWrite] = {}
        self.requests: dict[int, Answered] = {}
        self.waiting_fetches: dict[int, list[tuple[Call, OffsetFetchRequest]]] = defaultdict(list)
        self.started_at = 0
        self.new_uuid = new_uuid
        self._handlers = handlers
        self._out: list[Effect] = []
        self._touched: dict[BaseGroup, int] = {}
        self.placed: Journal | None = None
        """How to put back the groups that this request or timer has added or replaced; None for none."""
        self.newest_write = 0
        """The token of the newest write; `commit.take_back` takes back what follows."""

    def partition_of(self, group_id: str) -> int:
        """Return the partition of `__consumer_offsets` that stores a group."""
        group = self.groups.get(group_id)
        if group is not None:
            return group.partition
        return offsets_partition(group_id, self.settings.offsets_topic_num_partitions)

    def status(self, group_id: str) -> Error:
        """Return NONE if this node serves the group, else COORDINATOR_LOAD_IN_PROGRESS or NOT_COORDINATOR."""
        group = self.groups.get(group_id)
        partition = self.partition_of(group_id) if group is None else group.partition
        if partition in self.loading:
            return Error.COORDINATOR_LOAD_IN_PROGRESS
        return NONE if partition in self.owned else Error.NOT_COORDINATOR

    def find(self, now: int, group_id: str) -> BaseGroup | None:
        """Return the group with its time set to this input, or None; `now` is the node's time in ms."""
        group = self.groups.get(group_id)
        if group is not None:
            self.touch(now, group)
        return group

    def find_visible(self, now: int, group_id: str) -> BaseGroup | None:
        """Return the group as `find` does if read-only requests see it, else None."""
        group = self.find(now, group_id)
        if group is None and group_id in self.seen_forgotten:
            return self.forgotten[group_id]
        return None if group is None or not self.is_visible(group) else group

    def visible(self) -> Iterator[BaseGroup]:
        """Yield the groups that read-only requests see."""
        yield from filter(self.is_visible, self.groups.values())
        yield from (group for name, group in self.forgotten.items() if name in self.seen_forgotten)

    def touch(self, now: int, group: BaseGroup) -> None:
        """Set the group's time for this input, and have its next deadline updated at the end of the input."""
        clock = group.clock
        # inlined `clock.read(now)`: this runs for every request
        group.now = clock.origin + now if clock.pace else clock.origin
        self._touched[group] = now

    def kind_of(self, group: BaseGroup) -> GroupKind[Any]:
        """Return what the kind of a group decides."""
        return self.kinds[group.kind]

    def add(self, now: int, group: BaseGroup) -> None:
        """Add a new group."""
        self._note_placed(partial(self._remove_added, group, self.groups.get(group.id)))
        self.groups[group.id] = group
        self.schedule_expiry_check(group)
        self.touch(now, group)
        self.freeze_if_requested(group)
        self.seen_forgotten.discard(group.id)
        forgotten = self.forgotten.pop(group.id, None)
        if forgotten is not None:
            self._hand_over_offsets(forgotten, group)

    def freeze(self, group: BaseGroup) -> None:
        """Stop the group's timers and hold the requests that would change its state (`hold_if_frozen`)."""
        group.frozen_at = group.now
        group.timers = group.timers.copy_shifted(0, StoppedTimers)

    def thaw(self, group: BaseGroup) -> None:
        """Resume the timers where they stopped, and serve the held requests."""
        group.timers = group.timers.copy_shifted(group.now - group.frozen_at, Timers)
        self.schedule_expiry_check(group)
        self.serve_held_requests(group)

    def hold_if_frozen(self, group: BaseGroup, call: Call, request: Message) -> bool:
        """Hold a request if the group is frozen; return whether it is."""
        if not group.is_frozen:
            return False
        group.held_requests.append((call, request))
        return True

    def replace_group(self, old: BaseGroup, new: BaseGroup) -> None:
        """Put a group of another kind in a group's place: it goes on with its offsets, commits and held requests."""
        self._hand_over_offsets(old, new)
        new.clock, new.now = old.clock, old.now
        self._touched[new] = self._touched[old]
        self._note_placed(partial(self._put_back, old, new))
        self.groups[new.id] = new
        self.schedule_expiry_check(new)
        new.held_requests, old.held_requests = new.held_requests + old.held_requests, []
        if not new.is_frozen:
            self.serve_held_requests(new)

    def _note_placed(self, undo: Callable[[], object]) -> None:
        if self.placed is None:
            self.placed = Journal()
        self.placed.note(undo)

    def _remove_added(self, group: BaseGroup, old: BaseGroup | None) -> None:
        if old is None:
            self.discard_if_unused(group)
        elif self.groups.get(group.id) is group:
            self.groups[group.id] = old

    def _put_back(self, old: BaseGroup, new: BaseGroup) -> None:
        if self.groups.get(new.id) is new:
            self.replace_group(new, old)

    def _hand_over_offsets(self, old: BaseGroup, new: BaseGroup) -> None:
        """Give a group the offsets of another, and its writes in flight without their completions."""
        new.table = old.table
        for write in self.writes.values():
            if write.group is old:
                write.group, write.completed = new, None

    def node_time(self, group: BaseGroup) -> int:
        """Return the node's time of the current input, which concerns this group."""
        return self._touched[group]

    def serve_held_requests(self, group: BaseGroup) -> None:
        """Serve the held requests in arrival order; the group may have been removed."""
        held, group.held_requests = group.held_requests, []
        for call, request in held:
            self.serve(self._touched[group], call, request)

    def serve(self, now: int, call: Call, request: Message) -> None:
        """Serve a request; -1 answers it if a subscription makes Kafka's coordinator fail."""
        try:
            self._handlers[call.api_key](self, now, call, request)
        except InvalidLength:
            response: Callable[..., Message] = APIS[call.api_key].response
            self.reply(call, response(error_code=Error.UNKNOWN_SERVER_ERROR))

    def remove_group(self, group: BaseGroup) -> None:
        """Move a group to Dead and remove it, with its clock if that has no setting of its own.

        `state_changed_at` stays as it was, because a failed write may undo the removal.
        """
        reason = f"Group {group.id} transitioned to Dead in generation {group.generation}"
        self.kind_of(group).end(self, group, Reason(Cause.REMOVED, reason))
        del self.groups[group.id]
        self.deadlines.cancel(group.id)
        if group.clock.is_plain and self.settings.group_clock == "real":
            # a later group of this name gets an equal clock
            self.cluster.clocks.pop(group.id, None)
        self.serve_held_requests(group)

    def delete_empty_group(self, group: BaseGroup, answers: Iterable[Answer] = ()) -> None:
        """Remove an Empty group and write tombstones for it and its offsets; the answers wait for the write."""
        ends_pending = bool(answers) and self.dialect.tombstones_end_pending_offsets
        pending = (*group.table.pending_partitions(), *sorted(self.in_flight(group))) if ends_pending else ()
        offsets = in_table_order(group.offsets, self.dialect)
        records = [offset_tombstone(group, *at) for at in dict.fromkeys((*offsets, *pending))]
        records += group.tombstones(self.dialect)
        journal = Journal()
        if self.dialect.waits_for_log:
            journal.note(partial(self._undo_delete, group))
        with journal:
            self.remove_group(group)
            if records:
                self.append(GroupWrite(group, records, list(answers), journal))

    def forget(self, group: BaseGroup) -> None:
        """Remove an Empty consumer group without a record, as Kafka does for a JoinGroup that it then refuses.

        A new group of this id has its offsets, and loading brings it back (`maybeDeleteEmptyConsumerGroup`). Requests
        that read what is committed see it until the next write to its partition (`SnapshotRegistry`).
        """
        self.remove_group(group)
        self.forgotten[group.id] = group
        self.seen_forgotten.add(group.id)

    def written(self, partition: int) -> None:
        """Have a durable record of a partition hide the groups that were forgotten before."""
        if self.seen_forgotten:
            self.seen_forgotten -= {name for name, group in self.forgotten.items() if group.partition == partition}

    def unload(self, group: BaseGroup) -> None:
        """Drop a group that another node coordinates now; its records stay."""
        reason = f"Unloading group metadata for generation {group.generation}."
        self.kind_of(group).end(self, group, Reason(Cause.UNLOADED, reason))
        del self.groups[group.id]
        self.deadlines.cancel(group.id)
        self.serve_held_requests(group)

    def _undo_delete(self, group: BaseGroup) -> None:
        """Restore an Empty group whose tombstones could not be written, unless a new one with its id has records."""
        newer = self.groups.get(group.id)
        if newer is not None and newer is not group:
            if newer.stored:
                return
            group.held_requests, newer.held_requests = newer.held_requests, []
        self.kind_of(group).restore(self, group, f"The removal of group {group.id} could not be written")
        self.groups[group.id] = group
        group.clock = self.cluster.clocks.setdefault(group.id, group.clock)
        self.schedule_expiry_check(group)

    def discard_if_unused(self, group: BaseGroup) -> None:
        """Remove a group that was created for a request which has failed, unless it is in use by now."""
        is_unused = group.is_unused and not any(write.group is group for write in self.writes.values())
        if is_unused and not self.is_visible(group) and self.groups.get(group.id) is group:
            self.remove_group(group)

    def in_flight(self, group: BaseGroup) -> frozenset[tuple[str, int]]:
        """Return the partitions with a commit that is not durable yet."""
        return frozenset(
            (record.key.topic, record.key.partition)
            for write in self.writes.values()
            if write.group is group
            for record in write.records
            if isinstance(record.key, OffsetCommitKey) and record.value is not None
        )

    def unstable_partitions(self, group: BaseGroup) -> frozenset[tuple[str, int]]:
        """Return the partitions with a commit in flight or in an open transaction."""
        return self.in_flight(group).union(group.table.refused, *group.table.pending.values())

    def is_visible(self, group: BaseGroup) -> bool:
        """Return whether read-only requests see the group."""
        return group.stored or not self.dialect.waits_for_log

    def schedule_expiry_check(self, group: BaseGroup) -> None:
        """Schedule the next offset expiry check, at a multiple of the interval since the node started."""
        interval = self.settings.offsets_retention_check_interval_ms
        checks = (group.now - self.started_at) // interval + 1
        group.timers.set(OffsetExpiryCheck(), self.started_at + checks * interval)

    def update_deadlines(self) -> None:
        """Update the node-time deadline of every group that this input touched.

        A group whose deadline did not change keeps its turn: an input without effect must not reorder timers.
        """
        for group, now in self._touched.items():
            if self.groups.get(group.id) is not group:
                continue
            deadline, clock = group.timers.next_deadline, group.clock
            if deadline is not None:
                # inlined `clock.due_at` of a running clock
                deadline = deadline - clock.origin if clock.pace else clock.due_at(deadline, now)
            if deadline is None:
                self.deadlines.cancel(group.id)
            elif self.deadlines.get(group.id) != deadline:
                self.deadlines.set(group.id, deadline)
        self._touched.clear()
        self.placed = None

    def drain(self) -> list[Effect]:
        """End the input: return its effects in order."""
        self.update_deadlines()
        out, self._out = self._out, []
        return out

    def reply(self, call: Call | None, response: Message | None, reason: str = "") -> None:
        """Answer a call, with the reason of a refusal that the response does not show; do nothing for None."""
        if call is not None:
            self._out.append(Reply(call, response, reason))

    def emit(self, fact: Effect) -> None:
        """Emit a fact for the trace."""
        self._out.append(fact)

    @property
    def next_token(self) -> int:
        """The token of the next write; tokens ascend like the records in the log."""
        return self.newest_write + 1

    def append(self, write: GroupWrite) -> None:
        """Append the records of a write; the input `appended` completes it (`commit`)."""
        self.newest_write = write.position = self.newest_write + 1
        self.writes[self.newest_write] = write
        self._out.append(Append(self.newest_write, write.group.partition, tuple(write.records), write.producer))

    def withdraw(self, token: int) -> GroupWrite:
        """Remove a write of this input, whose records reach no log; return it."""
        self._out = [effect for effect in self._out if not (isinstance(effect, Append) and effect.token == token)]
        return self.writes.pop(token)

    def send(self, node_id: int, version: int, request: Message, answered: Answered) -> None:
        """Send a request to another broker, or this one; `answered` is called with the response."""
        token = next(self.cluster.request_tokens)
        self.requests[token] = answered
        self._out.append(SendRequest(node_id, token, version, request))

    def freeze_if_requested(self, group: BaseGroup) -> None:
        """Freeze a group in a state that a test has asked for."""
        if self.cluster.frozen_states.get(group.id) == group.state_name and not group.is_frozen:
            self.freeze(group)

    def member_changed(self, group: BaseGroup, member: BaseMember, change: str, why: Reason) -> None:
        """Emit that a member was added, removed or replaced."""
        self.emit(MemberChanged(group.id, group.now, member.id, member.instance_id, change, why.cause.value, why.text))
