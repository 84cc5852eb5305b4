"""Holds, lock-steps and jitter, with nodes without sockets."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from brokers.cluster import FORMING_MS, GROUP, SESSION_MS, joining
from brokers.fault_broker import FaultyNodes, commit_request

from koordinator import faults
from koordinator.emulator.broker.connections import Answer
from koordinator.emulator.control.faults.actions import RuleError
from koordinator.emulator.control.results import HoldEntry, LockstepRound
from koordinator.wire.errors import Error
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.metadata import MetadataRequest

if TYPE_CHECKING:
    from clients.frame_clients import Peer

HEARTBEAT = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="nobody")


def send(nodes: FaultyNodes, message: Any, version: int, client_id: str = "c", peer: Peer | None = None) -> Peer:
    peer = peer or nodes.connect()
    nodes.send(peer, nodes.request(peer, message, version, client_id))
    return peer


def test_a_held_commit_is_refused_after_a_rebalance() -> None:
    nodes = FaultyNodes()
    (member,) = nodes.stable(1, "one")
    hold = nodes.hold("OffsetCommit", client_id="svc-*", group=GROUP)
    peer = send(nodes, commit_request(5, member, 1), 5, "svc-1")
    assert nodes.holds.entered(nodes.now, hold=hold).ok
    assert nodes.committed(1) == -1, "a hold stops requests before they are applied"
    other = send(nodes, joining("two"), 5)
    nodes.wait(30_000)
    assert other.answers()[0][1].generation_id == 2
    nodes.release(hold)
    assert {row.error_code for row in peer.answers()[0][1].topics[0].partitions} <= {22, 25}
    assert nodes.committed(1) == -1


def test_requests_behind_a_held_request_are_listed_and_answered_in_order() -> None:
    nodes = FaultyNodes()
    hold = nodes.hold("OffsetCommit")
    peer = send(nodes, commit_request(), 5)
    send(nodes, HEARTBEAT, 3, peer=peer)
    send(nodes, MetadataRequest(topics=()), 5, peer=peer)
    hold_data = nodes.hold_data(hold)
    assert [each.api for each in hold_data.parked] == ["OffsetCommit"]
    assert [each.api for each in hold_data.behind] == ["Heartbeat", "Metadata"]
    changes = [(event["change"], event.get("api")) for event in nodes.kinds("hold")]
    assert changes == [("added", None), ("entered", "OffsetCommit"), ("behind", "Heartbeat"), ("behind", "Metadata")]
    (message,) = nodes.holds.parked(nodes.now)
    assert message.startswith(
        "connection 1 of client 'c': its OffsetCommit is held by hold-1 on OffsetCommit; behind it"
    )
    nodes.release(hold)
    assert [number for number, _ in peer.answers()] == [1, 2, 3]
    assert nodes.holds.parked(nodes.now) == []


def test_a_request_released_with_an_error_is_not_applied() -> None:
    nodes = FaultyNodes()
    hold = nodes.hold("OffsetCommit")
    peer = send(nodes, commit_request(), 5)
    nodes.release(hold, error="COORDINATOR_NOT_AVAILABLE")
    assert [row.error_code for row in peer.answers()[0][1].topics[0].partitions] == [15, 15]
    assert nodes.committed(1) == -1
    response = [event for event in nodes.kinds("response") if event.get("rule_id")]
    assert [each["rule_id"] for each in response] == ["hold-1"]


def test_a_hold_is_open_after_its_release_and_unknown_after_its_removal() -> None:
    nodes = FaultyNodes()
    hold = nodes.hold("Heartbeat")
    peers = [send(nodes, HEARTBEAT, 3) for _ in range(2)]
    assert nodes.hold_data(hold).entered == 2, "every one that matches is stopped"
    nodes.release(hold)
    assert all(peer.answers() for peer in peers)
    assert send(nodes, HEARTBEAT, 3).answers()
    nodes.holds.remove(nodes.now, hold=hold)
    with pytest.raises(RuleError, match="unknown hold 'hold-1'"):
        nodes.hold_data(hold)
    assert nodes.runtime.interceptor is None


def test_removing_a_hold_resumes_its_requests() -> None:
    nodes = FaultyNodes()
    hold = nodes.hold("Heartbeat")
    peer = send(nodes, HEARTBEAT, 3)
    nodes.holds.remove(nodes.now, hold=hold)
    assert peer.answers()[0][1].error_code == Error.UNKNOWN_MEMBER_ID


class TestMistakes:
    @pytest.mark.parametrize(
        ("conditions", "message"),
        [
            ({"api": "OffsetComit"}, "did you mean 'OffsetCommit'"),
            ({"api": "OffsetCommit", "group": ""}, "group '': matches nothing"),
            ({"api": "OffsetCommit", "broker": 2}, "unknown broker 2"),
            ({"api": "OffsetCommit", "once": True}, "unknown field 'once'"),
        ],
    )
    def test_an_invalid_hold_is_refused(self, conditions: dict[str, Any], message: str) -> None:
        nodes = FaultyNodes()
        with pytest.raises(RuleError, match=message):
            nodes.hold(**conditions)
        assert nodes.runtime.interceptor is None

    def test_release_is_refused_before_an_entry_and_after_a_release(self) -> None:
        nodes = FaultyNodes()
        hold = nodes.hold("Heartbeat")
        with pytest.raises(RuleError, match="no request has entered it; wait until one has entered"):
            nodes.release(hold)
        send(nodes, HEARTBEAT, 3)
        with pytest.raises(RuleError, match="did you mean 'ILLEGAL_GENERATION'"):
            nodes.release(hold, error="ILEGAL_GENERATION")
        with pytest.raises(RuleError, match="a response to Heartbeat has errors at top"):
            nodes.release(hold, error="ILLEGAL_GENERATION", at="partition")
        assert len(nodes.hold_data(hold).parked) == 1, "a refused rule changes nothing"
        nodes.release(hold)
        with pytest.raises(RuleError, match="already released"):
            nodes.release(hold)

    @pytest.mark.parametrize("clients", [[], [""], ["a", "a"]])
    def test_an_invalid_client_list_of_a_lockstep_is_refused(self, clients: list[str]) -> None:
        nodes = FaultyNodes()
        with pytest.raises(RuleError, match="must be one or more distinct client or instance ids"):
            nodes.holds.lockstep(nodes.now, api="JoinGroup", group=GROUP, clients=clients)


class TestDeadlocks:
    def test_a_deadlock_between_holds_is_reported_at_once(self) -> None:
        nodes = FaultyNodes()
        nodes.hold("OffsetCommit", client_id="svc-1")
        second = nodes.hold("Heartbeat", client_id="svc-1")
        peer = send(nodes, commit_request(), 5, "svc-1")
        assert not nodes.holds.entered(nodes.now, hold=second).ok
        send(nodes, HEARTBEAT, 3, "svc-1", peer)
        given = nodes.holds.entered(nodes.now, hold=second)
        assert given.ok
        assert given.deadlock == (
            "hold-2 on Heartbeat(client_id='svc-1') waits for a Heartbeat that is queued behind another hold: "
            "connection 1 of client 'svc-1': its OffsetCommit is held by hold-1 on OffsetCommit(client_id='svc-1'); "
            "behind it on that connection: Heartbeat. A connection is answered in order, so release hold-1 first."
        )

    def test_another_possible_connection_prevents_a_deadlock_report(self) -> None:
        nodes = FaultyNodes()
        nodes.hold("OffsetCommit", client_id="svc-1")
        second = nodes.hold("Heartbeat")
        other = send(nodes, commit_request(), 5, "svc-2")
        peer = send(nodes, commit_request(), 5, "svc-1")
        send(nodes, HEARTBEAT, 3, "svc-1", peer)
        assert nodes.holds.entered(nodes.now, hold=second) == HoldEntry(ok=False, first=None, deadlock=None)
        send(nodes, HEARTBEAT, 3, "svc-2", other)
        assert nodes.holds.entered(nodes.now, hold=second).first.client_id == "svc-2"


class TestClosedConnections:
    def test_a_held_request_of_a_closed_connection_is_applied(self) -> None:
        nodes = FaultyNodes()
        hold = nodes.hold("OffsetCommit", client_id="svc-1")
        peer = send(nodes, commit_request(), 5, "svc-1")
        nodes.runtime.disconnected(nodes.now, peer.number)
        assert "(closed)" in nodes.holds.parked(nodes.now)[0]
        nodes.release(hold)
        assert nodes.committed(1) == 5

    def test_rules_skip_requests_of_closed_connections(self) -> None:
        nodes = FaultyNodes()
        rule = nodes.rule("OffsetCommit", faults.drop(), id="drop")
        hold = nodes.hold("OffsetCommit")
        peer = send(nodes, commit_request(), 5)
        nodes.runtime.disconnected(nodes.now, peer.number)
        nodes.release(hold)
        assert (nodes.committed(1), nodes.hits(rule)) == (5, 0)

    def test_a_held_request_is_discarded_with_its_node(self) -> None:
        nodes = FaultyNodes()
        hold = nodes.hold("OffsetCommit")
        send(nodes, commit_request(), 5)
        nodes.do(nodes.runtime.kill_node, 1)
        nodes.do(nodes.runtime.start_node, 1)
        nodes.release(hold)
        assert nodes.committed(1) == -1


def test_a_rule_sees_the_group_state_at_release_time() -> None:
    nodes = FaultyNodes()
    rule = nodes.rule("OffsetCommit", faults.error("COORDINATOR_NOT_AVAILABLE"), state="Empty")
    hold = nodes.hold("OffsetCommit")
    peer = send(nodes, commit_request(), 5)
    nodes.holds.remove(nodes.now, hold=nodes.hold("Metadata"))
    nodes.stable(1, "one")
    nodes.release(hold)
    assert nodes.hits(rule) == 0
    assert peer.answers()


def test_puppets_are_held_too() -> None:
    nodes = FaultyNodes()
    hold = nodes.hold("Heartbeat")
    connection = nodes.runtime.connect_in_process(nodes.now, 1, "peer")
    nodes.do(nodes.runtime.send_message, connection, 3, HEARTBEAT)
    nodes.do(nodes.runtime.send_message, connection, 3, HEARTBEAT)
    assert (len(nodes.hold_data(hold).parked), len(nodes.hold_data(hold).behind)) == (1, 1)
    nodes.release(hold)
    assert [type(each) for _, each in nodes.runtime.inbox] == [Answer, Answer]


class TestLockstep:
    def order(self, arrivals: list[str], seed: int = 7) -> list[str]:
        """Return the order in which clients become members, given their order of arrival."""
        nodes = FaultyNodes(seed=seed)
        nodes.holds.lockstep(nodes.now, api="JoinGroup", group=GROUP, clients=["a", "b", "c"])
        for client in arrivals:
            send(nodes, joining(client), 5, client)
            nodes.wait(1)
        nodes.wait(2 * FORMING_MS)
        group = nodes.runtime.broker(1).node.coordinator.groups[GROUP]
        return [member.instance_id or "" for member in group.members.values()]

    def test_the_outcome_does_not_depend_on_arrival_order(self) -> None:
        orders = {tuple(self.order(random.Random(n).sample("abc", 3))) for n in range(12)}
        assert len(orders) == 1
        assert len({tuple(self.order(["a", "b", "c"], seed)) for seed in range(12)}) > 1

    def test_a_round_starts_when_complete_and_other_requests_pass(self) -> None:
        nodes = FaultyNodes()
        made = nodes.holds.lockstep(nodes.now, api="Heartbeat", group=GROUP, clients=["a", "b"])
        hold = made.id
        first = [send(nodes, HEARTBEAT, 3, "a") for _ in range(2)]
        assert send(nodes, HEARTBEAT, 3, "other").answers()
        nodes.wait(100)
        assert not any(peer.answers() for peer in first)
        assert nodes.holds.round(nodes.now, hold=hold, number=1) == LockstepRound(ok=False, rounds=0, missing=["b"])
        second = send(nodes, HEARTBEAT, 3, "b")
        nodes.wait(0)
        assert [bool(peer.answers()) for peer in (*first, second)] == [True, False, True]
        assert nodes.holds.round(nodes.now, hold=hold, number=1).ok
        nodes.holds.remove(nodes.now, hold=hold)
        assert first[1].answers()

    def test_a_reconnected_client_replaces_its_request(self) -> None:
        nodes = FaultyNodes()
        nodes.holds.lockstep(nodes.now, api="Heartbeat", group=GROUP, clients=["a", "b"])
        gone = send(nodes, HEARTBEAT, 3, "a")
        nodes.runtime.disconnected(nodes.now, gone.number)
        other = send(nodes, HEARTBEAT, 3, "b")
        nodes.wait(0)
        assert not other.answers()
        again = send(nodes, HEARTBEAT, 3, "a")
        nodes.wait(0)
        assert again.answers()
        assert other.answers()


class TestJitter:
    def timeline(self, seed: int | None) -> list[tuple[int, int]]:
        """Return the response time of each of two clients, in ms."""
        nodes = FaultyNodes()
        nodes.faults.add_jitter(nodes.now, seed=seed)
        begin, answered = nodes.now, []
        peers = [send(nodes, HEARTBEAT, 3, client) for client in ("a", "b") for _ in range(10)]
        for _ in range(25):
            answered += [(peer.number, nodes.now - begin) for peer in peers if peer.answers()]
            peers = [peer for peer in peers if not peer.answers()]
            nodes.wait(1)
        assert not peers, "nothing is lost"
        return answered

    def test_jitter_is_small_and_repeats_with_its_seed(self) -> None:
        assert {ms for _, ms in self.timeline(None)} == {0}
        assert self.timeline(1) == self.timeline(1) != self.timeline(2)
        assert 5 < len({ms for _, ms in self.timeline(1)}) <= 21

    def test_jitter_delays_requests_and_responses(self) -> None:
        nodes = FaultyNodes()
        nodes.faults.add_jitter(nodes.now, seed=1)
        seen = set()
        for offset in range(1, 31):
            peer = send(nodes, commit_request(offset), 5)
            group = nodes.runtime.broker(1).node.coordinator.groups.get(GROUP)
            stored = group is not None and group.offsets["t", 0].offset == offset
            seen.add((stored, bool(peer.answers())))
            nodes.wait(20)
        assert seen == {(False, False), (True, False), (True, True)}

    def test_jitter_can_be_turned_off(self) -> None:
        nodes = FaultyNodes()
        nodes.faults.add_jitter(nodes.now, seed=1)
        assert nodes.runtime.interceptor is not None
        nodes.faults.add_jitter(nodes.now, seed=None)
        assert nodes.runtime.interceptor is None

    def test_a_group_stabilizes_under_jitter(self) -> None:
        nodes = FaultyNodes()
        nodes.faults.add_jitter(nodes.now, seed=3)
        peer = send(nodes, joining("one"), 5)
        nodes.wait(SESSION_MS // 2)
        assert peer.answers()[0][1].generation_id == 1
