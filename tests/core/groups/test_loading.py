"""A node serves the groups of its own partitions, once they are loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from scenes.play import Play

from koordinator.emulator.core.groups.records import offsets_partition
from koordinator.emulator.core.java.string_hash import java_string_hash
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.wire.messages import offset_fetch

LOADING, ELSEWHERE = Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR


@dataclass
class Away:
    """A play with a Stable group g that the node does not serve now; `error` is the reason."""

    play: Play
    member_id: str
    expected: Error


@pytest.fixture(params=[LOADING, ELSEWHERE], ids=lambda expected: expected.name)
def away(request: pytest.FixtureRequest) -> Away:
    play = Play()
    member_id = play.stable_member()
    play.commit(1, member_id)
    partition = play.coordinator.store.partition_of("g")
    if request.param is LOADING:
        play.coordinator.store.loading.add(partition)
    else:
        play.coordinator.store.owned.remove(partition)
    return Away(play, member_id, request.param)


@pytest.mark.parametrize("version", [3, 5, 9])
def test_join_is_refused_without_an_id(away: Away, version: int) -> None:
    answer = away.play.join(away.member_id, version=version).response
    assert (answer.error_code, answer.member_id, answer.generation_id) == (away.expected, "", -1)


def test_a_join_is_validated_before_its_group_is_looked_up(away: Away) -> None:
    away.play.coordinator.store.loading.add(0)
    assert away.play.join("", group="").error is Error.INVALID_GROUP_ID
    refused = away.play.join(away.member_id, session=1_800_001).response
    assert (refused.error_code, refused.member_id) == (Error.INVALID_SESSION_TIMEOUT, away.member_id)


def test_sync_is_refused(away: Away) -> None:
    answer = away.play.sync(1, away.member_id).response
    assert (answer.error_code, answer.assignment) == (away.expected, b"")


def test_a_sync_without_protocol_is_refused_before_any_other_check(away: Away) -> None:
    assert away.play.sync(1, away.member_id, version=5).error is Error.INCONSISTENT_GROUP_PROTOCOL


def test_heartbeats_succeed_while_loading(away: Away) -> None:
    expected = Error.NONE if away.expected is LOADING else ELSEWHERE
    assert away.play.heartbeat(1, away.member_id) is expected
    assert away.play.heartbeat(99, "ghost", "i9") is expected
    assert away.play.heartbeat(1, "", group="") is Error.INVALID_GROUP_ID


def test_a_leave_is_refused_as_a_whole_while_loading(away: Away) -> None:
    answer = away.play.leave(away.member_id)
    assert (answer.error_code, answer.members) == (away.expected, ())


def test_commit_is_refused_for_every_partition_there_is(away: Away) -> None:
    offsets = {("t", 0): 9, ("nosuch", 0): 9, ("u", 0): 9}
    assert away.play.commit_errors(1, away.member_id, offsets=offsets) == [
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        away.expected,
        away.expected,
    ]


@pytest.mark.parametrize("version", [1, 7, 8])
def test_fetch_is_refused_in_the_field_the_version_has_for_it(away: Away, version: int) -> None:
    answer = away.play.fetch_raw("g", version=version, partitions=[("t", 0)])
    rows = answer.topics[0].partitions if version == 1 else answer.groups or (answer,)
    assert [row.error_code for row in rows] == [away.expected]


def test_fetch_is_refused_for_one_group_and_answered_for_another(away: Away) -> None:
    away.play.commit(group="h")
    rows: tuple[offset_fetch.OffsetFetchResponseGroup, ...] = away.play.fetch_raw("g", "h").groups
    assert [(row.error_code, len(row.topics)) for row in rows] == [(away.expected, 0), (Error.NONE, 1)]


def test_describe_is_refused_row_by_row(away: Away) -> None:
    row = away.play.describe(operations=True)
    assert (row.error_code, row.group_state, row.protocol_type, row.protocol_data) == (away.expected, "", "", "")
    assert (row.members, row.authorized_operations) == ((), -(2**31))
    assert away.play.state("other") == "Dead"


def test_delete_is_refused_row_by_row(away: Away) -> None:
    away.play.commit(group="h")
    assert away.play.delete("g", "h") == {"g": away.expected, "h": Error.NONE}


def test_offset_delete_is_refused(away: Away) -> None:
    assert away.play.delete_offsets(("u", 0)) == (away.expected, [])


def test_list_is_refused_while_anything_is_loading() -> None:
    play = Play()
    play.stable_member()
    play.coordinator.store.loading.add(49)
    answer = play.list_groups()
    assert (answer.error_code, answer.groups) == (LOADING, ())


REFUSED: list[Callable[[Away], object]] = [
    lambda away: away.play.join(""),
    lambda away: away.play.leave(away.member_id),
    lambda away: away.play.commit(1, away.member_id, offsets={("t", 0): 99}),
    lambda away: away.play.delete("g"),
]


def test_refused_requests_do_not_change_the_group(away: Away) -> None:
    for ask in REFUSED:
        ask(away)
    away.play.coordinator.store.loading.clear()
    away.play.coordinator.store.owned.update(range(50))
    assert away.play.heartbeat(1, away.member_id) is Error.NONE
    assert away.play.offset("t", 0) == 1


@pytest.mark.parametrize(
    ("group", "hashed", "partition"),
    [
        ("", 0, 0),
        ("g", 103, 3),
        ("grp", 102629, 29),
        ("group", 98629247, 47),
        ("my-group", -1906497762, 12),
        ("test-group", 627841412, 12),
        ("consumer-group-1", 147483020, 20),
        ("polygenelubricants", -(2**31), 0),
        ("GydZG_", -(2**31), 0),
    ],
)
def test_javas_string_hash_decides_the_partition_of_a_group(group: str, hashed: int, partition: int) -> None:
    assert (java_string_hash(group), offsets_partition(group, 50)) == (hashed, partition)


def test_the_hash_counts_utf_16_units() -> None:
    assert java_string_hash("😀") == 31 * 0xD83D + 0xDE00
