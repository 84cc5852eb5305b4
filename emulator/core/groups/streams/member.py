"""A member of a streams group, as its records describe it: an immutable value. Kafka: `StreamsGroupMember`."""

from __future__ import annotations

from dataclasses import field
from enum import IntEnum
from typing import TYPE_CHECKING

from koordinator.wire.values import value

from ..modern.member import ModernMember
from .tasks import NO_TASKS, Tasks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from koordinator.wire.messages.streams_group_heartbeat import Endpoint

    from .tasks import Task

NO_TOPOLOGY_EPOCH = -1


class StreamsMemberState(IntEnum):
    """How far a member is on its way to its target; the value is that of its record."""

    STABLE = 1
    """It has all that the target of its epoch gives it."""

    UNREVOKED_TASKS = 2
    """It has to give tasks up, and keeps its epoch until it has done so."""

    UNRELEASED_TASKS = 3
    """It has the target's epoch, but others, or its own process, still have some of its tasks."""

    UNKNOWN = 127
    """A state of a newer broker."""

    @classmethod
    def _missing_(cls, value: object) -> StreamsMemberState:
        del value
        return cls.UNKNOWN


@value
class StreamsMember(ModernMember):
    """A member with its process, its epochs and its tasks. All threads of an application have the same `process_id`.

    `pending` are the tasks that it has to give up. `active_since` has the epoch at which it got each active task, of
    both. `tags` are those of its client.
    """

    topology_epoch: int = NO_TOPOLOGY_EPOCH
    process_id: str = ""
    endpoint: Endpoint | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    state: StreamsMemberState = StreamsMemberState.STABLE
    assigned: Tasks = NO_TASKS
    pending: Tasks = NO_TASKS
    active_since: Mapping[Task, int] = field(default_factory=dict)

    def held(self) -> Tasks:
        """Return the tasks that no other process may have as active ones."""
        return self.assigned | self.pending

    @property
    def is_revoking(self) -> bool:
        """Whether the member has to give tasks up before it goes on."""
        return self.state is StreamsMemberState.UNREVOKED_TASKS

    def is_settled(self, target_epoch: int) -> bool:
        """Return whether the member has no step to take towards a target of this epoch."""
        return self.state is StreamsMemberState.STABLE and self.epoch == target_epoch
