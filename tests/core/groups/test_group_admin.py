"""DescribeGroups, ListGroups and DeleteGroups (KIP-229, KIP-430, KIP-518, KIP-1043)."""

from __future__ import annotations

import pytest
from builders.requests import CHANGED, RANGE
from scenes.play import Play

from koordinator.wire.errors import Error
from koordinator.wire.messages import delete_groups, list_groups

A = ("t", 0)


@pytest.mark.parametrize("version", [0, 5])
def test_an_unknown_group_is_dead(play: Play, version: int) -> None:
    row = play.describe("nope", version)
    assert (row.error_code, row.group_id, row.group_state) == (Error.NONE, "nope", "Dead")
    assert (row.protocol_type, row.protocol_data, row.members) == ("", "", ())


def test_kip_1043_from_v6_on_an_unknown_group_is_an_error_too(play: Play) -> None:
    row = play.describe("nope", 6)
    assert (row.error_code, row.group_state, row.error_message) == (
        Error.GROUP_ID_NOT_FOUND,
        "Dead",
        "Group nope not found.",
    )


def test_a_stable_group_shows_all_of_its_members(play: Play) -> None:
    a, b = play.stable_pair(client_id="billing")
    row = play.describe(version=1)
    assert (row.group_state, row.protocol_type, row.protocol_data) == ("Stable", "consumer", "range")
    assert {
        member.member_id: (member.client_id, member.client_host, member.member_metadata, member.member_assignment)
        for member in row.members
    } == {
        a: ("billing", "/127.0.0.1", RANGE[0][1], b"a2"),
        b: ("billing", "/127.0.0.1", RANGE[0][1], b"b2"),
    }


def test_before_the_assignment_there_is_no_metadata_and_the_last_assignment_is_shown(play: Play) -> None:
    """New coordinator; the old one shows no assignment."""
    a, b = play.unsynced_pair()
    row = play.describe()
    assert (row.group_state, row.protocol_type, row.protocol_data) == ("CompletingRebalance", "consumer", "")
    assert {member.member_id: (member.member_metadata, member.member_assignment) for member in row.members} == {
        a: (b"", b"a1"),
        b: (b"", b""),
    }


def test_in_a_join_phase_the_last_assignment_is_shown(play: Play) -> None:
    """New coordinator; the old one shows none."""
    _, b = play.stable_pair()
    play.join(b, protocols=CHANGED)
    row = play.describe()
    assert (row.group_state, row.protocol_data) == ("PreparingRebalance", "")
    assert [(member.member_metadata, member.member_assignment) for member in row.members] == [
        (b"", b"a2"),
        (b"", b"b2"),
    ]


def test_a_missing_assignment_is_shown_as_empty(play: Play) -> None:
    a, b = play.stable_pair()
    play.join(b, protocols=CHANGED)
    play.join(a)
    play.join(b)
    play.join(b, protocols=RANGE)
    assert play.state() == "PreparingRebalance"
    assert {member.member_assignment for member in play.describe().members} == {b""}


@pytest.mark.parametrize(("version", "instance_id"), [(3, None), (4, "i1")])
def test_kip_345_instances_are_shown_from_v4_on(play: Play, version: int, instance_id: str | None) -> None:
    play.static_member()
    assert [member.group_instance_id for member in play.describe(version=version).members] == [instance_id]


@pytest.mark.parametrize(
    ("version", "sent", "operations"),
    [(2, "no", -(2**31)), (3, "no", -(2**31)), (3, "yes", 3400), (5, "yes", 3400)],
)
def test_kip_430_authorized_operations_are_sent(play: Play, version: int, sent: str, operations: int) -> None:
    play.stable_member()
    assert play.describe(version=version, operations=sent == "yes").authorized_operations == operations


@pytest.fixture
def three(play: Play) -> Play:
    """Create a Stable, an Empty and a rebalancing group."""
    for name in ("stable", "empty", "joining"):
        sent = play.join("", version=3, group=name, session=60_000)
        play.settle()
        member_id = sent.response.member_id
        play.sync(1, member_id, group=name)
        if name == "empty":
            play.leave(member_id, group=name)
        if name == "joining":
            play.join("", version=3, group=name, session=60_000)
    return play


