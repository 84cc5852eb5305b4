"""A complete request of every API of streams groups, each for a group of its own. See `full_requests`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from clients.strict_connection import error_codes

from koordinator.wire.errors import Error
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.streams_group_describe import StreamsGroupDescribeRequest
from koordinator.wire.messages.streams_group_heartbeat import (
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TopicInfo,
    Topology,
)
from koordinator.wire.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    TopologyDescription,
    TopologyDescriptionGlobalStore,
    TopologyDescriptionNode,
    TopologyDescriptionSubtopology,
)

if TYPE_CHECKING:
    from builders.full_requests import Asked


def _found(there: Asked) -> str:
    """Return the id of a new group, once its coordinator is there."""
    group_id = there.name()
    asked = FindCoordinatorRequest(key=group_id, coordinator_keys=(group_id,))
    there.until(asked, lambda answer: not any(error_codes(answer)))
    return group_id


def streams_group_heartbeat(there: Asked, _: int) -> StreamsGroupHeartbeatRequest:
    group_id = _found(there)
    changelog = TopicInfo(
        name=f"{group_id}-store-changelog",
        replication_factor=-1,
        topic_configs=(KeyValue(key="cleanup.policy", value="compact"),),
    )
    subtopology = Subtopology(subtopology_id="0", source_topics=(there.t,), state_changelog_topics=(changelog,))
    return StreamsGroupHeartbeatRequest(
        group_id=group_id,
        member_id=str(uuid4()),
        endpoint_information_epoch=-1,
        rack_id="rack",
        rebalance_timeout_ms=60_000,
        topology=Topology(subtopologies=(subtopology,)),
        active_tasks=(),
        standby_tasks=(),
        warmup_tasks=(),
        process_id="process",
        user_endpoint=Endpoint(host="localhost", port=40_000),
        client_tags=(KeyValue(key="zone", value="a"),),
    )


def streams_group_describe(there: Asked, version: int) -> StreamsGroupDescribeRequest:
    joining = streams_group_heartbeat(there, version)
    # a broker may have the protocol switched off
    there.until(joining, lambda answer: set(error_codes(answer)) <= {Error.NONE, Error.UNSUPPORTED_VERSION})
    return StreamsGroupDescribeRequest(group_ids=(joining.group_id,), include_authorized_operations=True)


def streams_group_topology_description_update(
    there: Asked, version: int
) -> StreamsGroupTopologyDescriptionUpdateRequest:
    joining = streams_group_heartbeat(there, version)
    source = TopologyDescriptionNode(name="source", node_type=1, source_topics=(there.t,), successors=("sink",))
    sink = TopologyDescriptionNode(name="sink", node_type=3, sink_topic=there.t)
    subtopology = TopologyDescriptionSubtopology(subtopology_id="0", nodes=(source, sink))
    store = TopologyDescriptionGlobalStore(
        source=source, processor=TopologyDescriptionNode(name="store", node_type=2, stores=("all",))
    )
    return StreamsGroupTopologyDescriptionUpdateRequest(
        group_id=joining.group_id,
        member_id=joining.member_id,
        topology_epoch=1,
        topology_description=TopologyDescription(subtopologies=(subtopology,), global_stores=(store,)),
    )


REQUESTS = (streams_group_heartbeat, streams_group_describe, streams_group_topology_description_update)
