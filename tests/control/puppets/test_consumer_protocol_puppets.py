"""Puppets of the consumer protocol (KIP-848): their requests, and the effects of their behaviours."""

from __future__ import annotations

from typing import Any

import pytest
from scenes.puppet_scene import PuppetScene

from koordinator.emulator.verify.conformance import SERVER_CHECKS, conformance
from koordinator.emulator.verify.group_trace import GroupTrace
from koordinator.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity

INTERVAL_MS, SESSION_MS, REVOKE_MS = 5_000, 45_000, 30_000
"""Kafka's heartbeat interval and session timeout, and the rebalance timeout of puppets."""


class ConsumerScene(PuppetScene):
    """Puppets of the consumer protocol; the group computes targets without a pause between them."""

    def __init__(self, nodes: int = 1, **settings: object) -> None:
        intervals = {"group_consumer_assignment_interval_ms": 0, "group_consumer_heartbeat_interval_ms": INTERVAL_MS}
        super().__init__(nodes, **{**intervals, **settings})

    def member(self, name: str, **options: Any) -> Any:
        """Let a puppet join, with the heartbeat interval of the coordinator."""
        return self.puppet(name, group_protocol="consumer", heartbeat_interval_ms=INTERVAL_MS, **options)

    def members(self, group: str = "g") -> set[str]:
        return {member.client_id for member in self.consumer_group(group).members.values()}

    def epochs_of(self, name: str) -> list[int]:
        """Return the epochs of a puppet's heartbeats."""
        return [line["generation"] for line in self.events("request", api="ConsumerGroupHeartbeat", client_id=name)]

    def changes(self, *names: str) -> list[tuple[str, str]]:
        """Return the changes of puppets, in order."""
        return [(line["puppet"], line["change"]) for line in self.events("puppet") if line["puppet"] in names]


def test_partitions_move_after_their_revocation_was_acknowledged() -> None:
    scene = ConsumerScene()
    scene.member("one")
    assert scene.holds("one") == {"one": [0, 1, 2, 3]}
    scene.member("two")
    scene.wait(2 * INTERVAL_MS)
    assert scene.consumer_group().state_name == "Stable"
    assert scene.holds("one", "two") == {"one": [0, 1], "two": [2, 3]}
    assert scene.changes("one", "two")[-3:] == [("one", "revoked"), ("one", "assigned"), ("two", "assigned")]
    # joins with 0, acknowledges, and keeps its epoch until it has given the partitions up
    assert scene.epochs_of("one")[:4] == [0, 2, 2, 2]


def test_a_subscription_is_sent_once_and_again_when_topics_change() -> None:
    scene = ConsumerScene()
    scene.member("one")
    scene.cluster.create_topic("u", 1)
    scene.wait(2 * INTERVAL_MS)
    assert scene.describe("one").assignment == {"t": [0, 1, 2, 3], "u": [0]}
    (member,) = scene.consumer_group().members.values()
    assert member.names == ("t", "u")


def test_a_pattern_is_resolved_by_the_coordinator() -> None:
    pytest.importorskip("re2", reason="google-re2 has no wheel here")
    scene = ConsumerScene()
    scene.cluster.create_topic("orders-eu", 1)
    scene.member("one", pattern="orders-.*")
    scene.wait(2 * INTERVAL_MS)
    assert scene.describe("one").assignment == {"orders-eu": [0]}
    (member,) = scene.consumer_group().members.values()
    assert (member.names, member.regex) == ((), "orders-.*")


def test_a_puppet_names_the_assignor_of_the_coordinator() -> None:
    scene = ConsumerScene()
    scene.member("one", protocols=["range"])
    assert scene.describe("one").protocol == "range"
    (target,) = scene.events("target")
    assert target["body"]["assignor"] == "range"
    refused = scene.member("two", protocols=["sticky"])
    assert (refused.state, refused.error) == ("failed", "UNSUPPORTED_ASSIGNOR")


def test_commits_have_the_epoch_of_the_member() -> None:
    scene = ConsumerScene()
    scene.member("one", behaviour="manual")
    scene.perform("one", "sync")
    assert scene.perform("one", "commit", offsets=[("t", 0, 5)]).error is None
    scene.member("two")
    scene.perform("one", "heartbeat")
    scene.perform("one", "sync")
    assert scene.perform("one", "commit", offsets=[("t", 3, 7)]).error is None
    assert {at: each.offset for at, each in scene.consumer_group().offsets.items()} == {("t", 0): 5, ("t", 3): 7}


