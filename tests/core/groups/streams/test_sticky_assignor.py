"""The assignor `sticky`, by tables of a running broker; `tests/kafka` compares random groups with its jar."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from koordinator.emulator.core.groups.streams.sticky_assignor import (
    AssignmentError,
    StreamsMemberSpec,
    SubtopologySpec,
    assign_sticky,
)
from koordinator.emulator.core.groups.streams.tasks import Task, Tasks
from koordinator.emulator.core.java.priority_queue import PriorityQueue

if TYPE_CHECKING:
    from collections.abc import Iterable

STATELESS = {"0": SubtopologySpec(4, is_stateful=False)}
STATEFUL = {"0": SubtopologySpec(4, is_stateful=True)}

OLD, NEW = "4.3", "4.4"

A, B = StreamsMemberSpec("process-a"), StreamsMemberSpec("process-b")


def partitions(targets: dict[str, Tasks]) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return active and standby partitions of the only subtopology, by member."""
    return {name: (_numbers(each.active), _numbers(each.standby)) for name, each in targets.items()}


def _numbers(tasks: Iterable[Task]) -> tuple[int, ...]:
    return tuple(sorted(task.partition for task in tasks))


def moved_on(members: dict[str, StreamsMemberSpec], targets: dict[str, Tasks]) -> dict[str, StreamsMemberSpec]:
    """Return members whose previous tasks are these targets."""
    return {name: replace(each, tasks=targets[name]) for name, each in members.items()}


@pytest.fixture(params=[OLD, NEW])
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_members_that_join_together_take_turns(release: str) -> None:
    targets = assign_sticky({"A": A, "B": B}, STATELESS, 0, ranks_owners=release == NEW, skips_owners=release == NEW)
    assert partitions(targets) == {"A": ((0, 2), ()), "B": ((1, 3), ())}


def test_a_member_keeps_its_first_tasks_when_another_joins(release: str) -> None:
    first = assign_sticky({"A": A}, STATELESS, 0, ranks_owners=release == NEW, skips_owners=release == NEW)
    second = assign_sticky(
        moved_on({"A": A}, first) | {"B": B}, STATELESS, 0, ranks_owners=release == NEW, skips_owners=release == NEW
    )
    assert [partitions(each)["A"][0] for each in (first, second)] == [(0, 1, 2, 3), (0, 1)]
    assert partitions(second)["B"] == ((2, 3), ())


def test_a_process_has_a_task_once_and_takes_over_what_it_has_as_a_standby(release: str) -> None:
    first = assign_sticky({"A": A}, STATEFUL, 1, ranks_owners=release == NEW, skips_owners=release == NEW)
    assert partitions(first) == {"A": ((0, 1, 2, 3), ())}
    members = moved_on({"A": A}, first) | {"B": B}
    second = assign_sticky(members, STATEFUL, 1, ranks_owners=release == NEW, skips_owners=release == NEW)
    assert partitions(second) == {"A": ((0, 1), (2, 3)), "B": ((2, 3), (0, 1))}
    members = moved_on(members, second) | {"C": StreamsMemberSpec("process-a")}
    third = assign_sticky(members, STATEFUL, 1, ranks_owners=release == NEW, skips_owners=release == NEW)
    assert partitions(third) == {"A": ((0, 1), (2,)), "B": ((2,), (0, 1, 3)), "C": ((3,), ())}
    assert assign_sticky(members, STATEFUL, 2, ranks_owners=release == NEW, skips_owners=release == NEW) == third
    members = moved_on(members, third)
    del members["A"]
    fourth = assign_sticky(members, STATEFUL, 1, ranks_owners=release == NEW, skips_owners=release == NEW)
    assert partitions(fourth) == {"B": ((0, 2), (1, 3)), "C": ((1, 3), (0, 2))}


def test_the_owner_with_the_most_of_a_changelog_takes_a_task_over_since_4_4() -> None:
    both = Task("0", 0), Task("0", 1)
    members = {
        "A": StreamsMemberSpec("process-a", Tasks(standby=frozenset(both)), {both[0]: 5, both[1]: 9}),
        "B": StreamsMemberSpec("process-b", Tasks(standby=frozenset(both)), {both[0]: 7, both[1]: 2}),
    }
    two = {"0": SubtopologySpec(2, is_stateful=True)}
    assert partitions(assign_sticky(members, two, 0, ranks_owners=False, skips_owners=False)) == {
        "A": ((0,), ()),
        "B": ((1,), ()),
    }
    assert partitions(assign_sticky(members, two, 0, ranks_owners=True, skips_owners=True)) == {
        "A": ((1,), ()),
        "B": ((0,), ()),
    }


def test_a_group_without_members_has_nobody_for_its_tasks() -> None:
    with pytest.raises(AssignmentError, match=r"^No process available to assign active task 0_0\.$"):
        assign_sticky({}, STATELESS, 0, ranks_owners=False, skips_owners=False)


def test_equal_elements_leave_a_heap_in_the_order_of_java() -> None:
    queue: PriorityQueue[str] = PriorityQueue(lambda text: float(text[0]))
    for text in ("1a", "1b", "1c", "0", "1d"):
        queue.add(text)
    assert [queue.poll() for _ in range(6)] == ["0", "1d", "1b", "1c", "1a", None]
    assert len(queue) == 0
