"""What each behaviour does to a group, and the rule of Kafka it shows."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
from scenes.puppet_scene import BEAT_MS, REBALANCE_MS, SESSION_MS, Show

from koordinator.wire.messages.join_group import JoinGroupRequest


def test_a_manual_puppet_sends_what_it_is_told_and_nothing_else() -> None:
    show = Show()
    # KIP-394: the first JoinGroup brings an id, the second lets it in
    told = show.puppet("one", behaviour="manual")
    assert (told["state"], told["error"]) == ("out", "MEMBER_ID_REQUIRED")
    assert told["member_id"]
    assert show.tell("one", "join")["state"] == "joined"
    assert show.tell("one", "heartbeat")["error"] is None
    assert show.tell("one", "sync")["state"] == "stable"
    show.wait(SESSION_MS - 1)
    assert show.members() == {"one"}
    show.wait(1)
    assert show.members() == set()
    told = show.tell("one", "heartbeat")
    assert (told["state"], told["error"]) == ("out", "UNKNOWN_MEMBER_ID")
    asked = [line["api"] for line in show.events("request") if line["api"] != "FindCoordinator"]
    assert asked == ["JoinGroup", "JoinGroup", "Heartbeat", "SyncGroup", "Heartbeat"]


def test_a_manual_puppet_keeps_what_it_is_told_of_a_rebalance() -> None:
    show = Show()
    show.puppet("one", behaviour="manual", instance_id="1")
    show.tell("one", "sync")
    show.puppet("two")
    told = show.tell("one", "heartbeat")
    assert (told["state"], told["error"]) == ("stable", "REBALANCE_IN_PROGRESS")
    assert show.state("two") == "joining"
    show.tell("one", "join")
    assert show.state("two") == "syncing"
    show.tell("one", "sync")
    assert (show.state("one"), show.state("two")) == ("stable", "stable")


def test_a_straggler_holds_the_join_phase_up_until_it_comes() -> None:
    show = Show()
    show.puppet("slow", behaviour={"kind": "straggler", "delay_s": 20})
    show.puppet("two")
    show.wait(BEAT_MS + 20_000 - 1)
    assert show.group().state.value == "PreparingRebalance"
    # it beats meanwhile, and is told to join again each time
    assert len(show.events("response", error="REBALANCE_IN_PROGRESS")) > 5
    show.wait(1)
    assert show.is_settled()
    assert show.members() == {"slow", "two"}


def test_a_straggler_that_is_later_than_the_rebalance_timeout_is_left_behind_and_joins_anew() -> None:
    show = Show()
    show.puppet("slow", behaviour={"kind": "straggler", "delay_s": 2 * REBALANCE_MS / 1000})
    show.puppet("two")
    before = show.look("slow")["member_id"]
    show.wait(REBALANCE_MS + 2 * BEAT_MS)
    # KIP-62; it learns so from its next heartbeat, and begins with no member id
    assert show.events("member", change="removed", member_id=before)
    assert show.events("response", api="Heartbeat", error="UNKNOWN_MEMBER_ID", member_id=before)
    assert show.look("slow")["member_id"] != before
    assert show.is_settled()
    assert show.members() == {"slow", "two"}


def test_a_flapping_puppet_leaves_and_comes_back() -> None:
    show = Show()
    show.puppet("steady")
    show.puppet("flaps", behaviour={"kind": "flapping", "every_s": 10})
    show.wait(BEAT_MS)
    assert show.members() == {"steady", "flaps"}
    show.wait(10_000)
    assert show.members() == {"steady"}
    show.wait(10_000)
    assert show.members() == {"steady", "flaps"}
    show.wait(60_000)
    # in 20 s: one rebalance as it leaves, one as it comes
    causes = [line["cause"] for line in show.events("state", state_to="PreparingRebalance")]
    assert causes[2:] == ["leave", "member_join"] * 4 or causes.count("member_join") >= 5


def test_a_silent_puppet_is_gone_when_its_session_is_and_its_partitions_go_to_others() -> None:
    show = Show()
    show.puppet("silent", behaviour="silent", session_timeout_ms=15_000)
    show.puppet("two")
    # it does not hear that it should join again
    show.wait(15_000 - 1)
    assert show.group().state.value == "PreparingRebalance"
    show.wait(1)
    assert show.members() == {"two"}
    assert show.holds("two") == {"two": [0, 1, 2, 3]}
    assert show.events("timer", timer="SessionExpiry")


def test_a_leader_that_never_syncs_is_removed_with_its_sync_timer_and_another_one_assigns() -> None:
    show = Show()
    show.puppet("leader", behaviour="never_syncs")
    show.puppet("two")
    show.wait(BEAT_MS)
    assert (show.state("leader"), show.state("two")) == ("joined", "syncing")
    # KAFKA-12890; heartbeats are answered with NONE meanwhile, and do not help
    show.wait(REBALANCE_MS - 1)
    assert show.members() == {"leader", "two"}
    show.wait(1 + BEAT_MS)
    assert show.events("timer", timer="PendingSyncExpiry")
    assert show.group().leader.client_id == "two"  # type: ignore[union-attr]
    assert show.is_settled()
    assert show.members() == {"leader", "two"}


def test_members_that_their_leader_omits_get_nothing() -> None:
    show = Show()
    show.puppet("leader", behaviour="omits_members", instance_id="1")
    show.puppet("two", instance_id="2")
    show.puppet("three", instance_id="3")
    show.wait(3 * BEAT_MS)
    assert show.is_settled()
    assert show.holds("leader", "two", "three") == {"leader": [0, 1], "two": [2], "three": []}
    ids = {member.instance_id: member.assignment for member in show.group().members.values()}
    assert ids["3"] == b""


def test_an_eager_only_puppet_forces_a_cooperative_group_back_to_eager() -> None:
    show = Show()
    both = ("cooperative-sticky", "range")
    show.puppet("one", protocols=both)
    show.puppet("two", protocols=both)
    show.wait(3 * BEAT_MS)
    assert show.group().protocol_name == "cooperative-sticky"
    show.puppet("old", protocols=both, behaviour="eager_only")
    show.wait(3 * BEAT_MS)
    assert show.is_settled()
    assert show.group().protocol_name == "range"
    assert sorted(chain.from_iterable(show.holds("one", "two", "old").values())) == [0, 1, 2, 3]


def test_an_eager_only_puppet_is_refused_by_a_group_that_is_cooperative_alone() -> None:
    show = Show()
    show.puppet("one", protocols=("cooperative-sticky",))
    told = show.puppet("old", protocols=("cooperative-sticky", "range"), behaviour="eager_only")
    assert (told["state"], told["error"]) == ("failed", "INCONSISTENT_GROUP_PROTOCOL")


def test_two_with_one_instance_id_fence_each_other_in_turns() -> None:
    show = Show()
    show.puppet("first", instance_id="x", behaviour={"kind": "duplicate_instance_id", "restart_s": 3})
    show.puppet("second", instance_id="x", behaviour={"kind": "duplicate_instance_id", "restart_s": 3})
    assert show.state("second") == "stable"
    show.wait(BEAT_MS)
    assert (show.state("first"), show.look("first")["error"]) == ("failed", "FENCED_INSTANCE_ID")
    show.wait(3_000)
    assert (show.state("first"), show.state("second")) == ("stable", "stable")
    show.wait(BEAT_MS)
    assert (show.state("first"), show.state("second")) == ("stable", "failed")
    show.wait(60_000)
    assert len(show.events("puppet", change="failed")) > 10
    # one instance, whoever it is, keeps the partitions: nobody rebalances
    assert show.group().generation == 1


def test_a_fenced_puppet_that_is_healthy_stays_away() -> None:
    show = Show()
    show.puppet("first", instance_id="x")
    show.puppet("second", instance_id="x")
    show.wait(60_000)
    assert (show.state("first"), show.state("second")) == ("failed", "stable")
    assert show.look("first")["assignment"] == {}


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ("stragler", r"behaviour 'stragler' is not known; did you mean 'straggler'\?; known: healthy, manual, "),
        ({"kind": "silent", "delay_s": 3}, "behaviour 'silent' has no parameters, not even 'delay_s'"),
        ({"kind": "straggler", "dely_s": 3}, "behaviour 'straggler' has only the parameter 'delay_s', not 'dely_s'"),
        ({"kind": "straggler", "delay_s": -1}, "delay_s must be a number above 0, not -1"),
        ({"kind": "straggler", "delay_s": "3"}, "delay_s must be a number above 0, not '3'"),
        ({"delay_s": 3}, "behaviour '' is not known"),
        ("duplicate_instance_id", "'duplicate_instance_id' wants the instance_id that somebody else has"),
    ],
)
def test_a_behaviour_that_cannot_be_is_refused(behaviour: Any, message: str) -> None:
    show = Show()
    with pytest.raises(ValueError, match=message):
        show.puppet("one", behaviour=behaviour)
    assert show.puppets.list(show.now) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"protocols": ("rnage",)}, r"protocol 'rnage' is not known; known: range, .*; did you mean 'range'\?"),
        ({"protocols": ()}, "at least one, and none twice"),
        ({"protocols": ("range", "range")}, "at least one, and none twice"),
        ({"protocols": ("cooperative-sticky",), "behaviour": "eager_only"}, "'eager_only' offers only range, "),
        ({"protocol_type": "conect"}, "protocol_type 'conect': puppets have consumer"),
        ({"session_timeout_ms": 0}, "session_timeout_ms must be a whole number of milliseconds above 0, not 0"),
        ({"heartbeat_interval_ms": -5}, "heartbeat_interval_ms must be a whole number"),
        ({"instance_id": ""}, "an id is not empty"),
        ({"topics": "t"}, "topics are a list"),
    ],
)
def test_a_puppet_that_cannot_be_is_refused(given: dict[str, Any], message: str) -> None:
    show = Show()
    with pytest.raises(ValueError, match=message):
        show.puppet("one", **given)
    assert show.puppets.list(show.now) == []


def test_a_name_is_given_once_in_a_group_and_an_unknown_one_is_told_the_known_ones() -> None:
    show = Show()
    show.puppet("one")
    show.puppet("one", group="other")
    with pytest.raises(ValueError, match="group 'g' has a puppet 'one' already: it has 'one'"):
        show.puppet("one")
    with pytest.raises(ValueError, match="group 'g' has no puppet 'two': it has 'one'"):
        show.tell("two", "join")
    with pytest.raises(ValueError, match="group 'h' has no puppet 'two': it has none"):
        show.tell("two", "join", group="h")


@pytest.mark.parametrize(
    ("steps", "verb", "message"),
    [
        ([], "sync", "puppet 'one' cannot sync: it is out"),
        ([], "heartbeat", "puppet 'one' cannot heartbeat: it is out"),
        ([], "leave", "puppet 'one' cannot leave: it is out"),
        ([], "stop", "puppet 'one' cannot stop: it is out"),
        (["join"], "sync", "puppet 'one' cannot sync: it is stable"),
        (["join", "stop"], "heartbeat", "puppet 'one' cannot heartbeat: it is out"),
    ],
)
def test_a_step_that_is_impossible_is_refused_and_changes_nothing(steps: list[str], verb: str, message: str) -> None:
    show = Show()
    show.puppet("one", joins=False)
    for step in steps:
        show.tell("one", step)
    before, seq = show.look("one"), show.trace.last_seq
    with pytest.raises(ValueError, match=message):
        show.tell("one", verb)
    assert (show.look("one"), show.trace.last_seq) == (before, seq)


def test_a_puppet_that_waits_for_an_answer_says_for_which() -> None:
    show = Show()
    show.puppet("one", behaviour="silent")
    show.puppet("two")
    with pytest.raises(ValueError, match="puppet 'two' cannot join: it is joining and waits for JoinGroup"):
        show.tell("two", "join")


def test_a_puppet_may_leave_while_it_waits_to_be_let_in() -> None:
    show = Show()
    show.puppet("one", behaviour="silent")
    show.puppet("two")
    show.tell("two", "leave")
    assert show.state("two") == "out"
    assert show.members() == {"one"}


def test_what_a_release_does_not_know_is_not_sent() -> None:
    for release in ("2.4", "2.8", "3.9", "4.0", "4.3"):
        show = Show(kafka_version=release)
        show.puppet("one", instance_id="1")
        show.puppet("two")
        show.wait(BEAT_MS)
        assert show.is_settled(), release
        show.tell("two", "commit", offsets=[("t", 0, 5)])
        assert show.look("two")["error"] is None
        show.tell("two", "leave")
        reasons = {line.get("client_reason") for line in show.events("request", api="LeaveGroup")}
        assert reasons == ({None} if release in {"2.4", "2.8"} else {"the consumer is being closed"})


def test_a_puppet_of_every_behaviour_asks_only_what_can_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their messages are never encoded: a field its version has not would go unnoticed."""
    from koordinator.emulator.control.puppets.supervisor import PuppetSupervisor  # noqa: PLC0415
    from koordinator.wire.apis import REQUEST_KEYS  # noqa: PLC0415
    from koordinator.wire.codec import decode, encode  # noqa: PLC0415

    asked: set[str] = set()
    ask = PuppetSupervisor.ask

    def encoding(self: PuppetSupervisor, now: int, connection: int, request: Any) -> None:
        version = self.version(REQUEST_KEYS[type(request)])
        again = decode(type(request), version, encode(request, version), exact=True)
        if isinstance(request, JoinGroupRequest):
            assert again == request
        asked.add(type(request).__name__)
        ask(self, now, connection, request)

    monkeypatch.setattr(PuppetSupervisor, "ask", encoding)
    for release in ("2.4", "2.8", "4.3"):
        show = Show(kafka_version=release)
        show.puppet("one", instance_id="1")
        show.puppet("two", behaviour="flapping", protocols=("sticky", "range"))
        show.puppet("three", protocols=("range", "cooperative-sticky"))
        show.wait(60_000)
        show.tell("one", "commit", offsets=[("t", 0, 1)])
        show.tell("one", "leave")
    assert len(asked) == 6
