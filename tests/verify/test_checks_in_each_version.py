"""Each client check has its failing scene in each version of the APIs that it reads.

The requests and responses of hand-written scenes go over the wire in that version, and from there into trace lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from scenes.trace_tales import REBALANCE_MS, SESSION_MS, STABLE, Tale, judge

from koordinator.emulator.broker.api_table import ADAPTERS, kafka
from koordinator.emulator.trace.messages import body_of, join_columns, sender_columns
from koordinator.wire.apis import APIS
from koordinator.wire.codec import decode, encode
from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    write_assignment,
    write_subscription,
)
from koordinator.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from koordinator.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from koordinator.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from koordinator.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from koordinator.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.emulator.verify.group_trace import Line

TOPIC_ID = UUID(int=7)

API_KEYS = {api.name: key for key, api in APIS.items()}


def partitions_of(topics: dict[str, list[int]] | None) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic=topic, partitions=tuple(held)) for topic, held in (topics or {}).items())


def assignment_of(topics: dict[str, list[int]] | None) -> bytes:
    return write_assignment(ConsumerProtocolAssignment(assigned_partitions=partitions_of(topics)))


def request_of(line: Line, version: int) -> Any:
    """Return the request of a line."""
    body, member_id = line.get("body") or {}, line.get("member_id", "")
    instance, generation = line.get("instance_id"), line.get("generation", -1)
    match line["api"]:
        case "JoinGroup":
            subscription = ConsumerProtocolSubscription(
                topics=tuple(body.get("topics", ())), owned_partitions=partitions_of(body.get("owned"))
            )
            return JoinGroupRequest(
                group_id="g",
                session_timeout_ms=body.get("session_timeout_ms", SESSION_MS),
                rebalance_timeout_ms=body.get("rebalance_timeout_ms", REBALANCE_MS) if version else -1,
                member_id=member_id,
                group_instance_id=instance,
                protocol_type="consumer",
                protocols=tuple(
                    JoinGroupRequestProtocol(name=name, metadata=write_subscription(subscription))
                    for name in body.get("protocols", ("range",))
                ),
            )
        case "SyncGroup":
            given = (body.get("assignments") or {}).items()
            return SyncGroupRequest(
                group_id="g",
                generation_id=generation,
                member_id=member_id,
                group_instance_id=instance,
                assignments=tuple(
                    SyncGroupRequestAssignment(member_id=each, assignment=assignment_of(topics))
                    for each, topics in given
                ),
            )
        case "Heartbeat":
            return HeartbeatRequest(
                group_id="g", generation_id=generation, member_id=member_id, group_instance_id=instance
            )
        case "LeaveGroup":
            member = MemberIdentity(member_id=member_id, group_instance_id=instance)
            named: dict[str, Any] = {"members": (member,)} if version >= 3 else {"member_id": member_id}
            return LeaveGroupRequest(group_id="g", **named)
        case _:
            rows = tuple(
                OffsetCommitRequestPartition(partition_index=number, committed_offset=offset)
                for _, number, offset in body["offsets"]
            )
            named = {"topic_id": TOPIC_ID} if version >= 10 else {"name": "t"}
            return OffsetCommitRequest(
                group_id="g",
                generation_id_or_member_epoch=generation,
                member_id=member_id,
                group_instance_id=instance,
                topics=(OffsetCommitRequestTopic(**named, partitions=rows),),
            )


def response_of(line: Line, request: Any, version: int) -> Any:
    """Return the response of a line."""
    body, error = line.get("body") or {}, Error[line.get("error") or "NONE"]
    match line["api"]:
        case "JoinGroup":
            return JoinGroupResponse(
                error_code=error,
                generation_id=line.get("generation", -1),
                protocol_name=body.get("protocol", ""),
                leader=body.get("leader", ""),
                member_id=line.get("member_id", ""),
                members=tuple(JoinGroupResponseMember(member_id=each) for each in body.get("members") or ()),
            )
        case "SyncGroup":
            return SyncGroupResponse(error_code=error, assignment=assignment_of(body.get("assignment")))
        case "Heartbeat":
            return HeartbeatResponse(error_code=error)
        case "LeaveGroup":
            return LeaveGroupResponse(error_code=error)
        case _:
            named: dict[str, Any] = {"topic_id": TOPIC_ID} if version >= 10 else {"name": "t"}
            rows = tuple(
                OffsetCommitResponsePartition(partition_index=row.partition_index, error_code=error)
                for row in request.topics[0].partitions
            )
            return OffsetCommitResponse(topics=(OffsetCommitResponseTopic(**named, partitions=rows),))


def over_the_wire(tale: Tale, api: str, version: int) -> None:
    """Replace the columns of an API's lines by those that the trace takes from the messages of a version."""
    cls, key = APIS[API_KEYS[api]], API_KEYS[api]
    requests: dict[int, Any] = {}
    for line in tale.lines:
        if line.get("api") != api:
            continue
        number, line["api_version"] = line["correlation_id"], version
        if line["kind"] == "request":
            sent = decode(cls.request, version, encode(request_of(line, version), version), exact=True)
            requests[number] = sent
            columns: Line = {**sender_columns(sent), "body": body_of(sent, 1, lambda _: "t")}
        else:
            answer = ADAPTERS[key].render_response(response_of(line, requests[number], version), version, kafka)
            received = decode(cls.response, version, encode(answer, version), exact=True)
            columns = {**join_columns(received), "body": body_of(received, 1, lambda _: "t")}
        line.update(columns)
        for name in [name for name, value in line.items() if value is None]:
            del line[name]


