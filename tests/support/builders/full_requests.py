"""A complete request of every served API, with every meaningful field set.

Each is made for a broker and a version; its topic, group or member is created first. `strict_connection.within` removes
fields that the version lacks.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import UUID

from clients.strict_connection import WAIT_S, StrictLink, error_codes, within

from builders import admin_requests, group_requests, security_requests, transaction_requests
from koordinator.client.connection import Deadline
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.api_versions import ApiVersionsRequest
from koordinator.wire.messages.consumer_protocol import ConsumerProtocolSubscription, write_subscription
from koordinator.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from koordinator.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from koordinator.wire.messages.delete_groups import DeleteGroupsRequest
from koordinator.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from koordinator.wire.messages.describe_cluster import DescribeClusterRequest
from koordinator.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from koordinator.wire.messages.describe_groups import DescribeGroupsRequest
from koordinator.wire.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from koordinator.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from koordinator.wire.messages.list_groups import ListGroupsRequest
from koordinator.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from koordinator.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from koordinator.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from koordinator.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from koordinator.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from koordinator.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from koordinator.wire.primitives import ZERO_UUID
from koordinator.wire.records import Record, write_batch
from koordinator.wire.schema import declaration_of, fields_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from brokers.kafka_releases import Release

    from koordinator.client.connection import Address

TOPIC_RESOURCE = 2
"""ConfigResource.Type.TOPIC."""

SET, DELETE = 0, 1
"""AlterConfigOp.OpType."""

TOPIC_ID_SINCE = 12
"""The first version of Metadata that finds a topic by its id; v10 and v11 have the field but ignore it."""


class Asked(StrictLink):
    """A connection to a broker with the topic `t` of two partitions and some records."""

    def __init__(self, address: Address, topic: str, release: Release) -> None:
        super().__init__(address)
        self.address = address
        self.release = release
        self._numbers = count()
        self.t = topic
        self.create(topic, 2)
        self.id = ZERO_UUID
        self.cluster_id: str | None = None
        self.look()
        # a broker may know its leadership a moment before it can act on it
        self.until(produce(self, 0), lambda answer: not any(error_codes(answer)))

    def look(self) -> None:
        """Read the topic's id and the cluster's; the topic may be newer than this broker's metadata."""
        answer = self.until(
            MetadataRequest(topics=(MetadataRequestTopic(name=self.t),)),
            lambda answer: not any(error_codes(answer)) and answer.topics[0].partitions,
        )
        self.id, self.cluster_id = answer.topics[0].topic_id, answer.cluster_id

    def until(self, request: Any, is_it: Callable[[Any], object]) -> Any:
        """Repeat a request until its response satisfies a condition; return it."""
        deadline = Deadline(WAIT_S)
        while not is_it(answer := self._ask_newest(request)):
            assert deadline.left(), f"still {answer}"
        return answer

    def _ask_newest(self, request: Any) -> Any:
        key = declaration_of(type(request)).key
        assert key is not None
        version = self.versions(key)[-1]
        return self.ask(within(request, version), version)

    def name(self) -> str:
        """Return an unused name."""
        return f"{self.t}.{next(self._numbers)}"

    def create(self, topic: str, partitions: int) -> str:
        row = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
        self.succeed(CreateTopicsRequest(topics=(row,)))
        return topic

    def succeed(self, request: Any) -> Any:
        """Return the response in the newest version; it must have no error."""
        answer = self._ask_newest(request)
        assert not any(error_codes(answer)), answer
        return answer

    def joined(self) -> tuple[str, str]:
        """Form a group that awaits the SyncGroup of its only member, of instance i; return group id and member id."""
        group_id = self.name()
        return group_id, self.succeed(_join(group_id)).member_id

    def stable(self) -> tuple[str, str]:
        """Form the same group and sync it."""
        group_id, member_id = self.joined()
        self.succeed(_sync(group_id, member_id))
        return group_id, member_id

    def committed(self) -> str:
        """Commit an offset in a group without members; return its id."""
        group_id = self.name()
        self.succeed(_commit(self, group_id))
        return group_id


def produce(there: Asked, _: int) -> ProduceRequest:
    records = [Record(offset=0, timestamp=1_700_000_000_000 + n, key=b"k", value=b"v", headers=()) for n in range(3)]
    rows = (PartitionProduceData(index=0, records=write_batch(records)),)
    topic = TopicProduceData(name=there.t, topic_id=there.id, partition_data=rows)
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=(topic,))


def fetch(there: Asked, _: int) -> FetchRequest:
    row = FetchPartition(
        partition=0,
        current_leader_epoch=0,
        last_fetched_epoch=0,
        partition_max_bytes=1_000_000,
        replica_directory_id=UUID(int=5),
        high_watermark=0,
    )
    return FetchRequest(
        cluster_id=there.cluster_id,
        replica_id=-1,
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=2_000_000,
        isolation_level=1,
        session_epoch=0,
        topics=(FetchTopic(topic=there.t, topic_id=there.id, partitions=(row,)),),
        forgotten_topics_data=(ForgottenTopic(topic=there.t, topic_id=there.id, partitions=(1,)),),
        rack_id="r",
    )


