"""Rules, holds and lock-steps over HTTP: the same handles, and plain JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from koordinator import faults
from koordinator.handles.faults import HoldTimeout

if TYPE_CHECKING:
    from koordinator.handles.remote import Remote


@pytest.mark.slow
def test_a_rule_reports_its_uses_over_http(server: Remote) -> None:
    cluster = server.cluster()
    cluster.create_topic("t", partitions=2)
    group = cluster.group("g/1")
    rule = group.add_rule("JoinGroup", faults.error("COORDINATOR_LOAD_IN_PROGRESS"), once=True)
    group.create_puppet("a", topics=["t"]).join()
    group.wait_stable(members=1, timeout=60)
    assert rule.hits == 1
    assert rule.last is not None
    assert (rule.last.client_id, rule.last.group) == ("a", "g/1")
    cluster.assert_rules_used()
    unused = cluster.add_rule("*", faults.delay(lognormal_ms=(90, 0.4)), client_id="b", probability=0.5)
    assert [each.id for each in cluster.rules] == [rule.id, unused.id]
    assert [each.id for each in cluster.unused_rules()] == [unused.id]
    with pytest.raises(AssertionError, match="differs in client_id"):
        cluster.assert_rules_used()
    unused.remove()
    with pytest.raises(ValueError, match="unknown rule"):
        unused.remove()
    with pytest.raises(ValueError, match="did you mean 'OffsetCommit'"):
        cluster.add_rule("OffsetComit", faults.drop())
    cluster.add_jitter(3)
    cluster.add_jitter(None)


@pytest.mark.slow
def test_a_hold_is_waited_for_and_released_over_http(server: Remote) -> None:
    cluster = server.cluster()
    cluster.create_topic("t", partitions=2)
    group = cluster.group("g")
    with group.hold("SyncGroup", client_id="a") as held:
        with pytest.raises(HoldTimeout, match="no SyncGroup was seen"):
            held.wait_entered(timeout=0.1)
        group.create_puppet("a", topics=["t"]).join()
        entered = held.wait_entered()
        assert (entered.api, held.parked, held.behind) == ("SyncGroup", [entered], [])
        assert [each.id for each in cluster.holds] == [held.id]
        with pytest.raises(AssertionError, match=r"held just now: .* its SyncGroup is held by"):
            group.wait_stable(members=1, timeout=0.1)
        held.release()
    group.wait_stable(members=1, timeout=60)
    assert cluster.holds == []


@pytest.mark.slow
def test_members_take_turns_over_http(server: Remote) -> None:
    cluster = server.cluster()
    cluster.create_topic("t", partitions=2)
    group = cluster.group("g")
    with group.lockstep("JoinGroup", clients=["a", "b"]) as step:
        for name in ("a", "b"):
            group.create_puppet(name, topics=["t"]).join()
        step.wait_round()
        assert step.rounds >= 1
    group.wait_stable(members=2, timeout=60)


@pytest.mark.slow
def test_an_error_number_is_accepted_in_bodies_and_queries(server: Remote) -> None:
    cluster = server.cluster()
    group = cluster.group("g")
    group.add_rule("JoinGroup", faults.error(14), once=True)
    group.create_puppet("a", topics=["orders"]).join()
    group.wait_stable(members=1).assert_request("JoinGroup", error=14, times=1)
    with cluster.hold("Heartbeat", group="g") as hold:
        hold.wait_entered()
        hold.release(error=27)
    group.assert_request("Heartbeat", error="REBALANCE_IN_PROGRESS")
