"""What a client may see and do of groups: rows, subscriptions and lists, by its rights."""

from __future__ import annotations

from uuid import UUID

import pytest
from brokers.guarded_wire import THE_CLUSTER, G, GuardedWire, T, U, right
from builders.acl_requests import GROUP, LITERAL, OPERATIONS, TOPIC

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error

READ, DESCRIBE = OPERATIONS["Read"], OPERATIONS["Describe"]

COMMITTED = [{"name": each, "partitions": [{"partition_index": 0, "committed_offset": 7}]} for each in ("t", "u")]

JOINING = {"group_id": "g", "member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": 1_000, "topic_partitions": []}


@pytest.fixture
def wire() -> GuardedWire:
    return GuardedWire()


@pytest.fixture
def offsets(wire: GuardedWire) -> GuardedWire:
    """Groups g and h with offsets of t and u."""
    for group in ("g", "h"):
        answer = wire.set_up(8, ApiKey.OFFSET_COMMIT, group_id=group, topics=COMMITTED)
        assert not any(row.partitions[0].error_code for row in answer.topics)
    return wire


def test_offsets_of_all_topics_are_those_of_topics_that_a_client_may_describe(offsets: GuardedWire) -> None:
    offsets.allow(right(G, DESCRIBE), right(T, DESCRIBE))
    answer = offsets.asked(7, ApiKey.OFFSET_FETCH, group_id="g", topics=None)
    assert answer.error_code == Error.NONE
    assert [(row.name, row.partitions[0].committed_offset) for row in answer.topics] == [("t", 7)]
    (group,) = offsets.asked(8, ApiKey.OFFSET_FETCH, groups=[{"group_id": "g", "topics": None}]).groups
    assert [row.name for row in group.topics] == ["t"]


def test_a_group_that_is_asked_for_twice_has_two_rows_of_offsets(offsets: GuardedWire) -> None:
    offsets.allow(right(G, DESCRIBE), right(T, DESCRIBE), right(U, DESCRIBE))
    asked = ("g", "t"), ("h", "u"), ("g", "u")
    rows = [{"group_id": group, "topics": [{"name": name, "partition_indexes": [0]}]} for group, name in asked]
    answer = offsets.asked(8, ApiKey.OFFSET_FETCH, groups=rows)
    assert [(row.group_id, row.error_code, [topic.name for topic in row.topics]) for row in answer.groups] == [
        ("g", Error.NONE, ["t"]),
        ("h", Error.GROUP_AUTHORIZATION_FAILED, []),
        ("g", Error.NONE, ["u"]),
    ]


def test_the_row_of_a_group_with_an_error_names_no_refused_topics(wire: GuardedWire) -> None:
    wire.allow(right(G, DESCRIBE))
    wire.set_up(1, ApiKey.CONSUMER_GROUP_HEARTBEAT, **JOINING, subscribed_topic_names=["t"])
    fetched = [{"name": "u", "partition_indexes": [0]}]
    row = {"group_id": "g", "member_id": "nobody", "member_epoch": 5, "topics": fetched}
    (group,) = wire.asked(9, ApiKey.OFFSET_FETCH, groups=[row]).groups
    assert (group.error_code, group.topics) == (Error.UNKNOWN_MEMBER_ID, ())
    (group,) = wire.asked(9, ApiKey.OFFSET_FETCH, groups=[{"group_id": "g", "topics": fetched}]).groups
    assert [each.partitions[0].error_code for each in group.topics] == [Error.TOPIC_AUTHORIZATION_FAILED]


def test_refused_and_unknown_topics_of_a_commit_are_answered_first_in_the_order_of_the_request(
    wire: GuardedWire,
) -> None:
    wire.allow(right(G, READ), right(T, READ), right((TOPIC, "nosuch", LITERAL), READ))
    rows = [{**COMMITTED[0], "name": each} for each in ("t", "nosuch", "u")]
    answer = wire.asked(8, ApiKey.OFFSET_COMMIT, group_id="g", topics=rows)
    assert [(row.name, row.partitions[0].error_code) for row in answer.topics] == [
        ("nosuch", Error.UNKNOWN_TOPIC_OR_PARTITION),
        ("u", Error.TOPIC_AUTHORIZATION_FAILED),
        ("t", Error.NONE),
    ]


def test_an_unknown_topic_id_of_a_commit_is_100_whatever_the_client_may_do(wire: GuardedWire) -> None:
    wire.allow(right(G, READ))
    ids = {
        wire.node.cluster.topics["u"].topic_id: Error.TOPIC_AUTHORIZATION_FAILED,
        UUID(int=9): Error.UNKNOWN_TOPIC_ID,
    }
    rows = [{"topic_id": each, "partitions": COMMITTED[0]["partitions"]} for each in ids]
    answer = wire.asked(10, ApiKey.OFFSET_COMMIT, group_id="g", topics=rows)
    assert {row.topic_id: row.partitions[0].error_code for row in answer.topics} == ids


def test_a_subscription_with_one_refused_topic_is_refused_and_no_member_joins(wire: GuardedWire) -> None:
    wire.allow(right(G, READ), right(T, DESCRIBE))
    version, key = 1, ApiKey.CONSUMER_GROUP_HEARTBEAT
    answer = wire.asked(version, key, **JOINING, subscribed_topic_names=["t", "u"])
    assert (answer.error_code, answer.member_epoch, answer.assignment) == (Error.TOPIC_AUTHORIZATION_FAILED, 0, None)
    assert "g" not in wire.node.coordinator.groups
    answer = wire.asked(version, key, **JOINING, subscribed_topic_names=["t"])
    assert answer.error_code == Error.NONE
    assert [*wire.node.coordinator.groups["g"].members] == ["m"]


def test_a_pattern_finds_the_topics_that_its_client_may_describe(wire: GuardedWire) -> None:
    wire.allow(right(G, READ), right(T, DESCRIBE))
    joined = wire.asked(1, ApiKey.CONSUMER_GROUP_HEARTBEAT, **JOINING, subscribed_topic_regex=".*")
    assert joined.error_code == Error.NONE
    wire.wait(1)
    (resolved,) = wire.node.coordinator.groups["g"].patterns.values()
    assert {"t", "u"} <= wire.node.cluster.topics.keys()
    assert resolved.topics == ("t",)


def test_groups_are_listed_for_clients_that_may_describe_them_or_the_cluster(offsets: GuardedWire) -> None:
    def listed() -> set[str]:
        answer = offsets.asked(4, ApiKey.LIST_GROUPS)
        assert answer.error_code == Error.NONE
        return {row.group_id for row in answer.groups}

    assert listed() == set()
    offsets.allow(right((GROUP, "h", LITERAL), DESCRIBE))
    assert listed() == {"h"}
    offsets.allow(right(THE_CLUSTER, DESCRIBE))
    assert listed() == {"g", "h"}
