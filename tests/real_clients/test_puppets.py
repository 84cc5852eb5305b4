"""Puppets beside consumers of the real clients in one group."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from clients.consumers import ASSIGNORS, KINDS, Member, Members, assignor_settings, wait_until

if TYPE_CHECKING:
    from koordinator import Cluster
    from koordinator.handles.puppets import Puppet

pytestmark = pytest.mark.koordinator(topics={"t": 6})

DOCUMENT = Path(__file__).parents[2] / "docs" / "puppets.md"
(EXAMPLE,) = re.findall(r"^```py\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)

PARTITIONS = [("t", number) for number in range(6)]
EACH_ASSIGNOR = [(kind, assignor) for kind in KINDS for assignor in ASSIGNORS[kind]]


def owned(members: list[Member], puppets: list[Puppet]) -> list[tuple[str, int]]:
    """Return all owned partitions."""
    theirs = chain.from_iterable(member.assignment for member in members)
    ours = ((topic, number) for puppet in puppets for topic, held in puppet.assignment.items() for number in held)
    return sorted([*theirs, *ours])


def wait_shared(what: str, members: list[Member], puppets: list[Puppet]) -> None:
    wait_until(
        what,
        lambda: (
            owned(members, puppets) == PARTITIONS
            and all(member.assignment for member in members)
            and all(puppet.assignment for puppet in puppets)
        ),
        *members,
    )


@pytest.mark.parametrize(("kind", "assignor"), EACH_ASSIGNOR)
def test_a_client_that_leads_shares_with_a_puppet(
    kind: str, assignor: str, koordinator: Cluster, join: Members
) -> None:
    group = koordinator.group("g")
    member = join(kind, instance="1", **assignor_settings(kind, assignor))
    group.wait_stable(members=1)
    peer = group.create_puppet("peer", (assignor,), instance_id="2", topics=["t"]).join()
    wait_shared("the topic is shared with the puppet", [member], [peer])
    group.wait_stable(members=2)
    assert group.protocol == assignor
    assert not peer.is_leader
    peer.leave()
    wait_until("the client has it all", lambda: len(member.assignment) == 6, member)


@pytest.mark.parametrize(("kind", "assignor"), EACH_ASSIGNOR)
def test_a_puppet_that_leads_assigns_to_a_client(kind: str, assignor: str, koordinator: Cluster, join: Members) -> None:
    group = koordinator.group("g")
    leader = group.create_puppet("leader", (assignor,), instance_id="1", topics=["t"]).join().wait_state("stable")
    member = join(kind, instance="2", **assignor_settings(kind, assignor))
    wait_shared("the puppet shares the topic with the client", [member], [leader])
    group.wait_stable(members=2)
    assert leader.is_leader
    leader.stop()
    group.advance("1m", expire=["1"])
    wait_until("the client has it all", lambda: len(member.assignment) == 6, member)


@pytest.mark.parametrize("kind", ["kafka-python", "confluent-kafka"])
def test_an_eager_puppet_is_not_let_in_by_a_cooperative_client(kind: str, koordinator: Cluster, join: Members) -> None:
    """KIP-429 needs two rolling bounces; a client that cannot offer both protocols cannot migrate."""
    group = koordinator.group("g")
    member = join(kind, **assignor_settings(kind, "cooperative-sticky"))
    group.wait_stable(members=1)
    old = group.create_puppet("old", ("range", "cooperative-sticky"), behaviour="eager_only").join()
    assert (old.state, old.error) == ("failed", "INCONSISTENT_GROUP_PROTOCOL")
    new = group.create_puppet("new", ("range", "cooperative-sticky"), topics=["t"]).join()
    wait_shared("the topic is shared", [member], [new])
    assert group.protocol == "cooperative-sticky"


def test_clients_wait_for_a_straggler(koordinator: Cluster, join: Members) -> None:
    """KIP-62: a member that processes longer than its session timeout stays; the others wait for it."""
    group = koordinator.group("g")
    late = {"kind": "straggler", "delay_s": 60}
    slow = group.create_puppet("slow", topics=["t"], behaviour=late, rebalance_timeout=300).join().wait_state("stable")
    member = join("confluent-kafka", **assignor_settings("confluent-kafka", "range"))
    wait_until("the client waits", lambda: group.state == "PreparingRebalance", member)
    wait_until("the response asks it to rejoin", lambda: slow.error == "REBALANCE_IN_PROGRESS", member)
    before = slow.member_id
    group.advance(59)
    assert group.state == "PreparingRebalance"
    group.advance(1)
    wait_shared("the topic is shared", [member], [slow])
    assert slow.member_id == before


@pytest.mark.koordinator(topics={"orders": 4})
def test_the_example_of_the_documentation_passes(koordinator: Cluster, join: Members) -> None:
    names: dict[str, Any] = {"start_my_consumer": lambda _: join("aiokafka", topics=["orders"], group="svc")}
    exec(EXAMPLE, names)  # noqa: S102 - the example of the page
    names["test_we_give_up_half_when_a_peer_joins"](koordinator)
