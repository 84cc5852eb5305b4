"""The registry: which APIs there are, their messages, and the versions of them that are served."""

from dataclasses import dataclass
from enum import IntEnum

from .messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from .messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from .messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from .messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from .messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from .messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from .messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from .messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from .messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from .messages.describe_topic_partitions import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse
from .messages.fetch import FetchRequest, FetchResponse
from .messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from .messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from .messages.incremental_alter_configs import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
from .messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from .messages.join_group import JoinGroupRequest, JoinGroupResponse
from .messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from .messages.list_groups import ListGroupsRequest, ListGroupsResponse
from .messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from .messages.metadata import MetadataRequest, MetadataResponse
from .messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from .messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from .messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from .messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from .messages.produce import ProduceRequest, ProduceResponse
from .messages.sync_group import SyncGroupRequest, SyncGroupResponse
from .schema import Message, declaration_of
from .versions import Versions

__all__ = ["APIS", "Api", "ApiKey", "Message"]


class ApiKey(IntEnum):
    """The number of an API, by its name in Kafka's ApiKeys."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    DESCRIBE_CONFIGS = 32
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    INCREMENTAL_ALTER_CONFIGS = 44
    OFFSET_DELETE = 47
    DESCRIBE_CLUSTER = 60
    DESCRIBE_TOPIC_PARTITIONS = 75


@dataclass(frozen=True, slots=True)
class Api:
    """One API: its messages and the versions, both ends included, in which it is served.

    `name` is that of Kafka's JSON schemas, "JoinGroup".
    """

    key: ApiKey
    name: str
    request: type[Message]
    response: type[Message]
    versions: Versions


def _api(key: ApiKey, request: type[Message], response: type[Message]) -> Api:
    name = request.__name__.removesuffix("Request")
    return Api(key, name, request, response, declaration_of(request).versions)


APIS: dict[int, Api] = {
    api.key: api
    for api in (
        _api(ApiKey.PRODUCE, ProduceRequest, ProduceResponse),
        _api(ApiKey.FETCH, FetchRequest, FetchResponse),
        _api(ApiKey.LIST_OFFSETS, ListOffsetsRequest, ListOffsetsResponse),
        _api(ApiKey.METADATA, MetadataRequest, MetadataResponse),
        _api(ApiKey.OFFSET_COMMIT, OffsetCommitRequest, OffsetCommitResponse),
        _api(ApiKey.OFFSET_FETCH, OffsetFetchRequest, OffsetFetchResponse),
        _api(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest, FindCoordinatorResponse),
        _api(ApiKey.JOIN_GROUP, JoinGroupRequest, JoinGroupResponse),
        _api(ApiKey.HEARTBEAT, HeartbeatRequest, HeartbeatResponse),
        _api(ApiKey.LEAVE_GROUP, LeaveGroupRequest, LeaveGroupResponse),
        _api(ApiKey.SYNC_GROUP, SyncGroupRequest, SyncGroupResponse),
        _api(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest, DescribeGroupsResponse),
        _api(ApiKey.LIST_GROUPS, ListGroupsRequest, ListGroupsResponse),
        _api(ApiKey.API_VERSIONS, ApiVersionsRequest, ApiVersionsResponse),
        _api(ApiKey.CREATE_TOPICS, CreateTopicsRequest, CreateTopicsResponse),
        _api(ApiKey.DELETE_TOPICS, DeleteTopicsRequest, DeleteTopicsResponse),
        _api(ApiKey.DELETE_RECORDS, DeleteRecordsRequest, DeleteRecordsResponse),
        _api(ApiKey.INIT_PRODUCER_ID, InitProducerIdRequest, InitProducerIdResponse),
        _api(ApiKey.OFFSET_FOR_LEADER_EPOCH, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse),
        _api(ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest, DescribeConfigsResponse),
        _api(ApiKey.CREATE_PARTITIONS, CreatePartitionsRequest, CreatePartitionsResponse),
        _api(ApiKey.DELETE_GROUPS, DeleteGroupsRequest, DeleteGroupsResponse),
        _api(ApiKey.INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse),
        _api(ApiKey.OFFSET_DELETE, OffsetDeleteRequest, OffsetDeleteResponse),
        _api(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest, DescribeClusterResponse),
        _api(ApiKey.DESCRIBE_TOPIC_PARTITIONS, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse),
    )
}
"""Every API that is served, by its key."""

REQUEST_KEYS: dict[type[Message], ApiKey] = {api.request: api.key for api in APIS.values()}
"""The key of each API by the class of its requests."""
