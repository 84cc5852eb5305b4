"""The rights that each API needs, as a table.

An API that is not here needs nothing: ApiVersions, SASL, and Fetch, whose sessions check Read of each topic
(`core.data.fetch`). Kafka: `KafkaApis`, `ControllerApis`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey

from ...core.acls.acl import Operation, ResourceType
from .cluster_guards import cluster_operations, describe_users, unregister_broker
from .group_guards import (
    consumer_topics,
    described_groups,
    find_coordinator,
    group_operations,
    join_group,
    offset_fetch,
    seen_groups,
    subscribed_topics,
    sync_group,
)
from .guards import TEXTS, all_of, answering, if_served, needs, needs_cluster, needs_rows
from .share_guards import of_group, share_offsets, share_subscription, share_topics
from .streams_guards import UNSEEN_TOPOLOGY, streams_topics, topology_topics
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

GUARDS: Mapping[int, Guard] = {
    # groups
    ApiKey.FIND_COORDINATOR: find_coordinator,
    ApiKey.JOIN_GROUP: join_group,
    ApiKey.SYNC_GROUP: sync_group,
    ApiKey.HEARTBEAT: needs(READ, GROUP, "group_id"),
    ApiKey.LEAVE_GROUP: needs(READ, GROUP, "group_id"),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: if_served(all_of(needs(READ, GROUP, "group_id"), subscribed_topics)),
    ApiKey.OFFSET_COMMIT: all_of(needs(READ, GROUP, "group_id"), needs_rows(READ, TOPIC, "topics", order="early")),
    ApiKey.OFFSET_FETCH: offset_fetch,
    ApiKey.OFFSET_DELETE: all_of(needs(DELETE, GROUP, "group_id"), needs_rows(READ, TOPIC, "topics", order="early")),
    ApiKey.DESCRIBE_GROUPS: all_of(needs_rows(DESCRIBE, GROUP, "groups", order="first"), answering(group_operations)),
    ApiKey.CONSUMER_GROUP_DESCRIBE: if_served(described_groups(consumer_topics)),
    ApiKey.SHARE_GROUP_HEARTBEAT: if_served(all_of(needs(READ, GROUP, "group_id"), share_subscription), "share"),
    ApiKey.SHARE_GROUP_DESCRIBE: if_served(described_groups(share_topics), "share"),
    ApiKey.SHARE_FETCH: if_served(of_group, "share"),
    ApiKey.SHARE_ACKNOWLEDGE: if_served(of_group, "share"),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: if_served(share_offsets, "share"),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: if_served(
        all_of(
            needs(READ, GROUP, "group_id", text=TEXTS[GROUP]),
            needs_rows(READ, TOPIC, "topics", order="first", text=TEXTS[TOPIC], asks_on=True),
        ),
        "share",
    ),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: if_served(
        all_of(
            needs(DELETE, GROUP, "group_id", text=TEXTS[GROUP]),
            needs_rows(READ, TOPIC, "topics", text=TEXTS[TOPIC], asks_on=True),
        ),
        "share",
    ),
    ApiKey.STREAMS_GROUP_HEARTBEAT: if_served(all_of(needs(READ, GROUP, "group_id"), topology_topics), "streams"),
    ApiKey.STREAMS_GROUP_DESCRIBE: if_served(described_groups(streams_topics, UNSEEN_TOPOLOGY), "streams"),
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: if_served(needs(READ, GROUP, "group_id"), "streams"),
    **dict.fromkeys(
        (
            ApiKey.INITIALIZE_SHARE_GROUP_STATE,
            ApiKey.READ_SHARE_GROUP_STATE,
            ApiKey.WRITE_SHARE_GROUP_STATE,
            ApiKey.DELETE_SHARE_GROUP_STATE,
            ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        ),
        needs_cluster(CLUSTER_ACTION, says_need=False, text=TEXTS[ResourceType.CLUSTER]),
    ),
    ApiKey.LIST_GROUPS: answering(seen_groups),
    ApiKey.DELETE_GROUPS: needs_rows(DELETE, GROUP, "groups_names"),
    # topics and records
    ApiKey.METADATA: metadata,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: all_of(
        described_topics, needs_rows(DESCRIBE, TOPIC, "topics"), answering(topic_operations)
    ),
    ApiKey.PRODUCE: closing_without_acks(all_of(transactional_produce, needs_rows(WRITE, TOPIC, "topic_data"))),
    ApiKey.LIST_OFFSETS: needs_rows(DESCRIBE, TOPIC, "topics"),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: epoch_ends(needs_rows(DESCRIBE, TOPIC, "topics")),
    ApiKey.CREATE_TOPICS: create_topics,
    ApiKey.DELETE_TOPICS: delete_topics,
    ApiKey.CREATE_PARTITIONS: needs_rows(ALTER, TOPIC, "topics", order="first"),
    ApiKey.DELETE_RECORDS: needs_rows(DELETE, TOPIC, "topics"),
    ApiKey.DESCRIBE_PRODUCERS: needs_rows(READ, TOPIC, "topics", order="requested", text=TEXTS[TOPIC]),
    ApiKey.DESCRIBE_CONFIGS: configs(DESCRIBE_CONFIGS, text=True),
    ApiKey.ALTER_CONFIGS: configs(ALTER_CONFIGS, text=True),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: configs(ALTER_CONFIGS, text=True),
    # transactions
    ApiKey.INIT_PRODUCER_ID: init_producer_id,
    ApiKey.ADD_PARTITIONS_TO_TXN: add_partitions,
    ApiKey.ADD_OFFSETS_TO_TXN: all_of(needs(WRITE, TRANSACTION, "transactional_id"), needs(READ, GROUP, "group_id")),
    ApiKey.END_TXN: needs(WRITE, TRANSACTION, "transactional_id"),
    ApiKey.TXN_OFFSET_COMMIT: all_of(
        needs(WRITE, TRANSACTION, "transactional_id"),
        needs(READ, GROUP, "group_id"),
        needs_rows(READ, TOPIC, "topics", order="early"),
    ),
    ApiKey.WRITE_TXN_MARKERS: needs_cluster(ALTER, CLUSTER_ACTION),
    ApiKey.DESCRIBE_TRANSACTIONS: all_of(
        answering(seen_topics), needs_rows(DESCRIBE, TRANSACTION, "transactional_ids", order="requested")
    ),
    ApiKey.LIST_TRANSACTIONS: answering(seen_transactions),
    # the cluster
    ApiKey.DESCRIBE_CLUSTER: answering(cluster_operations),
    ApiKey.DESCRIBE_ACLS: needs_cluster(DESCRIBE),
    ApiKey.CREATE_ACLS: needs_cluster(ALTER),
    ApiKey.DELETE_ACLS: needs_cluster(ALTER),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: describe_users,
    ApiKey.CREATE_DELEGATION_TOKEN: create_token,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: answering(seen_tokens),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: needs_cluster(ALTER),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: needs_cluster(DESCRIBE_CONFIGS, says_need=False),
    ApiKey.ALTER_CLIENT_QUOTAS: needs_cluster(ALTER_CONFIGS),
    ApiKey.LIST_CONFIG_RESOURCES: needs_cluster(DESCRIBE_CONFIGS, says_need=False),
    ApiKey.DESCRIBE_LOG_DIRS: needs_cluster(DESCRIBE, says_need=False),
    ApiKey.ALTER_REPLICA_LOG_DIRS: needs_cluster(ALTER, says_need=False),
    ApiKey.ELECT_LEADERS: needs_cluster(ALTER, in_rows=True),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: needs_cluster(ALTER, in_rows=True),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: needs_cluster(DESCRIBE),
    ApiKey.UPDATE_FEATURES: needs_cluster(ALTER),
    ApiKey.UNREGISTER_BROKER: unregister_broker,
    ApiKey.DESCRIBE_QUORUM: needs_cluster(DESCRIBE),
    ApiKey.ADD_RAFT_VOTER: needs_cluster(ALTER),
    ApiKey.REMOVE_RAFT_VOTER: needs_cluster(ALTER),
}
"""The guard of each API, by its key."""