@pytest.mark.parametrize(
    ("states", "result"),
    [
        ([], {"stable", "empty", "joining"}),
        (["Stable"], {"stable"}),
        (["stable"], {"stable"}),
        (["Stable", "Empty"], {"stable", "empty"}),
        (["PREPARINGREBALANCE"], {"joining"}),
        (["Bogus"], set()),
    ],
)
def test_kip_518_states_filter_without_regard_to_case(three: Play, states: list[str], result: set[str]) -> None:
    assert set(three.listed(states)) == result


@pytest.mark.parametrize(
    ("types", "result"), [(["classic"], 3), (["Classic"], 3), (["consumer"], 0), (["nonsense"], 0)]
)
def test_kip_848_every_group_here_is_classic(three: Play, types: list[str], result: int) -> None:
    assert len(three.listed(types=types)) == result


def test_states_are_spelled_as_kafka_spells_them(three: Play) -> None:
    three.commit(group="simple")
    rows = {row.group_id: (row.group_state, row.protocol_type, row.group_type) for row in three.list_groups().groups}
    assert rows == {
        "stable": ("Stable", "consumer", "classic"),
        "empty": ("Empty", "consumer", "classic"),
        "joining": ("PreparingRebalance", "consumer", "classic"),
        "simple": ("Empty", "", "classic"),
    }


@pytest.mark.parametrize("version", [0, 3])
def test_before_v4_only_group_and_protocol_type_are_listed(play: Play, version: int) -> None:
    play.commit()
    play.stable_member(group="h")
    rows = [(row.group_id, row.protocol_type, row.group_state) for row in play.list_groups(version).groups]
    assert rows == [("g", "", ""), ("h", "consumer", "")]


def test_only_empty_groups_are_deleted(play: Play) -> None:
    a = play.stable_member(group="stable")
    play.commit(group="simple")
    assert play.delete("stable", "simple", "unknown") == {
        "stable": Error.NON_EMPTY_GROUP,
        "simple": Error.NONE,
        "unknown": Error.GROUP_ID_NOT_FOUND,
    }
    assert play.heartbeat(1, a, group="stable") is Error.NONE
    assert play.state("simple") == "Dead"


def test_a_group_that_waits_for_pending_members_is_not_empty() -> None:
    play = Play(group_initial_rebalance_delay_ms=1_000)
    a = play.new_id()
    play.join(a)
    play.leave(a)
    assert play.describe().members == ()
    assert play.delete("g") == {"g": Error.NON_EMPTY_GROUP}


def test_a_group_is_deleted_with_its_offsets_and_starts_over(play: Play) -> None:
    a = play.stable_member()
    play.commit(1, a, offsets={A: 1})
    play.leave(a)
    assert play.delete("g") == {"g": Error.NONE}
    assert [record.value for record in play.appended[-1].records] == [None, None]
    joined = play.join(play.new_id())
    play.settle()
    assert (joined.response.generation_id, play.offset(*A)) == (1, -1)


def test_a_group_named_twice_has_one_row(play: Play) -> None:
    play.commit()
    request = delete_groups.DeleteGroupsRequest(groups_names=("g", "g"))
    rows = play.send(request, 2).response.results
    assert [(row.group_id, row.error_code) for row in rows] == [("g", Error.NONE)]


def test_a_group_of_pending_ids_is_empty_and_can_be_deleted(play: Play) -> None:
    x = play.new_id()
    assert play.delete("g") == {"g": Error.NONE}
    assert play.join(x).error is Error.UNKNOWN_MEMBER_ID
    play.wait(60_000)
    assert play.coordinator.deadline() is None


def test_the_response_waits_for_all_tombstones(play: Play) -> None:
    play.commit(group="g")
    play.commit(group="h")
    play.writes = None
    sent = play.send(delete_groups.DeleteGroupsRequest(groups_names=("g", "h")), 2)
    play._perform(play.coordinator.appended(play.now, play.in_flight.pop(0).token, Error.NONE))
    assert sent.parked
    play.complete_writes()
    assert {row.error_code for row in sent.response.results} == {Error.NONE}


def test_describing_a_group_does_not_restart_sessions(play: Play) -> None:
    a = play.stable_member()
    play.wait(9_999)
    play.send(list_groups.ListGroupsRequest(), 0)
    play.describe()
    play.wait(1)
    assert play.heartbeat(1, a) is Error.UNKNOWN_MEMBER_ID
