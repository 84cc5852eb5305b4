"""A frozen group loses nothing: after `thaw` its answers equal those of a twin that was never frozen.

Requests that arrive while the group is frozen are answered then, or held until `thaw`; the twin gets them as well.
Twins compare equal but for their times: the timers of a frozen group stand still.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest
from scenes.group_twins import (
    EVERY_MS,
    ROWS,
    UNTIL_MS,
    classic,
    completing,
    consumers,
    empty_classic,
    empty_consumers,
    look,
    marked,
    mixed,
    nothing,
    revoking,
    rows,
    static_pair,
    twins,
)
from scenes.migrations import ALL, MigrationPlay, assigned

from koordinator.emulator.core import overrides

if TYPE_CHECKING:
    from collections.abc import Callable

FROZEN_MS = 70_000
"""Longer than each timeout."""

RESOLVED_MS = 10_001
"""After this time a group may resolve its patterns again: not a timer, so it passes while a group is frozen."""


def _grows(play: MigrationPlay) -> None:
    play.cluster.grow_topic(play.cluster.topics["t"], len(play.cluster.topics["t"].logs) + 2)


def _grows_and_a_beats(play: MigrationPlay) -> None:
    _grows(play)
    play.start_heart("A", play.members["A"][0])


def _a_beats(play: MigrationPlay) -> None:
    play.start_heart("A", play.members["A"][0], owned=play.members["A"][1])


def _a_fetches(play: MigrationPlay) -> None:
    play.fetch_as("A", play.members["A"][0])


def _transaction_ends(play: MigrationPlay, *, commit: bool) -> None:
    play.end_transaction(7, commit=commit)


TRANSACTION = {
    "a transaction commits": lambda play: _transaction_ends(play, commit=True),
    "a transaction aborts": lambda play: _transaction_ends(play, commit=False),
}

OTHERS: dict[Callable[[MigrationPlay], None], dict[str, Callable[[MigrationPlay], object]]] = {
    classic: {
        "its topics grow": _grows,
        "a member sends a heartbeat": lambda play: play.heartbeat(1, play.m),
        "a member syncs again": lambda play: play.sync(1, play.m),
        "a member joins again": lambda play: play.join(play.m),
        "a new member joins": lambda play: play.join(""),
        "a member leaves": lambda play: play.start_leave(play.m),
        **TRANSACTION,
    },
    static_pair: {
        "a static follower leaves": lambda play: play.start_leave(play.q),
        "all members leave": lambda play: play.start_leave(play.p, play.q),
    },
    completing: {
        "the leader assigns": lambda play: play.sync(2, play.m, {play.m: assigned(ALL)}),
        "the follower syncs": lambda play: play.sync(2, play.n),
        "the follower sends a heartbeat": lambda play: play.heartbeat(2, play.n),
        "the follower joins again": lambda play: play.join(play.n),
        "the leader leaves": lambda play: play.start_leave(play.m),
    },
    empty_classic: TRANSACTION,
    consumers: {
        "its topics grow": _grows,
        "its topics grow, and a consumer sends a heartbeat": _grows_and_a_beats,
        "a consumer sends a heartbeat": _a_beats,
        "a consumer fetches offsets": _a_fetches,
        "a consumer with a wrong epoch sends a heartbeat": lambda play: play.start_heart("A", 99),
        **TRANSACTION,
    },
    revoking: {
        "its topics grow, and a consumer sends a heartbeat": _grows_and_a_beats,
        "a consumer has revoked nothing": _a_beats,
    },
    mixed: {
        "a classic member sends a heartbeat": lambda play: play.heartbeat(2, play.m),
        "a classic member syncs": lambda play: play.sync_as(2, play.m),
    },
    empty_consumers: TRANSACTION,
}
"""Requests that need not write, by the state of the group."""

FROZEN = [scene for scene in {**ROWS, **OTHERS} if scene is not nothing]


def table() -> dict[Any, dict[str, Any]]:
    return {scene: {**ROWS.get(scene, {}), **OTHERS.get(scene, {})} for scene in FROZEN}


def timeless(value: Any) -> Any:
    """Return a value without its times: those of offsets, and of states."""
    if is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in fields(value) if "timestamp" not in each.name]
        return type(value).__name__, {name: timeless(getattr(value, name)) for name in names}
    if isinstance(value, list | tuple):
        return [timeless(each) for each in value]
    return value


def later(play: MigrationPlay, mark: tuple[int, int]) -> list[Any]:
    answers, records = mark
    return [
        [timeless(sent.responses) for sent in list(play._exchanges.values())[answers:]],
        [timeless(record) for append in play.appended[records:] for record in append.records],
    ]


def freeze(play: MigrationPlay) -> None:
    play._perform(play.coordinator.override(play.now, "g", overrides.freeze))


def thaw(play: MigrationPlay) -> None:
    if "g" in play.coordinator.store.groups:
        play._perform(play.coordinator.override(play.now, "g", overrides.thaw))
    play.settle()


@pytest.mark.parametrize("frozen_ms", [0, FROZEN_MS])
@pytest.mark.parametrize(("scene", "attempt", "release"), rows(table()))
def test_after_a_thaw_a_group_equals_a_twin_that_was_never_frozen(
    scene: Any, attempt: Any, release: str, frozen_ms: int
) -> None:
    tried, twin = twins(scene, release)
    if scene is consumers:
        for play in (tried, twin):
            play.wait(RESOLVED_MS)
    marks = marked(tried), marked(twin)
    freeze(tried)
    attempt(tried)
    attempt(twin)
    tried.wait(frozen_ms)
    thaw(tried)
    twin.settle()
    assert look(tried) == look(twin)
    assert later(tried, marks[0]) == later(twin, marks[1])
    for passed in range(EVERY_MS, UNTIL_MS + 1, EVERY_MS):
        for play in (tried, twin):
            play.wait(EVERY_MS)
        assert look(tried) == look(twin), f"{passed} ms"
    assert later(tried, marks[0]) == later(twin, marks[1])


@pytest.mark.slow
# Kafka never answers the SyncGroup of a leader that leaves, or syncs again, before its assignment is written
@pytest.mark.parametrize("scene", [scene for scene in FROZEN if scene is not completing])
def test_each_of_two_requests_to_a_frozen_group_is_answered_once(scene: Any) -> None:
    for (one, first), (two, second) in permutations(table()[scene].items(), 2):
        play = twins(scene, "4.4")[0]
        mark = len(play._exchanges)
        freeze(play)
        first(play)
        second(play)
        play.wait(FROZEN_MS)
        thaw(play)
        play.wait(UNTIL_MS)
        answers = [len(sent.responses) for sent in list(play._exchanges.values())[mark:]]
        assert set(answers) <= {1}, f"{one}, then {two}"
