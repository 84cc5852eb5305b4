"""Holds, lock-steps and the disturbance, over nodes without sockets."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from brokers.cluster import FORMING_MS, GROUP, SESSION_MS, joining
from brokers.fault_broker import Faulty, committing

from koordinator import faults
from koordinator.emulator.broker.connections import Answer
from koordinator.emulator.control.faults.actions import RuleError
from koordinator.wire.errors import Error
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.metadata import MetadataRequest

if TYPE_CHECKING:
    from clients.frame_clients import Peer

BEAT = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="nobody")


def sent(nodes: Faulty, message: Any, version: int, client_id: str = "c", peer: Peer | None = None) -> Peer:
    peer = peer or nodes.connect()
    nodes.send(peer, nodes.request(peer, message, version, client_id))
    return peer


def test_a_commit_meets_a_group_that_has_moved_on() -> None:
    nodes = Faulty()
    (member,) = nodes.stable(1, "one")
    hold = nodes.hold("OffsetCommit", client_id="svc-*", group=GROUP)
    peer = sent(nodes, committing(5, member, 1), 5, "svc-1")
    assert nodes.holds.entered(nodes.now, hold=hold)["ok"]
    assert nodes.committed(1) == -1, "it is stopped before it is applied"
    other = sent(nodes, joining("two"), 5)
    nodes.wait(30_000)
    assert other.answers()[0][1].generation_id == 2
    nodes.release(hold)
    assert {row.error_code for row in peer.answers()[0][1].topics[0].partitions} <= {22, 25}
    assert nodes.committed(1) == -1


def test_what_stands_behind_a_hold_is_shown_and_answered_in_order() -> None:
    nodes = Faulty()
    hold = nodes.hold("OffsetCommit")
    peer = sent(nodes, committing(), 5)
    sent(nodes, BEAT, 3, peer=peer)
    sent(nodes, MetadataRequest(topics=()), 5, peer=peer)
    looked = nodes.held(hold)
    assert [each["api"] for each in looked["inside"]] == ["OffsetCommit"]
    assert [each["api"] for each in looked["behind"]] == ["Heartbeat", "Metadata"]
    changes = [(event["change"], event.get("api")) for event in nodes.kinds("hold")]
    assert changes == [("added", None), ("entered", "OffsetCommit"), ("behind", "Heartbeat"), ("behind", "Metadata")]
    (said,) = nodes.holds.blocked(nodes.now)
    assert said.startswith("connection 1 of client 'c': its OffsetCommit is held by hold-1 on OffsetCommit; behind it")
    nodes.release(hold)
    assert [number for number, _ in peer.answers()] == [1, 2, 3]
    assert nodes.holds.blocked(nodes.now) == []


def test_released_with_an_error_it_is_not_applied() -> None:
    nodes = Faulty()
    hold = nodes.hold("OffsetCommit")
    peer = sent(nodes, committing(), 5)
    nodes.release(hold, error="COORDINATOR_NOT_AVAILABLE")
    assert [row.error_code for row in peer.answers()[0][1].topics[0].partitions] == [15, 15]
    assert nodes.committed(1) == -1
    response = [event for event in nodes.kinds("response") if event.get("rule_id")]
    assert [each["rule_id"] for each in response] == ["hold-1"]


def test_a_hold_is_open_after_its_release_and_gone_after_its_end() -> None:
    nodes = Faulty()
    hold = nodes.hold("Heartbeat")
    peers = [sent(nodes, BEAT, 3) for _ in range(2)]
    assert nodes.held(hold)["entered"] == 2, "every one that matches is stopped"
    nodes.release(hold)
    assert all(peer.answers() for peer in peers)
    assert sent(nodes, BEAT, 3).answers()
    nodes.holds.remove(nodes.now, hold=hold)
    with pytest.raises(RuleError, match="unknown hold 'hold-1'"):
        nodes.held(hold)
    assert nodes.brokers.gate is None


def test_the_end_of_a_hold_lets_go_what_is_in_it() -> None:
    nodes = Faulty()
    hold = nodes.hold("Heartbeat")
    peer = sent(nodes, BEAT, 3)
    nodes.holds.remove(nodes.now, hold=hold)
    assert peer.answers()[0][1].error_code == Error.UNKNOWN_MEMBER_ID


class TestMistakes:
    @pytest.mark.parametrize(
        ("words", "said"),
        [
            ({"api": "OffsetComit"}, "the nearest is 'OffsetCommit'"),
            ({"api": "OffsetCommit", "group": ""}, "group '': matches nothing"),
            ({"api": "OffsetCommit", "broker": 2}, "unknown broker 2"),
            ({"api": "OffsetCommit", "once": True}, "unknown field 'once'"),
        ],
    )
    def test_a_hold_on_nothing(self, words: dict[str, Any], said: str) -> None:
        nodes = Faulty()
        with pytest.raises(RuleError, match=said):
            nodes.hold(**words)
        assert nodes.brokers.gate is None

    def test_a_second_release_and_one_of_what_never_entered(self) -> None:
        nodes = Faulty()
        hold = nodes.hold("Heartbeat")
        with pytest.raises(RuleError, match="nothing has entered it; wait for that first"):
            nodes.release(hold)
        sent(nodes, BEAT, 3)
        with pytest.raises(RuleError, match="the nearest is 'ILLEGAL_GENERATION'"):
            nodes.release(hold, error="ILEGAL_GENERATION")
        with pytest.raises(RuleError, match="an answer to Heartbeat has them at top"):
            nodes.release(hold, error="ILLEGAL_GENERATION", at="partition")
        assert len(nodes.held(hold)["inside"]) == 1, "nothing has changed"
        nodes.release(hold)
        with pytest.raises(RuleError, match="was released before"):
            nodes.release(hold)

    @pytest.mark.parametrize("clients", [[], [""], ["a", "a"]])
    def test_a_lockstep_of_nobody(self, clients: list[str]) -> None:
        nodes = Faulty()
        with pytest.raises(RuleError, match="must be different client or instance ids"):
            nodes.holds.lockstep(nodes.now, api="JoinGroup", group=GROUP, clients=clients)


class TestDeadlocks:
    def test_a_hold_that_waits_for_what_stands_behind_another_says_so_at_once(self) -> None:
        nodes = Faulty()
        nodes.hold("OffsetCommit", client_id="svc-1")
        second = nodes.hold("Heartbeat", client_id="svc-1")
        peer = sent(nodes, committing(), 5, "svc-1")
        assert not nodes.holds.entered(nodes.now, hold=second)["ok"]
        sent(nodes, BEAT, 3, "svc-1", peer)
        given = nodes.holds.entered(nodes.now, hold=second)
        assert given["ok"]
        assert given["deadlock"] == (
            "hold-2 on Heartbeat(client_id='svc-1') waits for a Heartbeat that stands behind another hold: "
            "connection 1 of client 'svc-1': its OffsetCommit is held by hold-1 on OffsetCommit(client_id='svc-1'); "
            "behind it on that connection: Heartbeat. A connection is answered in order, so release hold-1 first."
        )

    def test_it_is_none_while_another_connection_could_bring_it(self) -> None:
        nodes = Faulty()
        nodes.hold("OffsetCommit", client_id="svc-1")
        second = nodes.hold("Heartbeat")
        other = sent(nodes, committing(), 5, "svc-2")
        peer = sent(nodes, committing(), 5, "svc-1")
        sent(nodes, BEAT, 3, "svc-1", peer)
        assert nodes.holds.entered(nodes.now, hold=second) == {"ok": False, "first": None, "deadlock": None}
        sent(nodes, BEAT, 3, "svc-2", other)
        assert nodes.holds.entered(nodes.now, hold=second)["first"]["client_id"] == "svc-2"


class TestClientsThatGiveUp:
    def test_a_held_request_is_applied_after_its_client_has_gone(self) -> None:
        nodes = Faulty()
        hold = nodes.hold("OffsetCommit", client_id="svc-1")
        peer = sent(nodes, committing(), 5, "svc-1")
        nodes.brokers.disconnected(nodes.now, peer.number)
        assert "(which has closed)" in nodes.holds.blocked(nodes.now)[0]
        nodes.release(hold)
        assert nodes.committed(1) == 5

    def test_rules_do_not_look_at_it_any_more(self) -> None:
        nodes = Faulty()
        rule = nodes.rule("OffsetCommit", faults.drop(), id="drop")
        hold = nodes.hold("OffsetCommit")
        peer = sent(nodes, committing(), 5)
        nodes.brokers.disconnected(nodes.now, peer.number)
        nodes.release(hold)
        assert (nodes.committed(1), nodes.hits(rule)) == (5, 0)

    def test_a_held_request_is_lost_with_its_node(self) -> None:
        nodes = Faulty()
        hold = nodes.hold("OffsetCommit")
        sent(nodes, committing(), 5)
        nodes.do(nodes.brokers.kill_node, 1)
        nodes.do(nodes.brokers.start_node, 1)
        nodes.release(hold)
        assert nodes.committed(1) == -1


def test_a_rule_sees_the_group_as_it_is_when_the_hold_lets_go() -> None:
    nodes = Faulty()
    rule = nodes.rule("OffsetCommit", faults.error("COORDINATOR_NOT_AVAILABLE"), state="Empty")
    hold = nodes.hold("OffsetCommit")
    peer = sent(nodes, committing(), 5)
    nodes.holds.remove(nodes.now, hold=nodes.hold("Metadata"))
    nodes.stable(1, "one")
    nodes.release(hold)
    assert nodes.hits(rule) == 0
    assert peer.answers()


def test_puppets_are_held_too() -> None:
    nodes = Faulty()
    hold = nodes.hold("Heartbeat")
    connection = nodes.brokers.connect_puppet(nodes.now, 1, "peer")
    nodes.do(nodes.brokers.ask, connection, 3, BEAT)
    nodes.do(nodes.brokers.ask, connection, 3, BEAT)
    assert (len(nodes.held(hold)["inside"]), len(nodes.held(hold)["behind"])) == (1, 1)
    nodes.release(hold)
    assert [type(each) for _, each in nodes.brokers.mail] == [Answer, Answer]


class TestLockstep:
    def order(self, arrivals: list[str], seed: int = 7) -> list[str]:
        """Who becomes a member in which order, if they come in this one."""
        nodes = Faulty(seed=seed)
        nodes.holds.lockstep(nodes.now, api="JoinGroup", group=GROUP, clients=["a", "b", "c"])
        for client in arrivals:
            sent(nodes, joining(client), 5, client)
            nodes.wait(1)
        nodes.wait(2 * FORMING_MS)
        group = nodes.brokers.broker(1).node.coordinator.groups[GROUP]
        return [member.instance_id or "" for member in group.members.values()]

    def test_the_outcome_does_not_depend_on_who_comes_first(self) -> None:
        orders = {tuple(self.order(random.Random(n).sample("abc", 3))) for n in range(12)}
        assert len(orders) == 1
        assert len({tuple(self.order(["a", "b", "c"], seed)) for seed in range(12)}) > 1

    def test_nobody_is_served_before_all_are_there_and_others_pass(self) -> None:
        nodes = Faulty()
        made = nodes.holds.lockstep(nodes.now, api="Heartbeat", group=GROUP, clients=["a", "b"])
        hold = made["id"]
        first = [sent(nodes, BEAT, 3, "a") for _ in range(2)]
        assert sent(nodes, BEAT, 3, "other").answers()
        nodes.wait(100)
        assert not any(peer.answers() for peer in first)
        assert nodes.holds.round(nodes.now, hold=hold, number=1) == {"ok": False, "rounds": 0, "missing": ["b"]}
        second = sent(nodes, BEAT, 3, "b")
        nodes.wait(0)
        assert [bool(peer.answers()) for peer in (*first, second)] == [True, False, True]
        assert nodes.holds.round(nodes.now, hold=hold, number=1)["ok"]
        nodes.holds.remove(nodes.now, hold=hold)
        assert first[1].answers()

    def test_a_client_that_comes_again_takes_its_old_place(self) -> None:
        nodes = Faulty()
        nodes.holds.lockstep(nodes.now, api="Heartbeat", group=GROUP, clients=["a", "b"])
        gone = sent(nodes, BEAT, 3, "a")
        nodes.brokers.disconnected(nodes.now, gone.number)
        other = sent(nodes, BEAT, 3, "b")
        nodes.wait(0)
        assert not other.answers()
        again = sent(nodes, BEAT, 3, "a")
        nodes.wait(0)
        assert again.answers()
        assert other.answers()


class TestDisturbance:
    def story(self, seed: int | None) -> list[tuple[int, int]]:
        """When each of two clients is answered, in ms."""
        nodes = Faulty()
        nodes.faults.disturb(nodes.now, seed=seed)
        begin, answered = nodes.now, []
        peers = [sent(nodes, BEAT, 3, client) for client in ("a", "b") for _ in range(10)]
        for _ in range(25):
            answered += [(peer.number, nodes.now - begin) for peer in peers if peer.answers()]
            peers = [peer for peer in peers if not peer.answers()]
            nodes.wait(1)
        assert not peers, "nothing is lost"
        return answered

    def test_it_delays_a_little_and_repeats_with_its_seed(self) -> None:
        assert {ms for _, ms in self.story(None)} == {0}
        assert self.story(1) == self.story(1) != self.story(2)
        assert 5 < len({ms for _, ms in self.story(1)}) <= 21

    def test_some_requests_are_late_and_some_answers(self) -> None:
        nodes = Faulty()
        nodes.faults.disturb(nodes.now, seed=1)
        seen = set()
        for offset in range(1, 31):
            peer = sent(nodes, committing(offset), 5)
            group = nodes.brokers.broker(1).node.coordinator.groups.get(GROUP)
            stored = group is not None and group.offsets["t", 0].offset == offset
            seen.add((stored, bool(peer.answers())))
            nodes.wait(20)
        assert seen == {(False, False), (True, False), (True, True)}

    def test_it_ends(self) -> None:
        nodes = Faulty()
        nodes.faults.disturb(nodes.now, seed=1)
        assert nodes.brokers.gate is not None
        nodes.faults.disturb(nodes.now, seed=None)
        assert nodes.brokers.gate is None

    def test_a_group_forms_all_the_same(self) -> None:
        nodes = Faulty()
        nodes.faults.disturb(nodes.now, seed=3)
        peer = sent(nodes, joining("one"), 5)
        nodes.wait(SESSION_MS // 2)
        assert peer.answers()[0][1].generation_id == 1
