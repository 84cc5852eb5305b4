"""Effects of each rule action on requests, with nodes without sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from brokers.cluster import GROUP, joining, syncing
from brokers.fault_broker import FaultyNodes, ask_once, commit_request
from builders import requests

from koordinator import faults
from koordinator.emulator.broker.api_table import ApiTable
from koordinator.emulator.broker.connections import Answer, Close
from koordinator.emulator.broker.error_responses import error_response
from koordinator.emulator.config.settings import Settings
from koordinator.emulator.control.faults.kafka_errors import KAFKA_RETURNS, PLACES_OF, REBALANCING
from koordinator.emulator.control.faults.rules import API_NAMES
from koordinator.emulator.core.data.features import Features
from koordinator.emulator.core.effects import Call
from koordinator.wire.apis import APIS
from koordinator.wire.codec import decode, encode
from koordinator.wire.errors import Error
from koordinator.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from koordinator.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from koordinator.wire.messages.api_versions import ApiVersionsRequest
from koordinator.wire.messages.delete_groups import DeleteGroupsRequest
from koordinator.wire.messages.describe_groups import DescribeGroupsRequest
from koordinator.wire.messages.end_txn import EndTxnRequest
from koordinator.wire.messages.fetch import FetchRequest
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest
from koordinator.wire.messages.list_groups import ListGroupsRequest
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from koordinator.wire.messages.produce import ProduceRequest
from koordinator.wire.schema import fields_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clients.frame_clients import Peer

    from koordinator.wire.apis import Message

HEARTBEAT = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="nobody")


def codes(response: Any) -> list[int]:
    """Return every error code in a message, including its rows."""
    result = [getattr(response, name) for name in ("error_code", "partition_error_code") if hasattr(response, name)]
    for name in getattr(type(response), "__dataclass_fields__", ()):
        value = getattr(response, name)
        if isinstance(value, tuple):
            for row in value:
                result += codes(row)
    return result


class TestErrors:
    def test_an_error_is_returned_without_applying_the_request(self) -> None:
        nodes = FaultyNodes()
        rule = nodes.rule("OffsetCommit", faults.error("COORDINATOR_LOAD_IN_PROGRESS"), once=True)
        _, answer = ask_once(nodes, commit_request(), 5)
        assert [row.error_code for row in answer.topics[0].partitions] == [14, 14]
        assert nodes.committed(1) == -1
        _, answer = ask_once(nodes, commit_request(), 5)
        assert [row.error_code for row in answer.topics[0].partitions] == [0, 0]
        assert (nodes.committed(1), nodes.hits(rule)) == (5, 1)

    def test_leave_group_errors_are_per_member_and_top_level_in_old_versions(self) -> None:
        nodes = FaultyNodes()
        nodes.rule("LeaveGroup", faults.error("FENCED_INSTANCE_ID", at="member"))
        _, answer = ask_once(nodes, requests.leave_group(3, GROUP, ("m", "i")), 3)
        assert (answer.error_code, answer.members[0].error_code, answer.members[0].group_instance_id) == (0, 82, "i")
        _, answer = ask_once(nodes, requests.leave_group(1, GROUP, "m"), 1)
        assert answer.error_code == 82

    @pytest.mark.parametrize(("numbering", "code"), [("kafka", 82), ("kip", 78)])
    def test_an_error_uses_the_configured_error_numbering(self, numbering: str, code: int) -> None:
        nodes = FaultyNodes(error_codes=numbering)
        nodes.rule("Heartbeat", faults.error("FENCED_INSTANCE_ID"))
        _, answer = ask_once(nodes, HEARTBEAT, 3)
        assert answer.error_code == code

    def test_the_trace_names_the_rule_and_marks_synthetic_errors(self) -> None:
        nodes = FaultyNodes()
        nodes.rule("Heartbeat", faults.error("GROUP_MAX_SIZE_REACHED"), id="size")
        ask_once(nodes, HEARTBEAT, 3)
        request, used, response = nodes.trace.events()[-3:]
        assert (request["kind"], request["rule_id"]) == ("request", "size")
        assert (used["kind"], used["change"], used["rule_id"]) == ("rule", "used", "size")
        assert used["body"] == {"kind": "error", "name": "GROUP_MAX_SIZE_REACHED"}
        assert (response["rule_id"], response["synthetic"], response["error"]) == (
            "size",
            True,
            "GROUP_MAX_SIZE_REACHED",
        )

    def test_a_join_refused_by_a_full_group_has_no_member_id(self) -> None:
        nodes = FaultyNodes()
        nodes.rule("JoinGroup", faults.error("GROUP_MAX_SIZE_REACHED"), once=True)
        nodes.rule("JoinGroup", faults.error("UNKNOWN_MEMBER_ID"))
        _, full = ask_once(nodes, joining(member_id="m"), 5)
        _, unknown = ask_once(nodes, joining(member_id="m"), 5)
        assert (full.member_id, unknown.member_id, full.generation_id) == ("", "m", -1)

    def test_an_error_on_produce_with_acks_0_closes_the_connection(self) -> None:
        nodes = FaultyNodes()
        nodes.rule("Produce", faults.error("NOT_LEADER_OR_FOLLOWER"))
        peer, answer = ask_once(nodes, ProduceRequest(acks=0), 7)
        assert answer is None
        assert peer.closed is not None

    def test_metadata_errors_keep_the_broker_list(self) -> None:
        nodes = FaultyNodes()
        nodes.rule("Metadata", faults.error("LEADER_NOT_AVAILABLE"))
        _, answer = ask_once(nodes, MetadataRequest(topics=(MetadataRequestTopic(name="t"),)), 5)
        assert [broker.node_id for broker in answer.brokers] == [1]
        assert [(topic.error_code, topic.partitions) for topic in answer.topics] == [(5, ())]


NO_FIELD_BEFORE = {("Fetch", "top"): 7, ("DescribeLogDirs", "top"): 3}
"""The first versions with an error for the whole response, of APIs whose rows do not mirror those of the request."""

REQUESTS: dict[str, Any] = {
    "JoinGroup": joining(),
    "SyncGroup": syncing("m"),
    "Heartbeat": HEARTBEAT,
    "OffsetCommit": commit_request(),
    "OffsetDelete": requests.offset_delete(GROUP, [("t", 0)]),
    "DescribeGroups": DescribeGroupsRequest(groups=("a", "b")),
    "ListGroups": ListGroupsRequest(),
    "DeleteGroups": DeleteGroupsRequest(groups_names=("a", "b")),
    "ListOffsets": requests.list_offsets("t", {0: 0}),
    "Produce": requests.produce("t", {0: b""}, acks=1),
    "Fetch": FetchRequest(),
    "InitProducerId": InitProducerIdRequest(),
    "AddOffsetsToTxn": AddOffsetsToTxnRequest(transactional_id="x", group_id=GROUP),
    "TxnOffsetCommit": requests.txn_offset_commit(("x", 0, 0), GROUP, {("t", 0): 0}),
    "EndTxn": EndTxnRequest(transactional_id="x"),
    "WriteTxnMarkers": requests.write_txn_markers(0, 0, [("t", 0)], commit=False),
    "ApiVersions": ApiVersionsRequest(),
}


def request_of(api: str, version: int) -> Message:
    """Return a request that is valid in this version."""
    if api == "LeaveGroup":
        return requests.leave_group(version, GROUP, "m")
    if api == "FindCoordinator":
        return FindCoordinatorRequest(**({"coordinator_keys": ("a", "b")} if version >= 4 else {"key": "a"}))
    if api == "OffsetFetch":
        return requests.offset_fetch(version, GROUP, [("t", 0)])
    if api == "AddPartitionsToTxn":
        if version < 4:
            return requests.add_partitions_to_txn(("x", 0, 0), [("t", 0)])
        topics = (AddPartitionsToTxnTopic(name="t", partitions=(0,)),)
        transaction = AddPartitionsToTxnTransaction(transactional_id="x", topics=topics)
        return AddPartitionsToTxnRequest(transactions=(transaction,))
    message: Message = REQUESTS[api] if api in REQUESTS else filled(API_NAMES[api].request, version)
    return message


def filled(cls: type[Message], version: int) -> Any:
    """Return a request or a row of one, with one element in each array of this version."""
    values: dict[str, Any] = {}
    for name, spec in fields_of(cls).items():
        if version not in spec.versions:
            continue
        if isinstance(spec.type, type):
            row = filled(spec.type, version)
            values[name] = (row,) if spec.is_array else row
        elif spec.is_array:
            values[name] = ("x",) if spec.type.value == "string" else (1,)
        elif name in {"name", "topic", "resource_name", "user", "entity_name", "entity_type"}:
            values[name] = "x"
        elif name in {"partition", "partition_index", "partition_id"}:
            values[name] = 1
    return cls(**values)


def test_every_api_has_errors() -> None:
    assert set(PLACES_OF) == set(API_NAMES)


@pytest.mark.parametrize("api", [api for api in PLACES_OF if api != "Metadata"])
def test_errors_are_rendered_at_every_level_of_every_version(api: str) -> None:
    key = next(key for key, each in APIS.items() if each.name == api)
    settings = Settings.of("fast", {})[0]
    api_table = ApiTable(settings, Features(settings))
    for version in APIS[key].versions:
        try:
            api_table.check(key, version)
        except Exception:  # noqa: BLE001, S112 - no such version in this release
            continue
        for at in PLACES_OF[api]:
            call = Call(1, 7, key, version, "c", "/127.0.0.1")
            response = error_response(call, request_of(api, version), Error.NOT_COORDINATOR, at)
            rendered = api_table.adapters[key, version].rendered(response, version, api_table.numbering)
            answer = decode(APIS[key].response, version, encode(rendered, version), exact=True)
            message = [code for code in codes(answer) if code]
            if (api, at) in NO_FIELD_BEFORE and version < NO_FIELD_BEFORE[api, at]:
                assert not message, "these versions have no error field"
            else:
                assert message
                assert set(message) == {16}


@pytest.mark.parametrize(
    ("api", "at", "rows"),
    [
        ("CreateTopics", "top", [("x",)]),
        ("DeleteRecords", "partition", [("x", 1)]),
        ("OffsetForLeaderEpoch", "partition", [("x", 1)]),
        ("AlterReplicaLogDirs", "partition", [("x", 1)]),
        ("ElectLeaders", "partition", [("x", 1)]),
        ("DescribeConfigs", "top", [("x",)]),
        ("AlterUserScramCredentials", "top", [("x",), ("x",)]),
        ("AlterClientQuotas", "top", [("x", "x")]),
        ("DescribeTransactions", "top", [("x",)]),
        ("ConsumerGroupDescribe", "top", [("x",)]),
    ],
)
def test_the_rows_of_an_error_name_those_of_the_request(api: str, at: str, rows: list[tuple[object, ...]]) -> None:
    version = API_NAMES[api].versions.max
    call = Call(1, 7, API_NAMES[api].key, version, "c", "/127.0.0.1")
    response = error_response(call, request_of(api, version), Error.UNKNOWN_SERVER_ERROR, at)
    assert list(named_rows(response)) == rows


def named_rows(message: Any) -> Iterator[tuple[object, ...]]:
    """Return the names and numbers of the innermost rows that a message has, from the outside to the inside."""
    names = {"name", "topic", "topic_name", "resource_name", "user", "transactional_id", "group_id", "entity_name"}
    names |= {"partition", "partition_index", "partition_id", "entity_type"}
    own = tuple(
        getattr(message, name)
        for name in sorted(fields_of(type(message)))
        if name in names and getattr(message, name) not in {None, ""}
    )
    inner = [
        (*own, *row)
        for name, spec in fields_of(type(message)).items()
        if spec.is_array and isinstance(spec.type, type)
        for each in getattr(message, name) or ()
        for row in named_rows(each)
    ]
    yield from inner or [own]


def test_the_table_of_kafka_errors_covers_every_level() -> None:
    assert all(Error.REBALANCE_IN_PROGRESS in KAFKA_RETURNS[api, PLACES_OF[api][0]] for api in REBALANCING)


class TestSynthetic:
    def synthetic(self, nodes: FaultyNodes, api: str, name: str, message: Any, version: int = 3) -> bool:
        rule = nodes.rule(api, faults.error(name), once=True)
        ask_once(nodes, message, version)
        assert nodes.hits(rule) == 1
        return bool(nodes.trace.events()[-1].get("synthetic", False))

    def test_rebalance_in_progress_is_genuine_only_during_a_rebalance(self) -> None:
        nodes = FaultyNodes()
        (member,) = nodes.formed(1, "one")
        heartbeat = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=member)
        assert not self.synthetic(nodes, "OffsetCommit", "REBALANCE_IN_PROGRESS", commit_request(5, member, 1), 5)
        assert self.synthetic(nodes, "Heartbeat", "REBALANCE_IN_PROGRESS", heartbeat)
        nodes.send(peer := nodes.connect(), nodes.request(peer, joining("two"), 5))
        assert self.synthetic(nodes, "OffsetCommit", "REBALANCE_IN_PROGRESS", commit_request(5, member, 1), 5)
        assert not self.synthetic(nodes, "Heartbeat", "REBALANCE_IN_PROGRESS", heartbeat)

    def test_unknown_member_id_is_genuine_only_for_unknown_members(self) -> None:
        nodes = FaultyNodes()
        (member,) = nodes.stable(1, "one")
        known = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=member)
        assert self.synthetic(nodes, "Heartbeat", "UNKNOWN_MEMBER_ID", known)
        assert not self.synthetic(nodes, "Heartbeat", "UNKNOWN_MEMBER_ID", HEARTBEAT)
        assert self.synthetic(nodes, "Heartbeat", "ILLEGAL_GENERATION", known)
        assert not self.synthetic(nodes, "Heartbeat", "NOT_COORDINATOR", known)


class TestConnections:
    def test_drop_closes_the_connection_without_applying_the_request(self) -> None:
        nodes = FaultyNodes()
        nodes.rule("OffsetCommit", faults.drop(), once=True)
        peer, answer = ask_once(nodes, commit_request(), 5)
        assert (answer, peer.bytes, nodes.committed(1)) == (None, b"", -1)
        assert peer.closed == "rule rule-1: dropped"

    def test_lose_reply_applies_the_request_before_closing_the_connection(self) -> None:
        nodes = FaultyNodes()
        nodes.rule("OffsetCommit", faults.lose_reply(), once=True)
        peer, answer = ask_once(nodes, commit_request(), 5)
        assert (answer, peer.bytes, nodes.committed(1)) == (None, b"", 5)
        assert peer.closed == "rule rule-1: the answer is lost"

    @pytest.mark.parametrize(("apply", "stored"), [(False, -1), (True, 5)])
    def test_never_answer_also_blocks_later_requests_on_the_connection(self, stored: int, *, apply: bool) -> None:
        nodes = FaultyNodes()
        nodes.rule("OffsetCommit", faults.never_answer(apply=apply), once=True)
        peer, answer = ask_once(nodes, commit_request(), 5)
        assert answer is None
        assert nodes.ask(peer, HEARTBEAT, 3) is None
        nodes.wait(3_600_000)
        assert (peer.bytes, peer.closed, nodes.committed(1)) == (b"", None, stored)

    def test_truncate_cuts_the_response_and_closes_the_connection(self) -> None:
        nodes = FaultyNodes()
        nodes.rule("Heartbeat", faults.truncate(9))
        peer, _ = send_heartbeat(nodes)
        assert (peer.bytes, peer.closed) == (bytes.fromhex("0000000a0000000100"), "rule rule-1: truncated at byte 9")

    def test_drip_sends_a_response_in_pieces(self) -> None:
        nodes = FaultyNodes()
        nodes.rule("Heartbeat", faults.drip(4, 10))
        peer, _ = send_heartbeat(nodes)
        nodes.send(peer, nodes.request(peer, HEARTBEAT, 3))
        assert len(peer.bytes) == 4
        nodes.wait(9)
        assert len(peer.bytes) == 4
        nodes.wait(1)
        assert len(peer.bytes) == 8
        nodes.wait(20)
        # the next response starts after the last piece of this one
        assert [len(piece) for piece in peer.pieces] == [4, 4, 4, 6]
        nodes.wait(60)
        assert [(number, answer.error_code) for number, answer in peer.answers()] == [(1, 25), (2, 25)]

    def test_wrong_correlation_id_changes_the_id_in_the_response(self) -> None:
        nodes = FaultyNodes()
        nodes.rule("Heartbeat", faults.wrong_correlation_id())
        peer, _ = send_heartbeat(nodes)
        assert peer.bytes[4:8] == bytes((0, 0, 0, 0))
        assert nodes.trace.events()[-1]["synthetic"] is True

    def test_a_byte_action_closes_the_connection_of_a_puppet(self) -> None:
        nodes = FaultyNodes()
        nodes.rule("Heartbeat", faults.truncate(3), once=True)
        nodes.rule("Heartbeat", faults.error("NOT_COORDINATOR"), once=True)
        for expected in (Close, Answer):
            connection = nodes.runtime.connect_in_process(nodes.now, 1, "peer")
            nodes.do(nodes.runtime.send_message, connection, 3, HEARTBEAT)
            ((_, came),) = list(nodes.runtime.inbox)
            nodes.runtime.inbox.clear()
            assert isinstance(came, expected)


def send_heartbeat(nodes: FaultyNodes) -> tuple[Peer, bytes]:
    peer = nodes.connect()
    nodes.send(peer, nodes.request(peer, HEARTBEAT, 3))
    return peer, peer.bytes


class TestTimes:
    def test_a_delayed_response_blocks_later_responses(self) -> None:
        nodes = FaultyNodes()
        nodes.rule("OffsetCommit", faults.delay(100))
        peer, answer = ask_once(nodes, commit_request(), 5)
        assert answer is None
        assert nodes.committed(1) == 5, "it is applied at once"
        assert nodes.ask(peer, HEARTBEAT, 3) is None
        nodes.wait(99)
        assert peer.bytes == b""
        nodes.wait(1)
        assert len(peer.answers()) == 2

    def test_a_drawn_delay_is_traced_and_repeats_with_the_seed(self) -> None:
        def drawn(seed: int, action: faults.Action) -> list[int]:
            nodes = FaultyNodes(seed=seed)
            nodes.rule("Heartbeat", action)
            for _ in range(8):
                ask_once(nodes, HEARTBEAT, 3)
            return [event["body"]["ms"] for event in nodes.kinds("rule")[1:]]

        uniform = faults.delay(uniform_ms=(10, 30))
        assert drawn(7, uniform) == drawn(7, uniform) != drawn(8, uniform)
        assert all(10 <= ms <= 30 for ms in drawn(7, uniform))
        assert len(set(drawn(7, faults.delay(lognormal_ms=(90, 0.4))))) > 3

    def test_a_delay_in_group_time_ends_when_the_group_clock_advances(self) -> None:
        nodes = FaultyNodes()
        nodes.stable(1, "one")
        nodes.rule("OffsetCommit", faults.delay(60_000, clock="group"))
        peer, _ = ask_once(nodes, commit_request(5, "", -1), 5)
        nodes.wait(1)
        assert peer.bytes == b""
        coordinator = nodes.runtime.broker(1).node.coordinator
        coordinator.move_clock(nodes.now, GROUP, nodes.now + 60_000)
        nodes.wait(0)
        assert peer.bytes

    def test_throttle_sets_throttle_time_without_a_delay(self) -> None:
        nodes = FaultyNodes()
        rule = nodes.rule("Heartbeat", faults.throttle(500))
        _, answer = ask_once(nodes, HEARTBEAT, 3)
        assert (answer.throttle_time_ms, answer.error_code) == (500, 25)
        ask_once(nodes, HEARTBEAT, 0)
        assert nodes.hits(rule) == 1, "version 0 has no throttle_time_ms"


class TestGroupActions:
    """Group actions run before the request is processed."""

    def test_evict_removes_the_sender(self) -> None:
        nodes = FaultyNodes()
        (member,) = nodes.stable(1, "one")
        nodes.rule("OffsetCommit", faults.evict(as_if="session"), once=True)
        peer, _ = ask_once(nodes, commit_request(5, member, 1), 5)
        nodes.wait(0)
        assert [row.error_code for row in peer.answers()[0][1].topics[0].partitions] == [25, 25]

    def test_fence_fences_the_sender(self) -> None:
        nodes = FaultyNodes()
        (member,) = nodes.stable(1, "one")
        nodes.rule("Heartbeat", faults.fence(), instance_id="one", once=True)
        heartbeat = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=member, group_instance_id="one")
        peer, _ = ask_once(nodes, heartbeat, 3)
        nodes.wait(0)
        assert peer.answers()[0][1].error_code == 82

    def test_the_group_rebalances_at_the_nth_fetch(self) -> None:
        nodes = FaultyNodes()
        nodes.stable(1, "one")
        nodes.rule("Fetch", faults.rebalance("the second fetch"), group=GROUP, nth=2)
        group = nodes.runtime.broker(1).node.coordinator.groups[GROUP]
        for state in ("Stable", "PreparingRebalance"):
            ask_once(nodes, FetchRequest(), 11)
            nodes.wait(0)
            assert group.state.value == state
        assert "the second fetch" in [event.get("reason") for event in nodes.kinds("state")][-1]

    def test_an_impossible_group_action_is_traced_and_the_request_is_served(self) -> None:
        nodes = FaultyNodes()
        nodes.stable(1, "one")
        nodes.rule("Heartbeat", faults.evict())
        peer, _ = ask_once(nodes, HEARTBEAT, 3)
        nodes.wait(0)
        assert peer.answers()[0][1].error_code == 25
        (failed,) = [event for event in nodes.kinds("rule") if event["change"] == "failed"]
        assert failed["body"]["problem"].startswith("group 'g' has no member 'nobody'")
