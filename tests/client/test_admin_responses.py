"""Admin requests to old brokers, committed and end offsets, and incomplete responses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from brokers.admin_responses import FOUND, NO_TOPIC, NOTHING_COMMITTED, deleted
from brokers.scripted_broker import Scripted

from koordinator.client.errors import Failure
from koordinator.client.groups import delete_groups, describe_groups, list_groups
from koordinator.client.members import MemberToRemove, remove_members
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember, DescribeGroupsResponse
from koordinator.wire.messages.leave_group import LeaveGroupResponse, MemberResponse
from koordinator.wire.messages.list_groups import ListedGroup, ListGroupsResponse
from koordinator.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from koordinator.wire.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from koordinator.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.client.admin import Admin


# -- old brokers ---


@pytest.mark.parametrize("says", [True, False])
def test_a_broker_without_flexible_versions_is_supported(admin: Callable[..., Admin], *, says: bool) -> None:
    versions: dict[ApiKey, tuple[int, int] | None] = {
        ApiKey.API_VERSIONS: (0, 2),
        ApiKey.METADATA: (0, 8),
        ApiKey.FIND_COORDINATOR: (0, 2),
        ApiKey.DESCRIBE_GROUPS: (0, 3),
        ApiKey.LIST_GROUPS: (0, 2),
        ApiKey.OFFSET_FETCH: (0, 5),
        ApiKey.LIST_OFFSETS: (0, 5),
    }
    with Scripted(versions, says_its_versions=says) as old:
        old.answers(ApiKey.LIST_GROUPS, ListGroupsResponse(groups=(ListedGroup(group_id="g"),)))
        (group,) = list_groups(admin(old)).successes
        assert (group.group_id, group.state, group.type) == ("g", None, None)
        assert [each.version for each in old.requests(ApiKey.API_VERSIONS)] == [5, 2 if says else 0]
        old.answers(ApiKey.DESCRIBE_GROUPS, FOUND)
        old.answers(ApiKey.OFFSET_FETCH, OffsetFetchResponse())
        old.answers(ApiKey.METADATA, NO_TOPIC)
        result = describe_groups(admin(old), ["svc"])
        assert result.failures == ()
        assert [member.instance_id for member in result.successes[0].members] == [None, None], "since v4"


@pytest.mark.parametrize("listed", [(0, 2), None])
def test_kip_345_a_broker_too_old_for_batches_gets_no_leave_group(
    admin: Callable[..., Admin], broker: Scripted, listed: tuple[int, int] | None
) -> None:
    broker.versions[ApiKey.LEAVE_GROUP] = listed
    (error,) = remove_members(admin(broker), "svc", [MemberToRemove(instance_id="a")]).failures
    assert error.failure.code == Error.UNSUPPORTED_VERSION
    assert error.failure.message.startswith("LeaveGroup v3 is needed (Apache Kafka 2.4 or newer), ")
    assert broker.requests(ApiKey.DESCRIBE_GROUPS) == broker.requests(ApiKey.LEAVE_GROUP) == []


def test_a_state_filter_needs_list_groups_v4(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.versions[ApiKey.LIST_GROUPS] = (0, 3)
    (error,) = list_groups(admin(broker), ["Stable"]).failures
    assert "ListGroups v4 is needed (Apache Kafka 2.6 or newer)" in str(error.failure)


# -- offsets ---


def ends(*rows: tuple[int, int, int]) -> ListOffsetsResponse:
    partitions = tuple(
        ListOffsetsPartitionResponse(partition_index=number, error_code=error, offset=offset)
        for number, error, offset in rows
    )
    return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name="t", partitions=partitions),))


def led(*rows: tuple[int, int, int]) -> MetadataResponseTopic:
    partitions = tuple(
        MetadataResponsePartition(partition_index=number, error_code=error, leader_id=leader)
        for number, error, leader in rows
    )
    return MetadataResponseTopic(name="t", partitions=partitions)


def test_end_offsets_come_from_each_leader_and_are_retried_when_it_moves(
    admin: Callable[..., Admin], broker: Scripted, other: Scripted
) -> None:
    broker.answers(ApiKey.DESCRIBE_GROUPS, FOUND)
    broker.answers(ApiKey.OFFSET_FETCH, NOTHING_COMMITTED)
    nodes = (broker.row, other.row)
    broker.answers(
        ApiKey.METADATA,
        MetadataResponse(brokers=nodes, topics=(led((0, 0, 1), (1, 5, -1)),)),
        MetadataResponse(brokers=nodes, topics=(led((0, 0, 2), (1, 0, 3)),)),
        MetadataResponse(brokers=nodes, topics=(led((0, 0, 2), (1, 0, 2)),)),
    )
    broker.answers(ApiKey.LIST_OFFSETS, ends((0, 6, -1)))
    other.answers(ApiKey.LIST_OFFSETS, ends((0, 0, 10), (1, 0, 11)))
    result = describe_groups(admin(broker), ["svc"])
    assert result.failures == ()
    assert [(each.partition, each.end, each.owner) for each in result.successes[0].partitions] == [
        (0, 10, "a-1"),
        (1, 11, "a-1"),
    ]
    assert not any(each.request.allow_auto_topic_creation for each in broker.requests(ApiKey.METADATA))


def test_failed_end_offsets_are_reported_once_for_each_topic(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.DESCRIBE_GROUPS, FOUND)
    broker.answers(ApiKey.OFFSET_FETCH, NOTHING_COMMITTED)
    broker.answers(ApiKey.METADATA, MetadataResponse(brokers=(broker.row,), topics=(led((0, 0, 1), (1, 0, 1)),)))
    broker.answers(ApiKey.LIST_OFFSETS, ends((0, 29, -1), (1, 29, -1)))
    result = describe_groups(admin(broker), ["svc"])
    assert [(each.topic, each.failure.code) for each in result.failures] == [("t", 29)]
    assert [(each.end, each.lag) for each in result.successes[0].partitions] == [(None, None)] * 2


def test_a_deleted_topic_has_no_end_offsets_and_is_no_error(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.DESCRIBE_GROUPS, FOUND)
    broker.answers(ApiKey.OFFSET_FETCH, NOTHING_COMMITTED)
    broker.answers(ApiKey.METADATA, NO_TOPIC)
    result = describe_groups(admin(broker), ["svc"])
    assert result.failures == ()
    assert [each.end for each in result.successes[0].partitions] == [None, None]


@pytest.mark.parametrize("version", [7, 9])
def test_a_group_is_described_without_offsets_if_they_are_refused(
    admin: Callable[..., Admin], broker: Scripted, version: int
) -> None:
    broker.versions[ApiKey.OFFSET_FETCH] = (0, version)
    broker.answers(ApiKey.DESCRIBE_GROUPS, FOUND)
    refused = OffsetFetchResponse(groups=(OffsetFetchResponseGroup(group_id="svc", error_code=30),))
    broker.answers(ApiKey.OFFSET_FETCH, refused if version > 7 else OffsetFetchResponse(error_code=30))
    broker.answers(ApiKey.METADATA, NO_TOPIC)
    result = describe_groups(admin(broker), ["svc"])
    assert [group.state for group in result.successes] == ["Stable"]
    assert [(each.group_id, each.failure.code) for each in result.failures] == [("svc", 30)]


def fetched(version: int, error: int, *offsets: int) -> OffsetFetchResponse:
    if version < 8:
        singly = tuple(
            OffsetFetchResponsePartition(partition_index=number, committed_offset=offset)
            for number, offset in enumerate(offsets)
        )
        return OffsetFetchResponse(error_code=error, topics=(OffsetFetchResponseTopic(name="t", partitions=singly),))
    partitions = tuple(
        OffsetFetchResponsePartitions(partition_index=number, committed_offset=offset)
        for number, offset in enumerate(offsets)
    )
    topics = (OffsetFetchResponseTopics(name="t", partitions=partitions),)
    return OffsetFetchResponse(groups=(OffsetFetchResponseGroup(group_id="svc", error_code=error, topics=topics),))


@pytest.mark.parametrize("version", [2, 7, 8, 9])
def test_committed_offsets_are_retried_and_minus_1_means_none(
    admin: Callable[..., Admin], broker: Scripted, version: int
) -> None:
    broker.versions[ApiKey.OFFSET_FETCH] = (0, version)
    broker.answers(ApiKey.DESCRIBE_GROUPS, FOUND)
    broker.answers(ApiKey.OFFSET_FETCH, fetched(version, 14), fetched(version, 0, 7, -1, -1))
    broker.answers(ApiKey.METADATA, NO_TOPIC)
    result = describe_groups(admin(broker), ["svc"])
    assert result.failures == ()
    assert [(each.partition, each.committed) for each in result.successes[0].partitions] == [(0, 7), (1, None)]


def test_dynamic_members_come_before_static_ones_and_all_in_order(
    admin: Callable[..., Admin], broker: Scripted
) -> None:
    names = [("z", None), ("x", "b"), ("y", "a"), ("w", None)]
    rows = tuple(DescribedGroupMember(member_id=name, group_instance_id=instance) for name, instance in names)
    group = DescribedGroup(group_id="svc", group_state="PreparingRebalance", protocol_type="consumer", members=rows)
    broker.answers(ApiKey.DESCRIBE_GROUPS, DescribeGroupsResponse(groups=(group,)))
    broker.answers(ApiKey.OFFSET_FETCH, NOTHING_COMMITTED)
    (found,) = describe_groups(admin(broker), ["svc"]).successes
    assert [member.member_id for member in found.members] == ["w", "z", "y", "x"]


# -- incomplete responses ---


def test_a_group_missing_from_the_response_is_a_failure(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.DELETE_GROUPS, deleted("other"))
    result = delete_groups(admin(broker), ["g"])
    assert result.successes == ()
    (error,) = result.failures
    assert error.failure == Failure(None, f"{broker.bootstrap}: the response has no entry for it")


def test_a_member_missing_from_the_response_is_a_failure(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.DESCRIBE_GROUPS, FOUND)
    broker.answers(ApiKey.LEAVE_GROUP, LeaveGroupResponse(members=(MemberResponse(group_instance_id="a"),)))
    result = remove_members(admin(broker), "svc", [MemberToRemove(instance_id="a"), MemberToRemove(instance_id="b")])
    assert result.successes == (MemberToRemove(instance_id="a"),)
    assert [(each.instance_id, each.failure.code) for each in result.failures] == [("b", None)]


def test_a_response_may_add_the_member_id(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.DESCRIBE_GROUPS, FOUND)
    found = MemberResponse(member_id="a-1", group_instance_id="a")
    broker.answers(ApiKey.LEAVE_GROUP, LeaveGroupResponse(members=(found,)))
    assert remove_members(admin(broker), "svc", [MemberToRemove(instance_id="a")]).failures == ()


def test_an_unknown_error_keeps_its_number(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.DELETE_GROUPS, deleted("g", error=9999))
    (error,) = delete_groups(admin(broker), ["g"]).failures
    assert (str(error.failure), error.failure.name) == ("error 9999", None)
