"""Puppet handles of a cluster with virtual time."""

from __future__ import annotations

import pytest

from koordinator import Simulation
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
