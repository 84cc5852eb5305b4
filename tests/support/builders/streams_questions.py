"""Questions about streams groups for Kafka's classes, as JSON lines (tests/kafka/java/AskedStreams.java).

A question for the assignor has `standby` (replicas), `subtopologies` ({"0": [tasks, is stateful]}) and `members` ([id,
process, active tasks, standby tasks, [[subtopology, partition, offset]]] in the order of the group); the answer lists
members with their tasks. A question for the topology has `topics` (partition counts) and `topology` (the record).
"""

from __future__ import annotations

import base64
import uuid
from typing import TYPE_CHECKING, Any

from koordinator.emulator.core.groups.streams.sticky_assignor import (
    AssignmentError,
    MemberSpec,
    SubtopologySpec,
    assign_sticky,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from random import Random

    from koordinator.emulator.core.groups.streams.sticky_assignor import MemberTasks

Tasks = dict[str, tuple[int, ...]]

PROCESSES = 4
NAMES = ("0", "1", "2", "10", "zz", "é", "\U0001f600", "\uff5e")
"""Names of subtopologies; the last two are in another order as UTF-16."""


class RandomGroup:
    """A streams group that members join and leave, with a new assignment after each change."""

    def __init__(self, random: Random) -> None:
        self._random = random
        names = random.sample(NAMES, random.randint(1, 4))
        self.subtopologies = {name: SubtopologySpec(random.randint(1, 24), random.random() < 0.6) for name in names}
        self.replicas = random.choice([0, 0, 1, 1, 2, 3])
        self.members: dict[str, MemberSpec] = {}

    def steps(self, *, ranks_owners: bool) -> Iterator[tuple[dict[str, Any], list[Any]]]:
        """Yield questions with our answers."""
        random = self._random
        for _ in range(random.randint(1, 6)):
            self._change(with_offsets=ranks_owners)
            question = self.question()
            try:
                targets = assign_sticky(self.members, self.subtopologies, self.replicas, ranks_owners=ranks_owners)
            except AssignmentError as failed:
                yield question, [str(failed)]
                continue
            yield question, [[name, listed(each.active), listed(each.standby)] for name, each in targets.items()]
            self._move_on(targets)

    def question(self) -> dict[str, Any]:
        """Return the question for the group as it is."""
        return {
            "standby": self.replicas,
            "subtopologies": {name: [each.tasks, each.is_stateful] for name, each in self.subtopologies.items()},
            "members": [
                [name, each.process_id, listed(each.active), listed(each.standby), _offsets(each)]
                for name, each in self.members.items()
            ],
        }

    def _change(self, *, with_offsets: bool) -> None:
        random = self._random
        for _ in range(random.choice([1, 1, 2, 3, 12])):
            if self.members and random.random() < 0.35:
                del self.members[random.choice(list(self.members))]
            else:
                others = [each.process_id for each in self.members.values()]
                shares = others and random.random() < 0.5
                process = random.choice(others) if shares else str(uuid.UUID(int=random.getrandbits(128)))
                self.members[_member_id(random)] = MemberSpec(process, {}, {})
        if random.random() < 0.2:
            name = random.choice(list(self.subtopologies))
            self.subtopologies[name] = SubtopologySpec(random.randint(1, 24), random.random() < 0.6)
        if random.random() < 0.2:
            self.replicas = random.randint(0, 3)
        for name, each in self.members.items():
            active, standby = each.active, each.standby
            if random.random() < 0.1:
                # tasks that other members have, too, or that are gone
                active, standby = self._any_tasks(), self._any_tasks()
            offsets = {}
            if with_offsets and random.random() < 0.5:
                offsets = {
                    (subtopology, partition): random.choice([0, 1, random.getrandbits(40)])
                    for subtopology, partitions in self._any_tasks().items()
                    for partition in partitions
                }
            self.members[name] = MemberSpec(each.process_id, active, standby, offsets)

    def _any_tasks(self) -> Tasks:
        random = self._random
        return {
            name: tuple(sorted(random.sample(range(each.tasks + 2), random.randint(1, each.tasks))))
            for name, each in self.subtopologies.items()
            if random.random() < 0.5
        }

    def _move_on(self, targets: Mapping[str, MemberTasks]) -> None:
        self.members = {
            name: MemberSpec(each.process_id, targets[name].active, targets[name].standby)
            for name, each in self.members.items()
        }


def listed(tasks: Mapping[str, Any]) -> dict[str, list[int]]:
    """Return tasks as JSON has them."""
    return {name: list(partitions) for name, partitions in tasks.items()}


def parsed(answer: list[Any]) -> list[Any]:
    """Return the answer of Kafka's assignor with partitions in ascending order: they are sets."""
    return [each if isinstance(each, str) else [each[0], _sorted(each[1]), _sorted(each[2])] for each in answer]


def _sorted(tasks: Mapping[str, list[int]]) -> dict[str, list[int]]:
    return {name: sorted(partitions) for name, partitions in tasks.items()}


def _offsets(member: MemberSpec) -> list[list[Any]]:
    return [[*task, offset] for task, offset in member.offsets.items()]


def _member_id(random: Random) -> str:
    return base64.urlsafe_b64encode(random.randbytes(16)).decode().rstrip("=")
