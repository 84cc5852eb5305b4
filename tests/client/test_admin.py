"""Finding the broker for each request, retrying while brokers move, and timing out."""

from __future__ import annotations

import re
import socket
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest
from brokers.scripted_broker import CLOSE, SILENCE, Cut, Drip, Raw, Scripted, WrongId, coordinator

from koordinator.client.admin import Admin
from koordinator.client.connection import Address, BrokerConnection, Deadline
from koordinator.client.errors import ClientError, Failure, InvalidResponse, SecuredListener, TimedOut, Unreachable
from koordinator.client.groups import delete_groups, describe_groups, list_groups
from koordinator.client.members import MemberToRemove, remove_members
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_protocol import ConsumerProtocolAssignment, TopicPartition, write_assignment
from koordinator.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from koordinator.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember, DescribeGroupsResponse
from koordinator.wire.messages.leave_group import LeaveGroupResponse, MemberResponse
from koordinator.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
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
    from collections.abc import Callable, Iterator

TIMEOUT_S = 15.0
"""The limit for operations that succeed, with room for a busy machine."""

SHORT_S = 0.4
"""The limit for operations that time out."""

STABLE = DescribedGroup(
    group_id="svc",
    group_state="Stable",
    protocol_type="consumer",
    protocol_data="range",
    members=(
        DescribedGroupMember(
            member_id="a-1",
            group_instance_id="a",
            client_id="c",
            client_host="/127.0.0.1",
            member_assignment=write_assignment(
                ConsumerProtocolAssignment(assigned_partitions=(TopicPartition(topic="t", partitions=(1, 0)),))
            ),
        ),
        DescribedGroupMember(member_id="b-1", client_id="c", client_host="/127.0.0.1"),
    ),
)
FOUND = DescribeGroupsResponse(groups=(STABLE,))
NOTHING_COMMITTED = OffsetFetchResponse(groups=(OffsetFetchResponseGroup(group_id="svc"),))
NO_TOPIC = MetadataResponse(topics=(MetadataResponseTopic(error_code=3, name="t"),))


@pytest.fixture
def broker() -> Iterator[Scripted]:
    with Scripted() as scripted:
        yield scripted


@pytest.fixture
def other() -> Iterator[Scripted]:
    with Scripted(node_id=2) as scripted:
        yield scripted


@pytest.fixture
def admin() -> Iterator[Callable[..., Admin]]:
    """A factory of clients, which are closed after the test."""
    made: list[Admin] = []

    def make(*brokers: Scripted | Address, timeout_s: float = TIMEOUT_S) -> Admin:
        addresses = [Address(each.host, each.port) for each in brokers]
        made.append(Admin(addresses, timeout_s, "1"))
        return made[-1]

    yield make
    for each in made:
        each.close()


