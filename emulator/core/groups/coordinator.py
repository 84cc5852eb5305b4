"""The group coordinator of one node: requests, time and completed writes in, effects out.

It owns partitions of `__consumer_offsets` and the groups stored in them. It never reads a clock: `now` is the node's
time in integer milliseconds. Each group has its own clock (`core.clock`), so that a test can advance one group by a day
and leave the others alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.primitives import InvalidLength

from .. import overrides
from ..effects import Failed
from ..timers import OffsetExpiryCheck, TimerFired
from . import commit, group_admin, loading, membership, offset_expiry, offsets, transactional_offsets
from .classic import describe as classic_describe
from .classic.changes import create
from .consumer import describe as consumer_describe
from .conversion import consumer_heartbeat, streams_groups
from .group_store import GroupStore
from .kinds import KINDS
from .share import describe as share_describe
from .share import heartbeat as share_heartbeat
from .share import offsets as share_offsets
from .streams import describe as streams_describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from uuid import UUID

    from koordinator.wire.apis import Message

    from ...config.settings import Settings
    from ..cluster import ClusterState
    from ..effects import Call, Effect
    from .group import BaseGroup
    from .records import CoordinatorRecord, TransactionEnd

HANDLERS: Mapping[int, Callable[..., None]] = {
    ApiKey.JOIN_GROUP: membership.join_group,
    ApiKey.SYNC_GROUP: membership.sync_group,
    ApiKey.HEARTBEAT: membership.heartbeat,
    ApiKey.LEAVE_GROUP: membership.leave_group,
    ApiKey.OFFSET_COMMIT: offsets.commit,
    ApiKey.OFFSET_FETCH: offsets.fetch,
    ApiKey.TXN_OFFSET_COMMIT: transactional_offsets.commit,
    ApiKey.OFFSET_DELETE: offset_expiry.delete,
    ApiKey.DESCRIBE_GROUPS: classic_describe.describe_groups,
    ApiKey.LIST_GROUPS: group_admin.list_groups,
    ApiKey.DELETE_GROUPS: group_admin.delete_groups,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: consumer_heartbeat.heartbeat,
    ApiKey.CONSUMER_GROUP_DESCRIBE: consumer_describe.describe_groups,
    ApiKey.SHARE_GROUP_HEARTBEAT: share_heartbeat.heartbeat,
    ApiKey.SHARE_GROUP_DESCRIBE: share_describe.describe_groups,
    ApiKey.STREAMS_GROUP_HEARTBEAT: streams_groups.heartbeat,
    ApiKey.STREAMS_GROUP_DESCRIBE: streams_describe.describe_groups,
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: streams_describe.refuse_description,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: share_offsets.describe,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: share_offsets.alter,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: share_offsets.delete,
}
"""The handler of each API; called with the store, the node's time, the call and the request."""


