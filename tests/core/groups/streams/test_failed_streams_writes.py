"""A failed write of a streams group, or a bug, loses nothing: later answers equal those of a twin that never tried."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, get_args

import pytest
from scenes.planted_bugs import planted
from scenes.streams_play import ALL, STATEFUL, StreamsPlay

from koordinator.emulator.core import overrides
from koordinator.wire.errors import Error
from koordinator.wire.messages.streams_group_records import Key

if TYPE_CHECKING:
    from collections.abc import Callable

    Step = Callable[[StreamsPlay], object]

FAILURE = Error.NOT_ENOUGH_REPLICAS

EVERY_MS, UNTIL_MS = 5_000, 65_000
"""Longer than a session of 45 s."""


def nothing(play: StreamsPlay) -> None:
    """There is no group."""
    del play


def classic(play: StreamsPlay) -> None:
    """There is an Empty classic group with an offset."""
    play.emptied()
    play.commit(offsets={("t", 0): 5})


def unready(play: StreamsPlay) -> None:
    """A has joined; its internal topic is being created."""
    play.creates = False
    play.enter("A", STATEFUL)


def revoking(play: StreamsPlay) -> None:
    """A has all tasks and does not know yet that B gets some."""
    play.come("A")
    play.come("B")


def settled(play: StreamsPlay) -> None:
    """A and B share t, and B's tasks are known."""
    revoking(play)
    play.beat("A", 2)
    play.beat("A", 2, owned={"0": [0, 1]})
    play.beat("B", 3)


def left(play: StreamsPlay) -> None:
    """A had the tasks, and has left."""
    play.come("A")
    play.commit(2, "A", offsets={("t", 0): 5}, version=9)
    play.beat("A", -1)


def founds(play: StreamsPlay) -> None:
    play.start_join("A")


def forces(play: StreamsPlay) -> None:
    play.override(lambda store, group: overrides.force_rebalance(store, group, "a test"))


ROWS: dict[Step, dict[str, Step]] = {
    nothing: {
        "a member founds a group": founds,
        "a member founds a group without its topics": lambda play: play.start_join("A", STATEFUL),
    },
    classic: {"a classic group makes way": founds},
    unready: {
        "its topics are there": lambda play: (play.create(), play.start("A", 2)),
        "another member joins": lambda play: play.start_join("B", STATEFUL),
    },
    revoking: {
        "a member has to revoke": lambda play: play.start("A", 2),
        "a member revokes at once": lambda play: play.start("A", 2, owned={"0": [0, 1]}),
        "a member waits": lambda play: play.start("B", 3),
    },
    settled: {
        "a member joins": lambda play: play.start_join("C"),
        "a member changes its rack": lambda play: play.start("A", 3, rack_id="r"),
        "a member rejoins": lambda play: play.start_join("A"),
        "a member leaves": lambda play: play.start("B", -1),
        "a test forces a rebalance": forces,
    },
    left: {
        "a member joins again": founds,
        "the group is deleted": lambda play: play.start_delete("g"),
        "a consumer takes over": lambda play: play.join("", version=3),
    },
}
"""The requests that write, by the state of the group."""

PARAMETERS = [
    pytest.param(scene, attempt, id=f"{scene.__name__}: {name}")
    for scene, attempts in ROWS.items()
    for name, attempt in attempts.items()
]


def twins(scene: Step) -> tuple[StreamsPlay, StreamsPlay]:
    pair = StreamsPlay(), StreamsPlay()
    for play in pair:
        scene(play)
    return pair


def look(play: StreamsPlay) -> list[Any]:
    """Return the answers to requests that change nothing."""
    described = play.described()
    groups = play.coordinator.store.groups
    return [
        replace(described, members=tuple(sorted(described.members, key=lambda member: member.member_id))),
        {name: (group.kind, dict(group.offsets)) for name, group in groups.items()},
    ]


