"""The assignor `sticky`: members keep their tasks, and processes share the rest evenly.

`assign_sticky(members, subtopologies, standby_replicas, ...)` is a pure function. Its result depends on
the order of `members`, which is that of the group's table: where processes have the same load, Kafka takes the one that
its hash tables and heaps yield first. Kafka: `StickyTaskAssignor`, `ProcessState` (KIP-1071).
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from koordinator.wire.values import value

from ...java.hash_tables import HashTable
from ...java.priority_queue import PriorityQueue
from .java_order import java_text_order
from .tasks import NO_TASKS, Task, Tasks

if TYPE_CHECKING:
    from collections.abc import Mapping


@value
class StreamsMemberSpec:
    """A member of an assignment with its previous tasks: those of its target up to 4.3, its current ones since 4.4.

    `offsets` are the sums of changelog offsets that it has reported, by task (since 4.4).
    """

    process_id: str
    tasks: Tasks = NO_TASKS
    offsets: Mapping[Task, int] = field(default_factory=dict)


@value
class SubtopologySpec:
    """A subtopology that is ready; `is_stateful`: it has changelog topics."""

    tasks: int
    is_stateful: bool


class AssignmentError(Exception):
    """There is no member for a task."""


def assign_sticky(
    members: Mapping[str, StreamsMemberSpec],
    subtopologies: Mapping[str, SubtopologySpec],
    standby_replicas: int,
    *,
    ranks_owners: bool,
    skips_owners: bool,
) -> dict[str, Tasks]:
    """Return the target tasks of each member, in the order in which Kafka writes them.

    Standby tasks that no process can take are left out. `ranks_owners`: a task goes to the members with the most of its
    changelog first (since 4.4). `skips_owners`: a standby owner whose process has the task already does not hide the
    others (4.2.2 and since 4.4). Raises AssignmentError if there are tasks and no members.
    """
    return _Assignment(
        members, subtopologies, standby_replicas, ranks_owners=ranks_owners, skips_owners=skips_owners
    ).targets()


class _Member:
    """A member in the making."""

    def __init__(self, member_id: str, process: _Process) -> None:
        self.member_id = member_id
        self.process = process
        self.count = 0
        self.active: list[Task] = []
        self.standby: list[Task] = []

    def targets(self) -> Tasks:
        return Tasks(frozenset(self.active), frozenset(self.standby))


class _Process:
    """The members of one process, which has a task once at most."""

    def __init__(self) -> None:
        self.members: dict[str, _Member] = {}
        self.load = 0.0
        self._tasks: set[Task] = set()
        self._count = 0
        self._by_load: PriorityQueue[_Member] | None = None

    def has(self, task: Task) -> bool:
        return task in self._tasks

    def add(self, member: _Member, task: Task, *, is_active: bool) -> int:
        """Give a task to a member and return its number of tasks."""
        self._by_load = None
        return self._add(member, task, is_active=is_active)

    def add_to_least_loaded(self, task: Task, *, is_active: bool) -> int:
        """Give a task to the member with the fewest and return its number of tasks."""
        if self._by_load is None:
            self._by_load = PriorityQueue(lambda member: member.count)
            for member_id in HashTable(self.members):
                self._by_load.add(self.members[member_id])
        member = self._by_load.poll()
        assert member is not None
        count = self._add(member, task, is_active=is_active)
        self._by_load.add(member)
        return count

    def _add(self, member: _Member, task: Task, *, is_active: bool) -> int:
        (member.active if is_active else member.standby).append(task)
        self._tasks.add(task)
        self._count += 1
        self.load = self._count / len(self.members)
        member.count += 1
        return member.count


class _Quota:
    """The number of tasks per member; a member that reaches it leaves the others to share the rest."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self._update()

    def count(self, reached: int) -> None:
        """Note the number of tasks that a member has now."""
        if reached == self.per_member:
            self._members -= 1
            self._tasks -= reached
            self._update()

    def _update(self) -> None:
        self.per_member = -(-self._tasks // self._members) if self._members else 0


class _Assignment:
    """An assignment in the making."""

    def __init__(
        self,
        members: Mapping[str, StreamsMemberSpec],
        subtopologies: Mapping[str, SubtopologySpec],
        standby_replicas: int,
        *,
        ranks_owners: bool,
        skips_owners: bool,
    ) -> None:
        self._replicas = standby_replicas
        self._skips_owners = skips_owners
        self._active = _tasks_of(subtopologies)
        self._stateful = _tasks_of({name: each for name, each in subtopologies.items() if each.is_stateful})
        self._active_quota = _Quota(len(self._active), len(members))
        self._quota = _Quota(len(self._active) + len(self._stateful) * standby_replicas, len(members))
        self._members: dict[str, _Member] = {}
        self._active_owners: dict[Task, _Member] = {}
        self._standby_owners: dict[Task, list[_Member]] = {}
        processes: dict[str, _Process] = {}
        table: HashTable[str] = HashTable(capacity=len(members))
        candidates: list[tuple[bool, int, Task, _Member]] = []
        for member_id in HashTable(members):
            spec = members[member_id]
            if ranks_owners:
                table.compute_if_absent(spec.process_id)
            else:
                table.add(spec.process_id)
            process = processes.setdefault(spec.process_id, _Process())
            member = self._members[member_id] = process.members[member_id] = _Member(member_id, process)
            self._active_owners |= dict.fromkeys(spec.tasks.active, member)
            owned = spec.tasks.standby
            candidates += [(False, spec.offsets.get(task, 0), task, member) for task in owned]
            candidates += [(True, spec.offsets[task], task, member) for task in spec.offsets if task not in owned]
        if ranks_owners:
            candidates.sort(key=lambda each: (each[0], -each[1]))
        for _, _, task, member in candidates:
            self._standby_owners.setdefault(task, []).append(member)
        self._processes = [processes[name] for name in table]

    def targets(self) -> dict[str, Tasks]:
        self._assign_active()
        if self._replicas:
            self._assign_standby()
        return {member_id: member.targets() for member_id, member in self._members.items()}

    def _assign_active(self) -> None:
        tasks = sorted(self._active, key=_by_partition)
        moved = [task for task in tasks if not self._give_active(task, self._active_owners.get(task))]
        rest = [task for task in moved if not self._give_active(task, self._least_loaded_owner(task, is_active=True))]
        queue = self._processes_by_load()
        for task in sorted(rest, key=_by_name):
            process = queue.poll()
            if process is None:
                raise AssignmentError(
                    f"No process available to assign active task {task.subtopology_id}_{task.partition}."
                )
            self._count_active(process.add_to_least_loaded(task, is_active=True))
            queue.add(process)

    def _give_active(self, task: Task, member: _Member | None) -> bool:
        """Give an active task to a member below its quota; return whether there is one."""
        if member is None or member.count >= self._active_quota.per_member:
            return False
        self._count_active(member.process.add(member, task, is_active=True))
        return True

    def _count_active(self, reached: int) -> None:
        self._active_quota.count(reached)
        self._quota.count(reached)

    def _assign_standby(self) -> None:
        rest: list[tuple[Task, int]] = []
        for task in sorted(self._stateful, key=_by_partition, reverse=True):
            for replica in range(self._replicas):
                if not self._return_standby(task):
                    rest.append((task, self._replicas - replica))
                    break
        queue = self._processes_by_load()
        for task, replicas in sorted(rest, key=lambda each: _by_name(each[0]), reverse=True):
            for _ in range(replicas):
                if not self._give_standby(queue, task):
                    break

    def _return_standby(self, task: Task) -> bool:
        """Give a standby task to a previous owner of the task; return whether there is one that can take it."""
        active_owner = self._active_owners.get(task)
        if active_owner is not None and not active_owner.process.has(task) and self._has_room(active_owner):
            self._quota.count(active_owner.process.add(active_owner, task, is_active=False))
            return True
        standby_owner = self._least_loaded_owner(task, is_active=False)
        if standby_owner is not None and self._has_room(standby_owner):
            self._quota.count(standby_owner.process.add(standby_owner, task, is_active=False))
            return True
        return False

    def _least_loaded_owner(self, task: Task, *, is_active: bool) -> _Member | None:
        """Return the least loaded previous standby owner of a task whose process can take it, or None.

        An owner is less loaded only if its process is, too. Without `skips_owners` the first owner is taken even if its
        process has the task, and then a better one does not count: Kafka checks the process of the first at the end.
        """
        owners = self._standby_owners.get(task, [])
        able = [each for each in owners if is_active or not each.process.has(task)]
        if not able or not (self._skips_owners or able[0] is owners[0]):
            return None
        best = able[0]
        for owner in able[1:]:
            if owner.process.load < best.process.load and owner.count < best.count:
                best = owner
        return best

    def _has_room(self, member: _Member) -> bool:
        return member.count < self._quota.per_member

    def _give_standby(self, queue: PriorityQueue[_Process], task: Task) -> bool:
        """Give a standby task to the least loaded process without the task; return whether there is one."""
        polled: list[_Process] = []
        process = queue.poll()
        while process is not None and process.has(task):
            polled.append(process)
            process = queue.poll()
        if process is not None:
            self._quota.count(process.add_to_least_loaded(task, is_active=False))
            queue.add(process)
        for each in reversed(polled):
            queue.add(each)
        return process is not None

    def _processes_by_load(self) -> PriorityQueue[_Process]:
        queue: PriorityQueue[_Process] = PriorityQueue(lambda process: process.load)
        for process in self._processes:
            queue.add(process)
        return queue


def _tasks_of(subtopologies: Mapping[str, SubtopologySpec]) -> list[Task]:
    return [Task(name, partition) for name, each in subtopologies.items() for partition in range(each.tasks)]


def _by_partition(task: Task) -> tuple[int, bytes]:
    return task.partition, java_text_order(task.subtopology_id)


def _by_name(task: Task) -> tuple[bytes, int]:
    return java_text_order(task.subtopology_id), task.partition
