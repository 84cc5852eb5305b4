"""Puppet handles of a cluster with virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from koordinator import Simulation, faults
from koordinator.handles.checks import GroupTimeout
from koordinator.handles.puppets import PuppetTimeout


def test_the_group_handle_shows_a_group_of_puppets() -> None:
    with Simulation(topics={"t": 4}) as cluster:
        group = cluster.group("svc")
        one, two = (
            group.create_puppet("one", instance_id="1").join(),
            group.create_puppet("two", instance_id="2").join(),
        )
        group.wait_stable(members=2)
        two.wait_state("stable")
        assert (one.assignment, two.assignment) == ({"t": [0, 1]}, {"t": [2, 3]})
        assert group.assignment == {"1": {"t": [0, 1]}, "2": {"t": [2, 3]}}
        assert one.generation == group.generation == 2
        assert one.is_leader
        assert group.leader == one.member_id
        assert set(group.puppets) == {"one", "two"}


def test_a_puppet_commits_as_a_member() -> None:
    with Simulation(topics={"t": 4}) as cluster:
        group = cluster.group("svc")
        one = group.create_puppet("one").join().wait_state("stable")
        assert one.commit({("t", 0): 41, ("t", 3): 7}).error is None
        assert group.offsets == {("t", 0): 41, ("t", 3): 7}


def test_a_puppet_timeout_describes_the_puppet() -> None:
    with Simulation(topics={"t": 4}) as cluster:
        one = cluster.group("svc").create_puppet("one")
        with pytest.raises(PuppetTimeout, match=r"puppet 'one' was not stable within 1 s; it is out, generation -1"):
            one.wait_state("stable", timeout=1)


REFUSED = [
    (
        {},
        {"protocols": ("range",)},
        {"protocols": ("sticky", "mine")},
        "INCONSISTENT_GROUP_PROTOCOL: it offers 'sticky', 'mine', and all members of group 'svc' have 'range'",
    ),
    (
        {},
        {},
        {"protocol_type": "connect", "topics": {"mirror": 1}},
        "INCONSISTENT_GROUP_PROTOCOL: the members of group 'svc' have the protocol type 'consumer', not 'connect'",
    ),
    (
        {},
        {"group_protocol": "share"},
        {},
        "INCONSISTENT_GROUP_PROTOCOL: group 'svc' is a share group, and takes no members of the classic protocol",
    ),
    (
        {},
        {"group_protocol": "streams"},
        {},
        "INCONSISTENT_GROUP_PROTOCOL: group 'svc' is a streams group, and takes no members of the classic protocol",
    ),
    (
        {"config": {"group.consumer.migration.policy": "disabled"}},
        {"group_protocol": "consumer"},
        {},
        "INCONSISTENT_GROUP_PROTOCOL: group 'svc' is a consumer group, and group.consumer.migration.policy=disabled",
    ),
    (
        {"config": {"group.max.size": 1}},
        {},
        {},
        "GROUP_MAX_SIZE_REACHED: group 'svc' is full: group.max.size=1",
    ),
    (
        {"config": {"group.min.session.timeout.ms": 6000}},
        {},
        {"session_timeout": "1s"},
        r"INVALID_SESSION_TIMEOUT: session.timeout.ms=1000 must be from 6000 \(group.min.session.timeout.ms\)",
    ),
    (
        {"kafka_version": "3.9"},
        {},
        {"group_protocol": "consumer"},
        "UNSUPPORTED_VERSION: the consumer protocol is off in this release; set group.coordinator.rebalance.protocols=",
    ),
    (
        {"config": {"group.coordinator.rebalance.protocols": "classic"}},
        {},
        {"group_protocol": "consumer"},
        "UNSUPPORTED_VERSION: group.coordinator.rebalance.protocols=classic does not name consumer; set",
    ),
    (
        {"config": {"group.coordinator.rebalance.protocols": "classic"}},
        {},
        {"group_protocol": "streams"},
        "UNSUPPORTED_VERSION: group.coordinator.rebalance.protocols=classic does not name streams; set",
    ),
]


@pytest.mark.parametrize(("options", "first", "second", "reason"), REFUSED)
def test_the_timeouts_of_a_refused_puppet_have_the_reason(
    options: dict[str, Any], first: dict[str, Any], second: dict[str, Any], reason: str
) -> None:
    with Simulation(topics={"t": 4}, **options) as cluster:
        group = cluster.group("svc")
        group.create_puppet("one", **first).join()
        group.wait_stable(members=1)
        two = group.create_puppet("two", **second).join()
        with pytest.raises(PuppetTimeout, match=f"error {reason}"):
            two.wait_state("stable", timeout=1)
        with pytest.raises(GroupTimeout, match=f"-> {reason}"):
            group.wait_stable(members=2, timeout=1)


def test_an_error_of_a_rule_has_no_reason_of_the_coordinator() -> None:
    with Simulation(topics={"t": 4}, config={"group.max.size": 1}) as cluster:
        group = cluster.group("svc")
        group.create_puppet("one").join()
        group.wait_stable(members=1)
        group.add_rule("JoinGroup", faults.error("COORDINATOR_NOT_AVAILABLE"))
        two = group.create_puppet("two", behaviour="manual").join()
        assert two.error == "COORDINATOR_NOT_AVAILABLE"
        (refused,) = [line for line in group.events() if line.get("error") == two.error and "api" in line]
        assert "body" not in refused


def test_a_throttled_refusal_has_its_reason() -> None:
    with Simulation(topics={"t": 4}, config={"group.max.size": 1}) as cluster:
        group = cluster.group("svc")
        group.create_puppet("one").join()
        group.wait_stable(members=1)
        group.throttle("2s")
        two = group.create_puppet("two", behaviour="manual").join()
        (refused,) = [line for line in group.events() if line.get("error") == two.error and "api" in line]
        assert refused["body"] == {
            "message": "group 'svc' is full: group.max.size=1",
            "throttle_time_ms": 2_000,
        }


def test_a_refused_transaction_timeout_has_its_reason() -> None:
    with Simulation(topics={"t": 4}) as cluster:
        cluster.create_producer("p", transaction_timeout="1h").init()
        (refused,) = [line for line in cluster.events() if line.get("error") == "INVALID_TRANSACTION_TIMEOUT"]
        text = "transaction.timeout.ms=3600000 must be from 1 to 900000 (transaction.max.timeout.ms)"
        assert refused["body"] == {"message": text}


def test_owned_partitions_are_claimed_only_once() -> None:
    with Simulation(topics={"t": 4}) as cluster:
        one = cluster.group("svc").create_puppet("one", ("cooperative-sticky",), owned={"t": [2]})
        assert one.assignment == {"t": [2]}
        assert one.join().wait_state("stable").assignment == {"t": [0, 1, 2, 3]}
        assert one.stop().assignment == {}


def test_a_leaving_puppet_sends_its_reason() -> None:
    with Simulation(topics={"t": 4}) as cluster:
        group = cluster.group("svc")
        group.create_puppet("one").join().wait_state("stable").leave("the shift is over")
        (left,) = [line for line in group.events() if line["kind"] == "request" and line["api"] == "LeaveGroup"]
        assert left["client_reason"] == "the shift is over"
        assert group.state == "Empty"


def test_puppets_offer_the_assignors_of_applications() -> None:
    # KafkaJS has a name of its own for round robin
    with Simulation(topics={"t": 4}) as cluster:
        group = cluster.group("g")
        for name in ("a", "b"):
            group.create_puppet(name, ("RoundRobinAssigner",), topics=["t"]).join()
        group.wait_stable(members=2, all_owned=True)
        assert group.protocol == "RoundRobinAssigner"
        assert [len(member.assignment["t"]) for member in group.members] == [2, 2]


def test_a_puppet_sends_the_metadata_of_an_assignor_of_an_application() -> None:
    with Simulation(topics={"t": 4}) as cluster:
        group = cluster.group("g")
        group.create_puppet("a", ("mine", "range"), topics=["t"], metadata={"mine": b"mine"}).join()
        group.wait_stable(members=1)
        assert group.protocol == "mine"
        # the leader cannot read it, so the member gets nothing
        assert [member.assignment for member in group.members] == [{}]
