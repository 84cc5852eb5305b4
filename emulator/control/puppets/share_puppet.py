"""A puppet of the share protocol (KIP-932): it is a member of a share group, and leaves the records to others.

It follows Java's share consumer 4.3 (`ShareMembershipManager`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

from ...core.groups.modern.member import LEAVING_EPOCH
from ...core.groups.share.group import SHARE
from .heartbeat_puppet import ImmediatePuppet

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from ...core.cluster import ClusterState
    from .heartbeat_puppet import Response
    from .puppet import PuppetOptions
    from .supervisor import PuppetSupervisor


class SharePuppet(ImmediatePuppet):
    """A member of a share group, subscribed to `topics`; None subscribes to all topics."""

    group_protocol = SHARE
    protocol_type = SHARE
    no_commits = "a share group acknowledges records and commits no offsets"

    def __init__(
        self, supervisor: PuppetSupervisor, options: PuppetOptions, cluster: ClusterState, topics: Sequence[str] | None
    ) -> None:
        super().__init__(supervisor, options, cluster, topics)
        self._assigned: dict[UUID, tuple[int, ...]] = {}

    @property
    def holds(self) -> dict[str, list[int]]:
        """The partitions from which it would fetch, by topic."""
        return {self._names[topic]: list(partitions) for topic, partitions in self._assigned.items() if partitions}

    def _has_changed(self) -> bool:
        return self._subscribed() != self._sent_topics

    def _request(self, epoch: int, *, is_full: bool) -> ShareGroupHeartbeatRequest:
        is_full |= self._has_changed()
        self._sent_topics = self._subscribed()
        return ShareGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            subscribed_topic_names=self._sent_topics if is_full else None,
        )

    def _leaving(self) -> ShareGroupHeartbeatRequest:
        return ShareGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=LEAVING_EPOCH, subscribed_topic_names=()
        )

    def _take(self, response: Response) -> bool:
        assert isinstance(response, ShareGroupHeartbeatResponse)
        if response.assignment is None:
            return False
        self._assigned = self._known({row.topic_id: row.partitions for row in response.assignment.topic_partitions})
        return True

    def _lose(self) -> None:
        self._assigned = {}
