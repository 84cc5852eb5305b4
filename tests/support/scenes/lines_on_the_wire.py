"""Hand-written trace lines whose messages go over the wire in a version, and from there into the lines again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from builders import requests
from builders.requests import within

from koordinator.emulator.broker.api_table import ADAPTERS, kafka
from koordinator.emulator.broker.error_responses import error_response
from koordinator.emulator.core.effects import Call
from koordinator.emulator.trace.messages import (
    ACKNOWLEDGE_TYPES,
    MULTI_GROUP_REQUESTS,
    body_of,
    error_of,
    group_of_request,
    join_columns,
    sender_columns,
)
from koordinator.wire.apis import APIS
from koordinator.wire.codec import decode, encode
from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from koordinator.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    write_assignment,
    write_subscription,
)
from koordinator.wire.messages.fetch import FetchRequest
from koordinator.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from koordinator.wire.messages.heartbeat import HeartbeatResponse
from koordinator.wire.messages.join_group import (
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from koordinator.wire.messages.leave_group import LeaveGroupResponse
from koordinator.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from koordinator.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from koordinator.wire.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from koordinator.wire.messages.share_fetch import AcknowledgementBatch as FetchBatch
from koordinator.wire.messages.share_fetch import (
    AcquiredRecords,
    FetchPartition,
    FetchTopic,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from koordinator.wire.messages.share_fetch import PartitionData as ShareData
from koordinator.wire.messages.sync_group import SyncGroupResponse
from koordinator.wire.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from koordinator.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from koordinator.wire.schema import fields_of
from scenes.trace_tales import INTERVAL_MS, REBALANCE_MS, SESSION_MS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.trace.exchanges import Line

GROUP, TOPIC, TOPIC_ID = "g", "t", UUID(int=7)
"""The group and the topic of the lines."""

API_KEYS = {api.name: key for key, api in APIS.items()}

GROUP_APIS = sorted(
    api.name
    for api in APIS.values()
    if ("group_id" in fields_of(api.request) or api.request in MULTI_GROUP_REQUESTS)
    and "ShareGroupState" not in api.name
)
"""The APIs of clients whose requests name a group; those of share coordinators are for brokers."""


def over_the_wire(lines: Iterable[Line], api: str, version: int) -> None:
    """Replace the columns of an API's lines by those that the trace takes from the messages of a version."""
    cls, key = APIS[API_KEYS[api]], API_KEYS[api]
    requests: dict[int, Any] = {}
    for line in lines:
        if line.get("api") != api or line["kind"] not in ("request", "response"):
            continue
        number, line["api_version"] = line["correlation_id"], version
        if line["kind"] == "request":
            request = within(request_of(line, version), version)
            sent = requests[number] = decode(cls.request, version, encode(request, version), exact=True)
            columns: Line = {
                **sender_columns(sent),
                "group_id": group_of_request(sent),
                "body": body_of(sent, 1, lambda _: TOPIC),
            }
        else:
            call = Call(1, number, key, version, "c", "/127.0.0.1")
            answer = response_of(line, requests[number], call)
            error = Error(error_of(answer))
            rendered = ADAPTERS[key].rendered(answer, version, kafka)
            received = decode(cls.response, version, encode(rendered, version), exact=True)
            columns = {
                **join_columns(received),
                "error": None if error is Error.NONE else error.name,
                "body": body_of(received, 1, lambda _: TOPIC) or (line.get("body") if api == "Fetch" else None),
            }
        line.update(columns)
        for name in [name for name, value in line.items() if value is None]:
            del line[name]


def request_of(line: Line, version: int) -> Any:
    """Return the request of a line."""
    body, member_id = line.get("body") or {}, line.get("member_id", "")
    instance, generation = line.get("instance_id"), line.get("generation", -1)
    identity = {"group_id": GROUP, "member_id": member_id, "group_instance_id": instance}
    match line["api"]:
        case "JoinGroup":
            subscription = ConsumerProtocolSubscription(
                topics=tuple(body.get("topics", ())), owned_partitions=_partitions(body.get("owned"))
            )
            return requests.join_group(
                GROUP,
                member_id,
                instance,
                session_ms=body.get("session_timeout_ms", SESSION_MS),
                rebalance_ms=body.get("rebalance_timeout_ms", REBALANCE_MS),
                protocols=[(name, write_subscription(subscription)) for name in body.get("protocols", ("range",))],
            )
        case "SyncGroup":
            given = (body.get("assignments") or {}).items()
            plan = {each: _assignment(held) for each, held in given}
            return requests.sync_group(GROUP, generation, member_id, plan, instance)
        case "LeaveGroup":
            return requests.leave_group(version, GROUP, (member_id, instance))
        case "FindCoordinator":
            return FindCoordinatorRequest(key=GROUP, coordinator_keys=(GROUP,))
        case "OffsetCommit":
            offsets = {(TOPIC, number): offset for _, number, offset in body.get("offsets", [[TOPIC, 0, 1]])}
            return requests.offset_commit(GROUP, offsets, generation, member_id, instance, ids={TOPIC: TOPIC_ID})
        case "TxnOffsetCommit":
            rows = body.get("offsets", [[TOPIC, 0, 1]])
            offsets = {(name, number): offset for name, number, offset in rows}
            producer = (
                body.get("transactional_id", "x"),
                body.get("producer_id", 1),
                body.get("producer_epoch", 0),
            )
            ids = {name: TOPIC_ID for name, _, _ in rows}
            return requests.txn_offset_commit(producer, GROUP, offsets, generation, member_id, instance, ids=ids)
        case "OffsetFetch":
            return requests.offset_fetch(version, GROUP, [(TOPIC, 0)], ids={TOPIC: TOPIC_ID})
        case "ConsumerGroupHeartbeat":
            owned = body.get("owned")
            return requests.consumer_group_heartbeat(
                GROUP,
                member_id,
                generation,
                instance,
                topics=body.get("topics"),
                owned=owned and {TOPIC_ID: owned[TOPIC]},
                rebalance_ms=body.get("rebalance_timeout_ms", -1),
            )
        case "WriteTxnMarkers":
            return WriteTxnMarkersRequest(
                markers=tuple(
                    WritableTxnMarker(
                        producer_id=producer_id,
                        producer_epoch=epoch,
                        transaction_result=is_commit,
                        topics=(WritableTxnMarkerTopic(name=topic, partition_indexes=(partition,)),),
                    )
                    for topic, partition, producer_id, epoch, is_commit in body["markers"]
                )
            )
        case "Fetch":
            return FetchRequest()
        case "ShareFetch" | "ShareAcknowledge" as api:
            return _share_request(api, member_id, body)
    cls = APIS[API_KEYS[line["api"]]].request
    values = {**identity, "generation_id": generation}
    return cls(**{name: value for name, value in values.items() if name in fields_of(cls)})


