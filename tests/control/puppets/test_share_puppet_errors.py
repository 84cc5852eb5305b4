"""Reactions of puppets of share groups to errors and lost connections, which are those of Java's share consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from koordinator import faults

if TYPE_CHECKING:
    from koordinator import Cluster, Group
    from koordinator.handles.puppets import Puppet

BACKOFF_US = 100_000
"""`retry.backoff.ms`, in µs."""

ALL = {"t": [0, 1, 2, 3]}


@pytest.fixture
def group(cluster: Cluster) -> Group:
    return cluster.group("svc")


def joined(group: Group, **options: Any) -> Puppet:
    """Create a puppet that is a stable member with its partitions, and waits for its next heartbeat."""
    puppet = group.create_puppet("one", group_protocol="share", **options).join().wait_state("stable")
    while not puppet.assignment:
        puppet.heartbeat()
    return puppet


def requests(group: Group, api: str = "ShareGroupHeartbeat") -> list[dict[str, Any]]:
    return [line for line in group.events() if line["kind"] == "request" and line["api"] == api]


def after_error(group: Group) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the response with an error, and the heartbeat after it."""
    events = group.events()
    at = next(n for n, line in enumerate(events) if line["kind"] == "response" and "error" in line)
    return events[at], next(
        line for line in events[at:] if line["kind"] == "request" and line["api"] == "ShareGroupHeartbeat"
    )


@pytest.mark.parametrize(
    ("error", "looks_up"),
    [
        ("NOT_COORDINATOR", True),
        ("COORDINATOR_NOT_AVAILABLE", True),
        ("COORDINATOR_LOAD_IN_PROGRESS", False),
    ],
)
def test_a_member_without_coordinator_backs_off_and_repeats_its_subscription(
    error: str, group: Group, cluster: Cluster, *, looks_up: bool
) -> None:
    one = joined(group)
    lookups = len(requests(group, "FindCoordinator"))
    group.add_rule("ShareGroupHeartbeat", faults.error(error), once=True)
    cluster.pass_time(1)
    assert (one.state, one.assignment) == ("stable", ALL)
    assert len(requests(group, "FindCoordinator")) - lookups == looks_up
    failed, again = after_error(group)
    assert again["group_ts_us"] - failed["group_ts_us"] == BACKOFF_US
    assert (again["generation"], again["body"]) == (one.generation, {"topics": ["t"]})


@pytest.mark.parametrize("error", ["UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"])
def test_a_member_that_lost_its_membership_joins_at_once_with_the_same_id(
    error: str, group: Group, cluster: Cluster
) -> None:
    one = joined(group)
    before = one.member_id
    group.add_rule("ShareGroupHeartbeat", faults.error(error), once=True)
    cluster.pass_time(1)
    assert (one.state, one.member_id, one.assignment) == ("stable", before, ALL)
    failed, again = after_error(group)
    assert (again["group_ts_us"], again["generation"]) == (failed["group_ts_us"], 0)


def test_a_topic_that_may_not_be_described_ends_no_membership(group: Group, cluster: Cluster) -> None:
    one = joined(group)
    group.add_rule("ShareGroupHeartbeat", faults.error("TOPIC_AUTHORIZATION_FAILED"), once=True)
    cluster.pass_time(1)
    assert (one.state, one.assignment) == ("stable", ALL)
    _, again = after_error(group)
    assert (again["generation"], again["body"]) == (one.generation, {"topics": ["t"]})


@pytest.mark.parametrize("error", ["GROUP_AUTHORIZATION_FAILED", "INVALID_REQUEST", "GROUP_MAX_SIZE_REACHED"])
def test_other_errors_are_fatal(error: str, group: Group, cluster: Cluster) -> None:
    one = joined(group)
    group.add_rule("ShareGroupHeartbeat", faults.error(error), once=True)
    cluster.pass_time(1)
    sent = len(requests(group))
    cluster.pass_time(10)
    assert (one.state, one.error, one.assignment) == ("failed", error, {})
    assert len(requests(group)) == sent


def test_a_heartbeat_response_of_an_earlier_membership_is_ignored(group: Group, cluster: Cluster) -> None:
    one = joined(group)
    with group.hold("ShareGroupHeartbeat", client_id="one") as held:
        held.wait_entered()
        one.join()
        assert (one.state, one.waits_for) == ("joining", "ShareGroupHeartbeat")
        held.release(error="GROUP_AUTHORIZATION_FAILED")
    cluster.pass_time(1)
    assert (one.state, one.error, one.assignment) == ("stable", None, ALL)


