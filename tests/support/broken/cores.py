"""Cores that are broken on purpose, for the laboratory to find."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.emulator.core.groups import loading, membership, offsets
from koordinator.emulator.core.groups.classic import rebalance
from koordinator.emulator.core.groups.classic.group import ClassicGroup
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    import pytest


def heartbeats_of_old_generations(patch: pytest.MonkeyPatch) -> None:
    """A heartbeat with an old generation succeeds."""
    validate = membership._heartbeat_error

    def validate_any(store: Any, now: int, call: Any, request: Any) -> Error:
        error = validate(store, now, call, request)
        return Error.NONE if error is Error.ILLEGAL_GENERATION else error

    patch.setattr(membership, "_heartbeat_error", validate_any)


def commits_of_old_generations(patch: pytest.MonkeyPatch) -> None:
    """A commit of a removed member or an old generation succeeds."""
    find = offsets._committing_group

    def find_any(store: Any, now: int, call: Any, request: Any) -> Any:
        found = find(store, now, call, request)
        if found in (Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID):
            return store.find(now, request.group_id) or found
        return found

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


MUTANTS = {
    heartbeats_of_old_generations: 3,
    commits_of_old_generations: 56,
    leader_kept_after_leaving: 2,
    sessions_that_never_expire: 16,
    generations_that_repeat: 2,
    offsets_lost_in_failovers: 27,
}
"""The mutants with the number of seeds, from 0 on, that the first failure takes."""