COOPERATIVE = "cooperative-sticky"


def unused_id(tale: Tale) -> None:
    asked = tale.asks("JoinGroup", "a", body={"session_timeout_ms": SESSION_MS})
    tale.answers(asked, "MEMBER_ID_REQUIRED", member_id="a-1")
    tale.passes(SESSION_MS + 1)
    tale.line("timer", timer="PendingMemberExpiry", member_id="a-1")


def no_lookup(tale: Tale, api: str = "Heartbeat") -> None:
    tale.forms({"a": [0]})
    for _ in range(2):
        tale.beat("a", error="NOT_COORDINATOR") if api == "Heartbeat" else tale.commits("a", 1, error="NOT_COORDINATOR")
        tale.passes(1001)


def no_lookup_before_a_commit(tale: Tale) -> None:
    no_lookup(tale, "OffsetCommit")


def old_commit(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.forms({"a": [0]}, before=STABLE)
    tale.commits("a", 1, error="ILLEGAL_GENERATION")


def silence(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.beat("a")
    tale.passes(SESSION_MS)
    tale.beat("a")


def static_leave(tale: Tale) -> None:
    tale.forms({"a": [0]}, instances={"a": "one"})
    tale.call("LeaveGroup", "a", member_id="a", instance_id="one")


def taken_too_early(tale: Tale) -> None:
    tale.forms({"a": [0, 1]}, protocol=COOPERATIVE)
    tale.forms({"a": [0], "b": [1]}, before=STABLE, protocol=COOPERATIVE, owned={"a": [0, 1]})


def foreign_commit(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [1]}, protocol=COOPERATIVE)
    tale.commits("a", 1, 1)


def owned_twice(tale: Tale) -> None:
    tale.forms({"a": [0, 1], "b": [1]})


def no_rejoin(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.beat("a", error="REBALANCE_IN_PROGRESS")
    tale.passes(REBALANCE_MS + 1)
    tale.beat("b", 0)


def tight_loop(tale: Tale) -> None:
    for _ in range(15):
        tale.answers(tale.joins("a"), "INCONSISTENT_GROUP_PROTOCOL")
        tale.passes(20)


def refused_commit(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.commits("a", 1, error="ILLEGAL_GENERATION")
    tale.passes(REBALANCE_MS + 1)
    tale.beat("b", 0)


def no_sync(tale: Tale) -> None:
    request = tale.joins("a")
    tale.state("PreparingRebalance", "CompletingRebalance", 1, "joined")
    tale.answers(request, generation=1, body={"protocol": "range", "leader": "a", "members": ["a"]})
    tale.passes(REBALANCE_MS + 1)
    tale.beat("b", 0)


SCENES: tuple[tuple[str, Callable[[Tale], None], dict[str, int]], ...] = (
    ("C01", unused_id, {"JoinGroup": 0}),
    ("C02", no_lookup, {"Heartbeat": 0}),
    ("C02", no_lookup_before_a_commit, {"OffsetCommit": 1}),
    ("C03", old_commit, {"OffsetCommit": 1, "JoinGroup": 0}),
    ("C04", silence, {"Heartbeat": 0, "SyncGroup": 0, "JoinGroup": 0}),
    ("C05", static_leave, {"LeaveGroup": 0, "JoinGroup": 5}),
    ("C06", taken_too_early, {"JoinGroup": 0, "SyncGroup": 0}),
    ("C06", foreign_commit, {"OffsetCommit": 1, "JoinGroup": 0, "SyncGroup": 0}),
    ("C07", owned_twice, {"SyncGroup": 0, "JoinGroup": 0}),
    ("C08", no_rejoin, {"Heartbeat": 0, "JoinGroup": 0}),
    ("C09", tight_loop, {"JoinGroup": 0}),
    ("C13", refused_commit, {"OffsetCommit": 1, "JoinGroup": 0}),
    ("C14", no_sync, {"JoinGroup": 0}),
)
"""A check, its scene, and the APIs that it reads, with their first versions that can show it.

OffsetCommit v0 has no member, and JoinGroup before v5 no static member.
"""


@pytest.mark.parametrize(
    ("check", "scene", "api", "version"),
    [
        pytest.param(check, scene, api, version, id=f"{check}-{scene.__name__}-{api}-{version}")
        for check, scene, apis in SCENES
        for api, since in apis.items()
        for version in range(since, APIS[API_KEYS[api]].versions.max + 1)
    ],
)
def test_a_check_fails_in_each_version(check: str, scene: Callable[[Tale], None], api: str, version: int) -> None:
    tale = Tale()
    scene(tale)
    over_the_wire(tale, api, version)
    assert judge(tale, check, auto_commit=True).status == "fail"


def test_a_join_without_a_rebalance_timeout_has_its_session_timeout(tale: Tale) -> None:
    tale.forms({"a": [0]})
    tale.beat("a", error="REBALANCE_IN_PROGRESS")
    tale.passes(SESSION_MS)
    tale.joins("a")
    over_the_wire(tale, "JoinGroup", 0)
    assert judge(tale, "C08").status == "pass"
