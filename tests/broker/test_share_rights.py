"""What a client may see and do of share groups: subscriptions and start offsets, by its rights."""

from __future__ import annotations

from typing import Any

import pytest
from brokers.guarded_wire import G, GuardedNodes, GuardedWire, T, U, right
from builders.acl_requests import GROUP, OPERATIONS, PREFIXED

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error

READ, DESCRIBE = OPERATIONS["Read"], OPERATIONS["Describe"]


def test_a_share_member_joins_with_topics_that_it_may_describe() -> None:
    wire = GuardedWire()
    wire.allow(right(G, READ), right(T, DESCRIBE))
    joining = {"group_id": "g", "member_id": "m", "member_epoch": 0}
    answer = wire.asked(1, ApiKey.SHARE_GROUP_HEARTBEAT, **joining, subscribed_topic_names=["t", "u"])
    assert answer.error_code == Error.TOPIC_AUTHORIZATION_FAILED
    assert "g" not in wire.node.coordinator.groups
    answer = wire.asked(1, ApiKey.SHARE_GROUP_HEARTBEAT, **joining, subscribed_topic_names=["t"])
    assert answer.error_code == Error.NONE
    assert [*wire.node.coordinator.groups["g"].members] == ["m"]


def test_a_share_member_without_an_id_is_refused_for_that_whatever_it_subscribes_to() -> None:
    wire = GuardedWire()
    wire.allow(right(G, READ))
    joining = {"group_id": "g", "member_id": "", "member_epoch": 0, "subscribed_topic_names": ["u"]}
    assert wire.asked(1, ApiKey.SHARE_GROUP_HEARTBEAT, **joining).error_code == Error.INVALID_REQUEST


@pytest.fixture
def nodes() -> GuardedNodes:
    """A share group g with start offsets of t and u."""
    nodes = GuardedNodes()
    joining = {"group_id": "g", "member_id": "m", "member_epoch": 0, "subscribed_topic_names": ["t", "u"]}
    assert nodes.set_up(1, ApiKey.SHARE_GROUP_HEARTBEAT, **joining).error_code == Error.NONE
    return nodes


def topics_of(nodes: GuardedNodes, topics: list[Any] | None, group: str = "g") -> set[str]:
    """Return the topics of a group's start offsets that are described without an error."""
    row = {"group_id": group, "topics": topics}
    (found,) = nodes.asked(1, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, groups=[row]).groups
    return {each.topic_name for each in found.topics if not each.partitions[0].error_code}


def test_start_offsets_of_all_topics_are_those_of_topics_that_a_client_may_describe(nodes: GuardedNodes) -> None:
    nodes.allow(right(G, DESCRIBE), right(T, DESCRIBE))
    assert topics_of(nodes, None) == {"t"}
    named = [{"topic_name": each, "partitions": [0]} for each in ("t", "u")]
    assert topics_of(nodes, named) == {"t"}
    nodes.allow(right(U, DESCRIBE))
    assert topics_of(nodes, None) == {"t", "u"}


def test_a_share_group_that_is_asked_for_twice_has_two_rows(nodes: GuardedNodes) -> None:
    rows = [{"group_id": "g", "topics": [{"topic_name": name, "partitions": [0]}]} for name in ("t", "u")]
    nodes.allow(right(G, DESCRIBE), right(T, DESCRIBE), right(U, DESCRIBE))
    answer = nodes.asked(1, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, groups=rows)
    assert [[topic.topic_name for topic in row.topics] for row in answer.groups] == [["t"], ["u"]]


def test_the_row_of_a_share_group_with_an_error_names_no_refused_topics() -> None:
    nodes = GuardedNodes(2)
    nodes.allow(right((GROUP, "g", PREFIXED), DESCRIBE))
    nodes.coordinator(1)
    groups = {nodes.cluster.coordinator_of(each): each for each in ("g1", "g2", "g3", "g4")}
    topics = [{"topic_name": "u", "partitions": [0]}]
    rows = [{"group_id": groups[each], "topics": topics} for each in (1, 2)]
    ours, others = nodes.asked(1, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, groups=rows).groups
    assert [each.partitions[0].error_code for each in ours.topics] == [Error.TOPIC_AUTHORIZATION_FAILED]
    assert (others.error_code, others.topics) == (Error.NOT_COORDINATOR, ())
