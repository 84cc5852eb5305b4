"""A puppet of the consumer protocol (KIP-848): one request for everything, ConsumerGroupHeartbeat.

It follows Java's consumer 4.3 (`ConsumerMembershipManager`, `ConsumerHeartbeatRequestManager`), except for faulty
behaviours: it acknowledges an assignment at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

from ...core.groups.group import CONSUMER
from ...core.groups.modern.member import LEAVING_EPOCH, STATIC_LEAVING_EPOCH
from .behaviours import NEVER_REVOKES, SILENT, STRAGGLER
from .heartbeat_puppet import HeartbeatPuppet
from .states import PuppetState, PuppetTimer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from ...core.cluster import ClusterState
    from .heartbeat_puppet import Response
    from .puppet import PuppetOptions
    from .supervisor import PuppetSupervisor

    Owned = dict[UUID, tuple[int, ...]]
    """Partitions by topic id."""

CLIENT_IDS_SINCE = 1
"""The first version in which clients make the member ids (KIP-1082) and may subscribe to a pattern."""


class ConsumerPuppet(HeartbeatPuppet):
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
        super().__init__(supervisor, options, cluster, () if topics is None and pattern is not None else topics)
        self.protocol = assignor
        self._pattern = pattern
        self._owned: Owned = {}
        self._assigned: Owned = {}
        """The assignment of the coordinator, which `_owned` follows."""
        self._acknowledges = False
        self._leaving_epoch = LEAVING_EPOCH

    @property
    def holds(self) -> dict[str, list[int]]:
        """The partitions that its application uses, by topic."""
        return {self._names[topic]: list(partitions) for topic, partitions in self._owned.items() if partitions}

    def sync(self, now: int) -> None:
        """Take the assignment and acknowledge it."""
        self._refuse_unless("sync", PuppetState.RECONCILING)
        self._supervisor.cancel(self, PuppetTimer.REJOIN)
        self._take(now)
        self._send_heartbeat(now)

    # -- requests --------------------------------------------------------------------------------------------

    def _new_member_id(self) -> str:
        makes_ids = self._supervisor.version(ApiKey.CONSUMER_GROUP_HEARTBEAT) >= CLIENT_IDS_SINCE
        return super()._new_member_id() if makes_ids else ""

    def _prepare_leave(self, reason: str | None, *, temporarily: bool) -> None:
        self._refuse_reason(reason)
        if temporarily and self.instance_id is None:
            raise ValueError(f"puppet {self.name!r} cannot leave temporarily: it needs an instance_id")
        self._leaving_epoch = STATIC_LEAVING_EPOCH if temporarily else LEAVING_EPOCH

    def _leaving(self) -> ConsumerGroupHeartbeatRequest:
        return replace(self._blank(self._leaving_epoch), subscribed_topic_names=(), topic_partitions=())

    def _has_changed(self) -> bool:
        return self._acknowledges or self._subscribed() != self._sent_topics

    def _request(self, epoch: int, *, is_full: bool) -> ConsumerGroupHeartbeatRequest:
        topics = self._subscribed()
        request = replace(
            self._blank(epoch),
            rebalance_timeout_ms=self.rebalance_timeout_ms if is_full else -1,
            subscribed_topic_names=topics if is_full or topics != self._sent_topics else None,
            subscribed_topic_regex=self._pattern if is_full else None,
            server_assignor=self.protocol if is_full else None,
            topic_partitions=_rows(self._owned) if is_full or self._acknowledges else None,
        )
        self._sent_topics, self._acknowledges = topics, False
        return request

    def _blank(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=epoch, instance_id=self.instance_id
        )

    # -- responses -------------------------------------------------------------------------------------------

    def _accepted(self, now: int, response: Response) -> None:
        assert isinstance(response, ConsumerGroupHeartbeatResponse)
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

    # -- timers ----------------------------------------------------------------------------------------------

    def _rejoin_due(self, now: int) -> None:
        if self.state is PuppetState.RECONCILING:
            self._take(now)
            self._heartbeat_due(now)

    def _lose(self) -> None:
        self._owned = {}

    def _reset_generation(self, now: int) -> None:
        super()._reset_generation(now)
        self._assigned, self._acknowledges = {}, False


def _as_set(owned: Owned) -> set[tuple[UUID, int]]:
    return {(topic, partition) for topic, partitions in owned.items() for partition in partitions}


def _rows(owned: Owned) -> tuple[TopicPartitions, ...]:
    return tuple(TopicPartitions(topic_id=topic, partitions=numbers) for topic, numbers in owned.items() if numbers)
