"""Handles of rules, holds and lock-steps, on a cluster with virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from koordinator import Cluster, Simulation, faults
from koordinator.handles.faults import HoldTimeout

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Simulation(topics={"t": 4}, seed=7) as cluster:
        yield cluster


def test_a_rule_reports_its_hits_and_requests(cluster: Cluster) -> None:
    group = cluster.group("g")
    rule = group.add_rule("JoinGroup", faults.error("COORDINATOR_LOAD_IN_PROGRESS"), once=True, client_id="a")
    assert (rule.hits, rule.matched, rule.requests, rule.last) == (0, 0, [], None)
    assert repr(rule) == (
        "<Rule rule-1: error(name='COORDINATOR_LOAD_IN_PROGRESS') on JoinGroup(client_id='a', group='g') once=True>"
    )
    group.create_puppet("a", topics=["t"]).join()
    group.wait_stable(members=1)
    assert rule.hits == 1
    assert rule.last is not None
    assert (rule.last.api, rule.last.client_id, rule.last.group) == ("JoinGroup", "a", "g")
    assert [each.id for each in cluster.rules] == ["rule-1"]
    rule.remove()
    assert cluster.rules == []
    # a removed rule tells what it has done
    assert (rule.hits, rule.matched, rule.last.client_id) == (1, 3, "a")
    with pytest.raises(faults.RuleError, match="unknown rule 'rule-1'"):
        rule.remove()


@pytest.mark.parametrize(
    ("error", "instance"),
    [
        ("FENCED_MEMBER_EPOCH", None),
        ("UNKNOWN_MEMBER_ID", None),
        ("COORDINATOR_LOAD_IN_PROGRESS", None),
        ("UNRELEASED_INSTANCE_ID", "i"),
    ],
)
@pytest.mark.parametrize("way", ["rule", "hold"])
def test_a_heartbeat_of_a_consumer_group_is_refused(error: str, instance: str | None, way: str) -> None:
    with Simulation(topics={"t": 4}) as cluster:
        group = cluster.group("g")
        puppet = group.create_puppet("a", topics=["t"], group_protocol="consumer", instance_id=instance)
        match way:
            case "rule":
                rule = group.add_rule("ConsumerGroupHeartbeat", faults.error(error), once=True)
                puppet.join()
                assert rule.hits == 1
            case "hold":
                with group.hold("ConsumerGroupHeartbeat") as hold:
                    puppet.join()
                    hold.wait_entered()
                    hold.release(error=error)
        group.assert_request("ConsumerGroupHeartbeat", error=error, times=1)


class TestARuleAsAContextManager:
    def test_its_end_removes_the_rule(self, cluster: Cluster) -> None:
        group = cluster.group("g")
        with group.add_rule("JoinGroup", faults.error("COORDINATOR_LOAD_IN_PROGRESS"), once=True) as rule:
            group.create_puppet("a", topics=["t"]).join()
            group.wait_stable(members=1)
        assert (cluster.rules, rule.hits) == ([], 1)

    def test_a_rule_that_never_acted_fails_its_block(self, cluster: Cluster) -> None:
        other = cluster.add_rule("Fetch", faults.drop())
        with (
            pytest.raises(AssertionError, match=r"never used .*\n  rule-2: drop\(\).* no JoinGroup was seen$"),
            cluster.add_rule("JoinGroup", faults.drop()),
        ):
            pass
        assert [each.id for each in cluster.rules] == [other.id]
        with cluster.add_rule("JoinGroup", faults.drop(), optional=True):
            pass

    def test_the_error_of_the_block_comes_first(self, cluster: Cluster) -> None:
        with pytest.raises(ZeroDivisionError), cluster.add_rule("JoinGroup", faults.drop()):
            raise ZeroDivisionError
        assert cluster.rules == []

    def test_the_rule_may_be_removed_and_the_cluster_stopped_inside(self, cluster: Cluster) -> None:
        with cluster.add_rule("JoinGroup", faults.drop()) as rule:
            rule.remove()
        with cluster.add_rule("JoinGroup", faults.drop()):
            cluster.stop()


def test_an_unused_rule_fails_the_check_unless_it_is_optional(cluster: Cluster) -> None:
    cluster.assert_rules_used()
    cluster.add_rule("OffsetCommit", faults.drop(), group="g", optional=True)
    cluster.assert_rules_used()
    rule = cluster.group("g").add_rule("OffsetCommit", faults.drop())
    assert [each.id for each in cluster.unused_rules()] == [rule.id]
    with pytest.raises(AssertionError, match=r"never used .*\n  rule-2: drop\(\) on .*: no OffsetCommit was seen"):
        cluster.assert_rules_used()


def test_a_group_name_with_glob_characters_matches_literally(cluster: Cluster) -> None:
    rule = cluster.group("a*[b]").add_rule("JoinGroup", faults.error("NOT_COORDINATOR"), once=True)
    other = cluster.group("axb").add_rule("JoinGroup", faults.error("NOT_COORDINATOR"), once=True)
    cluster.group("a*[b]").create_puppet("p", topics=["t"]).join()
    cluster.group("a*[b]").wait_stable(members=1)
    assert (rule.hits, other.hits) == (1, 0)


@pytest.mark.parametrize(
    ("codes", "number", "name"),
    [
        ("kafka", 27, "REBALANCE_IN_PROGRESS"),
        ("kafka", "27", "REBALANCE_IN_PROGRESS"),
        ("kafka", -1, "UNKNOWN_SERVER_ERROR"),
        ("kafka", 79, "MEMBER_ID_REQUIRED"),
        ("kafka", 81, "GROUP_MAX_SIZE_REACHED"),
        ("kafka", 82, "FENCED_INSTANCE_ID"),
        ("kip", 79, "MEMBER_ID_REQUIRED"),
        ("kip", 77, "GROUP_MAX_SIZE_REACHED"),
        ("kip", 78, "FENCED_INSTANCE_ID"),
    ],
)
def test_an_error_is_given_by_its_number_in_the_numbering_of_the_cluster(
    codes: Literal["kafka", "kip"], number: int | str, name: str
) -> None:
    with Simulation(topics={"t": 4}, error_codes=codes) as cluster:
        group = cluster.group("g")
        rule = group.add_rule("JoinGroup", faults.error(number), once=True)
        assert rule.id == "rule-1"
        assert f"error(name={name!r})" in repr(rule)
        group.create_puppet("a", topics=["t"]).join()
        assert group.assert_request("JoinGroup", error=number) is group
        assert group.assert_request("JoinGroup", error=name) is group


@pytest.mark.parametrize(
    ("codes", "number", "message"),
    [
        ("kafka", 999, "error 999: not a number of Kafka's errors with error.codes=kafka"),
        ("kip", 82, "error 82: not a number of Kafka's errors with error.codes=kip: it is 78 there"),
        ("kafka", 0, "unknown error 'NONE'"),
        ("kafka", True, "unknown error True"),
    ],
)
def test_a_number_that_is_no_error_is_refused(codes: Literal["kafka", "kip"], number: int, message: str) -> None:
    with Simulation(topics={"t": 4}, error_codes=codes) as cluster, pytest.raises(ValueError, match=message):
        cluster.add_rule("JoinGroup", faults.error(number))


def test_an_unknown_keyword_is_refused(cluster: Cluster) -> None:
    group = cluster.group("g")
    with pytest.raises(faults.RuleError, match=r"unknown option 'clientid'.*; did you mean 'client_id'"):
        group.add_rule("JoinGroup", faults.drop(), clientid="a")  # type: ignore[call-arg]
    with pytest.raises(faults.RuleError, match="unknown option 'nth'"):
        group.hold("JoinGroup", nth=1)  # type: ignore[call-arg]
    assert cluster.rules == []


def test_a_hold_stops_a_puppet_until_it_is_released(cluster: Cluster) -> None:
    group = cluster.group("g")
    with group.hold("JoinGroup", client_id="a") as held:
        group.create_puppet("a", topics=["t"]).join()
        entered = held.wait_entered()
        assert (entered.api, entered.client_id, held.parked, held.behind) == ("JoinGroup", "a", [entered], [])
        assert group.state == "Dead"
        assert [each.id for each in cluster.holds] == [held.id]
        held.release()
        assert held.parked == []
    group.wait_stable(members=1)


def test_leaving_a_hold_block_after_its_cluster_or_hold_is_allowed(cluster: Cluster) -> None:
    group = cluster.group("g")
    with group.hold("JoinGroup"), group.lockstep("JoinGroup", clients=["a"]):
        cluster.reset("holds")
        assert cluster.holds == []
    with group.hold("JoinGroup"):
        cluster.stop()


def test_a_hold_timeout_names_the_closest_request(cluster: Cluster) -> None:
    group = cluster.group("g")
    group.create_puppet("a", topics=["t"]).join()
    group.wait_stable(members=1)
    with group.hold("JoinGroup", client_id="b", optional=True) as held, pytest.raises(HoldTimeout) as failed:
        held.wait_entered(timeout=1)
    assert str(failed.value) == (
        "nothing entered hold-1 on JoinGroup(client_id='b', group='g') within 1 s: "
        "2 JoinGroup seen; the closest is from client 'a' and differs in client_id"
    )


def test_a_failed_wait_lists_held_requests(cluster: Cluster) -> None:
    group = cluster.group("g")
    with group.hold("SyncGroup"):
        group.create_puppet("a", topics=["t"]).join()
        with pytest.raises(AssertionError, match=r"held just now: .* of client 'a': its SyncGroup is held by hold-1"):
            group.wait_stable(members=1, timeout=1)


def test_a_lockstep_releases_puppets_in_rounds(cluster: Cluster) -> None:
    group = cluster.group("g")
    with group.lockstep("JoinGroup", clients=["a", "b"]) as step:
        group.create_puppet("a", topics=["t"]).join()
        with pytest.raises(HoldTimeout, match="JoinGroup round 1 of lockstep-1: none of 'b' in 1 s"):
            step.wait_round(timeout=1)
        group.create_puppet("b", topics=["t"]).join()
        step.wait_round()
        step.wait_round()
        assert step.rounds >= 2
    group.wait_stable(members=2)


def test_jitter_repeats_with_the_same_seed() -> None:
    def timeline(seed: int) -> list[tuple[object, object]]:
        with Simulation(topics={"t": 4}, seed=7) as cluster:
            cluster.add_jitter(seed)
            group = cluster.group("g")
            for name in ("a", "b", "c"):
                group.create_puppet(name, topics=["t"]).join()
            group.wait_stable(members=3)
            return [(each["wall_ts"], each["kind"]) for each in cluster.events()]

    assert timeline(1) == timeline(1) != timeline(2)
