"""The columns that the trace takes from requests and responses: group, member, error and body."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from koordinator.wire.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from koordinator.wire.messages.connect_protocol import CONNECT, read_worker_assignment
from koordinator.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from koordinator.wire.messages.consumer_protocol import read_assignment, read_subscription
from koordinator.wire.messages.end_txn import EndTxnRequest
from koordinator.wire.messages.fetch import FetchRequest, FetchResponse
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from koordinator.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from koordinator.wire.messages.list_offsets import ListOffsetsResponse
from koordinator.wire.messages.metadata import MetadataResponse
from koordinator.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from koordinator.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from koordinator.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from koordinator.wire.messages.produce import ProduceResponse
from koordinator.wire.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from koordinator.wire.messages.share_fetch import AcknowledgementBatch, ShareFetchRequest, ShareFetchResponse
from koordinator.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from koordinator.wire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from koordinator.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from koordinator.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from koordinator.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from koordinator.wire.primitives import Malformed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from koordinator.wire.apis import Message
    from koordinator.wire.messages.consumer_group_heartbeat import TopicPartitions
    from koordinator.wire.messages.offset_commit import OffsetCommitRequestTopic, OffsetCommitResponseTopic
    from koordinator.wire.messages.share_group_heartbeat import TopicPartitions as SharePartitions
    from koordinator.wire.messages.streams_group_heartbeat import Topology
    from koordinator.wire.messages.txn_offset_commit import TxnOffsetCommitRequestTopic, TxnOffsetCommitResponseTopic

    CommittedTopic = (
        OffsetCommitRequestTopic
        | OffsetCommitResponseTopic
        | TxnOffsetCommitRequestTopic
        | TxnOffsetCommitResponseTopic
    )
    TopicName = Callable[[UUID], str | None]
    NameOf = Callable[[UUID], str]

Line = dict[str, object]

BODY_BYTES_MAX = 4 * 1024 * 1024
"""The largest message with a body in its line, in bytes; a list of 10,000 members for the leader is smaller."""

ACKNOWLEDGE_TYPES = {0: "gap", 1: "accept", 2: "release", 3: "reject", 4: "renew"}
"""The types of acknowledgements (KIP-932, KIP-1222)."""

GROUP_KEY = 0
"""The key type of a group id in FindCoordinator."""

WITH_BODY = frozenset(
    {
        JoinGroupRequest,
        JoinGroupResponse,
        SyncGroupRequest,
        SyncGroupResponse,
        LeaveGroupRequest,
        LeaveGroupResponse,
        OffsetCommitRequest,
        OffsetCommitResponse,
        TxnOffsetCommitRequest,
        TxnOffsetCommitResponse,
        WriteTxnMarkersRequest,
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
        ShareGroupHeartbeatRequest,
        ShareGroupHeartbeatResponse,
        StreamsGroupHeartbeatRequest,
        StreamsGroupHeartbeatResponse,
        ShareFetchRequest,
        ShareFetchResponse,
        ShareAcknowledgeRequest,
        ShareAcknowledgeResponse,
    }
)
"""The messages whose lines have a body."""


EPOCH_RESPONSES = (ConsumerGroupHeartbeatResponse, ShareGroupHeartbeatResponse, StreamsGroupHeartbeatResponse)
"""Responses with the epoch of a member."""

MULTI_GROUP_REQUESTS = frozenset({OffsetFetchRequest, FindCoordinatorRequest})
"""Requests that may name several groups."""

ROW_ERROR_RESPONSES = frozenset(
    {
        AddPartitionsToTxnResponse,
        FetchResponse,
        FindCoordinatorResponse,
        LeaveGroupResponse,
        ListOffsetsResponse,
        MetadataResponse,
        OffsetCommitResponse,
        OffsetFetchResponse,
        OffsetForLeaderEpochResponse,
        ProduceResponse,
        ShareAcknowledgeResponse,
        ShareFetchResponse,
        TxnOffsetCommitResponse,
        WriteTxnMarkersResponse,
    }
)
"""Responses whose rows have error codes."""


def group_of_request(request: Message) -> str | None:
    """Return the group that a request names; None if it names none or several."""
    if type(request) not in MULTI_GROUP_REQUESTS:
        group_id: str | None = getattr(request, "group_id", None)
        return group_id
    if isinstance(request, OffsetFetchRequest):
        return request.groups[0].group_id if len(request.groups) == 1 else None
    assert isinstance(request, FindCoordinatorRequest)
    keys = request.coordinator_keys or (request.key,)
    return keys[0] if len(keys) == 1 and request.key_type == GROUP_KEY else None


def error_of(response: Message) -> int:
    """Return the error code of a response, else the first error code of its rows; 0 for success."""
    if type(response) not in ROW_ERROR_RESPONSES:
        code: int = getattr(response, "error_code", 0)
        return code
    rows: Iterable[int]
    match response:
        case (
            OffsetCommitResponse() | TxnOffsetCommitResponse() | ListOffsetsResponse() | OffsetForLeaderEpochResponse()
        ):
            rows = (row.error_code for topic in response.topics for row in topic.partitions)
        case MetadataResponse():
            rows = (response.error_code, *(row.error_code for row in response.topics))
        case ProduceResponse():
            rows = (row.error_code for topic in response.responses for row in topic.partition_responses)
        case FetchResponse() | ShareAcknowledgeResponse():
            rows = (response.error_code, *(row.error_code for topic in response.responses for row in topic.partitions))
        case ShareFetchResponse():
            fetched = [row for topic in response.responses for row in topic.partitions]
            codes = (code for row in fetched for code in (row.error_code, row.acknowledge_error_code))
            rows = (response.error_code, *codes)
        case AddPartitionsToTxnResponse():
            added = [*response.results_by_topic_v3_and_below]
            added += [topic for each in response.results_by_transaction for topic in each.topic_results]
            rows = (row.partition_error_code for topic in added for row in topic.results_by_partition)
        case WriteTxnMarkersResponse():
            topics = [topic for marker in response.markers for topic in marker.topics]
            rows = (row.error_code for topic in topics for row in topic.partitions)
        case LeaveGroupResponse():
            rows = (response.error_code, *(row.error_code for row in response.members))
        case OffsetFetchResponse():
            rows = (response.error_code, *(row.error_code for row in response.groups))
        case FindCoordinatorResponse():
            rows = (response.error_code, *(row.error_code for row in response.coordinators))
        case _:
            raise AssertionError(f"the rows of {type(response).__name__} are not declared here")
    return next((code for code in rows if code), 0)


def sender_columns(request: Message) -> Line:
    """Return the member, instance and generation that a request names."""
    member_id = getattr(request, "member_id", None)
    instance_id = getattr(request, "group_instance_id", getattr(request, "instance_id", None))
    if isinstance(request, LeaveGroupRequest) and len(request.members) == 1:
        member_id, instance_id = request.members[0].member_id, request.members[0].group_instance_id
    epochs = (
        getattr(request, name, None) for name in ("generation_id", "generation_id_or_member_epoch", "member_epoch")
    )
    generation = next((epoch for epoch in epochs if epoch is not None), None)
    return {
        "member_id": member_id or None,
        "instance_id": instance_id,
        "generation": generation,
    }


def join_columns(response: Message) -> Line:
    """Return the member id and generation that a JoinGroup response assigns, or a heartbeat of the newer protocols."""
    if isinstance(response, EPOCH_RESPONSES) and not response.error_code:
        return {"member_id": response.member_id, "generation": response.member_epoch}
    if not isinstance(response, JoinGroupResponse):
        return {}
    columns: Line = {"member_id": response.member_id} if response.member_id else {}
    if response.generation_id >= 0:
        columns["generation"] = response.generation_id
    return columns


def client_reason(request: Message) -> str | None:
    """Return the reason that a client gives in JoinGroup or LeaveGroup (KIP-800)."""
    if isinstance(request, JoinGroupRequest):
        return request.reason
    if isinstance(request, LeaveGroupRequest):
        return next((member.reason for member in request.members if member.reason), None)
    return None


def body_of(message: Message, size: int, topic_name: TopicName) -> Line | None:
    """Return the body of a message of `size` bytes; `{"omitted_bytes": size}` for one above BODY_BYTES_MAX.

    `topic_name` returns the name of the topic of an id; an unknown id stays.
    """
    kind = type(message)
    if size > BODY_BYTES_MAX and kind in WITH_BODY:
        return {"omitted_bytes": size}
    # the registries of `singledispatch`: calling it would look into a dictionary of weak references first
    if kind in _body_with_ids.registry:
        named: Line | None = _body_with_ids.registry[kind](message, lambda at: topic_name(at) or str(at))
        return named
    columns = _body.registry.get(kind)
    return None if columns is None else columns(message)


@singledispatch
def _body(message: object) -> Line | None:
    """Return the body of a message; heartbeats of classic groups have none."""
    del message
    return None


@singledispatch
def _body_with_ids(message: object, name_of: NameOf) -> Line | None:
    """Return the body of a message that may have topic ids, with the names of the topics."""
    raise NotImplementedError


@_body.register
def _(response: FindCoordinatorResponse) -> Line | None:
    nodes = [row.node_id for row in response.coordinators] or [response.node_id]
    return {"coordinator": nodes[0]} if len(nodes) == 1 and nodes[0] >= 0 else None


@_body.register
def _(request: JoinGroupRequest) -> Line:
    return {
        "session_timeout_ms": request.session_timeout_ms,
        # v0 has none: it is the session timeout (KIP-62)
        "rebalance_timeout_ms": request.session_timeout_ms
        if request.rebalance_timeout_ms < 0
        else request.rebalance_timeout_ms,
        "protocol_type": request.protocol_type,
        "protocols": [protocol.name for protocol in request.protocols],
        **_subscription(request),
    }


@_body.register
def _(response: JoinGroupResponse) -> Line | None:
    if response.error_code:
        return None
    return {
        "protocol": response.protocol_name,
        "leader": response.leader,
        "members": [member.member_id for member in response.members],
        "skip_assignment": response.skip_assignment or None,
    }


@_body_with_ids.register(ConsumerGroupHeartbeatRequest)
def _(request: ConsumerGroupHeartbeatRequest, name_of: NameOf) -> Line | None:
    names, owned = request.subscribed_topic_names, request.topic_partitions
    body = {
        "rebalance_timeout_ms": None if request.rebalance_timeout_ms < 0 else request.rebalance_timeout_ms,
        "topics": None if names is None else list(names),
        "pattern": request.subscribed_topic_regex,
        "assignor": request.server_assignor,
        "owned": None if owned is None else _by_name(owned, name_of),
    }
    return {name: value for name, value in body.items() if value is not None} or None


@_body_with_ids.register(ShareGroupHeartbeatRequest)
def _(request: ShareGroupHeartbeatRequest, name_of: NameOf) -> Line | None:
    del name_of
    return None if request.subscribed_topic_names is None else {"topics": list(request.subscribed_topic_names)}


@_body_with_ids.register(ConsumerGroupHeartbeatResponse)
@_body_with_ids.register(ShareGroupHeartbeatResponse)
def _(response: ConsumerGroupHeartbeatResponse | ShareGroupHeartbeatResponse, name_of: NameOf) -> Line | None:
    if response.error_code:
        return {"message": response.error_message} if response.error_message else None
    body: Line = {"heartbeat_interval_ms": response.heartbeat_interval_ms}
    given = response.assignment
    return body if given is None else {**body, "assignment": _by_name(given.topic_partitions, name_of)}


@_body.register
def _(request: StreamsGroupHeartbeatRequest) -> Line | None:
    topology, owned = request.topology, _tasks(request)
    body: Line = {} if topology is None else {"topics": _inputs(topology)}
    if owned is not None:
        body["owned_tasks"] = owned
    return body or None


@_body.register
def _(response: StreamsGroupHeartbeatResponse) -> Line | None:
    if response.error_code:
        return {"message": response.error_message} if response.error_message else None
    body: Line = {"heartbeat_interval_ms": response.heartbeat_interval_ms}
    tasks = _tasks(response)
    if tasks is not None:
        body["tasks"] = tasks
    if response.status:
        body["status"] = [[row.status_code, row.status_detail] for row in response.status]
    return body


def _inputs(topology: Topology) -> list[str]:
    """Return the topics that a topology reads."""
    names = (
        name
        for each in topology.subtopologies
        for name in (*each.source_topics, *(topic.name for topic in each.repartition_source_topics))
    )
    return list(dict.fromkeys(names))


def _tasks(message: StreamsGroupHeartbeatRequest | StreamsGroupHeartbeatResponse) -> Line | None:
    """Return the partitions of tasks by type and subtopology; without warm-up tasks if there are none."""
    kinds = {"active": message.active_tasks, "standby": message.standby_tasks, "warmup": message.warmup_tasks or None}
    named: Line = {
        kind: {row.subtopology_id: list(row.partitions) for row in rows}
        for kind, rows in kinds.items()
        if rows is not None
    }
    return named or None


@_body_with_ids.register(ShareFetchRequest)
@_body_with_ids.register(ShareAcknowledgeRequest)
def _(request: ShareFetchRequest | ShareAcknowledgeRequest, name_of: NameOf) -> Line:
    rows = [
        [name_of(topic.topic_id), row.partition_index, batch.first_offset, batch.last_offset, acknowledged(batch)]
        for topic in request.topics
        for row in topic.partitions
        for batch in row.acknowledgement_batches
    ]
    body: Line = {"session_epoch": request.share_session_epoch}
    return {**body, "acknowledged": rows} if rows else body


@_body_with_ids.register(ShareFetchResponse)
def _(response: ShareFetchResponse, name_of: NameOf) -> Line | None:
    rows = [(name_of(topic.topic_id), row) for topic in response.responses for row in topic.partitions]
    acquired = [
        [name, row.partition_index, each.first_offset, each.last_offset, each.delivery_count]
        for name, row in rows
        for each in row.acquired_records
    ]
    refused = [
        [name, row.partition_index, row.acknowledge_error_code] for name, row in rows if row.acknowledge_error_code
    ]
    body: Line = {}
    if acquired:
        body["acquired"] = acquired
    if refused:
        body["refused"] = refused
    return body or None


@_body_with_ids.register(ShareAcknowledgeResponse)
def _(response: ShareAcknowledgeResponse, name_of: NameOf) -> Line | None:
    refused = [
        [name_of(topic.topic_id), row.partition_index, row.error_code]
        for topic in response.responses
        for row in topic.partitions
        if row.error_code
    ]
    return {"refused": refused} if refused else None


def acknowledged(batch: AcknowledgementBatch) -> list[str]:
    """Return how a batch of records is acknowledged: one word for all, or one for each record."""
    return [ACKNOWLEDGE_TYPES.get(each, str(each)) for each in batch.acknowledge_types]


@_body.register
def _(request: SyncGroupRequest) -> Line | None:
    assignments = {row.member_id: assigned(row.assignment) for row in request.assignments}
    return {"assignments": assignments} if assignments else None


@_body.register
def _(response: SyncGroupResponse) -> Line | None:
    if response.error_code:
        return None
    if response.protocol_type == CONNECT:
        return _worker_assignment(response.assignment)
    return {"assignment": assigned(response.assignment)}


@_body.register
def _(response: LeaveGroupResponse) -> Line | None:
    members = {row.member_id or row.group_instance_id or "": row.error_code for row in response.members}
    return {"members": members} if members else None


@_body_with_ids.register(OffsetCommitRequest)
@_body_with_ids.register(TxnOffsetCommitRequest)
def _(request: OffsetCommitRequest | TxnOffsetCommitRequest, name_of: NameOf) -> Line:
    offsets = [
        [_name(topic, name_of), row.partition_index, row.committed_offset]
        for topic in request.topics
        for row in topic.partitions
    ]
    producer = _producer(request) if isinstance(request, TxnOffsetCommitRequest) else {}
    return {**producer, "offsets": offsets}


@_body.register
def _(request: FetchRequest) -> Line | None:
    return {"isolation_level": "read_committed"} if request.isolation_level else None


@_body.register
def _(request: WriteTxnMarkersRequest) -> Line:
    return {
        "markers": [
            [topic.name, partition, marker.producer_id, marker.producer_epoch, marker.transaction_result]
            for marker in request.markers
            for topic in marker.topics
            for partition in topic.partition_indexes
        ]
    }


@_body.register
def _(request: EndTxnRequest) -> Line:
    return {**_producer(request), "commit": request.committed}


@_body_with_ids.register(OffsetCommitResponse)
@_body_with_ids.register(TxnOffsetCommitResponse)
def _(response: OffsetCommitResponse | TxnOffsetCommitResponse, name_of: NameOf) -> Line | None:
    refused = [
        [_name(topic, name_of), row.partition_index, row.error_code]
        for topic in response.topics
        for row in topic.partitions
        if row.error_code
    ]
    return {"refused": refused} if refused else None


def assigned(assignment: bytes) -> dict[str, list[int]] | None:
    """Return a consumer's assignment, topic -> partitions; None if the bytes are empty or of another protocol."""
    try:
        return {row.topic: list(row.partitions) for row in read_assignment(assignment).assigned_partitions}
    except Malformed:
        return None


