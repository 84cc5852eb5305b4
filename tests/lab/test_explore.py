"""Random schedules hold the invariants, and find a core that is broken on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from koordinator.emulator.core.groups import loading, offsets
from koordinator.emulator.core.groups.classic import membership, rebalance
from koordinator.emulator.core.groups.classic.group import ClassicGroup
from koordinator.lab.explore import NAMES, explore, shrunk, steps_of, violations_of
from koordinator.lab.load import TOPIC, Load
from koordinator.lab.schemes.on_core import CoreScheme, Members
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable

SEEDS = 60

SEEDS_MAX = 400
"""The most seeds until a mutant must be found."""


def test_schedules_hold_the_invariants() -> None:
    assert {seed: found for seed in range(SEEDS) if (found := violations_of(seed, steps_of(seed)))} == {}


def test_a_seed_gives_one_schedule() -> None:
    assert steps_of(3) == steps_of(3) != steps_of(4)
    assert {argument for action, argument in steps_of(3) if action == "start"} <= set(NAMES)


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


# -- a core that is broken on purpose ------------------------------------------------------------------------


def heartbeats_of_old_generations(patch: pytest.MonkeyPatch) -> None:
    """A heartbeat with an old generation succeeds."""
    validate = membership.validate_heartbeat

    def validate_any(store: Any, now: int, call: Any, request: Any) -> Error:
        error = validate(store, now, call, request)
        return Error.NONE if error is Error.ILLEGAL_GENERATION else error

    patch.setattr(membership, "validate_heartbeat", validate_any)


def commits_of_old_generations(patch: pytest.MonkeyPatch) -> None:
    """A commit of a removed member or an old generation succeeds."""
    find = offsets._committing_group

    def find_any(store: Any, now: int, call: Any, request: Any) -> Any:
        error, group = find(store, now, call, request)
        found = store.find(now, request.group_id)
        return (Error.NONE, found) if error in (Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID) else (error, group)

    patch.setattr(offsets, "_committing_group", find_any)


def leader_kept_after_leaving(patch: pytest.MonkeyPatch) -> None:
    """A leader that left stays the leader."""
    remove = ClassicGroup.remove

    def remove_but_keep(group: ClassicGroup, member_id: str) -> Any:
        leader_id = group.leader_id
        member = remove(group, member_id)
        group.leader_id = leader_id
        return member

    patch.setattr(ClassicGroup, "remove", remove_but_keep)


def sessions_that_never_expire(patch: pytest.MonkeyPatch) -> None:
    """A silent member stays."""
    patch.setattr(rebalance, "expire_session", lambda *_: None)


def generations_that_repeat(patch: pytest.MonkeyPatch) -> None:
    """A rebalance forms the same generation again."""
    form = ClassicGroup.form_generation

    def form_again(group: ClassicGroup, order: Any) -> None:
        form(group, order)
        group.generation = max(group.generation - 1, 1)

    patch.setattr(ClassicGroup, "form_generation", form_again)


def offsets_lost_in_failovers(patch: pytest.MonkeyPatch) -> None:
    """A new coordinator loads members without offsets."""
    load = loading.load

    def load_without_offsets(store: Any, *arguments: Any, **options: Any) -> Any:
        result = load(store, *arguments, **options)
        for group in store.groups.values():
            group.offsets.clear()
        return result

    patch.setattr(loading, "load", load_without_offsets)


MUTANTS = (
    heartbeats_of_old_generations,
    commits_of_old_generations,
    leader_kept_after_leaving,
    sessions_that_never_expire,
    generations_that_repeat,
    offsets_lost_in_failovers,
)


@pytest.mark.parametrize("mutate", MUTANTS)
def test_a_broken_core_is_found(mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    assert any(violations_of(seed, steps_of(seed)) for seed in range(SEEDS_MAX))


def test_a_failure_is_shrunk_and_rendered_as_a_test_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions_that_never_expire(monkeypatch)
    failure = next(found for seed in range(SEEDS_MAX) if (found := explore(seed)))
    steps = list(failure.steps)
    assert shrunk(failure.seed, steps) == steps
    assert len(steps) <= 3
    names: dict[str, Any] = {}
    exec(failure.as_test(), names)  # noqa: S102 - the test that was rendered
    with pytest.raises(AssertionError):
        names[f"test_seed_{failure.seed}"]()
    monkeypatch.undo()
    names[f"test_seed_{failure.seed}"]()
