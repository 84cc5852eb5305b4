"""Groups of real clients are conformant in normal operation, and violations are found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from clients.consumers import ASSIGNORS, KINDS, PATIENCE_S, Member, Members, assignor_settings, wait_settled, wait_until

if TYPE_CHECKING:
    from koordinator import Cluster, Group

pytestmark = pytest.mark.koordinator(topics={"t": 6})

EACH_ASSIGNOR = [(kind, assignor) for kind in KINDS for assignor in ASSIGNORS[kind]]

ALWAYS = {"C01", "C03", "C04", "C05", "C07", "C08"}
"""The checks that apply to every client in normal operation."""


def produce(cluster: Cluster, count: int) -> None:
    for number in range(count):
        cluster.produce("t", {"value": str(number), "partition": number % 6})


def consumed(*members: Member) -> int:
    return len({(topic, number, offset) for member in members for topic, number, offset, _ in member.records})


@pytest.mark.parametrize(("kind", "assignor"), EACH_ASSIGNOR)
def test_normal_operation_is_conformant(koordinator: Cluster, join: Members, kind: str, assignor: str) -> None:
    group = koordinator.group("g")
    settings = assignor_settings(kind, assignor)
    produce(koordinator, 30)
    one = join(kind, client_id="one", **settings)
    group.wait_stable(members=1, all_owned=True)
    wait_until("all is consumed", lambda: consumed(one) == 30, one)
    with group.expect_rebalance(cause="member_join") as expected:
        two = join(kind, client_id="two", **settings)
    assert expected.rebalance.trigger is not None
    assert expected.rebalance.trigger.startswith("two-")
    group.wait_stable(members=2, all_owned=True)
    static = join(kind, client_id="static", instance="static", **settings)
    group.wait_stable(members=3, all_owned=True)
    wait_until("all own something", lambda: all(each.assignment for each in (one, two, static)), one, two, static)
    produce(koordinator, 30)
    wait_until("all is consumed", lambda: consumed(one, two, static) == 60, one, two, static)
    group.assert_owned_exactly_once()
    with group.expect_rebalance(cause="member_leave"):
        two.close()
    group.wait_stable(members=2, all_owned=True).assert_left("two")
    wait_settled(group)
    with group.assert_no_rebalance():
        static.close()
    group.assert_did_not_leave("static")
    one.close()
    group.assert_left("one").assert_no_zombie_commits().assert_conformant()
    verdicts = group.conformance()
    shown = {check for check, verdict in verdicts.items() if verdict.status == "pass"}
    assert shown >= ALWAYS | ({"C06"} if assignor == "cooperative-sticky" else set()), verdicts


@pytest.mark.koordinator(brokers=2)
@pytest.mark.parametrize("kind", KINDS)
def test_a_moved_coordinator_is_looked_up(koordinator: Cluster, join: Members, kind: str) -> None:
    group = koordinator.group("g")
    member = join(kind)
    group.wait_stable(members=1, all_owned=True)
    wait_until("it beats", lambda: count(group, "Heartbeat") > 2, member)
    lookups = count(group, "FindCoordinator")
    here = koordinator.coordinator("g")
    assert here is not None
    koordinator.move_coordinator("g", to=3 - here.id)
    group.assert_request("Heartbeat", error="NOT_COORDINATOR", timeout=PATIENCE_S)
    wait_until("it looks for it", lambda: count(group, "FindCoordinator") > lookups, member)
    beats = count(group, "Heartbeat")
    wait_until("it beats again", lambda: count(group, "Heartbeat") > beats + 2, member)
    group.assert_conformant()
    assert group.conformance()["C02"].status == "pass"


LOOPS = [("kafka-python", 20, "fail"), ("confluent-kafka", 3, "pass"), ("aiokafka", 20, "fail")]
"""The number of requests of each client during the test, and the verdict: confluent-kafka sends one a second."""


@pytest.mark.koordinator(config={"group.max.size": 1})
@pytest.mark.parametrize(("kind", "times", "status"), LOOPS)
def test_endless_joins_of_a_full_group_are_found(
    koordinator: Cluster, join: Members, kind: str, times: int, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # an application that polls again at once after every exception
    monkeypatch.setattr("clients.consumers.POLL_MS", 1)
    # on a busy machine the same loop takes longer
    monkeypatch.setattr("koordinator.emulator.verify.lookup_checks.LOOP_MS", 60_000)
    group = koordinator.group("g")
    first = join("aiokafka", client_id="first", **assignor_settings("aiokafka", "range"))
    group.wait_stable(members=1, all_owned=True)
    second = join(kind, client_id="second", goes_on=True, **assignor_settings(kind, "range"))
    group.assert_request("JoinGroup", client_id="second", error="GROUP_MAX_SIZE_REACHED", timeout=PATIENCE_S)
    asked = count(group, "JoinGroup")
    wait_until("it asks again", lambda: count(group, "JoinGroup") >= asked + times, second, first)
    assert group.conformance()["C09"].status == status


def count(group: Group, api: str) -> int:
    return sum(event.get("api") == api and event["kind"] == "response" for event in group.events())
