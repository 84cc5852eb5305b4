"""Finding who is to be asked, asking again while that changes, and giving up in time."""

from __future__ import annotations

import re
import socket
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest
from brokers.scripted_broker import CLOSE, SILENCE, Cut, Drip, Raw, Scripted, WrongId, coordinator

from koordinator.client.admin import Admin
from koordinator.client.groups import delete_groups, describe_groups, list_groups
from koordinator.client.link import Address, Deadline, Link
from koordinator.client.members import Identity, remove_members
from koordinator.client.problems import BadAnswer, ClientError, Refusal, Secured, TimedOut, Unreachable
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
"""For what is to succeed; a busy machine is slow, not wrong."""

SHORT_S = 0.4
"""For what is to run out of time."""

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
    """Makes clients, and closes them."""
    made: list[Admin] = []

    def make(*brokers: Scripted | Address, timeout_s: float = TIMEOUT_S) -> Admin:
        addresses = [Address(each.host, each.port) for each in brokers]
        made.append(Admin(addresses, timeout_s, "1"))
        return made[-1]

    yield make
    for each in made:
        each.close()


def unused() -> Address:
    """Where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return Address(*server.getsockname())


def deleted(*names: str, error: int = 0) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=tuple(DeletableGroupResult(group_id=name, error_code=error) for name in names))


# Asking again


@pytest.mark.parametrize("error", [14, 15, 16])
def test_a_coordinator_that_is_not_ready_is_asked_again(
    admin: Callable[..., Admin], broker: Scripted, error: int
) -> None:
    broker.answers(ApiKey.DELETE_GROUPS, deleted("g", error=error), deleted("g", error=error), deleted("g"))
    assert delete_groups(admin(broker), ["g"]).deleted == ("g",)
    assert len(broker.requests(ApiKey.DELETE_GROUPS)) == 3
    # and looked for each time
    assert len(broker.requests(ApiKey.FIND_COORDINATOR)) == 3


@pytest.mark.parametrize("version", [2, 4])
def test_a_coordinator_that_is_not_there_yet_is_looked_for_again(
    admin: Callable[..., Admin], broker: Scripted, version: int
) -> None:
    broker.versions[ApiKey.FIND_COORDINATOR] = (0, version)
    broker.answers(ApiKey.FIND_COORDINATOR, coordinator(broker, Error.COORDINATOR_NOT_AVAILABLE), coordinator(broker))
    broker.answers(ApiKey.DELETE_GROUPS, deleted("g"))
    assert delete_groups(admin(broker), ["g"]).deleted == ("g",)


def test_only_the_groups_that_were_refused_for_now_are_asked_about_again(
    admin: Callable[..., Admin], broker: Scripted
) -> None:
    first = DeleteGroupsResponse(
        results=(
            DeletableGroupResult(group_id="a"),
            DeletableGroupResult(group_id="b", error_code=14),
            DeletableGroupResult(group_id="c", error_code=68),
        )
    )
    broker.answers(ApiKey.DELETE_GROUPS, first, deleted("b"))
    result = delete_groups(admin(broker), ["a", "b", "c"])
    assert result.deleted == ("a", "b")
    assert [(each.group_id, each.refusal.code) for each in result.problems] == [("c", 68)]
    assert [each.request.groups_names for each in broker.requests(ApiKey.DELETE_GROUPS)] == [("a", "b", "c"), ("b",)]


def test_a_group_is_followed_to_its_new_coordinator(
    admin: Callable[..., Admin], broker: Scripted, other: Scripted
) -> None:
    broker.answers(ApiKey.FIND_COORDINATOR, coordinator(broker), coordinator(other))
    broker.answers(ApiKey.DELETE_GROUPS, deleted("g", error=16))
    other.answers(ApiKey.DELETE_GROUPS, deleted("g"))
    assert delete_groups(admin(broker), ["g"]).deleted == ("g",)
    assert len(broker.requests(ApiKey.DELETE_GROUPS)) == len(other.requests(ApiKey.DELETE_GROUPS)) == 1


def test_a_coordinator_that_stays_away_is_a_refusal_that_says_how_long_it_was_tried(
    admin: Callable[..., Admin], broker: Scripted
) -> None:
    broker.answers(ApiKey.DELETE_GROUPS, deleted("g", error=14))
    began = monotonic()
    (problem,) = delete_groups(admin(broker, timeout_s=SHORT_S), ["g"]).problems
    assert monotonic() - began < TIMEOUT_S
    assert str(problem.refusal) == (
        "COORDINATOR_LOAD_IN_PROGRESS (14): the coordinator is still loading the group, after 0.4 s of trying"
    )
    assert 2 <= len(broker.requests(ApiKey.DELETE_GROUPS)) <= 4, "the pauses grow"


def test_a_bootstrap_server_that_closes_later_is_connected_to_again(
    admin: Callable[..., Admin], broker: Scripted
) -> None:
    broker.answers(ApiKey.FIND_COORDINATOR, coordinator(broker), CLOSE, coordinator(broker))
    broker.answers(ApiKey.DELETE_GROUPS, deleted("g", error=16), deleted("g"))
    assert delete_groups(admin(broker), ["g"]).deleted == ("g",)
    assert broker.connections == 2


def test_a_read_is_asked_again_after_a_lost_connection(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.LIST_GROUPS, CLOSE, ListGroupsResponse(groups=(ListedGroup(group_id="g"),)))
    result = list_groups(admin(broker))
    assert [group.group_id for group in result.groups] == ["g"]
    assert result.problems == ()


def test_a_change_is_never_asked_for_twice_after_a_lost_connection(
    admin: Callable[..., Admin], broker: Scripted
) -> None:
    broker.answers(ApiKey.DELETE_GROUPS, CLOSE, deleted("g"))
    (problem,) = delete_groups(admin(broker), ["g"]).problems
    assert str(problem.refusal) == (
        f"{broker.bootstrap}: closed the connection without an answer to DeleteGroups v2;"
        " it is not known whether that was carried out"
    )
    assert len(broker.requests(ApiKey.DELETE_GROUPS)) == 1


def test_an_unreachable_coordinator_is_looked_up_again(
    admin: Callable[..., Admin], broker: Scripted, other: Scripted
) -> None:
    gone = Scripted(node_id=2)
    gone.__exit__()
    broker.answers(ApiKey.FIND_COORDINATOR, coordinator(gone), coordinator(other))
    other.answers(ApiKey.DELETE_GROUPS, deleted("g"))
    assert delete_groups(admin(broker), ["g"]).deleted == ("g",)


def test_an_unresolvable_coordinator_is_not_retried(admin: Callable[..., Admin], broker: Scripted) -> None:
    inside = Scripted(node_id=2)
    inside.__exit__()
    inside.host = "kafka.invalid"
    broker.answers(ApiKey.FIND_COORDINATOR, coordinator(inside))
    (problem,) = delete_groups(admin(broker), ["g"]).problems
    assert str(problem.refusal).startswith(f"kafka.invalid:{inside.port}: cannot connect: ")
    assert len(broker.requests(ApiKey.FIND_COORDINATOR)) == 1


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", -1), ("127.0.0.1", 65536), ("", 9092), ("a\0b", 9092)])
def test_an_advertised_address_that_is_none_is_one_clear_line(
    admin: Callable[..., Admin], broker: Scripted, host: str, port: int
) -> None:
    wrong = Scripted(node_id=2)
    wrong.__exit__()
    wrong.host, wrong.port = host, port
    broker.answers(ApiKey.FIND_COORDINATOR, coordinator(wrong))
    (problem,) = delete_groups(admin(broker), ["g"]).problems
    assert str(problem.refusal).startswith(f"{host}:{port}: cannot connect: ")


# Bootstrap


def test_the_first_bootstrap_server_that_answers_is_taken(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.LIST_GROUPS, ListGroupsResponse())
    assert list_groups(admin(unused(), broker)).problems == ()


def test_no_bootstrap_server_that_answers_names_each_and_its_cause(
    admin: Callable[..., Admin], broker: Scripted
) -> None:
    broker.answers(ApiKey.API_VERSIONS, CLOSE)
    nobody = unused()
    with pytest.raises(Unreachable) as raised:
        list_groups(admin(nobody, broker))
    assert str(raised.value) == (
        f"{nobody}: cannot connect: Connection refused; {broker.bootstrap}: closed the connection without an answer "
        "to ApiVersions v4: this looks like a TLS or SASL listener, and only plaintext is supported"
    )


def test_a_bootstrap_server_that_never_answers_leaves_time_for_the_next(
    admin: Callable[..., Admin], broker: Scripted, other: Scripted
) -> None:
    broker.answers(ApiKey.API_VERSIONS, SILENCE)
    other.answers(ApiKey.LIST_GROUPS, ListGroupsResponse(groups=(ListedGroup(group_id="g"),)))
    result = list_groups(admin(broker, other, timeout_s=4))
    assert [group.group_id for group in result.groups] == ["g"]


# Listeners that are not what they should be


def test_a_listener_that_closes_at_once_looks_like_tls_or_sasl(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.API_VERSIONS, CLOSE)
    with pytest.raises(Secured, match="this looks like a TLS or SASL listener, and only plaintext is supported"):
        list_groups(admin(broker))


def test_a_listener_that_answers_api_versions_and_nothing_else_looks_like_sasl(
    admin: Callable[..., Admin], broker: Scripted
) -> None:
    broker.answers(ApiKey.METADATA, CLOSE)
    with pytest.raises(Secured, match="without an answer to Metadata v13: this looks like a SASL listener"):
        list_groups(admin(broker))


def test_a_tls_alert_looks_like_tls(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.API_VERSIONS, Raw(b"\x15\x03\x03\x00\x02\x02\x50"))
    with pytest.raises(Secured, match="answers with a TLS alert: this looks like a TLS listener"):
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
def test_an_answer_that_cannot_be_read_is_one_clear_line(
    admin: Callable[..., Admin], broker: Scripted, step: Any, text: str
) -> None:
    broker.answers(ApiKey.LIST_GROUPS, step)
    (problem,) = list_groups(admin(broker)).problems
    said = str(problem.refusal)
    assert said.startswith(f"{broker.bootstrap}: the answer to ListGroups v5 cannot be read: ")
    assert text in said
    assert problem.broker is not None
    assert problem.broker.node_id == 1
    assert len(broker.requests(ApiKey.LIST_GROUPS)) == 1, "it is not asked again"


def test_an_unreadable_answer_of_the_bootstrap_server_ends_it(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.METADATA, Cut(MetadataResponse()))
    with pytest.raises(BadAnswer, match="the answer to Metadata v13 cannot be read"):
        list_groups(admin(broker))


# Time


@pytest.mark.parametrize("api", [ApiKey.API_VERSIONS, ApiKey.METADATA])
def test_a_bootstrap_server_that_never_answers_is_given_up_in_time(
    admin: Callable[..., Admin], broker: Scripted, api: ApiKey
) -> None:
    broker.answers(api, SILENCE)
    began = monotonic()
    with pytest.raises(TimedOut, match=rf"^{broker.bootstrap}: no answer to \w+ v\d+ within 0.4 s$"):
        list_groups(admin(broker, timeout_s=SHORT_S))
    assert SHORT_S <= monotonic() - began < TIMEOUT_S


def test_a_broker_that_never_answers_does_not_hide_the_others(
    admin: Callable[..., Admin], broker: Scripted, other: Scripted
) -> None:
    broker.brokers = [broker, other]
    broker.answers(ApiKey.LIST_GROUPS, SILENCE)
    other.answers(ApiKey.LIST_GROUPS, ListGroupsResponse(groups=(ListedGroup(group_id="g"),)))
    result = list_groups(admin(broker, timeout_s=3.9))
    assert [(group.group_id, group.coordinator.node_id) for group in result.groups] == [("g", 2)]
    (problem,) = result.problems
    assert problem.broker is not None
    assert problem.broker.node_id == 1
    assert re.search(r": no answer to ListGroups v5 within 1\.\d s$", str(problem.refusal))


def test_an_answer_a_byte_at_a_time_is_given_up_in_time(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.LIST_GROUPS, Drip(ListGroupsResponse(groups=(ListedGroup(group_id="g"),)), every_s=0.05))
    result = list_groups(admin(broker, timeout_s=SHORT_S))
    assert result.groups == ()
    assert "no answer to ListGroups v5 within" in str(result.problems[0].refusal)


def test_nothing_is_sent_when_no_time_is_left(broker: Scripted) -> None:
    link = Link(Address(broker.host, broker.port), Deadline(TIMEOUT_S), "1")
    link.deadline = Deadline(0)
    with pytest.raises(TimedOut, match="no answer to ListGroups v5 within 0 s"):
        link.ask(ListGroupsRequest(), 5, ListGroupsResponse)
    link.close()


def test_a_listener_that_never_accepts_times_out(admin: Callable[..., Admin]) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=1) as deaf, pytest.raises(ClientError, match=r"within 0.4 s$"):
        list_groups(admin(Address(*deaf.getsockname()), timeout_s=SHORT_S))


# Old brokers


@pytest.mark.parametrize("says", [True, False])
def test_a_broker_of_before_flexible_versions_is_understood(admin: Callable[..., Admin], *, says: bool) -> None:
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
        (group,) = list_groups(admin(old)).groups
        assert (group.group_id, group.state, group.type) == ("g", None, None)
        assert [each.version for each in old.requests(ApiKey.API_VERSIONS)] == [4, 2 if says else 0]
        old.answers(ApiKey.DESCRIBE_GROUPS, FOUND)
        old.answers(ApiKey.OFFSET_FETCH, OffsetFetchResponse())
        old.answers(ApiKey.METADATA, NO_TOPIC)
        result = describe_groups(admin(old), ["svc"])
        assert result.problems == ()
        assert [member.instance_id for member in result.groups[0].members] == [None, None], "since v4"


@pytest.mark.parametrize("listed", [(0, 2), None])
def test_kip_345_no_removal_is_sent_to_a_broker_without_batches(
    admin: Callable[..., Admin], broker: Scripted, listed: tuple[int, int] | None
) -> None:
    broker.versions[ApiKey.LEAVE_GROUP] = listed
    (problem,) = remove_members(admin(broker), "svc", [Identity(instance_id="a")]).problems
    assert problem.refusal.code == Error.UNSUPPORTED_VERSION
    assert problem.refusal.message.startswith("LeaveGroup v3 is needed (Apache Kafka 2.4 or newer), ")
    assert broker.requests(ApiKey.DESCRIBE_GROUPS) == broker.requests(ApiKey.LEAVE_GROUP) == []


def test_a_state_filter_needs_list_groups_v4(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.versions[ApiKey.LIST_GROUPS] = (0, 3)
    (problem,) = list_groups(admin(broker), ["Stable"]).problems
    assert "ListGroups v4 is needed (Apache Kafka 2.6 or newer)" in str(problem.refusal)


# Offsets


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


def test_ends_are_asked_of_each_leader_and_again_when_it_moves(
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
    assert result.problems == ()
    assert [(each.partition, each.end, each.owner) for each in result.groups[0].positions] == [
        (0, 10, "a-1"),
        (1, 11, "a-1"),
    ]
    assert not any(each.request.allow_auto_topic_creation for each in broker.requests(ApiKey.METADATA))


def test_refused_end_offsets_are_reported_once_per_topic(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.DESCRIBE_GROUPS, FOUND)
    broker.answers(ApiKey.OFFSET_FETCH, NOTHING_COMMITTED)
    broker.answers(ApiKey.METADATA, MetadataResponse(brokers=(broker.row,), topics=(led((0, 0, 1), (1, 0, 1)),)))
    broker.answers(ApiKey.LIST_OFFSETS, ends((0, 29, -1), (1, 29, -1)))
    result = describe_groups(admin(broker), ["svc"])
    assert [(each.topic, each.refusal.code) for each in result.problems] == [("t", 29)]
    assert [(each.end, each.lag) for each in result.groups[0].positions] == [(None, None)] * 2


def test_a_deleted_topic_has_no_end_offset_and_no_error(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.DESCRIBE_GROUPS, FOUND)
    broker.answers(ApiKey.OFFSET_FETCH, NOTHING_COMMITTED)
    broker.answers(ApiKey.METADATA, NO_TOPIC)
    result = describe_groups(admin(broker), ["svc"])
    assert result.problems == ()
    assert [each.end for each in result.groups[0].positions] == [None, None]


@pytest.mark.parametrize("version", [7, 9])
def test_offsets_that_are_refused_leave_the_rest_of_the_description(
    admin: Callable[..., Admin], broker: Scripted, version: int
) -> None:
    broker.versions[ApiKey.OFFSET_FETCH] = (0, version)
    broker.answers(ApiKey.DESCRIBE_GROUPS, FOUND)
    refused = OffsetFetchResponse(groups=(OffsetFetchResponseGroup(group_id="svc", error_code=30),))
    broker.answers(ApiKey.OFFSET_FETCH, refused if version > 7 else OffsetFetchResponse(error_code=30))
    broker.answers(ApiKey.METADATA, NO_TOPIC)
    result = describe_groups(admin(broker), ["svc"])
    assert [group.state for group in result.groups] == ["Stable"]
    assert [(each.group_id, each.refusal.code) for each in result.problems] == [("svc", 30)]


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
def test_committed_offsets_are_asked_for_again_and_minus_1_is_none(
    admin: Callable[..., Admin], broker: Scripted, version: int
) -> None:
    broker.versions[ApiKey.OFFSET_FETCH] = (0, version)
    broker.answers(ApiKey.DESCRIBE_GROUPS, FOUND)
    broker.answers(ApiKey.OFFSET_FETCH, fetched(version, 14), fetched(version, 0, 7, -1, -1))
    broker.answers(ApiKey.METADATA, NO_TOPIC)
    result = describe_groups(admin(broker), ["svc"])
    assert result.problems == ()
    assert [(each.partition, each.committed) for each in result.groups[0].positions] == [(0, 7), (1, None)]


def test_dynamic_members_come_before_static_ones_and_all_in_order(
    admin: Callable[..., Admin], broker: Scripted
) -> None:
    names = [("z", None), ("x", "b"), ("y", "a"), ("w", None)]
    rows = tuple(DescribedGroupMember(member_id=name, group_instance_id=instance) for name, instance in names)
    group = DescribedGroup(group_id="svc", group_state="PreparingRebalance", protocol_type="consumer", members=rows)
    broker.answers(ApiKey.DESCRIBE_GROUPS, DescribeGroupsResponse(groups=(group,)))
    broker.answers(ApiKey.OFFSET_FETCH, NOTHING_COMMITTED)
    (found,) = describe_groups(admin(broker), ["svc"]).groups
    assert [member.member_id for member in found.members] == ["w", "z", "y", "x"]


# Answers with something missing


def test_a_group_that_is_not_in_the_answer_is_refused_with_a_reason(
    admin: Callable[..., Admin], broker: Scripted
) -> None:
    broker.answers(ApiKey.DELETE_GROUPS, deleted("other"))
    result = delete_groups(admin(broker), ["g"])
    assert result.deleted == ()
    (problem,) = result.problems
    assert problem.refusal == Refusal(None, f"{broker.bootstrap}: says nothing about it in its answer")


def test_a_member_that_is_not_in_the_answer_is_refused_with_a_reason(
    admin: Callable[..., Admin], broker: Scripted
) -> None:
    broker.answers(ApiKey.DESCRIBE_GROUPS, FOUND)
    broker.answers(ApiKey.LEAVE_GROUP, LeaveGroupResponse(members=(MemberResponse(group_instance_id="a"),)))
    result = remove_members(admin(broker), "svc", [Identity(instance_id="a"), Identity(instance_id="b")])
    assert result.removed == (Identity(instance_id="a"),)
    assert [(each.instance_id, each.refusal.code) for each in result.problems] == [("b", None)]


def test_a_coordinator_may_add_the_member_id_it_found(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.DESCRIBE_GROUPS, FOUND)
    found = MemberResponse(member_id="a-1", group_instance_id="a")
    broker.answers(ApiKey.LEAVE_GROUP, LeaveGroupResponse(members=(found,)))
    assert remove_members(admin(broker), "svc", [Identity(instance_id="a")]).problems == ()


def test_an_unknown_error_keeps_its_number(admin: Callable[..., Admin], broker: Scripted) -> None:
    broker.answers(ApiKey.DELETE_GROUPS, deleted("g", error=9999))
    (problem,) = delete_groups(admin(broker), ["g"]).problems
    assert (str(problem.refusal), problem.refusal.name) == ("error 9999", None)
