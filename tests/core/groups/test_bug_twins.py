"""A bug at any moment of a request loses nothing: later answers equal those of a twin that never tried.

Kafka does not take back what a classic group has changed, as it keeps no older state of it: `KEPT`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from scenes.group_twins import ROWS, assert_twins, later, look, marked, rows, static_pair, twins
from scenes.planted_bugs import planted

if TYPE_CHECKING:
    from collections.abc import Callable

    from scenes.migrations import MigrationPlay

KEPT = (static_pair,)
"""The states whose requests change a classic group."""

FOUNDED = "a static member founds a classic group"

TAKEN_BACK = rows(
    {
        scene: {name: attempt for name, attempt in attempts.items() if name != FOUNDED}
        for scene, attempts in ROWS.items()
        if scene not in KEPT
    },
    ["4.4"],
)


@pytest.mark.slow
@pytest.mark.parametrize(("scene", "attempt", "release"), TAKEN_BACK)
def test_after_a_bug_at_any_moment_a_group_equals_its_twin(
    scene: Callable[[MigrationPlay], None], attempt: Callable[[MigrationPlay], object], release: str
) -> None:
    expected = look(twins(scene, release)[0])
    for moment, tried in planted(lambda: twins(scene, release)[0], attempt, 25):
        assert look(tried) == expected, moment


@pytest.mark.slow
@pytest.mark.parametrize(("scene", "attempt", "release"), TAKEN_BACK)
def test_a_request_is_repeated_after_a_bug_as_if_it_were_the_first(
    scene: Callable[[MigrationPlay], None], attempt: Callable[[MigrationPlay], object], release: str
) -> None:
    for moment, tried in planted(lambda: twins(scene, release)[0], attempt, 6):
        mark = marked(tried)
        assert_twins(tried, twins(scene, release)[0], attempt, lasting_ms=0)
        assert later(tried, mark), moment


@pytest.mark.slow
@pytest.mark.parametrize(("scene", "attempt", "release"), rows({scene: ROWS[scene] for scene in KEPT}, ["4.4"]))
def test_after_a_bug_a_classic_group_has_its_members(
    scene: Callable[[MigrationPlay], None], attempt: Callable[[MigrationPlay], object], release: str
) -> None:
    instances = {member.group_instance_id for member in twins(scene, release)[0].describe().members}
    for moment, tried in planted(lambda: twins(scene, release)[0], attempt, 25):
        assert {member.group_instance_id for member in tried.describe().members} == instances, moment