def fail(play: StreamsPlay, *attempts: Step) -> list[Any]:
    """Make requests whose writes are in flight together and fail; return the records."""
    mark, play.writes = len(play.appended), None
    for attempt in attempts:
        attempt(play)
    while play.in_flight:
        play.complete_writes(FAILURE)
    play.writes = Error.NONE
    return [record for append in play.appended[mark:] for record in append.records]


def assert_twins(tried: StreamsPlay, twin: StreamsPlay) -> None:
    assert look(tried) == look(twin)
    for _ in range(0, UNTIL_MS, EVERY_MS):
        for play in (tried, twin):
            play.wait(EVERY_MS)
        assert look(tried) == look(twin)


@pytest.mark.parametrize(("scene", "attempt"), PARAMETERS)
def test_after_a_failed_write_a_streams_group_equals_its_twin(scene: Step, attempt: Step) -> None:
    tried, twin = twins(scene)
    fail(tried, attempt)
    assert_twins(tried, twin)


@pytest.mark.parametrize(("scene", "attempt"), PARAMETERS)
def test_a_request_of_a_streams_group_is_repeated_as_if_it_were_the_first(scene: Step, attempt: Step) -> None:
    tried, twin = twins(scene)
    fail(tried, attempt)
    for play in (tried, twin):
        attempt(play)
        play.creates = True
        play.create()
    assert_twins(tried, twin)


@pytest.mark.slow
@pytest.mark.parametrize(("scene", "attempt"), PARAMETERS)
def test_after_a_bug_at_any_moment_a_streams_group_equals_its_twin(scene: Step, attempt: Step) -> None:
    expected = look(twins(scene)[0])
    for moment, tried in planted(lambda: twins(scene)[0], attempt, 25):
        assert look(tried) == expected, moment


@pytest.mark.parametrize("scene", ROWS)
def test_two_writes_of_a_streams_group_that_fail_together_leave_it_as_its_twin(scene: Step) -> None:
    expected = look(twins(scene)[0])
    for (one, first), (two, second) in product(ROWS[scene].items(), repeat=2):
        tried = twins(scene)[0]
        fail(tried, first, second)
        assert look(tried) == expected, f"{one}, then {two}"


def test_every_type_of_record_of_streams_groups_has_a_row() -> None:
    failed = {
        (type(record.key), record.value is None)
        for scene, attempts in ROWS.items()
        for attempt in attempts.values()
        for record in fail(twins(scene)[0], attempt)
    }
    assert set(product(get_args(Key), (False, True))) <= failed


def test_a_loaded_group_is_the_one_that_was_written() -> None:
    for scene in (unready, revoking, settled):
        play = StreamsPlay()
        scene(play)
        play.creates = True
        play.create()
        before = play.described()
        play.reload("g")
        after = play.described()
        assert replace(after, members=()) == replace(before, members=(), topology=after.topology)
        assert {each.member_id: each for each in after.members} == {each.member_id: each for each in before.members}


def test_a_loaded_member_that_revokes_has_its_full_rebalance_timeout() -> None:
    play = StreamsPlay()
    play.come("A", rebalance_timeout_ms=10_000)
    play.come("B")
    play.beat("A", 2)
    play.wait(9_000)
    play.reload("g")
    play.wait(9_999)
    assert set(play.streams_group().members) == {"A", "B"}
    play.wait(1)
    assert set(play.streams_group().members) == {"B"}


def test_a_deleted_group_is_not_loaded() -> None:
    play = StreamsPlay()
    left(play)
    play.start_delete("g")
    play.reload("g")
    assert not play.coordinator.store.groups


def test_the_tasks_of_an_older_log_have_the_epoch_of_their_member() -> None:
    play = StreamsPlay()
    play.come("A")
    (append,) = play.appended
    *others, current = append.records
    value: Any = current.value
    rows = tuple(replace(row, assignment_epochs=None) for row in value.active_tasks)
    play.appended = [replace(append, records=(*others, replace(current, value=replace(value, active_tasks=rows))))]
    play.reload("g")
    assert set(play.streams_group().members["A"].active_since.values()) == {2}
    assert play.beat("A", 2, owned=ALL) == (2, None)