def list_offsets(there: Asked, _: int) -> ListOffsetsRequest:
    row = ListOffsetsPartition(partition_index=0, current_leader_epoch=0, timestamp=-1)
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=1,
        topics=(ListOffsetsTopic(name=there.t, partitions=(row,)),),
        timeout_ms=30_000,
    )


def metadata(there: Asked, version: int) -> MetadataRequest:
    by_id = version >= TOPIC_ID_SINCE
    row = MetadataRequestTopic(name=None, topic_id=there.id) if by_id else MetadataRequestTopic(name=there.t)
    return MetadataRequest(
        topics=(row,),
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )


def offset_commit(there: Asked, version: int) -> OffsetCommitRequest:
    group_id, member_id = there.stable()
    retention_ms = 60_000 if version in fields_of(OffsetCommitRequest)["retention_time_ms"].versions else -1
    return _commit(
        there,
        group_id,
        member_id=member_id,
        generation_id_or_member_epoch=1,
        group_instance_id="i",
        retention_time_ms=retention_ms,
    )


def offset_fetch(there: Asked, _: int) -> OffsetFetchRequest:
    group_id = there.committed()
    topics = (OffsetFetchRequestTopics(name=there.t, topic_id=there.id, partition_indexes=(0, 1)),)
    return OffsetFetchRequest(
        group_id=group_id,
        topics=(OffsetFetchRequestTopic(name=there.t, partition_indexes=(0, 1)),),
        groups=(OffsetFetchRequestGroup(group_id=group_id, member_id=None, member_epoch=-1, topics=topics),),
        require_stable=True,
    )


def find_coordinator(there: Asked, _: int) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key=there.t, key_type=0, coordinator_keys=(there.t, "g"))


def join_group(there: Asked, _: int) -> JoinGroupRequest:
    return _join(there.name())


def heartbeat(there: Asked, _: int) -> HeartbeatRequest:
    group_id, member_id = there.stable()
    return HeartbeatRequest(group_id=group_id, generation_id=1, member_id=member_id, group_instance_id="i")


def leave_group(there: Asked, _: int) -> LeaveGroupRequest:
    group_id, member_id = there.stable()
    row = MemberIdentity(member_id=member_id, group_instance_id="i", reason="because")
    return LeaveGroupRequest(group_id=group_id, member_id=member_id, members=(row,))


def sync_group(there: Asked, _: int) -> SyncGroupRequest:
    return _sync(*there.joined())


def describe_groups(there: Asked, _: int) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=(there.stable()[0], there.committed()), include_authorized_operations=True)


def list_groups(there: Asked, _: int) -> ListGroupsRequest:
    there.stable()
    return ListGroupsRequest(states_filter=("Stable",), types_filter=("classic",))


def api_versions(_: Asked, __: int) -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name="strict", client_software_version="1")


def create_topics(there: Asked, _: int) -> CreateTopicsRequest:
    configs = (CreatableTopicConfig(name="retention.ms", value="60000"),)
    assignments = (CreatableReplicaAssignment(partition_index=0, broker_ids=(1,)),)
    rows = (
        CreatableTopic(name=there.name(), num_partitions=2, replication_factor=1, configs=configs),
        CreatableTopic(name=there.name(), num_partitions=-1, replication_factor=-1, assignments=assignments),
    )
    return CreateTopicsRequest(topics=rows, timeout_ms=30_000, validate_only=True)


def delete_topics(there: Asked, _: int) -> DeleteTopicsRequest:
    topic = there.create(there.name(), 1)
    return DeleteTopicsRequest(topics=(DeleteTopicState(name=topic),), topic_names=(topic,), timeout_ms=30_000)


def delete_records(there: Asked, _: int) -> DeleteRecordsRequest:
    row = DeleteRecordsPartition(partition_index=0, offset=1)
    return DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=there.t, partitions=(row,)),), timeout_ms=30_000)


def init_producer_id(there: Asked, _: int) -> InitProducerIdRequest:
    # with a transactional id a producer has a coordinator: transaction_requests.py
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    # a broker answers this until the controller has allocated producer ids to it
    there.until(request, lambda answer: answer.error_code != Error.COORDINATOR_LOAD_IN_PROGRESS)
    return request


def offset_for_leader_epoch(there: Asked, _: int) -> OffsetForLeaderEpochRequest:
    row = OffsetForLeaderPartition(partition=0, current_leader_epoch=0, leader_epoch=0)
    return OffsetForLeaderEpochRequest(replica_id=-1, topics=(OffsetForLeaderTopic(topic=there.t, partitions=(row,)),))


