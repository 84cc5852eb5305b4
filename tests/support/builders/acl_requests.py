"""Requests of every API that checks rights, with resources that are allowed, denied and unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.wire.apis import APIS, ApiKey
from koordinator.wire.messages.consumer_protocol import ConsumerProtocolSubscription, write_subscription
from koordinator.wire.messages.create_acls import AclCreation, CreateAclsRequest
from koordinator.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from koordinator.wire.records import Record, write_batch
from koordinator.wire.schema import fields_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TOPIC, GROUP, CLUSTER, TRANSACTION = 2, 3, 4, 5
ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
DENY, ALLOW = 2, 3
ALL = 2

OPERATIONS = {
    "Read": 3,
    "Write": 4,
    "Create": 5,
    "Delete": 6,
    "Alter": 7,
    "Describe": 8,
    "ClusterAction": 9,
    "DescribeConfigs": 10,
    "AlterConfigs": 11,
    "IdempotentWrite": 12,
}

RESOURCES = {
    "Topic": (TOPIC, "t", LITERAL),
    "Group": (GROUP, "g", PREFIXED),
    "Cluster": (CLUSTER, "kafka-cluster", LITERAL),
    "TransactionalId": (TRANSACTION, "x", LITERAL),
}
"""The resources that rights are given for: the topic t, groups whose names begin with g, the cluster, the id x."""

RECORDS = write_batch([Record(0, 1_700_000_000_000, None, b"v")])
TRANSACTIONAL_RECORDS = write_batch(
    [Record(0, 1_700_000_000_000, None, b"v")], producer_id=1_000_000, is_transactional=True
)

TOPICS = ("t", "u", "nosuch")
NAMES = [{"name": each} for each in TOPICS]
PARTITIONS = [{"name": each, "partitions": [{"partition_index": 0}]} for each in TOPICS]
COMMITTED = [{"name": each, "partitions": [{"partition_index": 0, "committed_offset": 7}]} for each in TOPICS]
SUBSCRIPTION = write_subscription(ConsumerProtocolSubscription(topics=("t",)), 1)


def acl(
    resource: tuple[int, str, int],
    operation: int = ALL,
    permission: int = ALLOW,
    principal: str = "User:alice",
    host: str = "*",
) -> AclCreation:
    kind, name, pattern = resource
    return AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=pattern,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )


def creation(acls: Sequence[AclCreation]) -> CreateAclsRequest:
    return CreateAclsRequest(creations=tuple(acls))


EVERY_ACL: dict[str, Any] = {
    "resource_type_filter": ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": ANY,
    "permission_type": ANY,
}
"""The filter of all ACLs."""


def deletion() -> DeleteAclsRequest:
    """Delete all ACLs."""
    return DeleteAclsRequest(filters=(DeleteAclsFilter(**EVERY_ACL),))


def request(key: ApiKey, /, **fields: Any) -> Any:
    """Return a request whose rows are given as dicts."""
    return _filled(APIS[key].request, fields)


def _filled(cls: type, fields: dict[str, Any]) -> Any:
    specs = fields_of(cls)

    def value_of(name: str, given: Any) -> Any:
        row = specs[name].type
        if specs[name].is_array and given is not None:
            return tuple(_filled(row, each) if isinstance(row, type) else each for each in given)
        return given

    return cls(**{name: value_of(name, given) for name, given in fields.items()})


def requests(ids: dict[str, Any]) -> Iterator[tuple[str, Any, int]]:
    """Yield name, request and version of each; `ids` are the topic ids by name."""
    yield from _of_coordinators()
    for group in ("g", "h"):
        yield from _of_group(group)
    yield from _of_groups()
    yield from _of_metadata(ids)
    yield from _of_records(ids)
    yield from _of_topics()
    for transactional_id in ("x", "y"):
        yield from _of_transaction(transactional_id)
    yield from _of_transactions()
    yield from _of_users()
    yield from _of_cluster()
    yield from of_shares(ids)


def _of_coordinators() -> Iterator[tuple[str, Any, int]]:
    for version in (3, 4):
        for key_type, key in ((0, "g"), (0, "h"), (1, "x"), (1, "y")):
            keys = {"key": key} if version < 4 else {"coordinator_keys": [key, "other"]}
            yield f"find {key}", request(ApiKey.FIND_COORDINATOR, key_type=key_type, **keys), version


def _of_group(group: str) -> Iterator[tuple[str, Any, int]]:
    joining = {
        "group_id": group,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": SUBSCRIPTION}],
    }
    yield "join", request(ApiKey.JOIN_GROUP, **joining, member_id="nobody"), 9
    yield "join", request(ApiKey.JOIN_GROUP, **joining, member_id="nobody"), 5
    member = {"group_id": group, "generation_id": 1, "member_id": "nobody"}
    yield "sync", request(ApiKey.SYNC_GROUP, **member), 5
    yield "sync", request(ApiKey.SYNC_GROUP, **member, protocol_type="consumer", protocol_name="range"), 5
    yield "sync", request(ApiKey.SYNC_GROUP, **member), 4
    yield "heartbeat", request(ApiKey.HEARTBEAT, **member), 4
    yield "leave", request(ApiKey.LEAVE_GROUP, group_id=group, members=[{"member_id": "nobody"}]), 5
    yield "leave", request(ApiKey.LEAVE_GROUP, group_id=group, member_id="nobody"), 2
    for version in (1, 7, 9):
        yield "commit", request(ApiKey.OFFSET_COMMIT, group_id=group, topics=COMMITTED), version
    fetched = [{"name": each, "partition_indexes": [0]} for each in TOPICS]
    for version in (1, 7):
        yield "fetch offsets", request(ApiKey.OFFSET_FETCH, group_id=group, topics=fetched), version
    yield "fetch all offsets", request(ApiKey.OFFSET_FETCH, group_id=group, topics=None), 7
    yield "delete offsets", request(ApiKey.OFFSET_DELETE, group_id=group, topics=PARTITIONS), 0
    heart = {"group_id": group, "member_id": "nobody", "member_epoch": 5, "rebalance_timeout_ms": 1_000}
    for subscription in (["t"], ["t", "u"], None):
        yield (
            f"consumer heartbeat {subscription}",
            request(ApiKey.CONSUMER_GROUP_HEARTBEAT, **heart, subscribed_topic_names=subscription),
            0,
        )


def _of_groups() -> Iterator[tuple[str, Any, int]]:
    groups = [
        {"group_id": each, "topics": [{"name": name, "partition_indexes": [0]} for name in TOPICS]}
        for each in ("g", "h")
    ]
    yield "fetch offsets of groups", request(ApiKey.OFFSET_FETCH, groups=groups), 9
    yield "fetch all offsets of groups", request(ApiKey.OFFSET_FETCH, groups=[{"group_id": "g", "topics": None}]), 9
    for version in (4, 5):
        described = {"groups": ["h", "g"], "include_authorized_operations": True}
        yield "describe groups", request(ApiKey.DESCRIBE_GROUPS, **described), version
    consumers = {"group_ids": ["h", "gc", "g"], "include_authorized_operations": True}
    yield "describe consumer groups", request(ApiKey.CONSUMER_GROUP_DESCRIBE, **consumers), 0
    yield "list groups", request(ApiKey.LIST_GROUPS), 4
    yield "delete groups", request(ApiKey.DELETE_GROUPS, groups_names=["h1", "g1"]), 2


def _of_metadata(ids: dict[str, Any]) -> Iterator[tuple[str, Any, int]]:
    for version in (9, 12):
        metadata = {
            "topics": NAMES,
            "include_topic_authorized_operations": True,
            "include_cluster_authorized_operations": version < 11,
        }
        yield "metadata", request(ApiKey.METADATA, **metadata, allow_auto_topic_creation=False), version
    yield "all metadata", request(ApiKey.METADATA, topics=None), 9
    by_id = [{"topic_id": ids[each], "name": None} for each in ("t", "u")]
    yield "metadata by id", request(ApiKey.METADATA, topics=by_id, allow_auto_topic_creation=False), 12
    yield "describe topics", request(ApiKey.DESCRIBE_TOPIC_PARTITIONS, topics=NAMES, response_partition_limit=100), 0
    yield "describe all topics", request(ApiKey.DESCRIBE_TOPIC_PARTITIONS, response_partition_limit=100), 0


def _of_records(ids: dict[str, Any]) -> Iterator[tuple[str, Any, int]]:
    for transactional_id, records in ((None, RECORDS), ("x", TRANSACTIONAL_RECORDS), ("y", TRANSACTIONAL_RECORDS)):
        rows = [{"name": each, "partition_data": [{"index": 0, "records": records}]} for each in ("t", "u", "nosuch")]
        produced = {"transactional_id": transactional_id, "acks": 1, "timeout_ms": 1_000, "topic_data": rows}
        yield f"produce {transactional_id}", request(ApiKey.PRODUCE, **produced), 9
    wanted = [
        {"topic": each, "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}]}
        for each in TOPICS
    ]
    yield "fetch", request(ApiKey.FETCH, topics=wanted, max_wait_ms=0, max_bytes=1), 12
    wanted = [
        {"topic_id": ids[each], "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}]}
        for each in ("t", "u")
    ]
    yield "fetch by id", request(ApiKey.FETCH, topics=wanted, max_wait_ms=0, max_bytes=1), 13
    asked = [{"name": each, "partitions": [{"partition_index": 0, "timestamp": -1}]} for each in TOPICS]
    yield "list offsets", request(ApiKey.LIST_OFFSETS, replica_id=-1, topics=asked), 7
    ends = [{"topic": each, "partitions": [{"partition": 0, "leader_epoch": 0}]} for each in TOPICS]
    yield "epoch ends", request(ApiKey.OFFSET_FOR_LEADER_EPOCH, replica_id=-1, topics=ends), 4


def _of_topics() -> Iterator[tuple[str, Any, int]]:
    new = [{"name": each, "num_partitions": 1, "replication_factor": 1} for each in ("t", "new")]
    yield "create topics", request(ApiKey.CREATE_TOPICS, topics=new, validate_only=True, timeout_ms=5_000), 7
    yield "delete topics", request(ApiKey.DELETE_TOPICS, topic_names=["nosuch"], timeout_ms=5_000), 5
    more = [{"name": each, "count": 9} for each in TOPICS]
    yield "more partitions", request(ApiKey.CREATE_PARTITIONS, topics=more, validate_only=True, timeout_ms=5_000), 3
    cut = [{"name": each, "partitions": [{"partition_index": 0, "offset": 0}]} for each in TOPICS]
    yield "delete records", request(ApiKey.DELETE_RECORDS, topics=cut, timeout_ms=5_000), 2
    states = [{"name": each, "partition_indexes": [0]} for each in TOPICS]
    yield "describe producers", request(ApiKey.DESCRIBE_PRODUCERS, topics=states), 0
    resources = [
        {"resource_type": kind, "resource_name": name, "configuration_keys": ["nothing"]}
        for kind, name in ((2, "t"), (2, "u"), (4, "1"), (32, "g"))
    ]
    yield "describe configs", request(ApiKey.DESCRIBE_CONFIGS, resources=resources), 4
    altered = [{"resource_type": kind, "resource_name": name} for kind, name in ((2, "t"), (2, "u"), (2, "nosuch"))]
    yield "alter configs", request(ApiKey.ALTER_CONFIGS, resources=altered, validate_only=True), 2
    changes = [
        {**each, "configs": [{"name": "retention.ms", "config_operation": 0, "value": "-1"}]} for each in altered
    ]
    yield "change configs", request(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=changes, validate_only=True), 1


def _of_transaction(transactional_id: str) -> Iterator[tuple[str, Any, int]]:
    producer = {"transactional_id": transactional_id, "producer_id": 1_000_000, "producer_epoch": 0}
    yield "end", request(ApiKey.END_TXN, **producer, committed=True), 3
    yield "add offsets", request(ApiKey.ADD_OFFSETS_TO_TXN, **producer, group_id="g"), 3
    yield "add offsets", request(ApiKey.ADD_OFFSETS_TO_TXN, **producer, group_id="h"), 3
    for group in ("g", "h"):
        txn = {**producer, "group_id": group, "topics": COMMITTED}
        yield "commit in txn", request(ApiKey.TXN_OFFSET_COMMIT, **txn), 3
    old = {f"v3_and_below_{name}": given for name, given in producer.items()}
    for chosen in (["t"], ["t", "u", "nosuch"]):
        rows = [{"name": each, "partitions": [0]} for each in chosen]
        yield f"add {chosen}", request(ApiKey.ADD_PARTITIONS_TO_TXN, **old, v3_and_below_topics=rows), 3
    row = {**producer, "verify_only": True, "topics": [{"name": "t", "partitions": [0]}]}
    yield "verify", request(ApiKey.ADD_PARTITIONS_TO_TXN, transactions=[row]), 4


def _of_transactions() -> Iterator[tuple[str, Any, int]]:
    yield "init nobody", request(ApiKey.INIT_PRODUCER_ID, transactional_id="y", transaction_timeout_ms=0), 4
    yield "init x", request(ApiKey.INIT_PRODUCER_ID, transactional_id="x", transaction_timeout_ms=0), 4
    yield "init", request(ApiKey.INIT_PRODUCER_ID, transactional_id=None, transaction_timeout_ms=1_000), 4
    yield "markers", request(ApiKey.WRITE_TXN_MARKERS, markers=[]), 1
    yield "describe txns", request(ApiKey.DESCRIBE_TRANSACTIONS, transactional_ids=["y", "x"]), 0
    yield "list txns", request(ApiKey.LIST_TRANSACTIONS), 0


def _of_users() -> Iterator[tuple[str, Any, int]]:
    yield "describe cluster", request(ApiKey.DESCRIBE_CLUSTER, include_cluster_authorized_operations=True), 0
    filters = {**EVERY_ACL, "resource_type_filter": 7}
    yield "describe acls", request(ApiKey.DESCRIBE_ACLS, **filters), 2
    nobody = {**filters, "resource_name_filter": "nobody"}
    yield "delete acls", request(ApiKey.DELETE_ACLS, filters=[nobody]), 2
    yield "create acls", CreateAclsRequest(creations=(acl((TOPIC, "", LITERAL)),)), 2
    yield "describe users", request(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, users=[{"name": "nobody"}]), 0
    gone = [{"name": "nobody", "mechanism": 1}]
    yield "alter users", request(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, deletions=gone), 0
    yield "describe quotas", request(ApiKey.DESCRIBE_CLIENT_QUOTAS, components=[]), 1
    yield "alter quotas", request(ApiKey.ALTER_CLIENT_QUOTAS, entries=[], validate_only=True), 1


def _of_cluster() -> Iterator[tuple[str, Any, int]]:
    yield "list configs", request(ApiKey.LIST_CONFIG_RESOURCES), 0
    yield "log dirs", request(ApiKey.DESCRIBE_LOG_DIRS, topics=[]), 4
    yield "alter log dirs", request(ApiKey.ALTER_REPLICA_LOG_DIRS, dirs=[]), 2
    yield (
        "elect",
        request(
            ApiKey.ELECT_LEADERS,
            election_type=0,
            timeout_ms=1_000,
            topic_partitions=[{"topic": "nosuch", "partitions": [0]}],
        ),
        2,
    )
    yield (
        "reassign",
        request(
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            timeout_ms=1_000,
            topics=[{"name": "nosuch", "partitions": [{"partition_index": 0, "replicas": [1]}]}],
        ),
        0,
    )
    yield "reassignments", request(ApiKey.LIST_PARTITION_REASSIGNMENTS, timeout_ms=1_000, topics=None), 0
    yield "features", request(ApiKey.UPDATE_FEATURES, timeout_ms=1_000, feature_updates=[], validate_only=True), 1
    yield "unregister", request(ApiKey.UNREGISTER_BROKER, broker_id=77), 0
    yield (
        "quorum",
        request(
            ApiKey.DESCRIBE_QUORUM,
            topics=[{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}],
        ),
        1,
    )


SHARE = 2
"""The key type of share groups in FindCoordinator."""

SHARE_GROUPS = ("gs", "hs")
"""Share groups with a member that has partitions of t and u."""


def of_shares(ids: dict[str, Any]) -> Iterator[tuple[str, Any, int]]:
    """Yield the requests of share groups, as `requests`."""
    for version in (3, 5, 6):
        for key in ("g:AAAAAAAAAAAAAAAAAAAAAA:0", "odd"):
            keys = {"key": key} if version < 4 else {"coordinator_keys": [key]}
            yield f"find share state {key}", request(ApiKey.FIND_COORDINATOR, key_type=SHARE, **keys), version
    for group in ("g", "h", "gs", "hs"):
        yield from _of_share_members(group)
    for session in (("g", "m"), ("h", "m"), (None, "m"), ("g", "")):
        yield from _of_share_records(*session, ids)
    described = {"group_ids": ["hs", "gs", "g", "gx", ""], "include_authorized_operations": True}
    yield "describe share groups", request(ApiKey.SHARE_GROUP_DESCRIBE, **described), 1
    yield from _of_share_offsets()
    for group in ("g", "h"):
        yield from _of_share_state(group, ids)
    yield "delete share groups", request(ApiKey.DELETE_GROUPS, groups_names=["hs", "gs"]), 2


def _of_share_members(group: str) -> Iterator[tuple[str, Any, int]]:
    for subscription in (["t"], ["t", "u"], ["nosuch"], None):
        for member in ("nobody", ""):
            heart = {"group_id": group, "member_id": member, "member_epoch": 5}
            yield (
                f"share heartbeat {subscription}",
                request(ApiKey.SHARE_GROUP_HEARTBEAT, **heart, subscribed_topic_names=subscription),
                1,
            )


def _of_share_records(group: str | None, member: str, ids: dict[str, Any]) -> Iterator[tuple[str, Any, int]]:
    session = {"group_id": group, "member_id": member}
    acknowledged = [{"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]}]
    added = [{"topic_id": ids[each], "partitions": [{"partition_index": 0}]} for each in ("t", "u")]
    rows = [{"partition_index": each, "acknowledgement_batches": acknowledged} for each in (0, 9)]
    topics = [{"topic_id": ids[each], "partitions": rows} for each in ("t", "u")]
    # without records nothing depends on what was acquired before
    nothing = {"max_wait_ms": 0, "max_records": 0}
    for version in (1, 2):
        opening = request(ApiKey.SHARE_FETCH, **session, **nothing, share_session_epoch=0, topics=added)
        yield f"share fetch of {group}", opening, version
        going_on = request(ApiKey.SHARE_FETCH, **session, **nothing, share_session_epoch=1, topics=topics)
        yield f"share fetch with acknowledgements of {group}", going_on, version
        asked = request(ApiKey.SHARE_ACKNOWLEDGE, **session, share_session_epoch=2, topics=topics)
        yield f"acknowledge in {group}", asked, version
        asked = request(ApiKey.SHARE_ACKNOWLEDGE, **session, share_session_epoch=-1, topics=topics)
        yield f"last acknowledgement in {group}", asked, version


def _of_share_offsets() -> Iterator[tuple[str, Any, int]]:
    named = [{"topic_name": each, "partitions": [0]} for each in TOPICS]
    groups = [{"group_id": each, "topics": named} for each in ("hs", "gs", "gx")]
    yield "describe share offsets", request(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, groups=groups), 1
    every = [{"group_id": each, "topics": None} for each in ("hs", "gs", "gx")]
    yield "describe all share offsets", request(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, groups=every), 0
    rows = [{"topic_name": each, "partitions": [{"partition_index": 0, "start_offset": 0}]} for each in TOPICS]
    for chosen in (rows, rows[1:2], []):
        for group in ("ge", "he", "gs", "g"):
            altered = {"group_id": group, "topics": chosen}
            yield f"alter share offsets of {group}", request(ApiKey.ALTER_SHARE_GROUP_OFFSETS, **altered), 0
    names = [{"topic_name": each} for each in TOPICS]
    for gone in (names[1:2], names, []):
        for group in ("ge", "he", "gs", "g", "gx"):
            deleted = {"group_id": group, "topics": gone}
            yield f"delete share offsets of {group}", request(ApiKey.DELETE_SHARE_GROUP_OFFSETS, **deleted), 0


def _of_share_state(group: str, ids: dict[str, Any]) -> Iterator[tuple[str, Any, int]]:
    for name, key, fields, version in (
        ("initialize", ApiKey.INITIALIZE_SHARE_GROUP_STATE, {"state_epoch": 1, "start_offset": 0}, 0),
        ("read", ApiKey.READ_SHARE_GROUP_STATE, {"leader_epoch": 0}, 0),
        ("write", ApiKey.WRITE_SHARE_GROUP_STATE, {"state_epoch": 1, "leader_epoch": 0, "start_offset": 0}, 1),
        ("summary", ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, {"leader_epoch": 0}, 1),
        ("delete", ApiKey.DELETE_SHARE_GROUP_STATE, {}, 0),
    ):
        rows = [{"topic_id": ids[each], "partitions": [{"partition": 0, **fields}]} for each in ("t", "u")]
        yield f"{name} share state of {group}", request(key, group_id=group, topics=rows), version
