"""The rights that each API needs, as a table.

An API that is not here needs nothing: ApiVersions, SASL, and Fetch, whose sessions check Read of each topic
(`core.data.fetch`). Kafka: `KafkaApis`, `ControllerApis`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from koordinator.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from koordinator.wire.messages.add_raft_voter import AddRaftVoterRequest
from koordinator.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from koordinator.wire.messages.alter_configs import AlterConfigsRequest
from koordinator.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from koordinator.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from koordinator.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from koordinator.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from koordinator.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from koordinator.wire.messages.create_acls import CreateAclsRequest
from koordinator.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from koordinator.wire.messages.create_partitions import CreatePartitionsRequest
from koordinator.wire.messages.create_topics import CreateTopicsRequest
from koordinator.wire.messages.delete_acls import DeleteAclsRequest
from koordinator.wire.messages.delete_groups import DeleteGroupsRequest
from koordinator.wire.messages.delete_records import DeleteRecordsRequest
from koordinator.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from koordinator.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest
from koordinator.wire.messages.describe_acls import DescribeAclsRequest
from koordinator.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from koordinator.wire.messages.describe_cluster import DescribeClusterRequest
from koordinator.wire.messages.describe_configs import DescribeConfigsRequest
from koordinator.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from koordinator.wire.messages.describe_groups import DescribeGroupsRequest
from koordinator.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from koordinator.wire.messages.describe_producers import DescribeProducersRequest
from koordinator.wire.messages.describe_quorum import DescribeQuorumRequest
from koordinator.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from koordinator.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from koordinator.wire.messages.describe_transactions import DescribeTransactionsRequest
from koordinator.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from koordinator.wire.messages.elect_leaders import ElectLeadersRequest
from koordinator.wire.messages.end_txn import EndTxnRequest
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest
from koordinator.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from koordinator.wire.messages.join_group import JoinGroupRequest
from koordinator.wire.messages.leave_group import LeaveGroupRequest
from koordinator.wire.messages.list_config_resources import ListConfigResourcesRequest
from koordinator.wire.messages.list_groups import ListGroupsRequest
from koordinator.wire.messages.list_offsets import ListOffsetsRequest
from koordinator.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from koordinator.wire.messages.list_transactions import ListTransactionsRequest
from koordinator.wire.messages.metadata import MetadataRequest
from koordinator.wire.messages.offset_commit import OffsetCommitRequest
from koordinator.wire.messages.offset_delete import OffsetDeleteRequest
from koordinator.wire.messages.offset_fetch import OffsetFetchRequest
from koordinator.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from koordinator.wire.messages.produce import ProduceRequest
from koordinator.wire.messages.read_share_group_state import ReadShareGroupStateRequest
from koordinator.wire.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from koordinator.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from koordinator.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from koordinator.wire.messages.share_fetch import ShareFetchRequest
from koordinator.wire.messages.share_group_describe import ShareGroupDescribeRequest
from koordinator.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from koordinator.wire.messages.streams_group_describe import StreamsGroupDescribeRequest
from koordinator.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from koordinator.wire.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
)
from koordinator.wire.messages.sync_group import SyncGroupRequest
from koordinator.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from koordinator.wire.messages.unregister_broker import UnregisterBrokerRequest
from koordinator.wire.messages.update_features import UpdateFeaturesRequest
from koordinator.wire.messages.write_share_group_state import WriteShareGroupStateRequest
from koordinator.wire.messages.write_txn_markers import WriteTxnMarkersRequest

from ...core.acls.acl import Operation, ResourceType
from .cluster_guards import cluster_operations, describe_users, unregister_broker
from .group_guards import (
    assigned_topics,
    find_coordinator,
    group_operations,
    join_group,
    offset_fetch,
    seen_groups,
    subscribed_topics,
    sync_group,
)
from .guards import TEXTS, all_of, answering, if_served, needs, needs_cluster, needs_rows
from .share_guards import of_group, share_assignments, share_offsets, share_subscription
from .streams_guards import seen_topologies, topology_topics
from .token_guards import create_token, seen_tokens
from .topic_guards import (
    configs,
    create_topics,
    delete_topics,
    described_topics,
    epoch_ends,
    metadata,
    topic_operations,
)
from .transaction_guards import (
    add_partitions,
    closing_without_acks,
    init_producer_id,
    seen_topics,
    seen_transactions,
    transactional_produce,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .guards import Guard

READ, WRITE, DELETE, ALTER = Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER
DESCRIBE, CLUSTER_ACTION = Operation.DESCRIBE, Operation.CLUSTER_ACTION
DESCRIBE_CONFIGS, ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS

TOPIC, GROUP, TRANSACTION = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID

GUARDS: Mapping[type, Guard] = {
    # groups
    FindCoordinatorRequest: find_coordinator,
    JoinGroupRequest: join_group,
    SyncGroupRequest: sync_group,
    HeartbeatRequest: needs(READ, GROUP, "group_id"),
    LeaveGroupRequest: needs(READ, GROUP, "group_id"),
    ConsumerGroupHeartbeatRequest: if_served(all_of(needs(READ, GROUP, "group_id"), subscribed_topics)),
    OffsetCommitRequest: all_of(needs(READ, GROUP, "group_id"), needs_rows(READ, TOPIC, "topics", order="early")),
    OffsetFetchRequest: offset_fetch,
    OffsetDeleteRequest: all_of(needs(DELETE, GROUP, "group_id"), needs_rows(READ, TOPIC, "topics", order="early")),
    DescribeGroupsRequest: all_of(needs_rows(DESCRIBE, GROUP, "groups", order="first"), answering(group_operations)),
    ConsumerGroupDescribeRequest: if_served(
        all_of(
            answering(assigned_topics),
            needs_rows(DESCRIBE, GROUP, "group_ids", order="first"),
            answering(group_operations),
        )
    ),
    ShareGroupHeartbeatRequest: if_served(all_of(needs(READ, GROUP, "group_id"), share_subscription), "share"),
    ShareGroupDescribeRequest: if_served(
        all_of(
            answering(share_assignments),
            needs_rows(DESCRIBE, GROUP, "group_ids", order="first"),
            answering(group_operations),
        ),
        "share",
    ),
    ShareFetchRequest: if_served(of_group, "share"),
    ShareAcknowledgeRequest: if_served(of_group, "share"),
    DescribeShareGroupOffsetsRequest: if_served(share_offsets, "share"),
    AlterShareGroupOffsetsRequest: if_served(
        all_of(
            needs(READ, GROUP, "group_id", text=TEXTS[GROUP]),
            needs_rows(READ, TOPIC, "topics", order="first", text=TEXTS[TOPIC], asks_on=True),
        ),
        "share",
    ),
    DeleteShareGroupOffsetsRequest: if_served(
        all_of(
            needs(DELETE, GROUP, "group_id", text=TEXTS[GROUP]),
            needs_rows(READ, TOPIC, "topics", text=TEXTS[TOPIC], asks_on=True),
        ),
        "share",
    ),
    StreamsGroupHeartbeatRequest: if_served(all_of(needs(READ, GROUP, "group_id"), topology_topics), "streams"),
    StreamsGroupDescribeRequest: if_served(
        all_of(
            answering(seen_topologies),
            needs_rows(DESCRIBE, GROUP, "group_ids", order="first"),
            answering(group_operations),
        ),
        "streams",
    ),
    StreamsGroupTopologyDescriptionUpdateRequest: if_served(needs(READ, GROUP, "group_id"), "streams"),
    **dict.fromkeys(
        (
            InitializeShareGroupStateRequest,
            ReadShareGroupStateRequest,
            WriteShareGroupStateRequest,
            DeleteShareGroupStateRequest,
            ReadShareGroupStateSummaryRequest,
        ),
        needs_cluster(CLUSTER_ACTION, says_need=False, text=TEXTS[ResourceType.CLUSTER]),
    ),
    ListGroupsRequest: answering(seen_groups),
    DeleteGroupsRequest: needs_rows(DELETE, GROUP, "groups_names"),
    # topics and records
    MetadataRequest: metadata,
    DescribeTopicPartitionsRequest: all_of(
        described_topics, needs_rows(DESCRIBE, TOPIC, "topics"), answering(topic_operations)
    ),
    ProduceRequest: closing_without_acks(all_of(transactional_produce, needs_rows(WRITE, TOPIC, "topic_data"))),
    ListOffsetsRequest: needs_rows(DESCRIBE, TOPIC, "topics"),
    OffsetForLeaderEpochRequest: epoch_ends(needs_rows(DESCRIBE, TOPIC, "topics")),
    CreateTopicsRequest: create_topics,
    DeleteTopicsRequest: delete_topics,
    CreatePartitionsRequest: needs_rows(ALTER, TOPIC, "topics", order="first"),
    DeleteRecordsRequest: needs_rows(DELETE, TOPIC, "topics"),
    DescribeProducersRequest: needs_rows(READ, TOPIC, "topics", order="requested", text=TEXTS[TOPIC]),
    DescribeConfigsRequest: configs(DESCRIBE_CONFIGS, text=True),
    AlterConfigsRequest: configs(ALTER_CONFIGS, text=True),
    IncrementalAlterConfigsRequest: configs(ALTER_CONFIGS, text=True),
    # transactions
    InitProducerIdRequest: init_producer_id,
    AddPartitionsToTxnRequest: add_partitions,
    AddOffsetsToTxnRequest: all_of(needs(WRITE, TRANSACTION, "transactional_id"), needs(READ, GROUP, "group_id")),
    EndTxnRequest: needs(WRITE, TRANSACTION, "transactional_id"),
    TxnOffsetCommitRequest: all_of(
        needs(WRITE, TRANSACTION, "transactional_id"),
        needs(READ, GROUP, "group_id"),
        needs_rows(READ, TOPIC, "topics", order="early"),
    ),
    WriteTxnMarkersRequest: needs_cluster(ALTER, CLUSTER_ACTION),
    DescribeTransactionsRequest: all_of(
        answering(seen_topics), needs_rows(DESCRIBE, TRANSACTION, "transactional_ids", order="requested")
    ),
    ListTransactionsRequest: answering(seen_transactions),
    # the cluster
    DescribeClusterRequest: answering(cluster_operations),
    DescribeAclsRequest: needs_cluster(DESCRIBE),
    CreateAclsRequest: needs_cluster(ALTER),
    DeleteAclsRequest: needs_cluster(ALTER),
    DescribeUserScramCredentialsRequest: describe_users,
    CreateDelegationTokenRequest: create_token,
    DescribeDelegationTokenRequest: answering(seen_tokens),
    AlterUserScramCredentialsRequest: needs_cluster(ALTER),
    DescribeClientQuotasRequest: needs_cluster(DESCRIBE_CONFIGS, says_need=False),
    AlterClientQuotasRequest: needs_cluster(ALTER_CONFIGS),
    ListConfigResourcesRequest: needs_cluster(DESCRIBE_CONFIGS, says_need=False),
    DescribeLogDirsRequest: needs_cluster(DESCRIBE, says_need=False),
    AlterReplicaLogDirsRequest: needs_cluster(ALTER, says_need=False),
    ElectLeadersRequest: needs_cluster(ALTER, in_rows=True),
    AlterPartitionReassignmentsRequest: needs_cluster(ALTER, in_rows=True),
    ListPartitionReassignmentsRequest: needs_cluster(DESCRIBE),
    UpdateFeaturesRequest: needs_cluster(ALTER),
    UnregisterBrokerRequest: unregister_broker,
    DescribeQuorumRequest: needs_cluster(DESCRIBE),
    AddRaftVoterRequest: needs_cluster(ALTER),
    RemoveRaftVoterRequest: needs_cluster(ALTER),
}
"""The guard of each request, by its class."""