def unused() -> Address:
    """Return an address without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return Address(*server.getsockname())


def deleted(*names: str, error: int = 0) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=tuple(DeletableGroupResult(group_id=name, error_code=error) for name in names))


# -- retries ---


@pytest.mark.parametrize("error", [14, 15, 16])
def test_a_coordinator_that_is_not_ready_is_retried(admin: Callable[..., Admin], broker: Scripted, error: int) -> None:
    broker.answers(ApiKey.DELETE_GROUPS, deleted("g", error=error), deleted("g", error=error), deleted("g"))
    assert delete_groups(admin(broker), ["g"]).successes == ("g",)
    assert len(broker.requests(ApiKey.DELETE_GROUPS)) == 3
    assert len(broker.requests(ApiKey.FIND_COORDINATOR)) == 3, "the coordinator is looked up before each retry"


@pytest.mark.parametrize("version", [2, 4])
def test_a_coordinator_that_does_not_exist_yet_is_looked_up_again(
    admin: Callable[..., Admin], broker: Scripted, version: int
) -> None:
    broker.versions[ApiKey.FIND_COORDINATOR] = (0, version)
    broker.answers(ApiKey.FIND_COORDINATOR, coordinator(broker, Error.COORDINATOR_NOT_AVAILABLE), coordinator(broker))
    broker.answers(ApiKey.DELETE_GROUPS, deleted("g"))
    assert delete_groups(admin(broker), ["g"]).successes == ("g",)


def test_only_groups_with_a_retriable_error_are_retried(admin: Callable[..., Admin], broker: Scripted) -> None:
    first = DeleteGroupsResponse(
        results=(
            DeletableGroupResult(group_id="a"),
            DeletableGroupResult(group_id="b", error_code=14),
            DeletableGroupResult(group_id="c", error_code=68),
        )
    )
    broker.answers(ApiKey.DELETE_GROUPS, first, deleted("b"))
    result = delete_groups(admin(broker), ["a", "b", "c"])
    assert result.successes == ("a", "b")
    assert [(each.group_id, each.failure.code) for each in result.failures] == [("c", 68)]
    assert [each.request.groups_names for each in broker.requests(ApiKey.DELETE_GROUPS)] == [("a", "b", "c"), ("b",)]


def test_a_request_follows_the_group_to_its_new_coordinator(
    admin: Callable[..., Admin], broker: Scripted, other: Scripted
) -> None:
    broker.answers(ApiKey.FIND_COORDINATOR, coordinator(broker), coordinator(other))
    broker.answers(ApiKey.DELETE_GROUPS, deleted("g", error=16))
    other.answers(ApiKey.DELETE_GROUPS, deleted("g"))
    assert delete_groups(admin(broker), ["g"]).successes == ("g",)
    assert len(broker.requests(ApiKey.DELETE_GROUPS)) == len(other.requests(ApiKey.DELETE_GROUPS)) == 1


def test_a_coordinator_that_never_becomes_ready_is_a_failure_with_the_time_of_the_retries(
    admin: Callable[..., Admin], broker: Scripted
) -> None:
    broker.answers(ApiKey.DELETE_GROUPS, deleted("g", error=14))
    started = monotonic()
    (error,) = delete_groups(admin(broker, timeout_s=SHORT_S), ["g"]).failures
    assert monotonic() - started < TIMEOUT_S
    assert str(error.failure) == (
        "COORDINATOR_LOAD_IN_PROGRESS (14): the coordinator is still loading the group, after retrying for 0.4 s"
    )
    assert 2 <= len(broker.requests(ApiKey.DELETE_GROUPS)) <= 4, "the pauses grow"


def test_a_bootstrap_server_that_closes_the_connection_is_connected_again(
    admin: Callable[..., Admin], broker: Scripted
) -> None:
    broker.answers(ApiKey.FIND_COORDINATOR, coordinator(broker), CLOSE, coordinator(broker))
    broker.answers(ApiKey.DELETE_GROUPS, deleted("g", error=16), deleted("g"))
    assert delete_groups(admin(broker), ["g"]).successes == ("g",)
    assert broker.connections == 2


def test_a_read_is_retried_after_a_lost_connection(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.LIST_GROUPS, CLOSE, ListGroupsResponse(groups=(ListedGroup(group_id="g"),)))
    result = list_groups(admin(broker))
    assert [group.group_id for group in result.successes] == ["g"]
    assert result.failures == ()


def test_a_change_is_not_retried_after_a_lost_connection(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.DELETE_GROUPS, CLOSE, deleted("g"))
    (error,) = delete_groups(admin(broker), ["g"]).failures
    assert str(error.failure) == (
        f"{broker.bootstrap}: closed the connection without a response to DeleteGroups v2;"
        " the broker may have carried out the request"
    )
    assert len(broker.requests(ApiKey.DELETE_GROUPS)) == 1


def test_a_coordinator_that_does_not_listen_is_looked_up_again(
    admin: Callable[..., Admin], broker: Scripted, other: Scripted
) -> None:
    gone = Scripted(node_id=2)
    gone.__exit__()
    broker.answers(ApiKey.FIND_COORDINATOR, coordinator(gone), coordinator(other))
    other.answers(ApiKey.DELETE_GROUPS, deleted("g"))
    assert delete_groups(admin(broker), ["g"]).successes == ("g",)


def test_a_coordinator_with_an_unknown_host_name_is_not_retried(admin: Callable[..., Admin], broker: Scripted) -> None:
    inside = Scripted(node_id=2)
    inside.__exit__()
    inside.host = "kafka.invalid"
    broker.answers(ApiKey.FIND_COORDINATOR, coordinator(inside))
    (error,) = delete_groups(admin(broker), ["g"]).failures
    assert str(error.failure).startswith(f"kafka.invalid:{inside.port}: cannot connect: ")
    assert len(broker.requests(ApiKey.FIND_COORDINATOR)) == 1


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", -1), ("127.0.0.1", 65536), ("", 9092), ("a\0b", 9092)])
def test_an_invalid_advertised_address_is_an_error_of_one_line(
    admin: Callable[..., Admin], broker: Scripted, host: str, port: int
) -> None:
    wrong = Scripted(node_id=2)
    wrong.__exit__()
    wrong.host, wrong.port = host, port
    broker.answers(ApiKey.FIND_COORDINATOR, coordinator(wrong))
    (error,) = delete_groups(admin(broker), ["g"]).failures
    assert str(error.failure).startswith(f"{host}:{port}: cannot connect: ")


# -- bootstrap servers ---


def test_the_first_bootstrap_server_that_answers_is_used(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.LIST_GROUPS, ListGroupsResponse())
    assert list_groups(admin(unused(), broker)).failures == ()


def test_without_a_bootstrap_server_the_error_names_each_address_and_its_cause(
    admin: Callable[..., Admin], broker: Scripted
) -> None:
    broker.answers(ApiKey.API_VERSIONS, CLOSE)
    closed = unused()
    with pytest.raises(Unreachable) as raised:
        list_groups(admin(closed, broker))
    assert str(raised.value) == (
        f"{closed}: cannot connect: Connection refused; {broker.bootstrap}: closed the connection without a response "
        "to ApiVersions v4: this looks like a TLS or SASL listener, and only plaintext is supported"
    )


def test_a_bootstrap_server_that_never_answers_leaves_time_for_the_next(
    admin: Callable[..., Admin], broker: Scripted, other: Scripted
) -> None:
    broker.answers(ApiKey.API_VERSIONS, SILENCE)
    other.answers(ApiKey.LIST_GROUPS, ListGroupsResponse(groups=(ListedGroup(group_id="g"),)))
    result = list_groups(admin(broker, other, timeout_s=4))
    assert [group.group_id for group in result.successes] == ["g"]


# -- unsupported listeners and invalid responses ---


def test_a_listener_that_closes_at_once_is_reported_as_tls_or_sasl(
    admin: Callable[..., Admin], broker: Scripted
) -> None:
    broker.answers(ApiKey.API_VERSIONS, CLOSE)
    with pytest.raises(
        SecuredListener, match="this looks like a TLS or SASL listener, and only plaintext is supported"
    ):
        list_groups(admin(broker))


def test_a_listener_that_answers_only_api_versions_is_reported_as_sasl(
    admin: Callable[..., Admin], broker: Scripted
) -> None:
    broker.answers(ApiKey.METADATA, CLOSE)
    with pytest.raises(SecuredListener, match="without a response to Metadata v13: this looks like a SASL listener"):
        list_groups(admin(broker))


def test_a_tls_alert_is_reported_as_tls(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.API_VERSIONS, Raw(b"\x15\x03\x03\x00\x02\x02\x50"))
    with pytest.raises(SecuredListener, match="answers with a TLS alert: this looks like a TLS listener"):
        list_groups(admin(broker))


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (Raw(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "a frame of 1213486160 bytes; 0 to"),
        (WrongId(ListGroupsResponse()), "its correlation id is"),
        (Cut(ListGroupsResponse()), "the connection was closed after "),
        (Raw(b"\0\0\0\5\0\0\0\1\0"), "cannot be read: "),
    ],
)
def test_an_invalid_response_is_an_error_of_one_line(
    admin: Callable[..., Admin], broker: Scripted, step: Any, text: str
) -> None:
    broker.answers(ApiKey.LIST_GROUPS, step)
    (error,) = list_groups(admin(broker)).failures
    message = str(error.failure)
    assert message.startswith(f"{broker.bootstrap}: the response to ListGroups v5 cannot be read: ")
    assert text in message
    assert error.broker is not None
    assert error.broker.node_id == 1
    assert len(broker.requests(ApiKey.LIST_GROUPS)) == 1, "invalid responses are not retried"


def test_an_invalid_response_of_the_bootstrap_server_is_raised(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.METADATA, Cut(MetadataResponse()))
    with pytest.raises(InvalidResponse, match="the response to Metadata v13 cannot be read"):
        list_groups(admin(broker))


# -- deadlines ---


@pytest.mark.parametrize("api", [ApiKey.API_VERSIONS, ApiKey.METADATA])
def test_a_bootstrap_server_that_never_answers_times_out(
    admin: Callable[..., Admin], broker: Scripted, api: ApiKey
) -> None:
    broker.answers(api, SILENCE)
    started = monotonic()
    with pytest.raises(TimedOut, match=rf"^{broker.bootstrap}: no response to \w+ v\d+ within 0.4 s$"):
        list_groups(admin(broker, timeout_s=SHORT_S))
    assert SHORT_S <= monotonic() - started < TIMEOUT_S


def test_a_broker_that_never_answers_does_not_hide_the_others(
    admin: Callable[..., Admin], broker: Scripted, other: Scripted
) -> None:
    broker.brokers = [broker, other]
    broker.answers(ApiKey.LIST_GROUPS, SILENCE)
    other.answers(ApiKey.LIST_GROUPS, ListGroupsResponse(groups=(ListedGroup(group_id="g"),)))
    result = list_groups(admin(broker, timeout_s=3.9))
    assert [(group.group_id, group.coordinator.node_id) for group in result.successes] == [("g", 2)]
    (error,) = result.failures
    assert error.broker is not None
    assert error.broker.node_id == 1
    assert re.search(r": no response to ListGroups v5 within 1\.\d s$", str(error.failure))


def test_a_response_of_single_bytes_times_out(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.LIST_GROUPS, Drip(ListGroupsResponse(groups=(ListedGroup(group_id="g"),)), every_s=0.05))
    result = list_groups(admin(broker, timeout_s=SHORT_S))
    assert result.successes == ()
    assert "no response to ListGroups v5 within" in str(result.failures[0].failure)


def test_no_request_is_sent_after_the_deadline(broker: Scripted) -> None:
    link = BrokerConnection(Address(broker.host, broker.port), Deadline(TIMEOUT_S), "1")
    link.deadline = Deadline(0)
    with pytest.raises(TimedOut, match="no response to ListGroups v5 within 0 s"):
        link.send(ListGroupsRequest(), 5, ListGroupsResponse)
    link.close()


def test_a_listener_that_does_not_accept_times_out(admin: Callable[..., Admin]) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=1) as deaf, pytest.raises(ClientError, match=r"within 0.4 s$"):
        list_groups(admin(Address(*deaf.getsockname()), timeout_s=SHORT_S))


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
        assert [each.version for each in old.requests(ApiKey.API_VERSIONS)] == [4, 2 if says else 0]
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