def test_no_heartbeat_is_sent_while_one_is_unanswered(group: Group, cluster: Cluster) -> None:
    one = joined(group)
    with group.hold("ShareGroupHeartbeat", client_id="one") as held:
        held.wait_entered()
        sent = len(requests(group))
        cluster.pass_time(5)
        # more of them would wait on the connection, and be seen together
        held.release()
    cluster.pass_time(1)
    times = [line["group_ts_us"] for line in requests(group)[sent:]]
    assert len({*times}) == len(times) > 1
    assert one.state == "stable"


# -- puppets by hand


def test_a_manual_member_sends_one_heartbeat_per_call(group: Group, cluster: Cluster) -> None:
    one = group.create_puppet("one", group_protocol="share", behaviour="manual").join()
    cluster.pass_time(10)
    assert (one.state, one.assignment) == ("stable", {})
    assert [line["generation"] for line in requests(group)] == [0]
    one.heartbeat()
    assert one.assignment == ALL
    assert [line["generation"] for line in requests(group)] == [0, 2]


@pytest.mark.parametrize(
    ("error", "state"), [("UNKNOWN_MEMBER_ID", "out"), ("FENCED_MEMBER_EPOCH", "out"), ("NOT_COORDINATOR", "stable")]
)
def test_a_manual_member_is_out_once_its_membership_is_lost(
    error: str, state: str, group: Group, cluster: Cluster
) -> None:
    one = joined(group, behaviour="manual")
    group.add_rule("ShareGroupHeartbeat", faults.error(error), once=True)
    one.heartbeat()
    sent = len(requests(group))
    cluster.pass_time(5)
    assert (one.state, one.error, bool(one.assignment)) == (state, error, state == "stable")
    assert len(requests(group)) == sent


def test_a_manual_member_whose_join_is_refused_is_out(group: Group) -> None:
    group.add_rule("ShareGroupHeartbeat", faults.error("NOT_COORDINATOR"), once=True)
    one = group.create_puppet("one", group_protocol="share", behaviour="manual").join()
    assert (one.state, one.error) == ("out", "NOT_COORDINATOR")


# -- lost connections


def test_a_member_repeats_its_subscription_on_the_next_connection(group: Group, cluster: Cluster) -> None:
    one = joined(group)
    dropped = len(requests(group))
    group.add_rule("ShareGroupHeartbeat", faults.drop(), once=True)
    cluster.pass_time(1)
    assert (one.state, one.assignment) == ("stable", ALL)
    again = requests(group)[dropped + 1]
    assert (again["generation"], again["body"]) == (one.generation, {"topics": ["t"]})


def test_a_silent_member_stays_silent_when_its_connection_is_lost(cluster: Cluster, group: Group) -> None:
    one = joined(group, behaviour="silent")
    sent = len(requests(group))
    cluster.nodes[1].kill()
    cluster.nodes[2].kill()
    cluster.nodes[1].start()
    group.advance(10)
    assert (one.state, len(requests(group))) == ("stable", sent)


def test_a_member_that_leaves_does_so_on_the_next_connection(group: Group, cluster: Cluster) -> None:
    one = joined(group)
    rule = group.add_rule("ShareGroupHeartbeat", faults.drop(), once=True)
    one.leave()
    assert (rule.hits, one.state) == (1, "leaving")
    cluster.pass_time(1)
    assert (one.state, group.state) == ("out", "Empty")


@pytest.mark.parametrize(("joins", "state"), [(True, "out"), (False, "stable")])
def test_a_manual_member_joins_again_only_if_its_join_was_lost(
    group: Group, cluster: Cluster, state: str, *, joins: bool
) -> None:
    one = group.create_puppet("one", group_protocol="share", behaviour="manual")
    if not joins:
        one.join()
    group.add_rule("ShareGroupHeartbeat", faults.drop(), once=True)
    if joins:
        one.join()
    else:
        one.heartbeat()
    sent = len(requests(group))
    cluster.pass_time(5)
    assert (one.state, len(requests(group))) == (state, sent)
