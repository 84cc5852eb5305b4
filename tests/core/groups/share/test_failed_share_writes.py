"""A failed write of a share group, or a bug, loses nothing: later answers equal those of a twin that never tried."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, get_args

import pytest
from scenes.planted_bugs import planted
from scenes.share_play import SharePlay

from koordinator.wire.errors import Error
from koordinator.wire.messages import alter_share_group_offsets as alter_wire
from koordinator.wire.messages import delete_share_group_offsets as delete_wire
from koordinator.wire.messages.share_group_records import Key

if TYPE_CHECKING:
    from collections.abc import Callable

    Step = Callable[[SharePlay], object]

FAILURE = Error.NOT_ENOUGH_REPLICAS

EVERY_MS, UNTIL_MS = 5_000, 65_000
"""Longer than a session of 45 s."""


def nothing(play: SharePlay) -> None:
    """There is no group."""
    del play


def joined(play: SharePlay) -> None:
    """A has joined; its partitions have no state yet."""
    play.state = None
    play.beat("A", 0, ["t"])


def settled(play: SharePlay) -> None:
    """A and B share t."""
    play.settle_in("A")
    play.settle_in("B")


def left(play: SharePlay) -> None:
    """A has shared t, and has left."""
    play.settle_in("A")
    play.beat("A", -1)


def stateless(play: SharePlay) -> None:
    """A has left, and an admin has deleted the offsets."""
    left(play)
    deletes_offsets(play)


def alters(play: SharePlay) -> None:
    row = alter_wire.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=3)
    topics = tuple(
        alter_wire.AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=(row,)) for name in ("t", "u")
    )
    play.send(alter_wire.AlterShareGroupOffsetsRequest(group_id="g", topics=topics), 0)


def deletes_offsets(play: SharePlay) -> None:
    topics = (delete_wire.DeleteShareGroupOffsetsRequestTopic(topic_name="t"),)
    play.send(delete_wire.DeleteShareGroupOffsetsRequest(group_id="g", topics=topics), 0)


ROWS: dict[Step, dict[str, Step]] = {
    nothing: {
        "a member founds a group": lambda play: play.start_heart("A", 0, ["t"]),
        "an admin founds a group": alters,
    },
    joined: {
        "partitions have a state": SharePlay.answer,
        "another member joins": lambda play: play.start_heart("B", 0, ["u"]),
    },
    settled: {
        "a member joins": lambda play: play.start_heart("C", 0, ["t"]),
        "a member reads more": lambda play: play.start_heart("A", 3, ["t", "u"]),
        "a member reads something else": lambda play: play.start_heart("A", 3, ["u"]),
        "a member learns its assignment": lambda play: play.start_heart("A", 3),
        "a member leaves": lambda play: play.start_heart("B", -1),
        "its topic is deleted": lambda play: play._perform(play.coordinator.topics_deleted(play.now, ["t"])),
    },
    left: {
        "a member joins again": lambda play: play.start_heart("A", 0, ["t"]),
        "offsets are changed": alters,
        "offsets are deleted": deletes_offsets,
        "the group is deleted": lambda play: play.start_delete("g"),
        "its topic is deleted": lambda play: play._perform(play.coordinator.topics_deleted(play.now, ["t"])),
    },
    stateless: {
        "the group without offsets is deleted": lambda play: play.start_delete("g"),
        "offsets are set": alters,
    },
}
"""The requests that write, by the state of the group."""

PARAMETERS = [
    pytest.param(scene, attempt, id=f"{scene.__name__}: {name}")
    for scene, attempts in ROWS.items()
    for name, attempt in attempts.items()
]


def twins(scene: Step) -> tuple[SharePlay, SharePlay]:
    pair = SharePlay(), SharePlay()
    for play in pair:
        scene(play)
    return pair


def look(play: SharePlay) -> list[Any]:
    """Return the answers to requests that change nothing; Kafka does not say in which order members come."""
    described = play.described()
    return [
        replace(described, members=tuple(sorted(described.members, key=lambda member: member.member_id))),
        sorted(play.coordinator.store.groups),
    ]


def fail(play: SharePlay, *attempts: Step) -> list[Any]:
    """Make requests whose writes are in flight together and fail; return the records."""
    mark, play.writes = len(play.appended), None
    for attempt in attempts:
        attempt(play)
    while play.in_flight:
        play.complete_writes(FAILURE)
    play.writes = Error.NONE
    return [record for append in play.appended[mark:] for record in append.records]


def assert_twins(tried: SharePlay, twin: SharePlay) -> None:
    assert look(tried) == look(twin)
    for _ in range(0, UNTIL_MS, EVERY_MS):
        for play in (tried, twin):
            play.wait(EVERY_MS)
        assert look(tried) == look(twin)


@pytest.mark.parametrize(("scene", "attempt"), PARAMETERS)
def test_after_a_failed_write_a_share_group_equals_its_twin(scene: Step, attempt: Step) -> None:
    tried, twin = twins(scene)
    fail(tried, attempt)
    assert_twins(tried, twin)


@pytest.mark.parametrize(("scene", "attempt"), PARAMETERS)
def test_a_request_of_a_share_group_is_repeated_as_if_it_were_the_first(scene: Step, attempt: Step) -> None:
    tried, twin = twins(scene)
    fail(tried, attempt)
    for play in (tried, twin):
        attempt(play)
        play.state = Error.NONE
        play.answer()
    assert_twins(tried, twin)


@pytest.mark.slow
@pytest.mark.parametrize(("scene", "attempt"), PARAMETERS)
def test_after_a_bug_at_any_moment_a_share_group_equals_its_twin(scene: Step, attempt: Step) -> None:
    expected = look(twins(scene)[0])
    for moment, tried in planted(lambda: twins(scene)[0], attempt, 25):
        assert look(tried) == expected, moment


@pytest.mark.parametrize("scene", ROWS)
def test_two_writes_of_a_share_group_that_fail_together_leave_it_as_its_twin(scene: Step) -> None:
    expected = look(twins(scene)[0])
    for (one, first), (two, second) in product(ROWS[scene].items(), repeat=2):
        tried = twins(scene)[0]
        fail(tried, first, second)
        assert look(tried) == expected, f"{one}, then {two}"


def test_every_type_of_record_of_share_groups_has_a_row() -> None:
    failed = {
        (type(record.key), record.value is None)
        for scene, attempts in ROWS.items()
        for attempt in attempts.values()
        for record in fail(twins(scene)[0], attempt)
    }
    assert failed == set(product(get_args(Key), (False, True)))
