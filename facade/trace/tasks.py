"""The tasks of streams groups: which member the coordinator gave which task, and until when (KIP-1071)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from .events import time_us

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

STREAMS_HEARTBEAT = "StreamsGroupHeartbeat"

Task = tuple[str, str, int]
"""The type of a task, its subtopology and its partition."""


@dataclass(frozen=True, slots=True)
class TaskStay:
    """A task with a member: from the response that assigns it to the one that does not any more, or the member's end.

    Times are those of the group's clock, in microseconds.
    """

    group_id: str
    member_id: str
    type: str
    """"active", "standby" or "warmup"."""
    subtopology: str
    partition: int
    given_seq: int
    """The sequence number of the response that assigns the task."""
    given_us: int
    ended_seq: int | None = None
    """The sequence number of the response without it, or of the end of the membership; None if the member has it."""
    ended_us: int | None = None

    @property
    def task_id(self) -> str:
        """The task as Kafka Streams names it: "0_1"."""
        return f"{self.subtopology}_{self.partition}"

    def __str__(self) -> str:
        return f"#{self.given_seq} {self.type} task {self.task_id} of {self.member_id}"


class TaskStays:
    """The tasks of one streams group, line by line. It keeps those that members have."""

    def __init__(self, group_id: str) -> None:
        self._id = group_id
        self._of_member: dict[str, dict[Task, TaskStay]] = {}

    @property
    def open(self) -> list[TaskStay]:
        """The tasks that members have."""
        stays = (stay for stays in self._of_member.values() for stay in stays.values())
        return sorted(stays, key=attrgetter("given_seq", "type", "subtopology", "partition"))

    def feed(self, line: Mapping[str, Any]) -> list[TaskStay]:
        """Take the next line of the group; return the stays that it ends."""
        kind = line["kind"]
        if kind == "response" and line.get("api") == STREAMS_HEARTBEAT:
            return self._given(line)
        if kind == "member" and line.get("change") in {"removed", "replaced"}:
            return self._end([str(line.get("member_id") or "")], line)
        if kind == "state" and line.get("state_to") in {"Empty", "Dead"}:
            return self._end(list(self._of_member), line)
        return []

    def _given(self, line: Mapping[str, Any]) -> list[TaskStay]:
        """Compare the tasks of a response with those that the member had; one without tasks changes nothing."""
        rows = (line.get("body") or {}).get("tasks")
        member_id = str(line.get("member_id") or "")
        if rows is None:
            return []
        tasks = [
            (kind, subtopology, number)
            for kind, by_subtopology in rows.items()
            for subtopology, numbers in by_subtopology.items()
            for number in numbers
        ]
        before = self._of_member.pop(member_id, {})
        at = {"given_seq": line["seq"], "given_us": time_us(line)}
        if tasks:
            self._of_member[member_id] = {
                task: before.get(task) or TaskStay(self._id, member_id, *task, **at) for task in tasks
            }
        return [self._ended(stay, line) for task, stay in before.items() if task not in {*tasks}]

    def _end(self, member_ids: Iterable[str], line: Mapping[str, Any]) -> list[TaskStay]:
        return [
            self._ended(stay, line) for member_id in member_ids for stay in self._of_member.pop(member_id, {}).values()
        ]

    @staticmethod
    def _ended(stay: TaskStay, line: Mapping[str, Any]) -> TaskStay:
        return replace(stay, ended_seq=line["seq"], ended_us=time_us(line))
