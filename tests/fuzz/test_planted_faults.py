"""A short run of `make fuzz` on a cluster finds faults of each kind that it, or a user, has found before."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from builders.cluster_fuzzing import Cluster

from koordinator.emulator.control.puppets.supervisor import PuppetSupervisor
from koordinator.emulator.core.groups.classic.group import ClassicGroup
from koordinator.emulator.core.groups.consumer import membership
from koordinator.emulator.core.groups.consumer.group import ConsumerGroup
from koordinator.emulator.core.groups.conversion import consumer_heartbeat
from koordinator.emulator.core.groups.group_store import GroupStore
from koordinator.emulator.storage.data_dir import DataDir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from koordinator.emulator.core.data.storage import LogBatches
    from koordinator.emulator.core.groups.group import BaseGroup
    from koordinator.emulator.core.journal import Journal

pytestmark = pytest.mark.slow

RUN = Path(__file__).with_name("run.py")
FRAMES = 1_500
LIMIT_S = 120


def keep_both_instance_ids(patch: pytest.MonkeyPatch) -> None:
    """A member that takes a second instance id keeps the first one."""
    put = ConsumerGroup._put_member

    def keep(group: ConsumerGroup, member: Any, journal: Journal) -> None:
        before = dict(group.static_members)
        put(group, member, journal)
        for instance_id in before.keys() - group.static_members.keys():
            group.static_members[instance_id] = before[instance_id]

    patch.setattr(ConsumerGroup, "_put_member", keep)


def keep_removed_static_members(patch: pytest.MonkeyPatch) -> None:
    """A static member of a classic group that is removed keeps its instance id."""
    remove = ClassicGroup.remove

    def keep(group: ClassicGroup, member_id: str) -> Any:
        before = dict(group.static_members)
        removed = remove(group, member_id)
        group.static_members = {**before, **group.static_members}
        return removed

    patch.setattr(ClassicGroup, "remove", keep)


def acknowledge_failed_writes(patch: pytest.MonkeyPatch) -> None:
    """A record is acknowledged although the disk has failed."""
    append = DataDir.append

    def succeed(data_dir: DataDir, appends: Iterable[LogBatches]) -> None:
        with suppress(OSError):
            append(data_dir, appends)

    patch.setattr(DataDir, "append", succeed)


def never_pass_a_deadline(patch: pytest.MonkeyPatch) -> None:
    """A timer of a group's puppets stays due."""
    patch.setattr(PuppetSupervisor, "group_deadline", lambda supervisor, _: 0 if supervisor.puppets else None)


def raise_in_a_request(patch: pytest.MonkeyPatch) -> None:
    """A heartbeat with a wrong epoch raises."""

    def fail(_: Any, member: Any, request: Any) -> None:
        assert member.epoch == request.member_epoch, "planted"

    patch.setattr(membership, "check_epoch", fail)


def undo_a_conversion_being_written(patch: pytest.MonkeyPatch) -> None:
    """A refused heartbeat restores the classic group of a conversion that is in flight."""

    replace = GroupStore.replace_group
    replaced: dict[BaseGroup, BaseGroup] = {}

    def remember(store: GroupStore, old: BaseGroup, new: BaseGroup) -> None:
        replaced[new] = old
        replace(store, old, new)

    def forget(store: GroupStore, group: ConsumerGroup) -> None:
        if group in replaced:
            store.replace_group(group, replaced[group])
        else:
            store.discard_if_unused(group)

    patch.setattr(GroupStore, "replace_group", remember)
    patch.setattr(consumer_heartbeat, "forget_new_group", forget)


def lose_a_topic_change(patch: pytest.MonkeyPatch) -> None:
    """A consumer group takes a change of its topics for seen although the records of its epoch were not applied."""
    patch.setattr(ConsumerGroup, "has_seen_topics", lambda group, version: group.topics_seen[0] == version)


PLANTED: dict[Callable[[pytest.MonkeyPatch], None], tuple[str, str]] = {
    keep_both_instance_ids: ("planted/3", "static_members"),
    keep_removed_static_members: ("planted/0", "static_members"),
    acknowledge_failed_writes: ("planted/5", "is lost"),
    never_pass_a_deadline: ("planted/3", "never passes"),
    raise_in_a_request: ("planted/0", "planted"),
    lose_a_topic_change: ("planted/3", "has lost a change of its topics"),
    undo_a_conversion_being_written: ("planted/72", "KeyError: <ConsumerGroup"),
}
"""The faults, each with the seed of a run that finds it and a part of the report."""


def fault_of(seed: str) -> str:
    """Return what a run finds; an empty text for nothing."""
    cluster = Cluster(random.Random(seed))
    try:
        while cluster.ring.tally.frames < FRAMES:
            cluster.step()
    except Exception as fault:  # noqa: BLE001 - whatever it is, it is a finding
        return "".join(traceback.format_exception(fault))
    return ""


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    monkeypatch: pytest.MonkeyPatch,
    no_bug_of_koordinator: list[BaseException],
) -> None:
    plant(monkeypatch)
    seed, words = PLANTED[plant]
    assert words in fault_of(seed)
    no_bug_of_koordinator.clear()


@pytest.mark.parametrize("seed", sorted({seed for seed, _ in PLANTED.values()}))
def test_the_same_run_finds_nothing_without_a_fault(seed: str) -> None:
    assert not fault_of(seed)


def test_a_replay_repeats_a_run_exactly_and_a_small_run_judges_no_memory() -> None:
    def rows(*arguments: str, hash_seed: str) -> list[str]:
        command = [sys.executable, str(RUN), "--seed", "3", "--kinds", "cluster", *arguments]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        )
        assert "memory grew                          not judged" in done.stdout
        kept = ("frames  ", "answers  ", "connections closed  ")
        return [line for line in done.stdout.splitlines() if line.startswith(kept)]

    first = rows("--frames", "400", hash_seed="1")
    assert len(first) == 3
    assert rows("--frames", "400", "--replay", "cluster/0/0", hash_seed="2") == first
