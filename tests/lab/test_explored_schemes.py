"""Random schedules hold the invariants, and find a core that is broken on purpose."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from broken.cores import MUTANTS, commits_of_old_generations, sessions_that_never_expire

from koordinator.lab.explore import (
    LOAD,
    NAMES,
    PROPERTIES,
    STATIC_COOPERATIVE,
    explore,
    shrunk,
    steps_of,
    violations_of,
)
from koordinator.lab.load import TOPIC, Load
from koordinator.lab.schemes.on_core import CoreScheme, Members

if TYPE_CHECKING:
    from collections.abc import Callable

SEEDS = 60

LAB_PAGE = Path(__file__).parents[2] / "docs" / "lab.md"


@pytest.mark.slow
def test_schedules_hold_the_invariants() -> None:
    assert {seed: found for seed in range(SEEDS) if (found := violations_of(seed, steps_of(seed)))} == {}


def test_a_seed_gives_one_schedule() -> None:
    assert steps_of(3) == steps_of(3) != steps_of(4)
    assert {argument for action, argument in steps_of(3) if action == "start"} <= set(NAMES)


def test_a_member_of_a_consumer_group_may_return_with_its_id() -> None:
    steps = [("start", "d"), ("cut_off", "d"), ("pass_time", "12"), ("reconnect", "d"), ("commit", "d")]
    assert violations_of(2904, steps) == []


def test_a_static_leader_does_not_notice_partitions_added_while_it_was_down() -> None:
    with CoreScheme(Load(), Members(("range",), is_static=True)) as scheme:
        scheme.start("a")
        scheme.pass_time(50)
        scheme.close("a")
        scheme.grow(1)
        scheme.start("a")
        scheme.pass_time(400)
        assert scheme.group.state == "Stable"
        assert scheme.group.puppets["a"].assignment == {TOPIC: list(range(12))}


def test_a_static_restart_while_the_coordinator_moves_loses_the_second_round_of_a_cooperative_rebalance() -> None:
    with CoreScheme(replace(LOAD, seed=2811), STATIC_COOPERATIVE) as scheme:
        scheme.start("c")
        scheme.pass_time(4)
        scheme.start("d")
        scheme.pass_time(4)
        scheme.stop_broker()
        scheme.close("c")
        scheme.start("c")
        scheme.pass_time(400)
        assert scheme.group.state == "Stable"
        assert [len(scheme.group.puppets[name].assignment.get(TOPIC, [])) for name in "cd"] == [3, 0]


@pytest.mark.slow
@pytest.mark.parametrize("mutate", MUTANTS)
def test_a_broken_core_is_found_with_the_documented_number_of_seeds(
    mutate: Callable[[pytest.MonkeyPatch], None],
    monkeypatch: pytest.MonkeyPatch,
    no_bug_of_koordinator: list[BaseException],
) -> None:
    mutate(monkeypatch)
    seeds = MUTANTS[mutate]
    assert [seed for seed in range(seeds) if violations_of(seed, steps_of(seed))] == [seeds - 1]
    assert f"| {str(mutate.__doc__).removesuffix('.')} | {seeds} |" in LAB_PAGE.read_text(encoding="utf-8")
    no_bug_of_koordinator.clear()


@pytest.mark.slow
def test_only_the_chosen_properties_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    commits_of_old_generations(monkeypatch)
    seed = MUTANTS[commits_of_old_generations] - 1
    assert [name for name in PROPERTIES if violations_of(seed, steps_of(seed), {name})] == ["senders", "checks"]


@pytest.mark.slow
def test_a_failure_is_shrunk_and_rendered_as_a_test_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions_that_never_expire(monkeypatch)
    failure = next(found for seed in range(SEEDS) if (found := explore(seed)))
    steps = list(failure.steps)
    assert shrunk(failure.seed, steps) == steps
    assert len(steps) <= 3
    names: dict[str, Any] = {}
    exec(failure.as_test(), names)  # noqa: S102 - the test that was rendered
    with pytest.raises(AssertionError):
        names[f"test_seed_{failure.seed}"]()
    monkeypatch.undo()
    names[f"test_seed_{failure.seed}"]()
