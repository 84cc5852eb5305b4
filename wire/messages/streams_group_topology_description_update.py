"""StreamsGroupTopologyDescriptionUpdate (api key 93), version 0, flexible (KIP-1331)."""

from ..schema import array, entity, int8, int16, int32, message, nested, string


@entity
class TopologyDescriptionNode:
    """A node of a topology; the type is 1 for a source, 2 for a processor, 3 for a sink."""

    name: str = string()
    node_type: int = int8()
    source_topics: tuple[str, ...] = array(string)
    sink_topic: str | None = string(nullable="0+", default=None)
    stores: tuple[str, ...] = array(string)
    successors: tuple[str, ...] = array(string)


@entity
class TopologyDescriptionSubtopology:
    """The nodes of a subtopology."""

    subtopology_id: str = string()
    nodes: tuple[TopologyDescriptionNode, ...] = array(TopologyDescriptionNode)


@entity
class TopologyDescriptionGlobalStore:
    """The source and the processor of a global store."""

    source: TopologyDescriptionNode = nested(TopologyDescriptionNode)
    processor: TopologyDescriptionNode = nested(TopologyDescriptionNode)


@entity
class TopologyDescription:
    """The topology of an application, for the plugin of a broker."""

    subtopologies: tuple[TopologyDescriptionSubtopology, ...] = array(TopologyDescriptionSubtopology)
    global_stores: tuple[TopologyDescriptionGlobalStore, ...] = array(TopologyDescriptionGlobalStore)


@message(key=93, versions="0", flexible="0+")
class StreamsGroupTopologyDescriptionUpdateRequest:
    """The description of the topology with an epoch, from a member of a streams group."""

    group_id: str = string()
    member_id: str = string()
    topology_epoch: int = int32()
    topology_description: TopologyDescription = nested(TopologyDescription)


@message(key=93, versions="0", flexible="0+")
class StreamsGroupTopologyDescriptionUpdateResponse:
    """Whether the description was stored."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