def _name(topic: CommittedTopic, name_of: NameOf) -> str:
    return topic.name or name_of(topic.topic_id)


def _by_name(partitions: Iterable[TopicPartitions | SharePartitions], name_of: NameOf) -> dict[str, list[int]]:
    named: dict[str, list[int]] = {}
    for row in partitions:
        # a topic that was deleted and created again has two ids
        named.setdefault(name_of(row.topic_id), []).extend(row.partitions)
    return named


def _producer(request: EndTxnRequest | TxnOffsetCommitRequest) -> Line:
    return {
        "transactional_id": request.transactional_id,
        "producer_id": request.producer_id,
        "producer_epoch": request.producer_epoch,
    }


def _worker_assignment(assignment: bytes) -> Line | None:
    """Return the tasks that a Kafka Connect worker starts and stops, by connector, and its rejoin delay in ms."""
    try:
        worker = read_worker_assignment(assignment)
    except Malformed:
        return None
    body: Line = {
        "started": {row.connector: list(row.tasks) for row in worker.assignment or ()},
        "stopped": {row.connector: list(row.tasks) for row in worker.revoked or ()},
    }
    return {**body, "delay_ms": worker.delay} if worker.delay else body


def _subscription(request: JoinGroupRequest) -> Line:
    """Return the subscribed topics and the partitions still owned (KIP-429), from the consumer's first protocol."""
    try:
        subscription = read_subscription(request.protocols[0].metadata) if request.protocols else None
    except Malformed:
        subscription = None
    if subscription is None:
        return {"topics": None}
    owned = {row.topic: list(row.partitions) for row in subscription.owned_partitions}
    return {"topics": list(subscription.topics), **({"owned": owned} if owned else {})}
