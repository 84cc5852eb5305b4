"""A puppet of the streams protocol (KIP-1071): it is a member of a streams group, and processes no records.

It follows Kafka Streams 4.3 (`StreamsMembershipManager`): it reports the tasks of each assignment as its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    Topology,
)

from ...core.groups.modern.member import JOINING_EPOCH, LEAVING_EPOCH
from ...core.groups.streams.group import STREAMS
from .consumer_role import subscribed_topics
from .heartbeat_puppet import ImmediatePuppet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from koordinator.wire.messages.streams_group_heartbeat import TaskIds

    from ...core.cluster import ClusterState
    from .heartbeat_puppet import Response
    from .puppet import PuppetOptions
    from .supervisor import PuppetSupervisor

NO_EPOCH = -1
"""The epoch of endpoint information that a member does not have."""

TOPOLOGY_EPOCH = -2
"""The epoch of a topology that gives way to the group's: that of an application is 0, and -1 stands for none."""

SUBTOPOLOGY = "0"
"""The only subtopology of a puppet that founds its group: it reads the topics, and has no state."""


class StreamsPuppet(ImmediatePuppet):
    """A member of a streams group.

    In a group of an application it has the tasks of its topology; else the tasks that read `topics`, of which None are
    all topics.
    """

    group_protocol = STREAMS
    protocol_type = STREAMS
    no_commits = "a puppet of a streams group processes no records"

    def __init__(
        self, supervisor: PuppetSupervisor, options: PuppetOptions, cluster: ClusterState, topics: Sequence[str] | None
    ) -> None:
        super().__init__(supervisor, options, cluster, topics)
        self._active: tuple[TaskIds, ...] = ()
        self._standby: tuple[TaskIds, ...] = ()

    @property
    def holds(self) -> dict[str, list[int]]:
        """Its active tasks: the partitions of each subtopology."""
        return {row.subtopology_id: sorted(row.partitions) for row in self._active if row.partitions}

    def _request(self, epoch: int, *, is_full: bool) -> StreamsGroupHeartbeatRequest:
        if epoch == JOINING_EPOCH:
            sources = subscribed_topics(self._cluster, None) if self._topics is None else self._topics
            subtopology = Subtopology(subtopology_id=SUBTOPOLOGY, source_topics=tuple(sources))
            return StreamsGroupHeartbeatRequest(
                group_id=self.group_id,
                member_id=self.member_id,
                endpoint_information_epoch=NO_EPOCH,
                rebalance_timeout_ms=self.rebalance_timeout_ms,
                topology=Topology(epoch=TOPOLOGY_EPOCH, subtopologies=(subtopology,)),
                active_tasks=(),
                standby_tasks=(),
                warmup_tasks=(),
                process_id=self.name,
                client_tags=(),
            )
        return StreamsGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            endpoint_information_epoch=NO_EPOCH,
            active_tasks=self._active if is_full else None,
            standby_tasks=self._standby if is_full else None,
            warmup_tasks=() if is_full else None,
        )

    def _leaving(self) -> StreamsGroupHeartbeatRequest:
        return StreamsGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=LEAVING_EPOCH,
            endpoint_information_epoch=NO_EPOCH,
        )

    def _take(self, response: Response) -> bool:
        assert isinstance(response, StreamsGroupHeartbeatResponse)
        if response.active_tasks is None:
            return False
        before = self._active, self._standby
        self._active, self._standby = response.active_tasks, response.standby_tasks or ()
        self._has_news = before != (self._active, self._standby)
        return True

    def _lose(self) -> None:
        self._active = self._standby = ()
