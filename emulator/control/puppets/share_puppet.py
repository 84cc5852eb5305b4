"""A puppet of the share protocol (KIP-932): it is a member of a share group, and leaves the records to others.

It follows Java's share consumer 4.3 (`ShareMembershipManager`): it takes an assignment at once, and sends a heartbeat
after each. So real consumers see peers come and go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

from ...core.groups.modern.member import JOINING_EPOCH, LEAVING_EPOCH
from ...core.groups.share.group import SHARE
from .behaviours import SILENT
from .consumer_role import subscribed_topics
from .puppet import PuppetClient
from .states import COORDINATOR_MOVED, PuppetState, PuppetTimer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn
    from uuid import UUID

    from koordinator.wire.apis import Message

    from ...core.cluster import ClusterState
    from .puppet import PuppetOptions
    from .supervisor import PuppetSupervisor

FIRST_INTERVAL_MS = 5_000
"""The heartbeat interval before the first response: the default of `group.share.heartbeat.interval.ms`."""

MEMBERSHIP_LOST = (Error.UNKNOWN_MEMBER_ID, Error.FENCED_MEMBER_EPOCH)
"""Errors after which a member abandons its partitions and joins with epoch 0."""


class SharePuppet(PuppetClient):
    """A member of a share group, subscribed to `topics`; None subscribes to all topics."""

    group_protocol = SHARE
    protocol_type = SHARE

    def __init__(
        self,
        supervisor: PuppetSupervisor,
        options: PuppetOptions,
        cluster: ClusterState,
        *,
        topics: Sequence[str] | None,
    ) -> None:
        super().__init__(supervisor, options)
        self._cluster = cluster
        self._topics = topics
        self._server_interval_ms = FIRST_INTERVAL_MS
        self._assigned: dict[UUID, tuple[int, ...]] = {}
        self._names: dict[UUID, str] = {}
        self._has_news = True
        self._sent_topics: tuple[str, ...] = ()

    @property
    def holds(self) -> dict[str, list[int]]:
        """The partitions from which it would fetch, by topic."""
        return {self._names[topic]: list(partitions) for topic, partitions in self._assigned.items() if partitions}

    @property
    def keep_ms(self) -> int:
        """The interval of the latest response."""
        return self._server_interval_ms

    @property
    def is_idle(self) -> bool:
        """Whether the puppet is a stable member with nothing to do but heartbeats."""
        is_sending = self._supervisor.is_timer_set(self, PuppetTimer.HEARTBEAT)
        has_news = self._has_news or self._subscribed() != self._sent_topics
        return self.state is PuppetState.STABLE and self._connection.is_idle and is_sending and not has_news

    @property
    def is_waiting(self) -> bool:
        """Whether the puppet waits for its connection or for a response."""
        return not self._connection.is_idle

    def sync(self, now: int) -> NoReturn:
        """Raise ValueError: a share member has no such step."""
        del now
        raise ValueError(f"puppet {self.name!r} cannot sync: a member of a share group takes its partitions at once")

    def commit(self, now: int, offsets: Mapping[tuple[str, int], int]) -> NoReturn:
        """Raise ValueError: share groups have no committed offsets."""
        del now, offsets
        raise ValueError(
            f"puppet {self.name!r} cannot commit: a share group acknowledges records and commits no offsets"
        )

    # -- requests --------------------------------------------------------------------------------------------

    def _join(self, now: int, reason: str | None) -> None:
        self._refuse_reason(reason)
        self._reset_generation(now)
        self.member_id = self.member_id or self._supervisor.new_member_id()
        self.state = PuppetState.JOINING
        self._limit_joins(now)
        self._send_heartbeat(now)

    def _prepare_leave(self, reason: str | None, *, temporarily: bool) -> None:
        self._refuse_reason(reason)
        if temporarily:
            raise ValueError(f"puppet {self.name!r} cannot leave temporarily: share groups have no static members")

    def _refuse_reason(self, reason: str | None) -> None:
        if reason is not None:
            raise ValueError(f"puppet {self.name!r}: the share protocol has no reasons; remove {reason!r}")

    def _leave(self, now: int) -> None:
        self._connection.send(now, self._request(LEAVING_EPOCH, ()))

    def _send_heartbeat(self, now: int) -> None:
        topics, is_joining = self._subscribed(), self.state is PuppetState.JOINING
        is_named = is_joining or self._has_news or topics != self._sent_topics
        epoch = JOINING_EPOCH if is_joining else self.generation
        self._sent_topics, self._has_news = topics, False
        self._connection.send(now, self._request(epoch, topics if is_named else None))
        if not self._is_manual:
            self._schedule_heartbeat(now)

    def _request(self, epoch: int, topics: tuple[str, ...] | None) -> ShareGroupHeartbeatRequest:
        return ShareGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=epoch, subscribed_topic_names=topics
        )

    def _subscribed(self) -> tuple[str, ...]:
        return tuple(subscribed_topics(self._cluster, self._topics))

    # -- responses -------------------------------------------------------------------------------------------

    def _handle(self, now: int, request: Message, response: Message) -> None:
        assert isinstance(request, ShareGroupHeartbeatRequest)
        assert isinstance(response, ShareGroupHeartbeatResponse)
        if self.state is PuppetState.JOINING and request.member_epoch != JOINING_EPOCH:
            # response of an earlier membership
            return
        self.error = Error(response.error_code)
        if self.state is PuppetState.LEAVING:
            self._left(now)
        elif self.error is not Error.NONE:
            self._refused(now)
        else:
            self._accepted(now, response)

    def _accepted(self, now: int, response: ShareGroupHeartbeatResponse) -> None:
        self.generation, self.state = response.member_epoch, PuppetState.STABLE
        self._server_interval_ms = response.heartbeat_interval_ms
        if response.assignment is None:
            return
        topics = self._cluster.topics_by_id
        given = {row.topic_id: row.partitions for row in response.assignment.topic_partitions}
        self._names.update((topic, topics[topic].name) for topic in given if topic in topics)
        self._assigned = {topic: numbers for topic, numbers in given.items() if topic in self._names}
        self._supervisor.note(now, self, "assigned")
        if self.behaviour.kind == SILENT:
            self._supervisor.cancel(self, PuppetTimer.HEARTBEAT)
            return
        self._schedule_flap(now)
        if not self._is_manual and self._connection.is_idle:
            self._send_heartbeat(now)

    def _refused(self, now: int) -> None:
        error, self._has_news = self.error, True
        if self._is_manual:
            if error in MEMBERSHIP_LOST or self.state is PuppetState.JOINING:
                self._reset_to_out(now)
        elif error in MEMBERSHIP_LOST:
            self._join(now, None)
        elif error in COORDINATOR_MOVED:
            self._connection.rediscover(now)
            self._send_heartbeat(now)
        elif error is Error.COORDINATOR_LOAD_IN_PROGRESS:
            self._connection.back_off(now)
            self._send_heartbeat(now)
        elif error is not Error.TOPIC_AUTHORIZATION_FAILED:
            self._fail(now)

    def on_disconnect(self, now: int) -> None:
        """Repeat everything, to the coordinator found next."""
        self._has_news = True
        if self.state is PuppetState.LEAVING:
            self._leave(now)
        elif self._is_manual:
            self.state = PuppetState.OUT if self.state is PuppetState.JOINING else self.state
        elif self._supervisor.is_timer_set(self, PuppetTimer.HEARTBEAT):
            self._send_heartbeat(now)

    # -- timers ----------------------------------------------------------------------------------------------

    def _heartbeat_due(self, now: int) -> None:
        if self._connection.is_idle:
            self._send_heartbeat(now)
        else:
            self._schedule_heartbeat(now)

    def _rejoin_due(self, now: int) -> None:
        """Do nothing: no step of a share member is delayed."""

    def _lose(self) -> None:
        self._assigned = {}

    def _reset_generation(self, now: int) -> None:
        super()._reset_generation(now)
        self._has_news = True
