"""The player detects responses that are early, late, repeated, or larger than an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from scenarios.player import Player
from scenarios.registry import SLOWER, TRIES, Configuration, Scenario, perform
from scenarios.targets import CoreTarget

if TYPE_CHECKING:
    from collections.abc import Callable


class LateTarget(CoreTarget):
    """A target on a machine that is always late."""

    def was_late(self) -> bool:
        return True


def played_at(kind: type[CoreTarget], play: Callable[[Player], None]) -> list[float]:
    """Return the scales at which a failing scenario was played."""
    configuration = Configuration()
    scenario = Scenario(
        number="E-000",
        kip="base",
        play=play,
        configuration=configuration,
        slow=False,
        restarted=False,
        waiting=None,
    )
    scales: list[float] = []

    def target(scale: float) -> CoreTarget:
        scales.append(scale)
        return kind(configuration.settings(scale))

    with pytest.raises(AssertionError):
        perform(scenario, target, 0.5)
    return scales


def wrong(play: Player) -> None:
    play.heartbeat(1, "ghost").expect(0)


def test_failures_are_replayed_slower_only_on_a_late_machine() -> None:
    assert played_at(CoreTarget, wrong) == [0.5]
    assert played_at(LateTarget, wrong) == [0.5 * SLOWER**attempt for attempt in range(TRIES)]


@pytest.fixture
def core() -> Player:
    return Player(CoreTarget(Configuration(initial_delay=3).settings(1)), "g", 3)


@pytest.mark.parametrize("seconds", [2.9, 3.1])
def test_an_answer_at_another_time_is_noticed(core: Player, seconds: float) -> None:
    joining = core.join(version=3)
    core.expect_parked(joining)
    with pytest.raises(AssertionError, match=r"not answered at 2\.9 s|answered at 3\.000 s instead of 3\.1 s"):
        core.answers_at(seconds, joining)


def test_an_answer_that_is_not_there_is_not_waited_for(core: Player) -> None:
    joining = core.join(version=3)
    with pytest.raises(AssertionError, match="not answered"):
        joining.answer()


def test_an_answer_is_noticed_after_the_last_look(core: Player) -> None:
    joining = core.join(version=3)
    core.expect_never(joining)
    core.finish()
    core.wait(3)
    with pytest.raises(AssertionError, match="instead of parked"):
        core.finish()


def test_an_error_has_nothing_that_is_not_expected(core: Player) -> None:
    refused = core.join("ghost")
    with pytest.raises(AssertionError, match="member_id: 'ghost', expected ''"):
        refused.expect(25)
    refused.expect(25, member_id="ghost")


def test_a_generation_has_exactly_its_members(core: Player) -> None:
    joins = [core.join(version=3), core.join(version=3)]
    core.answers_at(6, *joins)
    leader = joins[0].answer().member_id
    for some in (joins[:1], joins[1:]):
        with pytest.raises(AssertionError):
            core.expect_generation(1, *some)
    with pytest.raises(AssertionError):
        core.expect_generation(1, *joins, leader=joins[1].answer().member_id)
    core.expect_generation(1, *joins, leader=leader)


def test_rows_of_one_group_only_are_listed(core: Player) -> None:
    core.commit(-1, "").expect(0)
    core.commit(-1, "", group="another").expect(0)
    assert [row.group_id for row in core.listed()] == ["g"]