def test_a_manual_puppet_sends_one_heartbeat_per_call() -> None:
    scene = ConsumerScene()
    joined = scene.member("one", behaviour="manual")
    assert (joined.state, joined.generation) == ("reconciling", 2)
    assert joined.assignment == {}
    assert scene.perform("one", "sync").assignment == {"t": [0, 1, 2, 3]}
    scene.member("two")
    # told to revoke: it keeps its partitions until its acknowledgement
    told = scene.perform("one", "heartbeat")
    assert (told.state, told.generation, told.assignment) == ("reconciling", 2, {"t": [0, 1, 2, 3]})
    with pytest.raises(ValueError, match="puppet 'two' cannot sync: it is stable"):
        scene.perform("two", "sync")
    told = scene.perform("one", "sync")
    assert (told.state, told.generation, told.assignment) == ("stable", 3, {"t": [0, 1]})
    assert scene.epochs_of("one") == [0, 2, 2, 2]
    scene.wait(SESSION_MS)
    assert scene.members() == {"two"}
    assert scene.perform("one", "heartbeat").state == "out"


def test_a_removed_member_abandons_its_partitions_and_joins_with_the_same_id() -> None:
    scene = ConsumerScene()
    before = scene.member("one")
    identity = MemberIdentity(member_id=before.member_id)
    scene.request_at(1, LeaveGroupRequest(group_id="g", members=(identity,)), 5)
    assert scene.members() == set()
    scene.wait(2 * INTERVAL_MS)
    assert scene.changes("one")[-2:] == [("one", "lost"), ("one", "assigned")]
    assert scene.describe("one").member_id == before.member_id
    assert scene.epochs_of("one")[:3] == [0, 2, 2]
    assert scene.epochs_of("one").count(0) == 2


def test_a_static_puppet_that_leaves_temporarily_returns_to_its_partitions() -> None:
    scene = ConsumerScene()
    scene.member("one", instance_id="i1")
    scene.member("two")
    scene.wait(2 * INTERVAL_MS)
    held = scene.holds("one")
    before = scene.describe("one").member_id
    scene.perform("one", "leave", temporarily=True)
    epoch = scene.consumer_group().epoch
    back = scene.perform("one", "join")
    assert back.member_id != before
    assert scene.holds("one") == held
    assert scene.consumer_group().epoch == epoch
    assert [line["change"] for line in scene.events("member", instance_id="i1")] == ["added", "replaced", "added"]


def test_a_static_puppet_that_was_killed_cannot_return_before_its_session_ends() -> None:
    scene = ConsumerScene()
    scene.member("one", instance_id="i1", behaviour={"kind": "duplicate_instance_id", "restart_s": 10})
    scene.perform("one", "stop")
    assert scene.perform("one", "join").error == "UNRELEASED_INSTANCE_ID"
    scene.wait(SESSION_MS + 10_000)
    assert scene.describe("one").state == "stable"


def test_a_silent_puppet_expires_and_its_partitions_are_reassigned() -> None:
    scene = ConsumerScene()
    scene.member("silent", behaviour="silent")
    scene.member("two")
    scene.wait(SESSION_MS - 1)
    assert scene.holds("two") == {"two": []}
    scene.wait(1 + INTERVAL_MS)
    assert scene.members() == {"two"}
    assert scene.holds("two") == {"two": [0, 1, 2, 3]}


def test_a_puppet_that_never_revokes_is_removed_by_the_rebalance_timeout() -> None:
    scene = ConsumerScene()
    scene.member("one", behaviour="never_revokes")
    scene.member("two")
    scene.wait(INTERVAL_MS)
    assert scene.holds("one", "two") == {"one": [0, 1, 2, 3], "two": []}
    # its heartbeats go on, and do not help
    scene.wait(REVOKE_MS)
    assert scene.events("member", change="removed", cause="revocation_timeout")
    scene.wait(2 * INTERVAL_MS)
    assert ("one", "lost") in scene.changes("one")
    assert scene.consumer_group().state_name == "Stable"


