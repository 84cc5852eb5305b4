"""Effects of each puppet behaviour on its group, with the rule of Kafka behind them."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
from scenes.puppet_scene import HEARTBEAT_MS, REBALANCE_MS, SESSION_MS, PuppetScene

from koordinator.wire.messages.join_group import JoinGroupRequest


def test_a_manual_puppet_sends_one_request_per_call() -> None:
    scene = PuppetScene()
    # KIP-394: the first JoinGroup returns a member id, the second joins
    told = scene.puppet("one", behaviour="manual")
    assert (told.state, told.error) == ("out", "MEMBER_ID_REQUIRED")
    assert told.member_id
    assert scene.perform("one", "join").state == "joined"
    assert scene.perform("one", "heartbeat").error is None
    assert scene.perform("one", "sync").state == "stable"
    scene.wait(SESSION_MS - 1)
    assert scene.members() == {"one"}
    scene.wait(1)
    assert scene.members() == set()
    told = scene.perform("one", "heartbeat")
    assert (told.state, told.error) == ("out", "UNKNOWN_MEMBER_ID")
    sent = [line["api"] for line in scene.events("request") if line["api"] != "FindCoordinator"]
    assert sent == ["JoinGroup", "JoinGroup", "Heartbeat", "SyncGroup", "Heartbeat"]


def test_a_manual_puppet_records_the_rebalance_error() -> None:
    scene = PuppetScene()
    scene.puppet("one", behaviour="manual", instance_id="1")
    scene.perform("one", "sync")
    scene.puppet("two")
    told = scene.perform("one", "heartbeat")
    assert (told.state, told.error) == ("stable", "REBALANCE_IN_PROGRESS")
    assert scene.state("two") == "joining"
    scene.perform("one", "join")
    assert scene.state("two") == "syncing"
    scene.perform("one", "sync")
    assert (scene.state("one"), scene.state("two")) == ("stable", "stable")


def test_a_straggler_delays_the_join_phase() -> None:
    scene = PuppetScene()
    scene.puppet("slow", behaviour={"kind": "straggler", "delay_s": 20})
    scene.puppet("two")
    scene.wait(HEARTBEAT_MS + 20_000 - 1)
    assert scene.group().state.value == "PreparingRebalance"
    # each heartbeat meanwhile returns REBALANCE_IN_PROGRESS
    assert len(scene.events("response", error="REBALANCE_IN_PROGRESS")) > 5
    scene.wait(1)
    assert scene.is_settled()
    assert scene.members() == {"slow", "two"}


def test_a_straggler_beyond_the_rebalance_timeout_is_removed_and_rejoins() -> None:
    scene = PuppetScene()
    scene.puppet("slow", behaviour={"kind": "straggler", "delay_s": 2 * REBALANCE_MS / 1000})
    scene.puppet("two")
    before = scene.describe("slow").member_id
    scene.wait(REBALANCE_MS + 2 * HEARTBEAT_MS)
    # KIP-62; its next heartbeat fails, and it joins without a member id
    assert scene.events("member", change="removed", member_id=before)
    assert scene.events("response", api="Heartbeat", error="UNKNOWN_MEMBER_ID", member_id=before)
    assert scene.describe("slow").member_id != before
    assert scene.is_settled()
    assert scene.members() == {"slow", "two"}


def test_a_flapping_puppet_leaves_and_returns() -> None:
    scene = PuppetScene()
    scene.puppet("steady")
    scene.puppet("flaps", behaviour={"kind": "flapping", "every_s": 10})
    scene.wait(HEARTBEAT_MS)
    assert scene.members() == {"steady", "flaps"}
    scene.wait(10_000)
    assert scene.members() == {"steady"}
    scene.wait(10_000)
    assert scene.members() == {"steady", "flaps"}
    scene.wait(60_000)
    # in 20 s: one rebalance for the leave, one for the join
    causes = [line["cause"] for line in scene.events("state", state_to="PreparingRebalance")]
    assert causes[2:] == ["leave", "member_join"] * 4 or causes.count("member_join") >= 5


def test_a_silent_puppet_expires_and_its_partitions_are_reassigned() -> None:
    scene = PuppetScene()
    scene.puppet("silent", behaviour="silent", session_timeout_ms=15_000)
    scene.puppet("two")
    # it never learns of the rebalance
    scene.wait(15_000 - 1)
    assert scene.group().state.value == "PreparingRebalance"
    scene.wait(1)
    assert scene.members() == {"two"}
    assert scene.holds("two") == {"two": [0, 1, 2, 3]}
    assert scene.events("timer", timer="SessionExpiry")


def test_a_leader_that_never_syncs_is_removed_by_the_sync_timer() -> None:
    scene = PuppetScene()
    scene.puppet("leader", behaviour="never_syncs")
    scene.puppet("two")
    scene.wait(HEARTBEAT_MS)
    assert (scene.state("leader"), scene.state("two")) == ("joined", "syncing")
    # KAFKA-12890; heartbeats return NONE meanwhile and do not prevent the removal
    scene.wait(REBALANCE_MS - 1)
    assert scene.members() == {"leader", "two"}
    scene.wait(1 + HEARTBEAT_MS)
    assert scene.events("timer", timer="PendingSyncExpiry")
    assert scene.group().leader.client_id == "two"  # type: ignore[union-attr]
    assert scene.is_settled()
    assert scene.members() == {"leader", "two"}


def test_members_omitted_by_their_leader_get_no_partitions() -> None:
    scene = PuppetScene()
    scene.puppet("leader", behaviour="omits_members", instance_id="1")
    scene.puppet("two", instance_id="2")
    scene.puppet("three", instance_id="3")
    scene.wait(3 * HEARTBEAT_MS)
    assert scene.is_settled()
    assert scene.holds("leader", "two", "three") == {"leader": [0, 1], "two": [2], "three": []}
    ids = {member.instance_id: member.assignment for member in scene.group().members.values()}
    assert ids["3"] == b""


def test_an_eager_only_puppet_forces_a_cooperative_group_back_to_eager() -> None:
    scene = PuppetScene()
    both = ("cooperative-sticky", "range")
    scene.puppet("one", protocols=both)
    scene.puppet("two", protocols=both)
    scene.wait(3 * HEARTBEAT_MS)
    assert scene.group().protocol_name == "cooperative-sticky"
    scene.puppet("old", protocols=both, behaviour="eager_only")
    scene.wait(3 * HEARTBEAT_MS)
    assert scene.is_settled()
    assert scene.group().protocol_name == "range"
    assert sorted(chain.from_iterable(scene.holds("one", "two", "old").values())) == [0, 1, 2, 3]


def test_a_cooperative_only_group_refuses_an_eager_only_puppet() -> None:
    scene = PuppetScene()
    scene.puppet("one", protocols=("cooperative-sticky",))
    told = scene.puppet("old", protocols=("cooperative-sticky", "range"), behaviour="eager_only")
    assert (told.state, told.error) == ("failed", "INCONSISTENT_GROUP_PROTOCOL")


def test_two_puppets_with_one_instance_id_fence_each_other() -> None:
    scene = PuppetScene()
    scene.puppet("first", instance_id="x", behaviour={"kind": "duplicate_instance_id", "restart_s": 3})
    scene.puppet("second", instance_id="x", behaviour={"kind": "duplicate_instance_id", "restart_s": 3})
    assert scene.state("second") == "stable"
    scene.wait(HEARTBEAT_MS)
    assert (scene.state("first"), scene.describe("first").error) == ("failed", "FENCED_INSTANCE_ID")
    scene.wait(3_000)
    assert (scene.state("first"), scene.state("second")) == ("stable", "stable")
    scene.wait(HEARTBEAT_MS)
    assert (scene.state("first"), scene.state("second")) == ("stable", "failed")
    scene.wait(60_000)
    assert len(scene.events("puppet", change="failed")) > 10
    # the instance keeps its partitions without a rebalance
    assert scene.group().generation == 1


def test_a_fenced_healthy_puppet_stays_failed() -> None:
    scene = PuppetScene()
    scene.puppet("first", instance_id="x")
    scene.puppet("second", instance_id="x")
    scene.wait(60_000)
    assert (scene.state("first"), scene.state("second")) == ("failed", "stable")
    assert scene.describe("first").assignment == {}


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ("stragler", r"behaviour 'stragler' is not known; did you mean 'straggler'\?; known: healthy, manual, "),
        ({"kind": "silent", "delay_s": 3}, "behaviour 'silent' has no parameters; remove 'delay_s'"),
        ({"kind": "straggler", "dely_s": 3}, "behaviour 'straggler' has only the parameter 'delay_s', not 'dely_s'"),
        ({"kind": "straggler", "delay_s": -1}, "delay_s must be a number above 0, not -1"),
        ({"kind": "straggler", "delay_s": "3"}, "delay_s must be a number above 0, not '3'"),
        ({"delay_s": 3}, "behaviour '' is not known"),
        ("duplicate_instance_id", "'duplicate_instance_id' needs the instance_id of another member"),
    ],
)
def test_an_invalid_behaviour_is_refused(behaviour: Any, message: str) -> None:
    scene = PuppetScene()
    with pytest.raises(ValueError, match=message):
        scene.puppet("one", behaviour=behaviour)
    assert scene.puppets.list(scene.now) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"protocols": ("",)}, "protocol '' is not known"),
        ({"metadata": {"mine": b"x"}}, "metadata for mine: a consumer offers range, roundrobin"),
        ({"metadata": {"range": b"x"}, "group_protocol": "consumer"}, "members with group_protocol 'consumer' do not"),
        ({"protocols": ()}, "must be one or more distinct names"),
        ({"protocols": ("range", "range")}, "must be one or more distinct names"),
        (
            {"protocols": ("cooperative-sticky",), "behaviour": "eager_only"},
            "'eager_only' offers only eager ones, such as range, ",
        ),
        ({"protocol_type": "conect"}, "protocol_type 'conect': puppets have consumer"),
        ({"session_timeout_ms": 0}, "session_timeout_ms must be a whole number of milliseconds above 0, not 0"),
        ({"heartbeat_interval_ms": -5}, "heartbeat_interval_ms must be a whole number"),
        ({"instance_id": ""}, "instance_id '': must not be empty"),
        ({"topics": "t"}, "topics 't': must be a list"),
    ],
)
def test_invalid_arguments_of_a_puppet_are_refused(options: dict[str, Any], message: str) -> None:
    scene = PuppetScene()
    with pytest.raises(ValueError, match=message):
        scene.puppet("one", **options)
    assert scene.puppets.list(scene.now) == []


def test_a_duplicate_or_unknown_name_is_refused_with_the_known_names() -> None:
    scene = PuppetScene()
    scene.puppet("one")
    scene.puppet("one", group="other")
    with pytest.raises(ValueError, match="group 'g' has a puppet 'one' already: use another name"):
        scene.puppet("one")
    with pytest.raises(ValueError, match="group 'g' has no puppet 'two': it has 'one'"):
        scene.perform("two", "join")
    with pytest.raises(ValueError, match="group 'h' has no puppet 'two': it has none"):
        scene.perform("two", "join", group="h")


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
def test_an_impossible_action_is_refused_without_side_effects(steps: list[str], verb: str, message: str) -> None:
    scene = PuppetScene()
    scene.puppet("one", joins=False)
    for step in steps:
        scene.perform("one", step)
    before, seq = scene.describe("one"), scene.trace.last_seq
    with pytest.raises(ValueError, match=message):
        scene.perform("one", verb)
    assert (scene.describe("one"), scene.trace.last_seq) == (before, seq)


def test_a_waiting_puppet_names_the_api_in_flight() -> None:
    scene = PuppetScene()
    scene.puppet("one", behaviour="silent")
    scene.puppet("two")
    with pytest.raises(ValueError, match="puppet 'two' cannot join: it is joining and waits for JoinGroup"):
        scene.perform("two", "join")


def test_a_puppet_can_leave_during_a_join() -> None:
    scene = PuppetScene()
    scene.puppet("one", behaviour="silent")
    scene.puppet("two")
    scene.perform("two", "leave")
    assert scene.state("two") == "out"
    assert scene.members() == {"one"}


def test_fields_beyond_the_release_are_not_sent() -> None:
    for release in ("2.4", "2.8", "3.9", "4.0", "4.2", "4.3", "4.4"):
        scene = PuppetScene(kafka_version=release)
        scene.puppet("one", instance_id="1")
        scene.puppet("two")
        scene.wait(HEARTBEAT_MS)
        assert scene.is_settled(), release
        scene.perform("two", "commit", offsets=[("t", 0, 5)])
        assert scene.describe("two").error is None
        scene.perform("two", "leave")
        reasons = {line.get("client_reason") for line in scene.events("request", api="LeaveGroup")}
        assert reasons == ({None} if release in {"2.4", "2.8"} else {"the consumer is being closed"})


def test_requests_of_every_behaviour_can_be_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puppet messages are not encoded, so a field unknown to the version would go unnoticed."""
    from koordinator.emulator.control.puppets.supervisor import PuppetSupervisor  # noqa: PLC0415
    from koordinator.wire.apis import REQUEST_KEYS  # noqa: PLC0415
    from koordinator.wire.codec import decode, encode  # noqa: PLC0415

    sent: set[str] = set()
    send = PuppetSupervisor.send

    def encoding(self: PuppetSupervisor, now: int, connection: int, request: Any) -> None:
        version = self.version(REQUEST_KEYS[type(request)])
        again = decode(type(request), version, encode(request, version), exact=True)
        if isinstance(request, JoinGroupRequest):
            assert again == request
        sent.add(type(request).__name__)
        send(self, now, connection, request)

    monkeypatch.setattr(PuppetSupervisor, "send", encoding)
    for release in ("2.4", "2.8", "4.4"):
        scene = PuppetScene(kafka_version=release)
        scene.puppet("one", instance_id="1")
        scene.puppet("two", behaviour="flapping", protocols=("sticky", "range"))
        scene.puppet("three", protocols=("range", "cooperative-sticky"))
        scene.wait(60_000)
        scene.perform("one", "commit", offsets=[("t", 0, 1)])
        scene.perform("one", "leave")
    assert len(sent) == 6