def describe_configs(there: Asked, _: int) -> DescribeConfigsRequest:
    row = DescribeConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=there.t, configuration_keys=("cleanup.policy", "retention.ms")
    )
    return DescribeConfigsRequest(resources=(row,), include_synonyms=True, include_documentation=True)


def create_partitions(there: Asked, _: int) -> CreatePartitionsRequest:
    assignments = tuple(CreatePartitionsAssignment(broker_ids=(1,)) for _ in range(2))
    topic = there.create(there.name(), 1)
    row = CreatePartitionsTopic(name=topic, count=3, assignments=assignments)
    return CreatePartitionsRequest(topics=(row,), timeout_ms=30_000, validate_only=True)


def delete_groups(there: Asked, _: int) -> DeleteGroupsRequest:
    return DeleteGroupsRequest(groups_names=(there.committed(),))


def incremental_alter_configs(there: Asked, _: int) -> IncrementalAlterConfigsRequest:
    rows = (
        AlterableConfig(name="retention.ms", config_operation=SET, value="60000000"),
        AlterableConfig(name="retention.bytes", config_operation=DELETE, value=None),
    )
    row = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=there.t, configs=rows)
    return IncrementalAlterConfigsRequest(resources=(row,), validate_only=True)


def offset_delete(there: Asked, _: int) -> OffsetDeleteRequest:
    rows = (OffsetDeleteRequestPartition(partition_index=0),)
    return OffsetDeleteRequest(
        group_id=there.committed(), topics=(OffsetDeleteRequestTopic(name=there.t, partitions=rows),)
    )


def update_features(_: Asked, __: int) -> UpdateFeaturesRequest:
    row = FeatureUpdateKey(feature="transaction.version", max_version_level=2, upgrade_type=1)
    return UpdateFeaturesRequest(feature_updates=(row,), validate_only=True)


def describe_cluster(_: Asked, __: int) -> DescribeClusterRequest:
    return DescribeClusterRequest(
        include_cluster_authorized_operations=True, endpoint_type=1, include_fenced_brokers=True
    )


def describe_topic_partitions(there: Asked, _: int) -> DescribeTopicPartitionsRequest:
    cursor = Cursor(topic_name=there.t, partition_index=0)
    topics = (TopicRequest(name=there.t),)
    return DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=1, cursor=cursor)


def _join(group_id: str) -> JoinGroupRequest:
    subscription = write_subscription(ConsumerProtocolSubscription(topics=("t",)))
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=60_000,
        group_instance_id="i",
        protocol_type="consumer",
        protocols=tuple(JoinGroupRequestProtocol(name=name, metadata=subscription) for name in ("range", "roundrobin")),
        reason="because",
    )


def _sync(group_id: str, member_id: str) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group_id,
        generation_id=1,
        member_id=member_id,
        group_instance_id="i",
        protocol_type="consumer",
        protocol_name="range",
        assignments=(SyncGroupRequestAssignment(member_id=member_id, assignment=b"plan"),),
    )


def _commit(there: Asked, group_id: str, **member: Any) -> OffsetCommitRequest:
    row = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_leader_epoch=0, committed_metadata="why"
    )
    topic = OffsetCommitRequestTopic(name=there.t, topic_id=there.id, partitions=(row,))
    return OffsetCommitRequest(group_id=group_id, topics=(topic,), **member)


REQUESTS: dict[ApiKey, Callable[[Asked, int], Any]] = {
    ApiKey[make.__name__.upper()]: make
    for make in (
        produce,
        fetch,
        list_offsets,
        metadata,
        offset_commit,
        offset_fetch,
        find_coordinator,
        join_group,
        heartbeat,
        leave_group,
        sync_group,
        describe_groups,
        list_groups,
        api_versions,
        create_topics,
        delete_topics,
        delete_records,
        init_producer_id,
        offset_for_leader_epoch,
        describe_configs,
        create_partitions,
        delete_groups,
        incremental_alter_configs,
        offset_delete,
        update_features,
        describe_cluster,
        describe_topic_partitions,
        transaction_requests.add_partitions_to_txn,
        transaction_requests.add_offsets_to_txn,
        transaction_requests.end_txn,
        transaction_requests.write_txn_markers,
        transaction_requests.txn_offset_commit,
        transaction_requests.describe_producers,
        transaction_requests.describe_transactions,
        transaction_requests.list_transactions,
        group_requests.consumer_group_heartbeat,
        group_requests.consumer_group_describe,
        admin_requests.sasl_handshake,
        admin_requests.sasl_authenticate,
        admin_requests.alter_configs,
        admin_requests.list_config_resources,
        admin_requests.elect_leaders,
        admin_requests.alter_partition_reassignments,
        admin_requests.list_partition_reassignments,
        admin_requests.describe_log_dirs,
        admin_requests.alter_replica_log_dirs,
        admin_requests.describe_quorum,
        admin_requests.unregister_broker,
        *security_requests.REQUESTS,
    )
}
"""Builders of a request for each API and version."""