def test_a_straggler_gives_partitions_up_late() -> None:
    scene = ConsumerScene()
    scene.member("slow", behaviour={"kind": "straggler", "delay_s": 20})
    scene.member("two")
    scene.wait(INTERVAL_MS + 20_000 - 1)
    assert scene.holds("slow", "two") == {"slow": [0, 1, 2, 3], "two": []}
    scene.wait(1 + INTERVAL_MS)
    assert scene.holds("slow", "two") == {"slow": [0, 1], "two": [2, 3]}


def test_a_flapping_puppet_leaves_and_returns() -> None:
    scene = ConsumerScene()
    scene.member("steady")
    scene.member("flaps", behaviour={"kind": "flapping", "every_s": 10})
    scene.wait(INTERVAL_MS)
    sizes = []
    for _ in range(4):
        scene.wait(10_000)
        sizes.append(len(scene.members()))
    assert sorted(set(sizes)) == [1, 2]


def test_a_puppet_follows_a_coordinator_that_moves_with_a_full_heartbeat() -> None:
    scene = ConsumerScene(nodes=2)
    scene.member("one")
    member_id, coordinator = scene.describe("one").member_id, scene.coordinator(1)[1]
    scene.do(scene.runtime.kill_node, coordinator)
    scene.wait(3 * INTERVAL_MS)
    told = scene.describe("one")
    assert (told.state, told.member_id, told.generation) == ("stable", member_id, 2)
    assert scene.coordinator(3 - coordinator)[1] == 3 - coordinator


@pytest.mark.slow
@pytest.mark.parametrize(
    ("behaviour", "failed"),
    [
        ("healthy", set()),
        ({"kind": "straggler", "delay_s": 8}, set()),
        ("never_revokes", set()),
        ({"kind": "flapping", "every_s": 20}, set()),
        ({"kind": "duplicate_instance_id", "restart_s": 5}, set()),
        ("silent", {"C04"}),
    ],
)
def test_only_silent_puppets_fail_a_check(behaviour: str | dict[str, object], failed: set[str]) -> None:
    scene = ConsumerScene(nodes=2)
    scene.member("one", instance_id="i1")
    scene.member("two", behaviour=behaviour, instance_id="i1" if "duplicate" in str(behaviour) else None)
    scene.member("three")
    for _ in range(60):
        # the wall clock moves once per call
        scene.wait(1_000)
    scene.do(scene.runtime.move_coordinator, "g", 3 - scene.coordinator(1)[1])
    scene.perform("one", "leave", temporarily=True)
    scene.wait(60_000)
    trace = GroupTrace(scene.trace.events(), "g")
    clients = {each.id: each.status for each in conformance(trace)}
    servers = {check: judge(trace).status for check, (_, judge) in SERVER_CHECKS.items()}
    assert {check for check, status in {**clients, **servers}.items() if status == "fail"} == failed
    assert {
        check for check in ("C04", "C06", "C11", "C12", "S11", "S12") if {**clients, **servers}[check] != "pass"
    } == (failed)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group_protocol": "konsumer"}, "group_protocol 'konsumer' is not known; did you mean 'consumer'"),
        ({"pattern": "t.*"}, r"pattern='t\.\*': members with group_protocol 'classic' do not have it"),
        ({"group_protocol": "consumer", "session_timeout_ms": 5}, "session_timeout_ms=5: members with group_protocol"),
        ({"group_protocol": "consumer", "behaviour": "never_syncs"}, "behaviour='never_syncs'"),
        ({"behaviour": "never_revokes"}, "behaviour='never_revokes'"),
        ({"group_protocol": "consumer", "protocols": ["range", "uniform"]}, "has one assignor"),
    ],
)
def test_options_of_the_other_protocol_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ConsumerScene().puppet("one", joins=False, **options)


def test_releases_without_the_protocol_are_named() -> None:
    with pytest.raises(ValueError, match=r"use kafka_version 4\.0 or newer"):
        ConsumerScene(kafka_version="2.8").member("one")
    with pytest.raises(ValueError, match="pattern 't': the release"):
        ConsumerScene(kafka_version="3.9").member("one", pattern="t")
