"""Puppets and real consumers in one group: each leads in turn and assigns to the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from clients.consumers import ASSIGNORS, KINDS, Member, Members, assignor_settings, wait_until

if TYPE_CHECKING:
    from koordinator import Cluster
    from koordinator.handles.puppets import Puppet

pytestmark = pytest.mark.koordinator(topics={"t": 6})

EACH_ASSIGNOR = [(kind, assignor) for kind in KINDS for assignor in ASSIGNORS[kind]]


def share(member: Member, puppet: Puppet) -> bool:
    """Return whether each of the two owns three of the six partitions."""
    held = puppet.assignment.get("t", [])
    owned = [number for _, number in member.assignment]
    return len(held) == len(owned) == 3 and sorted(held + owned) == list(range(6))


@pytest.mark.parametrize(("kind", "assignor"), EACH_ASSIGNOR)
def test_puppets_and_clients_lead_each_other(koordinator: Cluster, join: Members, kind: str, assignor: str) -> None:
    group = koordinator.group("svc")
    first = group.create_puppet("first", [assignor], topics=["t"]).join().wait_state("stable")
    member = join(kind, group="svc", **assignor_settings(kind, assignor))
    wait_until("the puppet has shared out the topic", lambda: share(member, first), member)
    assert first.is_leader

    first.leave()
    wait_until("the client has it all", lambda: len(member.assignment) == 6, member)
    second = group.create_puppet("second", [assignor], topics=["t"]).join()
    wait_until("the client has shared out the topic", lambda: share(member, second), member)
    assert not second.is_leader
    assert group.protocol == assignor
