"""Errors that Kafka returns, by API and level. The trace marks any other injected error as `synthetic`.

The table follows KafkaApis and GroupCoordinatorService (and their Scala predecessors), including errors of authorizers
and quotas. Some errors also depend on the version, the request and the group's state: an offset commit returns
REBALANCE_IN_PROGRESS only in CompletingRebalance (`ClassicGroup.validateOffsetCommit`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

from ...core.groups.classic.group import ClassicGroupState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .request_context import RequestContext

_COORDINATOR = frozenset({Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR})
_GROUP = _COORDINATOR | {Error.INVALID_GROUP_ID, Error.GROUP_AUTHORIZATION_FAILED}
_MEMBER = frozenset({Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID})
_ROUND = _GROUP | _MEMBER | {Error.ILLEGAL_GENERATION, Error.REBALANCE_IN_PROGRESS}
_TRANSACTION = _COORDINATOR | {
    Error.INVALID_REQUEST,
    Error.INVALID_PRODUCER_ID_MAPPING,
    Error.INVALID_PRODUCER_EPOCH,
    Error.PRODUCER_FENCED,
    Error.CONCURRENT_TRANSACTIONS,
    Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    Error.TRANSACTION_ABORTABLE,
}
_TOPIC = frozenset({Error.UNKNOWN_TOPIC_OR_PARTITION, Error.TOPIC_AUTHORIZATION_FAILED, Error.UNKNOWN_TOPIC_ID})
_LEADER = _TOPIC | {Error.NOT_LEADER_OR_FOLLOWER, Error.KAFKA_STORAGE_ERROR, Error.UNKNOWN_SERVER_ERROR}

_SHARE_SESSION = frozenset(
    {
        Error.INVALID_REQUEST,
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.SHARE_SESSION_NOT_FOUND,
        Error.INVALID_SHARE_SESSION_EPOCH,
        Error.UNSUPPORTED_VERSION,
        Error.UNKNOWN_SERVER_ERROR,
    }
)
_SHARE_PARTITION = frozenset({Error.FENCED_LEADER_EPOCH, Error.COORDINATOR_NOT_AVAILABLE, Error.GROUP_ID_NOT_FOUND})
_SHARE_STATE = _COORDINATOR | {
    Error.INVALID_REQUEST,
    Error.UNKNOWN_TOPIC_OR_PARTITION,
    Error.FENCED_STATE_EPOCH,
    Error.CLUSTER_AUTHORIZATION_FAILED,
    Error.UNKNOWN_SERVER_ERROR,
}
_SHARE_OFFSETS = _GROUP | {Error.GROUP_ID_NOT_FOUND, Error.NON_EMPTY_GROUP, Error.UNSUPPORTED_VERSION}

_CLUSTER = frozenset({Error.CLUSTER_AUTHORIZATION_FAILED, Error.INVALID_REQUEST, Error.UNKNOWN_SERVER_ERROR})
_CONTROLLER = _CLUSTER | {Error.NOT_CONTROLLER, Error.REQUEST_TIMED_OUT, Error.UNSUPPORTED_VERSION}
_TOPIC_CHANGE = _CONTROLLER | {
    Error.TOPIC_AUTHORIZATION_FAILED,
    Error.INVALID_TOPIC_EXCEPTION,
    Error.POLICY_VIOLATION,
    Error.THROTTLING_QUOTA_EXCEEDED,
}
_CONFIGS = (
    _CONTROLLER | _TOPIC | {Error.INVALID_CONFIG, Error.INVALID_TOPIC_EXCEPTION, Error.GROUP_AUTHORIZATION_FAILED}
)
_ACLS = _CONTROLLER | {Error.SECURITY_DISABLED}
_TOKEN = _CONTROLLER | {
    Error.DELEGATION_TOKEN_AUTH_DISABLED,
    Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    Error.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    Error.DELEGATION_TOKEN_NOT_FOUND,
    Error.DELEGATION_TOKEN_OWNER_MISMATCH,
    Error.DELEGATION_TOKEN_EXPIRED,
    Error.INVALID_PRINCIPAL_TYPE,
    Error.INVALID_TIMESTAMP,
}
_PLACEMENT = frozenset({Error.INVALID_PARTITIONS, Error.INVALID_REPLICATION_FACTOR, Error.INVALID_REPLICA_ASSIGNMENT})
_REASSIGNMENT = _CONTROLLER | _TOPIC | _PLACEMENT | {Error.NO_REASSIGNMENT_IN_PROGRESS, Error.REASSIGNMENT_IN_PROGRESS}
_ELECTION = _CONTROLLER | {
    Error.UNKNOWN_TOPIC_OR_PARTITION,
    Error.PREFERRED_LEADER_NOT_AVAILABLE,
    Error.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    Error.ELECTION_NOT_NEEDED,
}
_VOTERS = _CONTROLLER | {
    Error.INCONSISTENT_CLUSTER_ID,
    Error.DUPLICATE_VOTER,
    Error.VOTER_NOT_FOUND,
    Error.INVALID_VOTER_KEY,
    Error.NOT_LEADER_OR_FOLLOWER,
}

KAFKA_RETURNS: Mapping[tuple[str, str], frozenset[Error]] = {
    ("JoinGroup", "top"): _GROUP
    | _MEMBER
    | {
        Error.INCONSISTENT_GROUP_PROTOCOL,
        Error.INVALID_SESSION_TIMEOUT,
        Error.MEMBER_ID_REQUIRED,
        Error.GROUP_MAX_SIZE_REACHED,
        Error.UNKNOWN_SERVER_ERROR,
    },
    ("SyncGroup", "top"): _ROUND | {Error.INCONSISTENT_GROUP_PROTOCOL, Error.UNKNOWN_SERVER_ERROR},
    # a coordinator accepts every heartbeat while it loads the group
    ("Heartbeat", "top"): _ROUND - {Error.COORDINATOR_LOAD_IN_PROGRESS},
    ("LeaveGroup", "top"): _GROUP | {Error.UNKNOWN_MEMBER_ID},
    ("LeaveGroup", "member"): _MEMBER,
    ("OffsetCommit", "partition"): _ROUND
    | _TOPIC
    | {
        Error.OFFSET_METADATA_TOO_LARGE,
        Error.INVALID_COMMIT_OFFSET_SIZE,
        Error.GROUP_ID_NOT_FOUND,
        Error.STALE_MEMBER_EPOCH,
        Error.UNSUPPORTED_VERSION,
    },
    ("OffsetFetch", "top"): _GROUP | {Error.UNKNOWN_MEMBER_ID, Error.STALE_MEMBER_EPOCH, Error.UNSUPPORTED_VERSION},
    ("OffsetFetch", "partition"): _TOPIC | {Error.UNSTABLE_OFFSET_COMMIT},
    ("OffsetDelete", "top"): _GROUP | {Error.NON_EMPTY_GROUP, Error.GROUP_ID_NOT_FOUND},
    ("OffsetDelete", "partition"): _TOPIC | {Error.GROUP_SUBSCRIBED_TO_TOPIC},
    ("FindCoordinator", "top"): frozenset(
        {
            Error.COORDINATOR_NOT_AVAILABLE,
            Error.INVALID_REQUEST,
            Error.GROUP_AUTHORIZATION_FAILED,
            Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        }
    ),
    ("DescribeGroups", "top"): _GROUP | {Error.GROUP_ID_NOT_FOUND},
    ("ListGroups", "top"): frozenset(
        {Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.CLUSTER_AUTHORIZATION_FAILED}
    ),
    ("DeleteGroups", "top"): _GROUP | {Error.NON_EMPTY_GROUP, Error.GROUP_ID_NOT_FOUND, Error.GROUP_DELETION_FAILED},
    ("Metadata", "top"): _TOPIC | {Error.LEADER_NOT_AVAILABLE, Error.INVALID_TOPIC_EXCEPTION},
    ("ListOffsets", "partition"): _LEADER
    | {
        Error.LEADER_NOT_AVAILABLE,
        Error.OFFSET_NOT_AVAILABLE,
        Error.FENCED_LEADER_EPOCH,
        Error.UNKNOWN_LEADER_EPOCH,
        Error.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        Error.UNSUPPORTED_VERSION,
    },
    ("Produce", "partition"): _LEADER
    | {
        Error.CORRUPT_MESSAGE,
        Error.REQUEST_TIMED_OUT,
        Error.MESSAGE_TOO_LARGE,
        Error.RECORD_LIST_TOO_LARGE,
        Error.NOT_ENOUGH_REPLICAS,
        Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        Error.INVALID_REQUIRED_ACKS,
        Error.INVALID_TOPIC_EXCEPTION,
        Error.CLUSTER_AUTHORIZATION_FAILED,
        Error.INVALID_TIMESTAMP,
        Error.INVALID_RECORD,
        Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
        Error.INVALID_PRODUCER_EPOCH,
        Error.INVALID_PRODUCER_ID_MAPPING,
        Error.INVALID_TXN_STATE,
        Error.CONCURRENT_TRANSACTIONS,
        Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        Error.TRANSACTION_ABORTABLE,
        Error.UNKNOWN_PRODUCER_ID,
        Error.UNSUPPORTED_COMPRESSION_TYPE,
    },
    ("Fetch", "top"): frozenset(
        {
            Error.FETCH_SESSION_ID_NOT_FOUND,
            Error.INVALID_FETCH_SESSION_EPOCH,
            Error.FETCH_SESSION_TOPIC_ID_ERROR,
            Error.INCONSISTENT_TOPIC_ID,
            Error.KAFKA_STORAGE_ERROR,
            Error.UNKNOWN_SERVER_ERROR,
        }
    ),
    ("InitProducerId", "top"): _COORDINATOR
    | {
        Error.INVALID_REQUEST,
        Error.INVALID_TRANSACTION_TIMEOUT,
        Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        Error.CLUSTER_AUTHORIZATION_FAILED,
        Error.CONCURRENT_TRANSACTIONS,
        Error.PRODUCER_FENCED,
        Error.INVALID_PRODUCER_EPOCH,
    },
    ("AddPartitionsToTxn", "partition"): _TRANSACTION
    | _TOPIC
    | {Error.OPERATION_NOT_ATTEMPTED, Error.INVALID_TXN_STATE, Error.CLUSTER_AUTHORIZATION_FAILED},
    ("AddOffsetsToTxn", "top"): _TRANSACTION | {Error.GROUP_AUTHORIZATION_FAILED},
    ("TxnOffsetCommit", "partition"): _TRANSACTION
    | _TOPIC
    | {
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.INVALID_GROUP_ID,
        Error.ILLEGAL_GENERATION,
        Error.UNKNOWN_MEMBER_ID,
        Error.FENCED_INSTANCE_ID,
        Error.OFFSET_METADATA_TOO_LARGE,
        Error.INVALID_COMMIT_OFFSET_SIZE,
        Error.INVALID_TXN_STATE,
        Error.GROUP_ID_NOT_FOUND,
        Error.STALE_MEMBER_EPOCH,
    },
    ("EndTxn", "top"): _TRANSACTION | {Error.INVALID_TXN_STATE, Error.UNSUPPORTED_VERSION},
    ("WriteTxnMarkers", "partition"): _LEADER
    | {
        Error.CLUSTER_AUTHORIZATION_FAILED,
        Error.INVALID_PRODUCER_EPOCH,
        Error.NOT_ENOUGH_REPLICAS,
        Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        Error.TRANSACTION_COORDINATOR_FENCED,
        Error.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    },
    ("ApiVersions", "top"): frozenset({Error.UNSUPPORTED_VERSION, Error.INVALID_REQUEST, Error.REBOOTSTRAP_REQUIRED}),
    ("SaslHandshake", "top"): frozenset({Error.UNSUPPORTED_SASL_MECHANISM, Error.ILLEGAL_SASL_STATE}),
    ("CreateTopics", "top"): _TOPIC_CHANGE | _PLACEMENT | {Error.TOPIC_ALREADY_EXISTS, Error.INVALID_CONFIG},
    ("DeleteTopics", "top"): _TOPIC_CHANGE | _TOPIC | {Error.TOPIC_DELETION_DISABLED},
    ("DeleteRecords", "partition"): _LEADER
    | {Error.OFFSET_OUT_OF_RANGE, Error.POLICY_VIOLATION, Error.REQUEST_TIMED_OUT, Error.INVALID_TOPIC_EXCEPTION},
    ("OffsetForLeaderEpoch", "partition"): _LEADER
    | {Error.FENCED_LEADER_EPOCH, Error.UNKNOWN_LEADER_EPOCH, Error.CLUSTER_AUTHORIZATION_FAILED},
    ("DescribeAcls", "top"): _ACLS,
    ("CreateAcls", "top"): _ACLS,
    ("DeleteAcls", "top"): _ACLS,
    ("DescribeConfigs", "top"): _CONFIGS,
    ("AlterConfigs", "top"): _CONFIGS | {Error.POLICY_VIOLATION},
    ("AlterReplicaLogDirs", "partition"): _CLUSTER
    | _LEADER
    | {Error.LOG_DIR_NOT_FOUND, Error.REPLICA_NOT_AVAILABLE, Error.INVALID_TOPIC_EXCEPTION},
    ("DescribeLogDirs", "top"): _CLUSTER | {Error.KAFKA_STORAGE_ERROR},
    ("SaslAuthenticate", "top"): frozenset({Error.SASL_AUTHENTICATION_FAILED, Error.ILLEGAL_SASL_STATE}),
    ("CreatePartitions", "top"): _TOPIC_CHANGE | _TOPIC | _PLACEMENT | {Error.REASSIGNMENT_IN_PROGRESS},
    ("CreateDelegationToken", "top"): _TOKEN,
    ("RenewDelegationToken", "top"): _TOKEN,
    ("ExpireDelegationToken", "top"): _TOKEN,
    ("DescribeDelegationToken", "top"): _TOKEN,
    ("ElectLeaders", "top"): _CONTROLLER,
    ("ElectLeaders", "partition"): _ELECTION,
    ("IncrementalAlterConfigs", "top"): _CONFIGS | {Error.POLICY_VIOLATION},
    ("AlterPartitionReassignments", "top"): _CONTROLLER,
    ("AlterPartitionReassignments", "partition"): _REASSIGNMENT,
    ("ListPartitionReassignments", "top"): _CONTROLLER,
    ("DescribeClientQuotas", "top"): _CLUSTER | {Error.UNSUPPORTED_VERSION},
    ("AlterClientQuotas", "top"): _CONTROLLER,
    ("DescribeUserScramCredentials", "top"): _CONTROLLER | {Error.RESOURCE_NOT_FOUND, Error.DUPLICATE_RESOURCE},
    ("AlterUserScramCredentials", "top"): _CONTROLLER
    | {
        Error.RESOURCE_NOT_FOUND,
        Error.DUPLICATE_RESOURCE,
        Error.UNACCEPTABLE_CREDENTIAL,
        Error.UNSUPPORTED_SASL_MECHANISM,
    },
    ("DescribeQuorum", "top"): _CLUSTER | {Error.BROKER_NOT_AVAILABLE},
    ("DescribeQuorum", "partition"): _LEADER,
    ("UpdateFeatures", "top"): _CONTROLLER | {Error.FEATURE_UPDATE_FAILED, Error.INVALID_UPDATE_VERSION},
    ("DescribeCluster", "top"): _CLUSTER | {Error.UNSUPPORTED_ENDPOINT_TYPE, Error.MISMATCHED_ENDPOINT_TYPE},
    ("DescribeProducers", "partition"): _LEADER | {Error.INVALID_TOPIC_EXCEPTION},
    ("UnregisterBroker", "top"): _CONTROLLER | {Error.BROKER_ID_NOT_REGISTERED},
    ("DescribeTransactions", "top"): _COORDINATOR
    | {Error.TRANSACTIONAL_ID_NOT_FOUND, Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, Error.INVALID_REQUEST},
    ("ListTransactions", "top"): _COORDINATOR | {Error.INVALID_REGULAR_EXPRESSION},
    # the errors of the schema, and those of a group of the other protocol (KIP-848)
    ("ConsumerGroupHeartbeat", "top"): _GROUP
    | _MEMBER
    | {
        Error.INVALID_REQUEST,
        Error.FENCED_MEMBER_EPOCH,
        Error.UNRELEASED_INSTANCE_ID,
        Error.UNSUPPORTED_ASSIGNOR,
        Error.INVALID_REGULAR_EXPRESSION,
        Error.GROUP_MAX_SIZE_REACHED,
        Error.TOPIC_AUTHORIZATION_FAILED,
        Error.GROUP_ID_NOT_FOUND,
        Error.UNSUPPORTED_VERSION,
    },
    ("ConsumerGroupDescribe", "top"): _GROUP | {Error.GROUP_ID_NOT_FOUND, Error.UNSUPPORTED_VERSION},
    # share groups (KIP-932)
    ("ShareGroupHeartbeat", "top"): _GROUP
    | {
        Error.UNKNOWN_MEMBER_ID,
        Error.INVALID_REQUEST,
        Error.FENCED_MEMBER_EPOCH,
        Error.GROUP_MAX_SIZE_REACHED,
        Error.TOPIC_AUTHORIZATION_FAILED,
        Error.GROUP_ID_NOT_FOUND,
        Error.UNSUPPORTED_VERSION,
    },
    ("ShareGroupDescribe", "top"): _GROUP
    | {Error.GROUP_ID_NOT_FOUND, Error.TOPIC_AUTHORIZATION_FAILED, Error.UNSUPPORTED_VERSION},
    ("ShareFetch", "top"): _SHARE_SESSION | {Error.SHARE_SESSION_LIMIT_REACHED},
    ("ShareFetch", "partition"): _LEADER | _SHARE_PARTITION,
    ("ShareAcknowledge", "top"): _SHARE_SESSION,
    ("ShareAcknowledge", "partition"): _LEADER | _SHARE_PARTITION | {Error.INVALID_REQUEST, Error.INVALID_RECORD_STATE},
    ("InitializeShareGroupState", "partition"): _SHARE_STATE,
    ("ReadShareGroupState", "partition"): _SHARE_STATE | {Error.FENCED_LEADER_EPOCH},
    ("WriteShareGroupState", "partition"): _SHARE_STATE | {Error.FENCED_LEADER_EPOCH},
    ("DeleteShareGroupState", "partition"): _SHARE_STATE - {Error.FENCED_STATE_EPOCH},
    ("ReadShareGroupStateSummary", "partition"): _SHARE_STATE - {Error.FENCED_STATE_EPOCH},
    ("DescribeShareGroupOffsets", "top"): _GROUP | {Error.UNSUPPORTED_VERSION, Error.UNKNOWN_SERVER_ERROR},
    ("AlterShareGroupOffsets", "top"): _SHARE_OFFSETS,
    ("AlterShareGroupOffsets", "partition"): _TOPIC | {Error.UNKNOWN_SERVER_ERROR},
    ("DeleteShareGroupOffsets", "top"): _SHARE_OFFSETS,
    ("DeleteShareGroupOffsets", "partition"): _TOPIC | {Error.UNKNOWN_SERVER_ERROR},
    # streams groups (KIP-1071)
    ("StreamsGroupHeartbeat", "top"): _GROUP
    | {
        Error.UNKNOWN_MEMBER_ID,
        Error.INVALID_REQUEST,
        Error.FENCED_MEMBER_EPOCH,
        Error.UNRELEASED_INSTANCE_ID,
        Error.GROUP_MAX_SIZE_REACHED,
        Error.TOPIC_AUTHORIZATION_FAILED,
        Error.CLUSTER_AUTHORIZATION_FAILED,
        Error.GROUP_ID_NOT_FOUND,
        Error.STREAMS_INVALID_TOPOLOGY,
        Error.STREAMS_INVALID_TOPOLOGY_EPOCH,
        Error.STREAMS_TOPOLOGY_FENCED,
        Error.UNSUPPORTED_VERSION,
    },
    ("StreamsGroupDescribe", "top"): _GROUP
    | {Error.GROUP_ID_NOT_FOUND, Error.TOPIC_AUTHORIZATION_FAILED, Error.UNSUPPORTED_VERSION},
    ("StreamsGroupTopologyDescriptionUpdate", "top"): _GROUP
    | {
        Error.UNKNOWN_MEMBER_ID,
        Error.INVALID_REQUEST,
        Error.GROUP_ID_NOT_FOUND,
        Error.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED,
        Error.UNSUPPORTED_VERSION,
    },
    ("ListConfigResources", "top"): _CLUSTER | {Error.UNSUPPORTED_VERSION},
    ("DescribeTopicPartitions", "top"): _TOPIC | {Error.LEADER_NOT_AVAILABLE, Error.INVALID_TOPIC_EXCEPTION},
    ("AddRaftVoter", "top"): _VOTERS,
    ("RemoveRaftVoter", "top"): _VOTERS,
}
"""Errors by API and level (`PLACES`)."""

PLACES_OF: Mapping[str, tuple[str, ...]] = {
    api: tuple(place for name, place in KAFKA_RETURNS if name == api) for api, _ in KAFKA_RETURNS
}
"""The places of errors in the response to each API, the default first. `top` is the whole response, or each row
that the request names: a group, a topic, a resource."""

REBALANCING = {
    "OffsetCommit": ClassicGroupState.COMPLETING_REBALANCE,
    "Heartbeat": ClassicGroupState.PREPARING_REBALANCE,
    "SyncGroup": ClassicGroupState.PREPARING_REBALANCE,
}
"""The only group state in which each API returns REBALANCE_IN_PROGRESS."""

UNKNOWN_GROUP_SINCE = {"OffsetCommit": 9, "DescribeGroups": 6}


def is_returned_by_kafka(context: RequestContext, error: Error, at: str) -> bool:
    """Return whether Kafka can return this error for the request in the group's present state."""
    if error not in KAFKA_RETURNS[context.api, at]:
        return False
    group = context.find_group()
    match error:
        case Error.REBALANCE_IN_PROGRESS:
            return group is not None and group.state_name == REBALANCING[context.api].value
        case Error.UNKNOWN_MEMBER_ID:
            return group is None or not set(context.member_ids) & group.members.keys()
        case Error.ILLEGAL_GENERATION:
            return group is None or group.generation != context.generation
        case Error.MEMBER_ID_REQUIRED:
            # Kafka's response carries a member id that the coordinator keeps as pending
            return False
        case Error.FENCED_INSTANCE_ID | Error.UNRELEASED_INSTANCE_ID:
            return bool(context.instance_ids)
        case Error.FENCED_MEMBER_EPOCH:
            epochs = (
                {getattr(group.members.get(each), "epoch", None) for each in context.member_ids} if group else set()
            )
            return bool(epochs - {context.generation, None})
        case Error.INVALID_GROUP_ID:
            return "" in context.groups
        case Error.GROUP_ID_NOT_FOUND:
            return group is None and context.version >= UNKNOWN_GROUP_SINCE.get(context.api, 0)
        case _:
            return True
