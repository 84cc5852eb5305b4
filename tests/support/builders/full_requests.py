"""A complete request of every served API, with every meaningful field set.

Each is made for a broker and a version; its topic, group or member is created first. `strict_connection.within` removes
fields that the version lacks.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from clients.strict_connection import WAIT_S, StrictLink, error_codes

from builders import full_admin, full_security, full_shares, full_streams, full_transactions, requests
from builders.requests import subscription, within
from koordinator.client.connection import Deadline
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.api_versions import ApiVersionsRequest
from koordinator.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
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
from koordinator.wire.messages.list_groups import ListGroupsRequest
from koordinator.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from koordinator.wire.messages.offset_commit import (
    OffsetCommitRequest,
)
from koordinator.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from koordinator.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from koordinator.wire.primitives import ZERO_UUID
from koordinator.wire.records import Record, write_batch
from koordinator.wire.schema import declaration_of, fields_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from brokers.kafka_releases import Release

    from koordinator.client.connection import Address
    from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
    from koordinator.wire.messages.join_group import JoinGroupRequest
    from koordinator.wire.messages.leave_group import LeaveGroupRequest
    from koordinator.wire.messages.offset_delete import (
        OffsetDeleteRequest,
    )
    from koordinator.wire.messages.offset_fetch import (
        OffsetFetchRequest,
    )
    from koordinator.wire.messages.produce import ProduceRequest
    from koordinator.wire.messages.sync_group import SyncGroupRequest

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
    return requests.produce(there.t, {0: write_batch(records)}, topic_id=there.id)


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
    return _commit(there, group_id, 1, member_id, "i", retention_ms=retention_ms)


def offset_fetch(there: Asked, version: int) -> OffsetFetchRequest:
    partitions, ids = [(there.t, 0), (there.t, 1)], {there.t: there.id}
    return requests.offset_fetch(version, there.committed(), partitions, stable=True, ids=ids)


def find_coordinator(there: Asked, _: int) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key=there.t, key_type=0, coordinator_keys=(there.t, "g"))


def join_group(there: Asked, _: int) -> JoinGroupRequest:
    return _join(there.name())


def heartbeat(there: Asked, _: int) -> HeartbeatRequest:
    group_id, member_id = there.stable()
    return HeartbeatRequest(group_id=group_id, generation_id=1, member_id=member_id, group_instance_id="i")


def leave_group(there: Asked, version: int) -> LeaveGroupRequest:
    group_id, member_id = there.stable()
    return requests.leave_group(version, group_id, (member_id, "i"), reason="because")


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
    # with a transactional id a producer has a coordinator: full_transactions.py
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
    return requests.offset_delete(there.committed(), [(there.t, 0)])


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


def consumer_group_heartbeat(there: Asked, _: int) -> ConsumerGroupHeartbeatRequest:
    return requests.consumer_group_heartbeat(
        there.name(),
        str(uuid4()),
        0,
        "i",
        topics=(there.t,),
        owned={},
        rebalance_ms=60_000,
        rack_id="r",
        assignor="range",
    )


def consumer_group_describe(there: Asked, _: int) -> ConsumerGroupDescribeRequest:
    return ConsumerGroupDescribeRequest(group_ids=(there.committed(),), include_authorized_operations=True)


def _join(group_id: str) -> JoinGroupRequest:
    protocols = tuple((name, subscription("t")) for name in ("range", "roundrobin"))
    return requests.join_group(
        group_id, "", "i", session_ms=30_000, rebalance_ms=60_000, protocols=protocols, reason="because"
    )


def _sync(group_id: str, member_id: str) -> SyncGroupRequest:
    return requests.sync_group(group_id, 1, member_id, {member_id: b"plan"}, "i", protocol=("consumer", "range"))


def _commit(there: Asked, group_id: str, *member: Any, **fields: Any) -> OffsetCommitRequest:
    offsets, ids = {(there.t, 0): 1}, {there.t: there.id}
    return requests.offset_commit(group_id, offsets, *member, metadata="why", leader_epoch=0, ids=ids, **fields)


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
        full_transactions.add_partitions_to_txn,
        full_transactions.add_offsets_to_txn,
        full_transactions.end_txn,
        full_transactions.write_txn_markers,
        full_transactions.txn_offset_commit,
        full_transactions.describe_producers,
        full_transactions.describe_transactions,
        full_transactions.list_transactions,
        consumer_group_heartbeat,
        consumer_group_describe,
        full_admin.sasl_handshake,
        full_admin.sasl_authenticate,
        full_admin.alter_configs,
        full_admin.list_config_resources,
        full_admin.elect_leaders,
        full_admin.alter_partition_reassignments,
        full_admin.list_partition_reassignments,
        full_admin.describe_log_dirs,
        full_admin.alter_replica_log_dirs,
        full_admin.describe_quorum,
        full_admin.unregister_broker,
        *full_security.REQUESTS,
        *full_shares.REQUESTS,
        *full_streams.REQUESTS,
    )
}
"""Builders of a request for each API and version."""