def response_of(line: Line, request: Any, call: Call) -> Any:
    """Return the response of a line."""
    body, error = line.get("body") or {}, Error[line.get("error") or "NONE"]
    api = line["api"]
    if api == "JoinGroup":
        return JoinGroupResponse(
            error_code=error,
            generation_id=line.get("generation", -1),
            protocol_name=body.get("protocol", ""),
            leader=body.get("leader", ""),
            member_id=line.get("member_id", ""),
            members=tuple(JoinGroupResponseMember(member_id=each) for each in body.get("members") or ()),
        )
    if error is not Error.NONE:
        return error_response(call, request, error, None)
    match api:
        case "SyncGroup":
            return SyncGroupResponse(assignment=_assignment(body.get("assignment")))
        case "Heartbeat":
            return HeartbeatResponse()
        case "LeaveGroup":
            return LeaveGroupResponse()
        case "FindCoordinator":
            return FindCoordinatorResponse(coordinators=(Coordinator(key=GROUP, node_id=1),))
        case "OffsetCommit":
            return OffsetCommitResponse(
                topics=tuple(
                    OffsetCommitResponseTopic(
                        name=topic.name,
                        topic_id=topic.topic_id,
                        partitions=tuple(
                            OffsetCommitResponsePartition(partition_index=row.partition_index)
                            for row in topic.partitions
                        ),
                    )
                    for topic in request.topics
                )
            )
        case "TxnOffsetCommit":
            return TxnOffsetCommitResponse(
                topics=tuple(
                    TxnOffsetCommitResponseTopic(
                        name=topic.name,
                        topic_id=topic.topic_id,
                        partitions=tuple(
                            TxnOffsetCommitResponsePartition(partition_index=row.partition_index)
                            for row in topic.partitions
                        ),
                    )
                    for topic in request.topics
                )
            )
        case "ConsumerGroupHeartbeat":
            given = body.get("assignment")
            return ConsumerGroupHeartbeatResponse(
                member_id=request.member_id,
                member_epoch=line.get("generation", 0),
                heartbeat_interval_ms=body.get("heartbeat_interval_ms", INTERVAL_MS),
                assignment=None if given is None else Assignment(topic_partitions=_by_id(given)),
            )
        case "OffsetFetch":
            return OffsetFetchResponse(groups=(OffsetFetchResponseGroup(group_id=GROUP),))
        case "ShareFetch":
            return _share_fetch_response(body)
    return APIS[API_KEYS[api]].response()


def _share_request(api: str, member_id: str, body: Line) -> Any:
    sender = {"group_id": GROUP, "member_id": member_id, "share_session_epoch": body.get("session_epoch", 1)}
    if api == "ShareFetch":
        rows = tuple(FetchBatch(**each) for each in _batches(body))
        part = FetchPartition(partition_index=0, acknowledgement_batches=rows)
        return ShareFetchRequest(**sender, topics=(FetchTopic(topic_id=TOPIC_ID, partitions=(part,)),))
    batches = tuple(AcknowledgementBatch(**each) for each in _batches(body))
    partition = AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
    return ShareAcknowledgeRequest(**sender, topics=(AcknowledgeTopic(topic_id=TOPIC_ID, partitions=(partition,)),))


def _share_fetch_response(body: Line) -> ShareFetchResponse:
    acquired = tuple(
        AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
        for _, _, first, last, count in body.get("acquired", ())
    )
    row = ShareData(partition_index=0, records=b"", acquired_records=acquired)
    return ShareFetchResponse(responses=(ShareFetchableTopicResponse(topic_id=TOPIC_ID, partitions=(row,)),))


def _batches(body: Line) -> Iterable[dict[str, Any]]:
    """Yield the fields of the acknowledgements in a body."""
    numbers = {word: number for number, word in ACKNOWLEDGE_TYPES.items()}
    for _, _, first, last, types in body.get("acknowledged", ()):
        kinds = tuple(numbers[each] for each in types)
        yield {"first_offset": first, "last_offset": last, "acknowledge_types": kinds}


def _partitions(topics: dict[str, list[int]] | None) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic=topic, partitions=tuple(held)) for topic, held in (topics or {}).items())


def _assignment(topics: dict[str, list[int]] | None) -> bytes:
    return write_assignment(ConsumerProtocolAssignment(assigned_partitions=_partitions(topics)))


def _by_id(topics: dict[str, list[int]]) -> tuple[TopicPartitions, ...]:
    return tuple(TopicPartitions(topic_id=TOPIC_ID, partitions=tuple(numbers)) for numbers in topics.values())
