"""KIP-394 on the real clients: a JoinGroup response with error 79 assigns the id of a new dynamic member."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from clients.consumers import KINDS, Members
from clients.error_reactions import MEMBER_ID_REQUIRED, Row, Then, Watched, cases, row_of

if TYPE_CHECKING:
    from koordinator import Cluster

pytestmark = pytest.mark.koordinator(topics={"t": 6})


@pytest.mark.parametrize(("row", "numbering"), cases(MEMBER_ID_REQUIRED, "JoinGroup"))
def test_kip_394_a_new_member_joins_with_the_id_it_is_given(
    koordinator: Cluster, join: Members, row: Row, numbering: str
) -> None:
    group = koordinator.group("g")
    member = join(row.kind, goes_on=True)
    seen = Watched(group, member, row, numbering)
    seen.wait("it owns the topic", lambda: len(member.assignment) == 6)
    assert seen.reaction.then is Then.JOINS_WITH_THE_ID
    (given,) = seen.refusals("JoinGroup")
    first, *again = seen.requests("JoinGroup")
    assert first.get("member_id", "") == ""
    assert {request["member_id"] for request in again} == {given["member_id"]}
    assert [each.member_id for each in group.members] == [given["member_id"]]
    seen.check_told()


@pytest.mark.parametrize("kind", KINDS)
def test_kip_345_a_static_member_is_not_sent_back_for_an_id(koordinator: Cluster, join: Members, kind: str) -> None:
    group = koordinator.group("g")
    member = join(kind, instance="one")
    seen = Watched(group, member, row_of(MEMBER_ID_REQUIRED, "JoinGroup", kind), "kafka")
    seen.wait("it owns the topic", lambda: len(member.assignment) == 6)
    assert seen.refusals("JoinGroup") == []
    assert [each.instance_id for each in group.members] == ["one"]


def test_kip_394_a_client_older_than_the_error_is_let_in_without(koordinator: Cluster, join: Members) -> None:
    # Kafka 2.1 has JoinGroup v3: the last version that "will still be blindly accepted"
    group = koordinator.group("g")
    member = join("kafka-python", api_version=(2, 1))
    seen = Watched(group, member, row_of(MEMBER_ID_REQUIRED, "JoinGroup", "kafka-python"), "kafka")
    seen.wait("it owns the topic", lambda: len(member.assignment) == 6)
    assert {request["api_version"] for request in seen.requests("JoinGroup")} == {3}
    assert seen.refusals("JoinGroup") == []
    assert len(group.members) == 1
