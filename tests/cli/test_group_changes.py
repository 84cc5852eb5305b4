"""`koordinator groups remove-members` and `delete`: removed members, deleted groups and refused requests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from brokers.scripted_broker import Scripted, coordinator
from clients.groups_command import Ran, commit, form

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from koordinator.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember, DescribeGroupsResponse
from koordinator.wire.messages.leave_group import LeaveGroupResponse, MemberResponse
from koordinator.wire.messages.list_groups import ListGroupsResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator import Cluster


# -- remove-members ---


def test_kip_345_static_members_are_removed_by_instance_id_in_one_rebalance(
    run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str]
) -> None:
    form(cluster.bootstrap_servers, "svc", "a", "b", "c")
    before = len(rebalances(cluster))
    ran = run("remove-members", "svc", "--instance-id", "a,b", "--reason", "scaled down", *at)
    assert (ran.status, ran.out, ran.err) == (0, "svc: removed a\nsvc: removed b\n", [])
    assert [member.instance_id for member in cluster.group("svc").members] == ["c"]
    assert len(rebalances(cluster)) == before + 1, "one rebalance for both members"
    assert "scaled down" in json.dumps(cluster.events(group="svc"))


def rebalances(cluster: Cluster) -> list[dict[str, Any]]:
    return [event for event in cluster.events(group="svc") if event.get("state_to") == "PreparingRebalance"]


def test_members_are_removed_by_member_id(run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str]) -> None:
    one, other, static = form(cluster.bootstrap_servers, "svc", None, None, "a")
    ran = run("remove-members", "svc", "--member-id", one, "--member-id", static, "--json", *at)
    assert (ran.status, ran.err) == (0, [])
    assert ran.document == {
        "group_id": "svc",
        "removed": [{"member_id": one, "instance_id": None}, {"member_id": static, "instance_id": None}],
        "errors": [],
    }
    assert [member.member_id for member in cluster.group("svc").members] == [other]


def test_all_members_are_removed_static_and_dynamic(
    run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str]
) -> None:
    _, dynamic = form(cluster.bootstrap_servers, "svc", "a", None)
    ran = run("remove-members", "svc", "--all", *at)
    assert (ran.status, ran.err) == (0, [])
    assert sorted(ran.out.splitlines()) == sorted([f"svc: removed {dynamic}", "svc: removed a"])
    assert cluster.group("svc").members == []
    ran = run("remove-members", "svc", "--all", *at)
    assert (ran.status, ran.out, ran.err) == (0, "svc: has no members\n", [])


def test_a_missing_member_is_a_failure_and_the_others_are_removed(
    run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str]
) -> None:
    form(cluster.bootstrap_servers, "svc", "a")
    ran = run("remove-members", "svc", "--instance-id", "a,z", "--member-id", "m", *at)
    assert (ran.status, ran.out) == (1, "svc: removed a\n")
    assert ran.failures == [
        "svc: z: UNKNOWN_MEMBER_ID (25): no such member in the group",
        "svc: m: UNKNOWN_MEMBER_ID (25): no such member in the group",
    ]
    assert cluster.group("svc").members == []


@pytest.mark.parametrize("kind", ["share", "streams"])
@pytest.mark.parametrize("members", [("--all",), ("--member-id", "m"), ("--instance-id", "a")])
def test_members_of_share_and_streams_groups_are_refused_with_the_types_that_have_removals(
    run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str], kind: str, members: tuple[str, ...]
) -> None:
    cluster.group("svc").create_puppet("a", topics=["t"], group_protocol=kind).join()
    ran = run("remove-members", "svc", *members, *at)
    text = f"svc: is a {kind} group: members can be removed only from classic and consumer groups; stop them"
    assert (ran.status, ran.out, ran.failures) == (1, "", [text])
    assert [event for event in cluster.events() if event.get("api") == "LeaveGroup"] == []


def test_kip_345_a_missing_group_is_detected_before_any_member_is_removed(
    run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str]
) -> None:
    ran = run("remove-members", "nope", "--instance-id", "a", *at)
    assert (ran.status, ran.out) == (1, "")
    assert ran.failures == [
        "nope: GROUP_ID_NOT_FOUND (69): Group nope not found.",
    ]
    assert [event for event in cluster.events() if event.get("api") == "LeaveGroup"] == []


@pytest.mark.parametrize("version", [5, 6])
def test_kip_345_an_unknown_group_is_dead_or_an_error(run: Callable[..., Ran], broker: Scripted, version: int) -> None:
    broker.versions[ApiKey.DESCRIBE_GROUPS] = (0, version)
    row = DescribedGroup(group_id="g", group_state="Dead", error_code=0 if version == 5 else 69)
    broker.answers(ApiKey.DESCRIBE_GROUPS, DescribeGroupsResponse(groups=(row,)))
    broker.answers(ApiKey.LIST_GROUPS, ListGroupsResponse())
    ran = run("remove-members", "g", "--all", "--bootstrap-server", broker.bootstrap)
    assert ran.status == 1
    assert ran.failures == ["g: GROUP_ID_NOT_FOUND (69): there is no such group"]
    assert broker.requests(ApiKey.LEAVE_GROUP) == []


FOUND = DescribeGroupsResponse(
    groups=(
        DescribedGroup(
            group_id="g",
            group_state="Stable",
            protocol_type="consumer",
            members=(DescribedGroupMember(member_id="a-1", group_instance_id="a"), DescribedGroupMember(member_id="m")),
        ),
    )
)


def test_kip_345_a_broker_that_is_too_old_says_which_version_is_needed(
    run: Callable[..., Ran], broker: Scripted
) -> None:
    broker.versions[ApiKey.LEAVE_GROUP] = (0, 2)
    ran = run("remove-members", "g", "--instance-id", "a", "--bootstrap-server", broker.bootstrap)
    assert (ran.status, ran.out) == (1, "")
    needed = "UNSUPPORTED_VERSION (35): LeaveGroup v3 is needed (Apache Kafka 2.4 or newer)"
    assert ran.failures == [f"g: {needed}, {broker.bootstrap} has LeaveGroup v0-2"]


def test_kip_345_a_broker_that_says_it_is_too_old_itself_gets_the_same_explanation(
    run: Callable[..., Ran], broker: Scripted
) -> None:
    broker.answers(ApiKey.DESCRIBE_GROUPS, FOUND)
    broker.answers(ApiKey.LEAVE_GROUP, LeaveGroupResponse(error_code=35))
    ran = run("remove-members", "g", "--instance-id", "a", "--bootstrap-server", broker.bootstrap)
    assert ran.status == 1
    assert ran.failures == [
        "g: UNSUPPORTED_VERSION (35): LeaveGroup v3 is needed (Apache Kafka 2.4 or newer)",
    ]


@pytest.mark.parametrize("api", [ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_GROUPS, ApiKey.LEAVE_GROUP])
def test_kip_345_who_is_not_authorised_is_told_so(run: Callable[..., Ran], broker: Scripted, api: ApiKey) -> None:
    broker.answers(ApiKey.DESCRIBE_GROUPS, FOUND)
    refused: dict[ApiKey, Any] = {
        ApiKey.FIND_COORDINATOR: coordinator(broker, Error.GROUP_AUTHORIZATION_FAILED),
        ApiKey.DESCRIBE_GROUPS: DescribeGroupsResponse(groups=(DescribedGroup(group_id="g", error_code=30),)),
        ApiKey.LEAVE_GROUP: LeaveGroupResponse(error_code=30),
    }
    broker.answers(api, refused[api])
    ran = run("remove-members", "g", "--instance-id", "a", "--bootstrap-server", broker.bootstrap)
    assert (ran.status, ran.out) == (1, "")
    assert ran.failures == ["g: GROUP_AUTHORIZATION_FAILED (30): not authorised for the group"]


def test_kip_345_each_member_has_its_own_result(run: Callable[..., Ran], broker: Scripted) -> None:
    broker.answers(ApiKey.DESCRIBE_GROUPS, FOUND)
    rows = (
        MemberResponse(group_instance_id="a"),
        MemberResponse(group_instance_id="b", error_code=82),
        MemberResponse(member_id="m", group_instance_id=None, error_code=25),
    )
    broker.answers(ApiKey.LEAVE_GROUP, LeaveGroupResponse(members=rows))
    arguments = ("--instance-id", "a", "--instance-id", "b", "--member-id", "m", "--bootstrap-server", broker.bootstrap)
    ran = run("remove-members", "g", *arguments)
    assert (ran.status, ran.out) == (1, "g: removed a\n")
    assert ran.failures == [
        "g: b: FENCED_INSTANCE_ID (82): the instance id belongs to another member id",
        "g: m: UNKNOWN_MEMBER_ID (25): no such member in the group",
    ]
    document = run("remove-members", "g", *arguments, "--json").document
    assert document["removed"] == [{"member_id": None, "instance_id": "a"}]
    assert [(row["group_id"], row["member_id"], row["instance_id"]) for row in document["errors"]] == [
        ("g", None, "b"),
        ("g", "m", None),
    ]
    assert [(row["code"], row["name"]) for row in document["errors"]] == [
        (82, "FENCED_INSTANCE_ID"),
        (25, "UNKNOWN_MEMBER_ID"),
    ]


def test_a_coordinator_that_moves_between_describing_and_leaving_is_followed(
    run: Callable[..., Ran], broker: Scripted
) -> None:
    broker.answers(ApiKey.DESCRIBE_GROUPS, FOUND)
    done = LeaveGroupResponse(members=(MemberResponse(group_instance_id="a"),))
    broker.answers(ApiKey.LEAVE_GROUP, *(LeaveGroupResponse(error_code=code) for code in (16, 15, 14)), done)
    ran = run("remove-members", "g", "--instance-id", "a", "--bootstrap-server", broker.bootstrap)
    assert (ran.status, ran.out, ran.err) == (0, "g: removed a\n", [])


@pytest.mark.parametrize("version", [3, 4, 5])
def test_the_reason_is_told_to_brokers_that_take_one(run: Callable[..., Ran], broker: Scripted, version: int) -> None:
    broker.versions[ApiKey.LEAVE_GROUP] = (0, version)
    broker.answers(ApiKey.DESCRIBE_GROUPS, FOUND)
    broker.answers(ApiKey.LEAVE_GROUP, LeaveGroupResponse(members=(MemberResponse(group_instance_id="a"),)))
    there = ("--instance-id", "a", "--bootstrap-server", broker.bootstrap)
    assert run("remove-members", "g", "--reason", "why", *there).status == 0
    assert run("remove-members", "g", *there).status == 0
    told = [each.request.members[0].reason for each in broker.requests(ApiKey.LEAVE_GROUP)]
    assert told == (["why", "member was removed by an admin"] if version == 5 else [None, None])


# delete


def test_delete_has_a_result_for_each_group(run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str]) -> None:
    commit(cluster.bootstrap_servers, "old", {0: 1})
    form(cluster.bootstrap_servers, "svc", "a")
    ran = run("delete", "old", "svc", "nope", *at)
    assert (ran.status, ran.out) == (1, "old: deleted\n")
    assert ran.failures == [
        "svc: NON_EMPTY_GROUP (68): the group has members",
        "nope: GROUP_ID_NOT_FOUND (69): there is no such group",
    ]
    assert [group.id for group in cluster.groups()] == ["svc"]


def test_delete_as_json(run: Callable[..., Ran], cluster: Cluster, at: tuple[str, str]) -> None:
    commit(cluster.bootstrap_servers, "old", {0: 1})
    ran = run("delete", "old", "nope", "--json", *at)
    assert ran.status == 1
    error = {
        "group_id": "nope",
        "member_id": None,
        "instance_id": None,
        "topic": None,
        "transactional_id": None,
        "broker": None,
        "code": 69,
        "name": "GROUP_ID_NOT_FOUND",
        "message": "there is no such group",
    }
    assert ran.document == {"deleted": ["old"], "errors": [error]}


def test_a_missing_authorization_is_reported(run: Callable[..., Ran], broker: Scripted) -> None:
    row = DeletableGroupResult(group_id="g", error_code=30)
    broker.answers(ApiKey.DELETE_GROUPS, DeleteGroupsResponse(results=(row,)))
    ran = run("delete", "g", "--bootstrap-server", broker.bootstrap)
    assert ran.status == 1
    assert ran.failures == ["g: GROUP_AUTHORIZATION_FAILED (30): not authorised for the group"]
