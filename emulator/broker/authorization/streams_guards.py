"""The rights of requests for streams groups (KIP-1071): the group, and every topic of its topology."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse

from ...core.acls.acl import Operation, ResourceType
from ...core.groups.streams.checks import is_usable, topics_of
from .guards import Admitted, Refused

if TYPE_CHECKING:
    from koordinator.wire.messages.streams_group_describe import DescribedGroup
    from koordinator.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest

    from .guards import Client

UNSEEN_TOPOLOGY = "The described group uses topics that the client is not authorized to describe."
"""Kafka's text for a group whose topology a client may not see."""


def topology_topics(client: Client, request: StreamsGroupHeartbeatRequest) -> Refused | Admitted:
    """Need Describe of every topic of a topology; one with names that no topic may have is refused for that."""
    names = [] if request.topology is None else topics_of(request.topology.subtopologies)
    refused = [name for name in names if not client.can(Operation.DESCRIBE, ResourceType.TOPIC, name)]
    if refused and all(map(is_usable, names)):
        # for the log
        client.may(Operation.DESCRIBE, ResourceType.TOPIC, refused[0])
        return Refused(StreamsGroupHeartbeatResponse(error_code=Error.TOPIC_AUTHORIZATION_FAILED))
    return Admitted(request)


def streams_topics(group: DescribedGroup) -> list[str]:
    """Return the topics in the topology of a streams group."""
    return [] if group.topology is None else topics_of(group.topology.subtopologies or ())