class Coordinator:
    """The coordinator of groups of every kind, with the behaviour of the configured release (`kafka.version`).

    Every input returns its effects in order. A call without a `Reply` among them is parked, and a later input answers
    it. `owned` holds the partitions of `__consumer_offsets` that are owned, and empty, at the start; None owns all of
    them.
    """

    serves = frozenset(HANDLERS)

    def __init__(
        self,
        now: int,
        cluster: ClusterState,
        settings: Settings,
        new_uuid: Callable[[], UUID],
        owned: Iterable[int] | None = None,
    ) -> None:
        self.store = GroupStore(cluster, settings, new_uuid, owned, kinds=KINDS, handlers=HANDLERS)
        self.store.started_at = now

    def handle(self, now: int, call: Call, request: Message) -> list[Effect]:
        """Serve one request of a group API; the timers due by `now` have fired."""
        store = self.store
        newest = store.newest_write
        try:
            store.serve(now, call, request)
        except Exception as error:  # noqa: BLE001 - a bug ends one request
            commit.take_back(store, newest, call)
            store.emit(Failed(error, (call,)))
        return store.drain()

    def tick(self, now: int) -> list[Effect]:
        """Fire the timers due by `now`, each at its own deadline."""
        self._fire_due(now)
        return self.store.drain()

    def appended(self, now: int, token: int, error: Error) -> list[Effect]:
        """Complete the write with this token, successfully (NONE) or not, and send the responses that waited for it."""
        # at the same instant a write completes before timers fire
        self._fire_due(now - 1)
        self._appended(now, token, error)
        for call, request in self.store.waiting_fetches.pop(token, ()):
            offsets.fetch(self.store, now, call, request)
        return self.store.drain()

    def _appended(self, now: int, token: int, error: Error) -> None:
        store = self.store
        write = store.writes.pop(token, None)
        if write is None:
            # `unload`, or an earlier write, has failed this one already
            return
        store.touch(now, write.group)
        try:
            for later in commit.complete(store, write, error):
                self._appended(now, later, error)
        except Exception as bug:  # noqa: BLE001 - a bug ends the requests that wait for this write
            store.emit(Failed(bug, tuple(call for call, _ in write.answers)))

    def answered(self, now: int, token: int, response: Message | None) -> list[Effect]:
        """Take the response to a request of `SendRequest`; None if the broker could not be reached."""
        self._fire_due(now - 1)
        go_on = self.store.requests.pop(token, None)
        if go_on is not None:
            go_on(self.store, now, response)
        return self.store.drain()

    def transaction_ended(self, now: int, partition: int, producer_id: int, *, is_commit: bool) -> list[Effect]:
        """Commit or drop the pending offsets of a producer whose marker is durable in a partition."""
        self._fire_due(now - 1)
        transactional_offsets.transaction_ended(self.store, now, partition, producer_id, is_commit=is_commit)
        return self.store.drain()

    def begin_load(self, now: int, partition: int) -> list[Effect]:
        """Take over a partition of `__consumer_offsets`; its groups answer "loading" until `loaded`."""
        self._fire_due(now)
        self.store.owned.add(partition)
        self.store.loading.add(partition)
        return self.store.drain()

    def loaded(self, now: int, partition: int, records: Iterable[CoordinatorRecord | TransactionEnd]) -> list[Effect]:
        """Load the records of a partition, oldest first, and start to serve its groups."""
        self._fire_due(now)
        loading.load(self.store, now, partition, records)
        return self.store.drain()

    def load_failed(self, now: int, partition: int) -> list[Effect]:
        """Give up loading a partition whose records cannot be read."""
        self._fire_due(now)
        self.store.loading.discard(partition)
        if not self.store.dialect.serves_unreadable_partitions:
            self.store.owned.discard(partition)
        return self.store.drain()

    def unload(self, now: int, partition: int) -> list[Effect]:
        """Give up a partition to another coordinator; fail its writes and its parked requests with NOT_COORDINATOR."""
        self._fire_due(now)
        store = self.store
        # first, so that fetches parked behind these writes fail as well
        store.owned.discard(partition)
        for token in [token for token, write in store.writes.items() if write.group.partition == partition]:
            self._appended(now, token, Error.NOT_COORDINATOR)
        loading.unload(store, now, partition)
        return store.drain()

    def topics_deleted(self, now: int, names: Iterable[str]) -> list[Effect]:
        """Delete the committed offsets of deleted topics in every group, and what its kind keeps of them."""
        self._fire_due(now)
        offset_expiry.topics_deleted(self.store, now, names)
        for group in list(self.store.groups.values()):
            self.store.touch(now, group)
            self.store.kind_of(group).topics_deleted(self.store, group)
        return self.store.drain()

    def set_offsets(self, now: int, group_id: str, positions: Mapping[tuple[str, int], int]) -> list[Effect]:
        """Commit offsets of existing partitions without a member; create the group if it does not exist."""
        self._fire_due(now)
        group = self.store.find(now, group_id) or create(self.store, now, group_id)
        overrides.set_offsets(self.store, group, positions)
        return self.store.drain()

    def override(self, now: int, group_id: str, action: Callable[[GroupStore, BaseGroup], None]) -> list[Effect]:
        """Apply a test-only override (`core.overrides`) to a group. Raises ValueError if the group does not exist."""
        self._fire_due(now)
        group = self.store.find(now, group_id)
        if group is None:
            raise ValueError(f"there is no group {group_id!r}")
        action(self.store, group)
        return self.store.drain()

    def move_clock(self, now: int, group_id: str, reading: int) -> list[Effect]:
        """Advance a group's clock to `reading` and fire the timers it passes, each at its own deadline.

        The group need not exist. Raises ValueError if the clock would go back.
        """
        self._fire_due(now)
        clock = self.store.cluster.clocks.of(group_id, now)
        while (due := self._next_deadline(group_id)) is not None and due < reading:
            clock.move_to(now, max(due, clock.read(now)))
            self._clock_changed(now, group_id)
        clock.move_to(now, reading)
        self._clock_changed(now, group_id)
        return self.store.drain()

    def set_clock(self, now: int, group_id: str, mode: str) -> list[Effect]:
        """Set the mode of a group's clock (`clock.MODES`) and fire its due timers. Raises ValueError if unknown."""
        self._fire_due(now)
        self.store.cluster.clocks.of(group_id, now).set_mode(now, mode)
        self._clock_changed(now, group_id)
        return self.store.drain()

    def _next_deadline(self, group_id: str) -> int | None:
        group = self.store.groups.get(group_id)
        return None if group is None else group.timers.next_deadline

    def _clock_changed(self, now: int, group_id: str) -> None:
        group = self.store.find(now, group_id)
        if group is not None:
            self.store.update_deadlines()
            self._fire_due(now)

    @property
    def groups(self) -> Mapping[str, BaseGroup]:
        """The groups by id."""
        return self.store.groups

    def group(self, group_id: str) -> BaseGroup | None:
        """Return a group, or None."""
        return self.store.groups.get(group_id)

    def deadline(self) -> int | None:
        """Return the node time of the next `tick`, or None if no timer is set."""
        return self.store.deadlines.next_deadline

    def _fire_due(self, now: int) -> None:
        """Fire every timer due by `now`, earliest first, as if `tick` had been called at each deadline."""
        store = self.store
        while (due := store.deadlines.pop_due(now)) is not None:
            at, group_id = due
            group = store.groups[group_id]
            store.touch(at, group)
            timer = group.timers.pop_due(group.now)
            if timer is not None:
                if not isinstance(timer[1], OffsetExpiryCheck):
                    # the trace shows what a check expires, not the check
                    store.emit(TimerFired(timer[1], group_id, timer[0]))
                newest = store.newest_write
                try:
                    if isinstance(timer[1], OffsetExpiryCheck):
                        offset_expiry.expire(store, group)
                    else:
                        store.kind_of(group).fire(store, group, timer[1])
                except InvalidLength:
                    # Kafka's coordinator fails and logs it
                    pass
                except Exception as error:  # noqa: BLE001 - a bug ends one timer
                    commit.take_back(store, newest)
                    store.emit(Failed(error))
            store.update_deadlines()
