"""KIP-389 on the real clients: 81 (77 as printed) in JoinGroup from a group that is full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from clients.consumers import Members, assignor_settings
from clients.error_reactions import GROUP_MAX_SIZE_REACHED, Row, Then, Watched, cases

if TYPE_CHECKING:
    from clients.raw_member import Rival

    from koordinator import Cluster

pytestmark = pytest.mark.koordinator(topics={"t": 6}, config={"group.max.size": 1})


@pytest.mark.parametrize(("row", "numbering"), cases(GROUP_MAX_SIZE_REACHED, "JoinGroup"))
def test_kip_389_a_full_group_refuses_one_more_until_there_is_room(
    koordinator: Cluster, join: Members, leader: Rival, row: Row, numbering: str
) -> None:
    check_refused_until_there_is_room(koordinator, join, leader, row, numbering)


@pytest.mark.parametrize(("row", "numbering"), cases(GROUP_MAX_SIZE_REACHED, "JoinGroup", "kafka-python"))
def test_kip_389_a_client_older_than_the_error_is_refused_alike(
    koordinator: Cluster, join: Members, leader: Rival, row: Row, numbering: str
) -> None:
    # Kafka 2.1 has JoinGroup v3; the error was introduced in 2.2
    check_refused_until_there_is_room(koordinator, join, leader, row, numbering, api_version=(2, 1))


def check_refused_until_there_is_room(
    cluster: Cluster, join: Members, leader: Rival, row: Row, numbering: str, **settings: Any
) -> None:
    group = cluster.group("g")
    leader.join()
    member = join(row.kind, goes_on=True, **settings, **assignor_settings(row.kind, "range"))
    seen = Watched(group, member, row, numbering)
    seen.wait_refused(2)
    seen.check_told()
    assert (group.generation, [each.member_id for each in group.members]) == (1, [leader.member_id])
    assert seen.reaction.then is Then.JOINS_WHEN_THERE_IS_ROOM
    leader.leave()
    seen.wait("it owns the topic", lambda: len(member.assignment) == 6)
    seen.check_told()
