"""Tasks: a subtopology's work for one partition number of its input topics (KIP-1071; Kafka: `TasksTuple`)."""

from __future__ import annotations

from dataclasses import field
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, Protocol

from koordinator.wire.messages.streams_group_heartbeat import TaskIds
from koordinator.wire.values import value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class TaskRow(Protocol):
    """Tasks of a subtopology in a message or record."""

    @property
    def subtopology_id(self) -> str: ...  # noqa: D102 - described by the message
    @property
    def partitions(self) -> tuple[int, ...]: ...  # noqa: D102


class Task(NamedTuple):
    """A task, by its subtopology and partition number; tasks are sorted in this order."""

    subtopology_id: str
    partition: int


@value
class Tasks:
    """The tasks of a member. Warm-up tasks catch up with a store before they become active."""

    active: frozenset[Task] = frozenset()
    standby: frozenset[Task] = frozenset()
    warmup: frozenset[Task] = frozenset()

    def __or__(self, other: Tasks) -> Tasks:
        """Return the tasks of either."""
        return Tasks(self.active | other.active, self.standby | other.standby, self.warmup | other.warmup)

    def __and__(self, other: Tasks) -> Tasks:
        """Return the tasks of both, each of the same type."""
        return Tasks(self.active & other.active, self.standby & other.standby, self.warmup & other.warmup)

    def __sub__(self, other: Tasks) -> Tasks:
        """Return the tasks that the other does not have as the same type."""
        return Tasks(self.active - other.active, self.standby - other.standby, self.warmup - other.warmup)

    def __bool__(self) -> bool:
        """Return whether there are any tasks."""
        return bool(self.active or self.standby or self.warmup)


NO_TASKS = Tasks()


@value
class ReportedOffsets:
    """The sums of changelog offsets that a member has reported by task, and the ends of these changelogs."""

    offsets: Mapping[Task, int] = field(default_factory=dict)
    end_offsets: Mapping[Task, int] = field(default_factory=dict)


def tasks_of(rows: Iterable[TaskRow]) -> frozenset[Task]:
    """Return the tasks of rows of a message."""
    return frozenset(Task(row.subtopology_id, partition) for row in rows for partition in row.partitions)


def rows_of(tasks: Iterable[Task]) -> tuple[TaskIds, ...]:
    """Return tasks as rows of a message, sorted."""
    by_subtopology = groupby(sorted(tasks), key=lambda task: task.subtopology_id)
    return tuple(
        TaskIds(subtopology_id=subtopology_id, partitions=tuple(task.partition for task in group))
        for subtopology_id, group in by_subtopology
    )
