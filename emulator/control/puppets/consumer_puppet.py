"""A puppet of the consumer protocol (KIP-848): one request for everything, ConsumerGroupHeartbeat.

It follows Java's consumer 4.3 (`ConsumerMembershipManager`, `ConsumerHeartbeatRequestManager`), except for faulty
behaviours: it sends each change once, acknowledges an assignment at once, and repeats everything after an error.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

from ...core.groups.consumer.member import STATIC_LEAVING_EPOCH
from ...core.groups.group import CONSUMER
from ...core.groups.modern.member import JOINING_EPOCH, LEAVING_EPOCH
from .behaviours import NEVER_REVOKES, SILENT, STRAGGLER
from .consumer_role import subscribed_topics
from .puppet import PuppetClient
from .states import COORDINATOR_MOVED, PuppetState, PuppetTimer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from koordinator.wire.apis import Message

    from ...core.cluster import ClusterState
    from .puppet import PuppetOptions
    from .supervisor import PuppetSupervisor

    Owned = dict[UUID, tuple[int, ...]]
    """Partitions by topic id."""

FIRST_INTERVAL_MS = 5_000
"""The heartbeat interval before the first response: the default of `group.consumer.heartbeat.interval.ms`."""

CLIENT_IDS_SINCE = 1
"""The first version in which clients make the member ids (KIP-1082) and may subscribe to a pattern."""

MEMBERSHIP_LOST = (Error.UNKNOWN_MEMBER_ID, Error.FENCED_MEMBER_EPOCH)
"""Errors after which a member abandons its partitions and joins with epoch 0."""


class ConsumerPuppet(PuppetClient):
    """A member of a consumer group, subscribed to `topics` or to a `pattern`; None of both subscribes to all topics.

    `protocol` is the server-side assignor that it names. `holds` are the partitions that its application uses.
    """

    group_protocol = "consumer"
    protocol_type = CONSUMER

    def __init__(
        self,
        supervisor: PuppetSupervisor,
        options: PuppetOptions,
        cluster: ClusterState,
        *,
        topics: Sequence[str] | None,
        pattern: str | None,
        assignor: str | None,
    ) -> None:
        super().__init__(supervisor, options)
        self.protocol = assignor
        self._cluster = cluster
        self._topics = () if topics is None and pattern is not None else topics
        self._pattern = pattern
        self._server_interval_ms = FIRST_INTERVAL_MS
        self._owned: Owned = {}
        self._assigned: Owned = {}
        """The assignment of the coordinator, which `_owned` follows."""
        self._names: dict[UUID, str] = {}
        self._repeats_all = True
        self._acknowledges = False
        self._sent_topics: tuple[str, ...] = ()
        self._leaving_epoch = LEAVING_EPOCH

    @property
    def holds(self) -> dict[str, list[int]]:
        """The partitions that its application uses, by topic."""
        return {self._names[topic]: list(partitions) for topic, partitions in self._owned.items() if partitions}

    @property
    def keep_ms(self) -> int:
        """The interval of the latest response."""
        return self._server_interval_ms

    @property
    def is_idle(self) -> bool:
        """Whether the puppet is a stable member with nothing to do but heartbeats."""
        is_sending = self._supervisor.is_timer_set(self, PuppetTimer.HEARTBEAT)
        has_news = self._acknowledges or self._repeats_all or self._subscribed() != self._sent_topics
        return self.state is PuppetState.STABLE and self._connection.is_idle and is_sending and not has_news

    @property
    def is_waiting(self) -> bool:
        """Whether the puppet waits for its connection or for a response."""
        return not self._connection.is_idle

    def sync(self, now: int) -> None:
        """Take the assignment and acknowledge it."""
        self._refuse_unless("sync", PuppetState.RECONCILING)
        self._supervisor.cancel(self, PuppetTimer.REJOIN)
        self._take(now)
        self._send_heartbeat(now)

    # -- requests --------------------------------------------------------------------------------------------

    def _join(self, now: int, reason: str | None) -> None:
        if reason is not None:
            raise ValueError(f"puppet {self.name!r}: the consumer protocol has no reasons; remove {reason!r}")
        self._reset_generation(now)
        if not self.member_id and self._supervisor.version(ApiKey.CONSUMER_GROUP_HEARTBEAT) >= CLIENT_IDS_SINCE:
            self.member_id = self._supervisor.new_member_id()
        self.state = PuppetState.JOINING
        self._limit_joins(now)
        self._send_heartbeat(now)

    def _prepare_leave(self, reason: str | None, *, temporarily: bool) -> None:
        if reason is not None:
            raise ValueError(f"puppet {self.name!r}: the consumer protocol has no reasons; remove {reason!r}")
        if temporarily and self.instance_id is None:
            raise ValueError(f"puppet {self.name!r} cannot leave temporarily: it needs an instance_id")
        self._leaving_epoch = STATIC_LEAVING_EPOCH if temporarily else LEAVING_EPOCH

    def _leave(self, now: int) -> None:
        request = self._request(self._leaving_epoch)
        self._connection.send(now, replace(request, subscribed_topic_names=(), topic_partitions=()))

    def _send_heartbeat(self, now: int) -> None:
        topics, is_joining = self._subscribed(), self.state is PuppetState.JOINING
        is_full = is_joining or self._repeats_all
        request = replace(
            self._request(JOINING_EPOCH if is_joining else self.generation),
            rebalance_timeout_ms=self.rebalance_timeout_ms if is_full else -1,
            subscribed_topic_names=topics if is_full or topics != self._sent_topics else None,
            subscribed_topic_regex=self._pattern if is_full else None,
            server_assignor=self.protocol if is_full else None,
            topic_partitions=_rows(self._owned) if is_full or self._acknowledges else None,
        )
        self._sent_topics, self._acknowledges, self._repeats_all = topics, False, False
        self._connection.send(now, request)
        if not self._is_manual:
            self._schedule_heartbeat(now)

    def _request(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=epoch, instance_id=self.instance_id
        )

    def _subscribed(self) -> tuple[str, ...]:
        return tuple(subscribed_topics(self._cluster, self._topics))

    # -- responses -------------------------------------------------------------------------------------------

    def _handle(self, now: int, request: Message, response: Message) -> None:
        assert isinstance(request, ConsumerGroupHeartbeatRequest)
        assert isinstance(response, ConsumerGroupHeartbeatResponse)
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

    def _accepted(self, now: int, response: ConsumerGroupHeartbeatResponse) -> None:
        is_new = self.state is PuppetState.JOINING
        self.member_id, self.generation = response.member_id or "", response.member_epoch
        self._server_interval_ms = response.heartbeat_interval_ms
        if is_new:
            self.state = PuppetState.STABLE
        if response.assignment is not None:
            self._assigned = self._known({row.topic_id: row.partitions for row in response.assignment.topic_partitions})
            if is_new or _as_set(self._assigned) != _as_set(self._owned):
                self._reconcile(now)
        if self._acknowledges and not self._is_manual and self._connection.is_idle:
            self._send_heartbeat(now)

    def _known(self, partitions: Owned) -> Owned:
        """Keep the partitions of topics that the puppet can name; it remembers the names of deleted topics."""
        topics = self._cluster.topics_by_id
        self._names.update((topic, topics[topic].name) for topic in partitions if topic in topics)
        return {topic: numbers for topic, numbers in partitions.items() if topic in self._names}

    def _reconcile(self, now: int) -> None:
        """Follow the assignment at once, later, or never, as the behaviour says."""
        self.state = PuppetState.RECONCILING
        kind, revokes = self.behaviour.kind, bool(_as_set(self._owned) - _as_set(self._assigned))
        if self._is_manual or (revokes and kind == NEVER_REVOKES):
            return
        if not revokes or kind != STRAGGLER:
            self._take(now)
        elif not self._supervisor.is_timer_set(self, PuppetTimer.REJOIN):
            self._supervisor.set_timer(now, self, PuppetTimer.REJOIN, self.behaviour.delay_ms)

    def _take(self, now: int) -> None:
        """Give up the partitions that are not assigned any more, then take the others."""
        before, assigned = _as_set(self._owned), _as_set(self._assigned)
        if before - assigned:
            self._owned = {
                topic: tuple(number for number in numbers if (topic, number) in assigned)
                for topic, numbers in self._owned.items()
            }
            self._supervisor.note(now, self, "revoked")
        self._owned = self._assigned
        self.state = PuppetState.STABLE
        self._acknowledges = True
        self._supervisor.note(now, self, "assigned")
        if self.behaviour.kind == SILENT:
            self._acknowledges = False
            self._supervisor.cancel(self, PuppetTimer.HEARTBEAT)
        else:
            self._schedule_flap(now)

    def _refused(self, now: int) -> None:
        error, self._repeats_all = self.error, True
        if self._is_manual:
            if error in MEMBERSHIP_LOST or self.state is PuppetState.JOINING:
                self._reset_to_out(now)
            return
        if error in MEMBERSHIP_LOST:
            self._supervisor.cancel(self, PuppetTimer.REJOIN)
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
        self._repeats_all = True
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
        if self.state is PuppetState.RECONCILING:
            self._take(now)
            self._heartbeat_due(now)

    def _lose(self) -> None:
        self._owned = {}

    def _reset_generation(self, now: int) -> None:
        super()._reset_generation(now)
        self._assigned, self._repeats_all, self._acknowledges = {}, True, False


def _as_set(owned: Owned) -> set[tuple[UUID, int]]:
    return {(topic, partition) for topic, partitions in owned.items() for partition in partitions}


def _rows(owned: Owned) -> tuple[TopicPartitions, ...]:
    return tuple(TopicPartitions(topic_id=topic, partitions=numbers) for topic, numbers in owned.items() if numbers)
