"""Triggers and matches of rules, with nodes without sockets."""

from __future__ import annotations

from typing import Any

import pytest
from brokers.cluster import GROUP, joining
from brokers.fault_broker import FaultyNodes, ask_once, commit_request

from koordinator import faults
from koordinator.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTransaction
from koordinator.wire.messages.describe_groups import DescribeGroupsRequest
from koordinator.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from koordinator.wire.messages.end_txn import EndTxnRequest
from koordinator.wire.messages.fetch import FetchRequest
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.share_group_describe import ShareGroupDescribeRequest

HEARTBEAT = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="nobody")


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
    def test_a_rule_acts_on_the_matches_its_trigger_selects(self, trigger: dict[str, Any], acted: list[int]) -> None:
        nodes = FaultyNodes()
        rule = nodes.rule("Heartbeat", faults.error("NOT_COORDINATOR"), **trigger)
        answers = [ask_once(nodes, HEARTBEAT, 3)[1].error_code for _ in range(6)]
        assert [number for number, code in enumerate(answers, 1) if code == 16] == acted
        assert (nodes.rule_data(rule).matched, nodes.hits(rule)) == (6, len(acted))
        assert len(nodes.rule_data(rule).requests) == len(acted)

    @pytest.mark.slow
    def test_a_probability_is_kept_and_repeats_with_the_seed(self) -> None:
        def answers(seed: int) -> list[int]:
            nodes = FaultyNodes(seed=seed)
            nodes.rule("Heartbeat", faults.error("NOT_COORDINATOR"), probability=0.3)
            peer = nodes.connect()
            return [nodes.ask(peer, HEARTBEAT, 3).error_code for _ in range(200)]

        assert answers(1) == answers(1) != answers(2)
        assert 30 <= answers(1).count(16) <= 90

    def test_one_rule_per_slot_acts_and_slots_combine(self) -> None:
        nodes = FaultyNodes()
        nodes.rule("Heartbeat", faults.error("REBALANCE_IN_PROGRESS"), times=2)
        nodes.rule("Heartbeat", faults.error("ILLEGAL_GENERATION"), once=True)
        nodes.rule("Heartbeat", faults.delay(50), nth=3, id="late")
        answers = [ask_once(nodes, HEARTBEAT, 3)[1] for _ in range(2)]
        assert [answer.error_code for answer in answers] == [27, 27]
        peer, answer = ask_once(nodes, HEARTBEAT, 3)
        assert answer is None
        nodes.wait(50)
        assert peer.answers()[0][1].error_code == 22
        assert nodes.trace.events()[-1]["rule_id"] == "rule-2,late"
        assert ask_once(nodes, HEARTBEAT, 3)[1].error_code == 25


