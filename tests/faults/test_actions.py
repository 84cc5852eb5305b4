"""What each action of a rule does to a request, over nodes without sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from brokers.cluster import GROUP, joining, syncing
from brokers.fault_broker import Faulty, committing

from koordinator import faults
from koordinator.emulator.broker.api_table import ApiTable
from koordinator.emulator.broker.connections import Answer, Close
from koordinator.emulator.config.settings import Settings
from koordinator.emulator.control.faults.error_responses import PLACES_OF, refused
from koordinator.emulator.control.faults.plausible import KAFKA_GIVES, REBALANCING
from koordinator.emulator.core.effects import Call
from koordinator.wire.apis import APIS
from koordinator.wire.codec import decode, encode
from koordinator.wire.errors import Error
from koordinator.wire.messages.api_versions import ApiVersionsRequest
from koordinator.wire.messages.delete_groups import DeleteGroupsRequest
from koordinator.wire.messages.describe_groups import DescribeGroupsRequest
from koordinator.wire.messages.fetch import FetchRequest
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest
from koordinator.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from koordinator.wire.messages.list_groups import ListGroupsRequest
from koordinator.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
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
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from clients.frame_clients import Peer

    from koordinator.wire.apis import Message

BEAT = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="nobody")


def asked(nodes: Faulty, message: Any, version: int, client_id: str = "c") -> tuple[Peer, Any]:
    """A connection of its own, and what it was answered."""
    peer = nodes.connect()
    return peer, nodes.ask(peer, message, version, client_id)


def codes(response: Any) -> list[int]:
    """Every error code in a message, rows included."""
    found = [] if not hasattr(response, "error_code") else [response.error_code]
    for name in getattr(type(response), "__dataclass_fields__", ()):
        value = getattr(response, name)
        if isinstance(value, tuple):
            for row in value:
                found += codes(row)
    return found


class TestErrors:
    def test_an_error_is_answered_and_nothing_is_applied(self) -> None:
        nodes = Faulty()
        rule = nodes.rule("OffsetCommit", faults.error("COORDINATOR_LOAD_IN_PROGRESS"), once=True)
        _, answer = asked(nodes, committing(), 5)
        assert [row.error_code for row in answer.topics[0].partitions] == [14, 14]
        assert nodes.committed(1) == -1
        _, answer = asked(nodes, committing(), 5)
        assert [row.error_code for row in answer.topics[0].partitions] == [0, 0]
        assert (nodes.committed(1), nodes.hits(rule)) == (5, 1)

    def test_a_member_of_a_leave_group_is_refused_in_its_row_and_at_the_top_of_old_versions(self) -> None:
        nodes = Faulty()
        nodes.rule("LeaveGroup", faults.error("FENCED_INSTANCE_ID", at="member"))
        member = MemberIdentity(member_id="m", group_instance_id="i")
        _, answer = asked(nodes, LeaveGroupRequest(group_id=GROUP, members=(member,)), 3)
        assert (answer.error_code, answer.members[0].error_code, answer.members[0].group_instance_id) == (0, 82, "i")
        _, answer = asked(nodes, LeaveGroupRequest(group_id=GROUP, member_id="m"), 1)
        assert answer.error_code == 82

    @pytest.mark.parametrize(("numbering", "code"), [("kafka", 82), ("kip", 78)])
    def test_an_error_has_the_number_that_is_set(self, numbering: str, code: int) -> None:
        nodes = Faulty(error_codes=numbering)
        nodes.rule("Heartbeat", faults.error("FENCED_INSTANCE_ID"))
        _, answer = asked(nodes, BEAT, 3)
        assert answer.error_code == code

    def test_the_trace_names_the_rule_and_says_what_kafka_would_never_answer(self) -> None:
        nodes = Faulty()
        nodes.rule("Heartbeat", faults.error("GROUP_MAX_SIZE_REACHED"), id="size")
        asked(nodes, BEAT, 3)
        request, used, response = nodes.trace.events()[-3:]
        assert (request["kind"], request["rule_id"]) == ("request", "size")
        assert (used["kind"], used["change"], used["rule_id"]) == ("rule", "used", "size")
        assert used["body"] == {"kind": "error", "name": "GROUP_MAX_SIZE_REACHED"}
        assert (response["rule_id"], response["synthetic"], response["error"]) == (
            "size",
            True,
            "GROUP_MAX_SIZE_REACHED",
        )

    def test_who_finds_a_group_full_gets_no_id(self) -> None:
        nodes = Faulty()
        nodes.rule("JoinGroup", faults.error("GROUP_MAX_SIZE_REACHED"), once=True)
        nodes.rule("JoinGroup", faults.error("UNKNOWN_MEMBER_ID"))
        _, full = asked(nodes, joining(member_id="m"), 5)
        _, unknown = asked(nodes, joining(member_id="m"), 5)
        assert (full.member_id, unknown.member_id, full.generation_id) == ("", "m", -1)

    def test_produce_without_an_answer_is_hung_up_on(self) -> None:
        nodes = Faulty()
        nodes.rule("Produce", faults.error("NOT_LEADER_OR_FOLLOWER"))
        peer, answer = asked(nodes, ProduceRequest(acks=0), 7)
        assert answer is None
        assert peer.closed is not None

    def test_metadata_tells_of_brokers_all_the_same(self) -> None:
        nodes = Faulty()
        nodes.rule("Metadata", faults.error("LEADER_NOT_AVAILABLE"))
        _, answer = asked(nodes, MetadataRequest(topics=(MetadataRequestTopic(name="t"),)), 5)
        assert [broker.node_id for broker in answer.brokers] == [1]
        assert [(topic.error_code, topic.partitions) for topic in answer.topics] == [(5, ())]


REQUESTS: dict[str, Any] = {
    "JoinGroup": joining(),
    "SyncGroup": syncing("m"),
    "Heartbeat": BEAT,
    "OffsetCommit": committing(),
    "OffsetDelete": OffsetDeleteRequest(
        group_id=GROUP,
        topics=(OffsetDeleteRequestTopic(name="t", partitions=(OffsetDeleteRequestPartition(partition_index=0),)),),
    ),
    "DescribeGroups": DescribeGroupsRequest(groups=("a", "b")),
    "ListGroups": ListGroupsRequest(),
    "DeleteGroups": DeleteGroupsRequest(groups_names=("a", "b")),
    "ListOffsets": ListOffsetsRequest(
        topics=(ListOffsetsTopic(name="t", partitions=(ListOffsetsPartition(partition_index=0),)),)
    ),
    "Produce": ProduceRequest(
        acks=1, topic_data=(TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=b""),)),)
    ),
    "Fetch": FetchRequest(),
    "InitProducerId": InitProducerIdRequest(),
    "ApiVersions": ApiVersionsRequest(),
}


def request_of(api: str, version: int) -> Message:
    """A request that can be sent in this version."""
    if api == "LeaveGroup":
        member = MemberIdentity(member_id="m")
        return LeaveGroupRequest(group_id=GROUP, **({"members": (member,)} if version >= 3 else {"member_id": "m"}))
    if api == "FindCoordinator":
        return FindCoordinatorRequest(**({"coordinator_keys": ("a", "b")} if version >= 4 else {"key": "a"}))
    if api == "OffsetFetch":
        if version < 8:
            topic = OffsetFetchRequestTopic(name="t", partition_indexes=(0,))
            return OffsetFetchRequest(group_id=GROUP, topics=(topic,))
        topics = OffsetFetchRequestTopics(name="t", partition_indexes=(0,))
        return OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=GROUP, topics=(topics,)),))
    message: Message = REQUESTS[api]
    return message


@pytest.mark.parametrize("api", [api for api in PLACES_OF if api != "Metadata"])
def test_errors_are_rendered_in_every_version_at_every_place(api: str) -> None:
    key = next(key for key, each in APIS.items() if each.name == api)
    services = ApiTable(Settings.of("fast", {})[0])
    for version in APIS[key].versions:
        try:
            services.check(key, version)
        except Exception:  # noqa: BLE001, S112 - no such version in this release
            continue
        for at in PLACES_OF[api]:
            call = Call(1, 7, key, version, "c", "/127.0.0.1")
            response = refused(call, request_of(api, version), Error.NOT_COORDINATOR, at)
            rendered = services.table[key, version].answer(response, version, services.number)
            answer = decode(APIS[key].response, version, encode(rendered, version), exact=True)
            said = [code for code in codes(answer) if code]
            if api == "Fetch" and version < 7:
                assert not said, "Kafka has no place for it"
            else:
                assert said
                assert set(said) == {16}


def test_the_table_of_what_kafka_gives_has_every_place() -> None:
    assert set(KAFKA_GIVES) == {(api, at) for api, places in PLACES_OF.items() for at in places}
    assert all(Error.REBALANCE_IN_PROGRESS in KAFKA_GIVES[api, PLACES_OF[api][0]] for api in REBALANCING)


class TestWhatKafkaWouldSay:
    def synthetic(self, nodes: Faulty, api: str, name: str, message: Any, version: int = 3) -> bool:
        rule = nodes.rule(api, faults.error(name), once=True)
        asked(nodes, message, version)
        assert nodes.hits(rule) == 1
        return bool(nodes.trace.events()[-1].get("synthetic", False))

    def test_a_rebalance_is_in_progress_only_when_it_is(self) -> None:
        nodes = Faulty()
        (member,) = nodes.formed(1, "one")
        beat = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=member)
        assert not self.synthetic(nodes, "OffsetCommit", "REBALANCE_IN_PROGRESS", committing(5, member, 1), 5)
        assert self.synthetic(nodes, "Heartbeat", "REBALANCE_IN_PROGRESS", beat)
        nodes.send(peer := nodes.connect(), nodes.request(peer, joining("two"), 5))
        assert self.synthetic(nodes, "OffsetCommit", "REBALANCE_IN_PROGRESS", committing(5, member, 1), 5)
        assert not self.synthetic(nodes, "Heartbeat", "REBALANCE_IN_PROGRESS", beat)

    def test_a_member_is_unknown_only_when_it_is(self) -> None:
        nodes = Faulty()
        (member,) = nodes.stable(1, "one")
        known = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=member)
        assert self.synthetic(nodes, "Heartbeat", "UNKNOWN_MEMBER_ID", known)
        assert not self.synthetic(nodes, "Heartbeat", "UNKNOWN_MEMBER_ID", BEAT)
        assert self.synthetic(nodes, "Heartbeat", "ILLEGAL_GENERATION", known)
        assert not self.synthetic(nodes, "Heartbeat", "NOT_COORDINATOR", known)


class TestConnections:
    def test_drop_closes_before_anything_is_applied(self) -> None:
        nodes = Faulty()
        nodes.rule("OffsetCommit", faults.drop(), once=True)
        peer, answer = asked(nodes, committing(), 5)
        assert (answer, peer.bytes, nodes.committed(1)) == (None, b"", -1)
        assert peer.closed == "rule rule-1: dropped"

    def test_a_reply_is_lost_after_the_request_was_applied(self) -> None:
        nodes = Faulty()
        nodes.rule("OffsetCommit", faults.lose_reply(), once=True)
        peer, answer = asked(nodes, committing(), 5)
        assert (answer, peer.bytes, nodes.committed(1)) == (None, b"", 5)
        assert peer.closed == "rule rule-1: the answer is lost"

    @pytest.mark.parametrize(("apply", "stored"), [(False, -1), (True, 5)])
    def test_never_answered_is_never_answered_nor_what_follows(self, stored: int, *, apply: bool) -> None:
        nodes = Faulty()
        nodes.rule("OffsetCommit", faults.never_answer(apply=apply), once=True)
        peer, answer = asked(nodes, committing(), 5)
        assert answer is None
        assert nodes.ask(peer, BEAT, 3) is None
        nodes.wait(3_600_000)
        assert (peer.bytes, peer.closed, nodes.committed(1)) == (b"", None, stored)

    def test_an_answer_is_cut_and_the_connection_closed(self) -> None:
        nodes = Faulty()
        nodes.rule("Heartbeat", faults.truncate(9))
        peer, _ = peer_and_bytes(nodes)
        assert (peer.bytes, peer.closed) == (bytes.fromhex("0000000a0000000100"), "rule rule-1: truncated at byte 9")

    def test_an_answer_drips(self) -> None:
        nodes = Faulty()
        nodes.rule("Heartbeat", faults.drip(4, 10))
        peer, _ = peer_and_bytes(nodes)
        nodes.send(peer, nodes.request(peer, BEAT, 3))
        assert len(peer.bytes) == 4
        nodes.wait(9)
        assert len(peer.bytes) == 4
        nodes.wait(1)
        assert len(peer.bytes) == 8
        nodes.wait(20)
        # the next one begins when this has left
        assert [len(piece) for piece in peer.pieces] == [4, 4, 4, 6]
        nodes.wait(60)
        assert [(number, answer.error_code) for number, answer in peer.answers()] == [(1, 25), (2, 25)]

    def test_a_correlation_id_is_another_one(self) -> None:
        nodes = Faulty()
        nodes.rule("Heartbeat", faults.wrong_correlation_id())
        peer, _ = peer_and_bytes(nodes)
        assert peer.bytes[4:8] == bytes((0, 0, 0, 0))
        assert nodes.trace.events()[-1]["synthetic"] is True

    def test_a_puppet_loses_its_connection_instead_of_its_bytes(self) -> None:
        nodes = Faulty()
        nodes.rule("Heartbeat", faults.truncate(3), once=True)
        nodes.rule("Heartbeat", faults.error("NOT_COORDINATOR"), once=True)
        for expected in (Close, Answer):
            connection = nodes.brokers.connect_puppet(nodes.now, 1, "peer")
            nodes.do(nodes.brokers.ask, connection, 3, BEAT)
            ((_, came),) = list(nodes.brokers.mail)
            nodes.brokers.mail.clear()
            assert isinstance(came, expected)


def peer_and_bytes(nodes: Faulty) -> tuple[Peer, bytes]:
    peer = nodes.connect()
    nodes.send(peer, nodes.request(peer, BEAT, 3))
    return peer, peer.bytes


class TestTimes:
    def test_an_answer_is_delayed_and_what_follows_waits(self) -> None:
        nodes = Faulty()
        nodes.rule("OffsetCommit", faults.delay(100))
        peer, answer = asked(nodes, committing(), 5)
        assert answer is None
        assert nodes.committed(1) == 5, "it is applied at once"
        assert nodes.ask(peer, BEAT, 3) is None
        nodes.wait(99)
        assert peer.bytes == b""
        nodes.wait(1)
        assert len(peer.answers()) == 2

    def test_a_drawn_delay_stands_in_the_trace_and_repeats_with_the_seed(self) -> None:
        def drawn(seed: int, action: faults.Action) -> list[int]:
            nodes = Faulty(seed=seed)
            nodes.rule("Heartbeat", action)
            for _ in range(8):
                asked(nodes, BEAT, 3)
            return [event["body"]["ms"] for event in nodes.kinds("rule")[1:]]

        uniform = faults.delay(uniform_ms=(10, 30))
        assert drawn(7, uniform) == drawn(7, uniform) != drawn(8, uniform)
        assert all(10 <= ms <= 30 for ms in drawn(7, uniform))
        assert len(set(drawn(7, faults.delay(lognormal_ms=(90, 0.4))))) > 3

    def test_a_delay_in_group_time_is_over_when_the_group_is_told_so(self) -> None:
        nodes = Faulty()
        nodes.stable(1, "one")
        nodes.rule("OffsetCommit", faults.delay(60_000, clock="group"))
        peer, _ = asked(nodes, committing(5, "", -1), 5)
        nodes.wait(1)
        assert peer.bytes == b""
        coordinator = nodes.brokers.broker(1).node.coordinator
        coordinator.move_clock(nodes.now, GROUP, nodes.now + 60_000)
        nodes.wait(0)
        assert peer.bytes

    def test_throttle_is_said_and_delays_nothing(self) -> None:
        nodes = Faulty()
        rule = nodes.rule("Heartbeat", faults.throttle(500))
        _, answer = asked(nodes, BEAT, 3)
        assert (answer.throttle_time_ms, answer.error_code) == (500, 25)
        asked(nodes, BEAT, 0)
        assert nodes.hits(rule) == 1, "version 0 has no place for it"


class TestVerbs:
    """Done just before the request is looked at."""

    def test_who_asks_is_evicted(self) -> None:
        nodes = Faulty()
        (member,) = nodes.stable(1, "one")
        nodes.rule("OffsetCommit", faults.evict(as_if="session"), once=True)
        peer, _ = asked(nodes, committing(5, member, 1), 5)
        nodes.wait(0)
        assert [row.error_code for row in peer.answers()[0][1].topics[0].partitions] == [25, 25]

    def test_who_asks_is_fenced(self) -> None:
        nodes = Faulty()
        (member,) = nodes.stable(1, "one")
        nodes.rule("Heartbeat", faults.fence(), instance_id="one", once=True)
        beat = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=member, group_instance_id="one")
        peer, _ = asked(nodes, beat, 3)
        nodes.wait(0)
        assert peer.answers()[0][1].error_code == 82

    def test_the_group_rebalances_at_the_nth_fetch(self) -> None:
        nodes = Faulty()
        nodes.stable(1, "one")
        nodes.rule("Fetch", faults.rebalance("the second fetch"), group=GROUP, nth=2)
        group = nodes.brokers.broker(1).node.coordinator.groups[GROUP]
        for state in ("Stable", "PreparingRebalance"):
            asked(nodes, FetchRequest(), 11)
            nodes.wait(0)
            assert group.state.value == state
        assert "the second fetch" in [event.get("reason") for event in nodes.kinds("state")][-1]

    def test_what_cannot_be_done_is_said_and_the_request_goes_on(self) -> None:
        nodes = Faulty()
        nodes.stable(1, "one")
        nodes.rule("Heartbeat", faults.evict())
        peer, _ = asked(nodes, BEAT, 3)
        nodes.wait(0)
        assert peer.answers()[0][1].error_code == 25
        (failed,) = [event for event in nodes.kinds("rule") if event["change"] == "failed"]
        assert failed["body"]["problem"].startswith("group 'g' has no member 'nobody'")


class TestTriggers:
    @pytest.mark.parametrize(
        ("trigger", "acted"),
        [
            ({}, [1, 2, 3, 4, 5, 6]),
            ({"once": True}, [1]),
            ({"times": 2}, [1, 2]),
            ({"nth": 3}, [3]),
            ({"every": 2}, [2, 4, 6]),
            ({"probability": 0}, []),
            ({"probability": 1}, [1, 2, 3, 4, 5, 6]),
        ],
    )
    def test_it_acts_when_it_says(self, trigger: dict[str, Any], acted: list[int]) -> None:
        nodes = Faulty()
        rule = nodes.rule("Heartbeat", faults.error("NOT_COORDINATOR"), **trigger)
        answers = [asked(nodes, BEAT, 3)[1].error_code for _ in range(6)]
        assert [number for number, code in enumerate(answers, 1) if code == 16] == acted
        assert (nodes.looked(rule)["matched"], nodes.hits(rule)) == (6, len(acted))
        assert len(nodes.looked(rule)["requests"]) == len(acted)

    def test_a_probability_is_about_that_and_repeats_with_the_seed(self) -> None:
        def answers(seed: int) -> list[int]:
            nodes = Faulty(seed=seed)
            nodes.rule("Heartbeat", faults.error("NOT_COORDINATOR"), probability=0.3)
            peer = nodes.connect()
            return [nodes.ask(peer, BEAT, 3).error_code for _ in range(200)]

        assert answers(1) == answers(1) != answers(2)
        assert 30 <= answers(1).count(16) <= 90

    def test_rules_of_one_slot_are_a_script_and_of_different_slots_act_together(self) -> None:
        nodes = Faulty()
        nodes.rule("Heartbeat", faults.error("REBALANCE_IN_PROGRESS"), times=2)
        nodes.rule("Heartbeat", faults.error("ILLEGAL_GENERATION"), once=True)
        nodes.rule("Heartbeat", faults.delay(50), nth=3, id="late")
        answers = [asked(nodes, BEAT, 3)[1] for _ in range(2)]
        assert [answer.error_code for answer in answers] == [27, 27]
        peer, answer = asked(nodes, BEAT, 3)
        assert answer is None
        nodes.wait(50)
        assert peer.answers()[0][1].error_code == 22
        assert nodes.trace.events()[-1]["rule_id"] == "rule-2,late"
        assert asked(nodes, BEAT, 3)[1].error_code == 25


class TestMatches:
    def hits(self, nodes: Faulty, api: str = "Heartbeat", **words: Any) -> str:
        return nodes.rule(api, faults.throttle(1), **words)

    def test_client_group_member_instance_generation_state_and_version(self) -> None:
        nodes = Faulty()
        (member,) = nodes.stable(1, "one")
        beat = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=member)
        yes = [
            {"client_id": "svc-*"},
            {"group": "g"},
            {"member": member},
            {"member": "one"},
            {"member": "svc-?"},
            {"instance_id": "o*"},
            {"generation": 1},
            {"state": "Stable"},
            {"version": ">=2"},
            {"broker": 1},
        ]
        no = [
            {"client_id": "svc"},
            {"group": "h"},
            {"member": "two"},
            {"instance_id": "two"},
            {"generation": 2},
            {"state": "Empty"},
            {"version": "<=2"},
        ]
        # each on its own: of one slot only the oldest acts
        for words in yes:
            nodes.faults.remove_rule(nodes.now, rule=self.only(nodes, words, beat, 1))
        for words in no:
            nodes.faults.remove_rule(nodes.now, rule=self.only(nodes, words, beat, 0))

    def only(self, nodes: Faulty, words: dict[str, Any], beat: Any, hits: int) -> str:
        rule = self.hits(nodes, **words)
        asked(nodes, beat, 3, "svc-1")
        assert nodes.hits(rule) == hits, words
        return rule

    def test_the_empty_member_is_who_joins_without_an_id(self) -> None:
        nodes = Faulty()
        rule = nodes.rule("JoinGroup", faults.error("COORDINATOR_NOT_AVAILABLE"), member="")
        asked(nodes, joining(member_id="m"), 5)
        assert nodes.hits(rule) == 0
        asked(nodes, joining(), 5)
        assert nodes.hits(rule) == 1

    def test_a_fetch_is_of_the_group_of_which_its_client_is_a_member(self) -> None:
        nodes = Faulty()
        nodes.stable(1, "one")
        mine = nodes.rule("Fetch", faults.drop(), group=GROUP, member="one")
        other = nodes.rule("Fetch", faults.drop(), group="other")
        asked(nodes, FetchRequest(), 11, "c")
        asked(nodes, FetchRequest(), 11, "somebody")
        assert (nodes.hits(mine), nodes.hits(other)) == (1, 0)

    def test_a_fetch_of_a_namesake_on_another_host_is_not(self) -> None:
        nodes = Faulty()
        nodes.stable(1, "one")
        rule = nodes.rule("Fetch", faults.drop(), group=GROUP)
        peer = nodes.connect()
        nodes.brokers.disconnected(nodes.now, peer.number)
        nodes.do(nodes.brokers.connected, peer.number, "/10.0.0.9", 1, "PLAINTEXT")
        nodes.ask(peer, FetchRequest(), 11, "c")
        assert nodes.hits(rule) == 0

    def test_requests_for_several_groups_and_any_api(self) -> None:
        nodes = Faulty(2)
        rule = nodes.rule("*", faults.drop(), group="b", broker=2)
        for node in (1, 2):
            nodes.told(node, DescribeGroupsRequest(groups=("a", "b")), 3)
            nodes.told(node, FindCoordinatorRequest(key="b"), 2)
        assert nodes.hits(rule) == 2
        assert [each["node"] for each in nodes.looked(rule)["requests"]] == [2, 2]

    def test_a_hundred_rules_at_once(self) -> None:
        nodes = Faulty()
        rules = [nodes.rule("Heartbeat", faults.error("NOT_COORDINATOR"), nth=n) for n in range(1, 101)]
        peer = nodes.connect()
        answers = [nodes.ask(peer, BEAT, 3).error_code for _ in range(101)]
        assert answers == [16] * 100 + [25]
        assert [nodes.hits(rule) for rule in rules] == [1] * 100

    def test_without_rules_there_is_no_gate(self) -> None:
        nodes = Faulty()
        rule = nodes.rule("Heartbeat", faults.drop())
        assert nodes.brokers.gate is not None
        nodes.faults.remove_rule(nodes.now, rule=rule)
        assert nodes.brokers.gate is None
        assert nodes.brokers.tickers == []
        assert [event["change"] for event in nodes.kinds("rule")] == ["added", "removed"]


class TestUnused:
    def test_a_rule_that_never_acted_is_named_with_what_came_nearest(self) -> None:
        nodes = Faulty()
        nodes.rule("OffsetCommit", faults.drop(), client_id="svc-2")
        nodes.rule("Heartbeat", faults.drop(), nth=3)
        nodes.rule("LeaveGroup", faults.drop())
        nodes.rule("LeaveGroup", faults.drop(), optional=True)
        asked(nodes, committing(), 5, "svc-1")
        asked(nodes, BEAT, 3)
        near = [each["near"] for each in nodes.faults.unused(nodes.now)]
        assert near == [
            "1 OffsetCommit seen; the nearest is of client 'svc-1', and differs in client_id",
            "it matched once, and was not to act then",
            "no LeaveGroup was seen",
        ]
