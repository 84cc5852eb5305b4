"""Reactions of puppets to errors and faults, which are those of Java's consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from koordinator import faults

if TYPE_CHECKING:
    from koordinator import Cluster
    from koordinator.faults import Action

REFUSALS = {
    "JoinGroup": {
        "COORDINATOR_LOAD_IN_PROGRESS": "stable",
        "COORDINATOR_NOT_AVAILABLE": "stable",
        "NOT_COORDINATOR": "stable",
        "UNKNOWN_MEMBER_ID": "stable",
        "REBALANCE_IN_PROGRESS": "stable",
        "INCONSISTENT_GROUP_PROTOCOL": "failed",
        "INVALID_SESSION_TIMEOUT": "failed",
        "GROUP_AUTHORIZATION_FAILED": "failed",
        "GROUP_MAX_SIZE_REACHED": "failed",
        "FENCED_INSTANCE_ID": "failed",
    },
    "SyncGroup": {
        "COORDINATOR_NOT_AVAILABLE": "stable",
        "NOT_COORDINATOR": "stable",
        "UNKNOWN_MEMBER_ID": "stable",
        "ILLEGAL_GENERATION": "stable",
        "REBALANCE_IN_PROGRESS": "stable",
        "FENCED_INSTANCE_ID": "failed",
    },
    "Heartbeat": {
        "COORDINATOR_LOAD_IN_PROGRESS": "stable",
        "COORDINATOR_NOT_AVAILABLE": "stable",
        "NOT_COORDINATOR": "stable",
        "UNKNOWN_MEMBER_ID": "stable",
        "ILLEGAL_GENERATION": "stable",
        "REBALANCE_IN_PROGRESS": "stable",
        "FENCED_INSTANCE_ID": "failed",
    },
    "FindCoordinator": {"COORDINATOR_NOT_AVAILABLE": "stable"},
}
"""The final state of a puppet after one such error."""

CASES = [(api, error, end) for api, ends in REFUSALS.items() for error, end in ends.items()]

FAULTS = [
    faults.drop(),
    faults.lose_reply(),
    faults.never_answer(),
    faults.truncate(5),
    faults.drip(3, 5),
    faults.wrong_correlation_id(),
    faults.delay(50),
    faults.delay(50, clock="group"),
    faults.throttle(100),
]


@pytest.mark.parametrize(("api", "error", "end"), CASES)
def test_a_puppet_reacts_to_an_error_like_javas_consumer(api: str, error: str, end: str, cluster: Cluster) -> None:
    group = cluster.group("svc")
    rule = group.add_rule(api, faults.error(error), once=True)
    one = group.create_puppet("one").join()
    cluster.pass_time(10)
    assert rule.hits == 1
    assert one.state == end
    if end == "failed":
        assert one.error == error
    else:
        group.wait_stable(members=1)
        assert one.assignment == {"t": [0, 1, 2, 3]}


@pytest.mark.parametrize(("error", "keeps_its_id"), [("UNKNOWN_MEMBER_ID", False), ("ILLEGAL_GENERATION", True)])
@pytest.mark.parametrize("api", ["Heartbeat", "SyncGroup"])
def test_error_22_resets_the_generation_and_25_also_the_member_id(
    api: str, error: str, *, keeps_its_id: bool, cluster: Cluster
) -> None:
    group = cluster.group("svc")
    group.add_rule(api, faults.error(error), once=True)
    group.create_puppet("one").join()
    cluster.pass_time(1)
    requests = [line for line in group.events() if line["kind"] == "request" and line["api"] == "JoinGroup"]
    (again,) = [line for line in requests if str(line.get("client_reason")).startswith("encountered ")]
    assert (
        again["client_reason"]
        == f"encountered {error} from {'HEARTBEAT' if api == 'Heartbeat' else 'SYNC_GROUP'} response"
    )
    assert ("member_id" in again) == keeps_its_id


@pytest.mark.parametrize("error", ["UNKNOWN_MEMBER_ID", "COORDINATOR_LOAD_IN_PROGRESS", "MEMBER_ID_REQUIRED"])
def test_a_puppet_backs_off_on_permanent_errors(error: str, cluster: Cluster) -> None:
    group = cluster.group("svc")
    rule = group.add_rule("JoinGroup", faults.error(error))
    one = group.create_puppet("one").join()
    cluster.pass_time(10)
    assert one.state == "joining"
    assert 50 < rule.hits <= 500


@pytest.mark.slow
@pytest.mark.parametrize("api", ["FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_a_puppet_recovers_from_every_fault(api: str, fault: Action, cluster: Cluster) -> None:
    group = cluster.group("svc")
    rule = group.add_rule(api, fault, once=True)
    one = group.create_puppet("one").join()
    # a request timeout, plus the rebalance timeout of a member lost with its response
    cluster.pass_time(80)
    group.wait_stable(members=1)
    assert one.state == "stable"
    assert one.assignment == {"t": [0, 1, 2, 3]}
    one.leave()
    cluster.pass_time(80)
    assert one.state == "out"
    assert group.state == "Empty"
    assert rule.hits == 1


def test_a_held_puppet_names_the_api_in_flight(cluster: Cluster) -> None:
    group = cluster.group("svc")
    with group.hold("SyncGroup", client_id="one") as held:
        one = group.create_puppet("one").join()
        held.wait_entered()
        cluster.pass_time(1)
        assert (one.state, one.waits_for) == ("syncing", "SyncGroup")
        held.release()
    one.wait_state("stable")


def test_a_puppet_asks_other_nodes_for_the_coordinator(cluster: Cluster) -> None:
    group = cluster.group("svc")
    group.add_rule("FindCoordinator", faults.error("COORDINATOR_NOT_AVAILABLE"), broker=1)
    group.create_puppet("one").join().wait_state("stable", timeout=1)


def test_a_response_does_not_cancel_the_timeout_of_the_next_request(cluster: Cluster) -> None:
    group = cluster.group("svc")
    one = group.create_puppet("one").join().wait_state("stable")
    group.add_rule("JoinGroup", faults.never_answer(), once=True)
    with group.hold("OffsetCommit", client_id="one") as held:
        one.commit({("t", 0): 1})
        one.join()
        held.release()
    cluster.pass_time(30)
    assert one.state == "joining"
    cluster.pass_time(30)
    assert one.state == "stable"


def test_a_heartbeat_error_of_an_earlier_generation_is_ignored(cluster: Cluster) -> None:
    group = cluster.group("svc")
    one = group.create_puppet("one").join().wait_state("stable")
    before = one.member_id
    with group.hold("Heartbeat", client_id="one") as held:
        held.wait_entered()
        one.join()
        assert (one.state, one.waits_for) == ("joining", "Heartbeat")
        held.release(error="UNKNOWN_MEMBER_ID")
    cluster.pass_time(1)
    assert (one.state, one.member_id, one.generation) == ("stable", before, 2)


def test_an_evicted_member_rejoins_and_a_fenced_member_fails(cluster: Cluster) -> None:
    group = cluster.group("svc")
    one, two = group.create_puppet("one").join(), group.create_puppet("two", instance_id="2").join()
    group.wait_stable(members=2)
    before = one.member_id
    group.evict("one")
    cluster.pass_time(5)
    assert (one.state, one.member_id == before) == ("stable", False)
    group.fence("2")
    cluster.pass_time(5)
    assert (two.state, two.error) == ("failed", "FENCED_INSTANCE_ID")