class TestMatches:
    def hits(self, nodes: FaultyNodes, api: str = "Heartbeat", **conditions: Any) -> str:
        return nodes.rule(api, faults.throttle(1), **conditions)

    def test_each_field_of_a_match_is_compared(self) -> None:
        nodes = FaultyNodes()
        (member,) = nodes.stable(1, "one")
        heartbeat = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=member)
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
            {"version": "2-3"},
            {"version": "3-4"},
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
            {"version": "1-2"},
            {"version": "4-5"},
        ]
        # one rule at a time: only the oldest of a slot acts
        for conditions in yes:
            nodes.faults.remove_rule(nodes.now, rule=self.only(nodes, conditions, heartbeat, 1))
        for conditions in no:
            nodes.faults.remove_rule(nodes.now, rule=self.only(nodes, conditions, heartbeat, 0))

    def only(self, nodes: FaultyNodes, conditions: dict[str, Any], heartbeat: Any, hits: int) -> str:
        rule = self.hits(nodes, **conditions)
        ask_once(nodes, heartbeat, 3, "svc-1")
        assert nodes.hits(rule) == hits, conditions
        return rule

    def test_an_empty_member_matches_requests_without_a_member_id(self) -> None:
        nodes = FaultyNodes()
        rule = nodes.rule("JoinGroup", faults.error("COORDINATOR_NOT_AVAILABLE"), member="")
        ask_once(nodes, joining(member_id="m"), 5)
        assert nodes.hits(rule) == 0
        ask_once(nodes, joining(), 5)
        assert nodes.hits(rule) == 1

    def test_a_fetch_matches_the_group_of_its_client(self) -> None:
        nodes = FaultyNodes()
        nodes.stable(1, "one")
        mine = nodes.rule("Fetch", faults.drop(), group=GROUP, member="one")
        other = nodes.rule("Fetch", faults.drop(), group="other")
        ask_once(nodes, FetchRequest(), 11, "c")
        ask_once(nodes, FetchRequest(), 11, "somebody")
        assert (nodes.hits(mine), nodes.hits(other)) == (1, 0)

    def test_a_fetch_from_another_host_with_the_same_client_id_does_not_match(self) -> None:
        nodes = FaultyNodes()
        nodes.stable(1, "one")
        rule = nodes.rule("Fetch", faults.drop(), group=GROUP)
        peer = nodes.connect()
        nodes.runtime.disconnected(nodes.now, peer.number)
        nodes.do(nodes.runtime.connected, peer.number, "/10.0.0.9", 1, "PLAINTEXT")
        nodes.ask(peer, FetchRequest(), 11, "c")
        assert nodes.hits(rule) == 0

    def test_requests_for_several_groups_and_any_api(self) -> None:
        nodes = FaultyNodes(2)
        rule = nodes.rule("*", faults.drop(), group="b", broker=2)
        for node in (1, 2):
            nodes.request_at(node, DescribeGroupsRequest(groups=("a", "b")), 3)
            nodes.request_at(node, FindCoordinatorRequest(key="b"), 2)
        assert nodes.hits(rule) == 2
        assert [each.node for each in nodes.rule_data(rule).requests] == [2, 2]

    @pytest.mark.parametrize(
        ("version", "request_"),
        [
            (1, FindCoordinatorRequest(key_type=1, key="x")),
            (4, FindCoordinatorRequest(key_type=1, coordinator_keys=("y", "x"))),
            (3, AddPartitionsToTxnRequest(v3_and_below_transactional_id="x")),
            (4, AddPartitionsToTxnRequest(transactions=(AddPartitionsToTxnTransaction(transactional_id="x"),))),
            (3, EndTxnRequest(transactional_id="x")),
        ],
    )
    def test_every_request_of_a_transaction_matches_its_transactional_id(self, version: int, request_: Any) -> None:
        nodes = FaultyNodes()
        rules = [nodes.rule("*", faults.drop(), transaction=each) for each in ("z", "x*")]
        ask_once(nodes, request_, version)
        assert [nodes.hits(each) for each in rules] == [0, 1]

    def test_the_key_of_a_group_is_no_transactional_id(self) -> None:
        nodes = FaultyNodes()
        rules = [nodes.rule("*", faults.drop(), **{name: "x"}) for name in ("transaction", "group")]
        ask_once(nodes, FindCoordinatorRequest(key_type=0, key="x"), 1)
        assert [nodes.hits(each) for each in rules] == [0, 1]
        ask_once(nodes, FindCoordinatorRequest(key_type=1, key="x"), 1)
        assert [nodes.hits(each) for each in rules] == [1, 1]

    @pytest.mark.parametrize(
        "request_",
        [
            ShareGroupDescribeRequest(group_ids=("a", "b")),
            DescribeShareGroupOffsetsRequest(
                groups=tuple(DescribeShareGroupOffsetsRequestGroup(group_id=each, topics=None) for each in ("a", "b"))
            ),
        ],
    )
    def test_a_description_of_share_groups_matches_each_of_them(self, request_: Any) -> None:
        nodes = FaultyNodes()
        rules = [nodes.rule("*", faults.drop(), group=each) for each in ("c", "b")]
        ask_once(nodes, request_, 1)
        assert [nodes.hits(each) for each in rules] == [0, 1]

    def test_a_hundred_rules_act_in_order(self) -> None:
        nodes = FaultyNodes()
        rules = [nodes.rule("Heartbeat", faults.error("NOT_COORDINATOR"), nth=n) for n in range(1, 101)]
        peer = nodes.connect()
        answers = [nodes.ask(peer, HEARTBEAT, 3).error_code for _ in range(101)]
        assert answers == [16] * 100 + [25]
        assert [nodes.hits(rule) for rule in rules] == [1] * 100

    def test_the_injector_is_registered_only_while_needed(self) -> None:
        nodes = FaultyNodes()
        rule = nodes.rule("Heartbeat", faults.drop())
        assert nodes.runtime.interceptor is not None
        nodes.faults.remove_rule(nodes.now, rule=rule)
        assert nodes.runtime.interceptor is None
        assert not nodes.runtime.tickers
        assert [event["change"] for event in nodes.kinds("rule")] == ["added", "removed"]


class TestUnused:
    def test_an_unused_rule_is_reported_with_the_closest_request(self) -> None:
        nodes = FaultyNodes()
        nodes.rule("OffsetCommit", faults.drop(), client_id="svc-2")
        nodes.rule("Heartbeat", faults.drop(), nth=3)
        nodes.rule("LeaveGroup", faults.drop())
        nodes.rule("LeaveGroup", faults.drop(), optional=True)
        ask_once(nodes, commit_request(), 5, "svc-1")
        ask_once(nodes, HEARTBEAT, 3)
        near = [each.near for each in nodes.faults.unused(nodes.now)]
        assert near == [
            "1 OffsetCommit seen; the closest is from client 'svc-1' and differs in client_id",
            "it matched once, but its trigger never fired",
            "no LeaveGroup was seen",
        ]
