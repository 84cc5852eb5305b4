"""The part that groups of the newer protocols share: epochs, members in Kafka's order, and the topics seen.

Kafka: `ModernGroup`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from ...java.hash_tables import TimelineTable
from ..group import BaseGroup
from .member import ModernMember

if TYPE_CHECKING:
    from enum import Enum

    from ...clock import GroupClock
    from ...dialect import Dialect
    from ...effects import Call

M = TypeVar("M", bound=ModernMember)

NO_TOPICS_SEEN = -1, 0


class ModernGroup(BaseGroup, Generic[M]):
    """A consumer group or a share group.

    `epoch` rises whenever another target has to be computed; `target_epoch` is that of the latest target, and
    `target_time` the group time in ms at which it was computed, or 0. `topics_seen` is the version of the cluster's
    topics for which an epoch was computed, -1 for none, and that epoch; a failed write takes only the epoch back.
    """

    if TYPE_CHECKING:

        @property
        def state(self) -> Enum:
            """The state, which follows from the epochs and the members."""

    def __init__(self, group_id: str, partition: int, clock: GroupClock, now: int, dialect: Dialect) -> None:
        super().__init__(group_id, partition, clock, now)
        self.epoch = self.target_epoch = dialect.first_group_epoch
        self.metadata_hash = 0
        self.topics_seen = NO_TOPICS_SEEN
        self.target_time = 0
        self.members: dict[str, M] = {}
        self.static_members: dict[str, str] = {}
        self._order = TimelineTable()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id!r} {self.state_name} epoch={self.epoch} members={len(self.members)}>"

    @property
    def generation(self) -> int:
        """The epoch of the target."""
        return self.target_epoch

    @property
    def state_name(self) -> str:
        """The state, as ListGroups shows it."""
        return str(self.state.value)

    @property
    def listed_protocol_type(self) -> str:
        """The protocol type, as ListGroups shows it."""
        return self.kind

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    def ordered_members(self) -> list[M]:
        """Return the members in the order of Kafka's table."""
        return [self.members[member_id] for member_id in self._order]

    def has_seen_topics(self, version: int) -> bool:
        """Return whether the epoch takes this version of the cluster's topics into account.

        Not if the records of that epoch were not applied, or taken back (Kafka: `ModernGroup.hasMetadataExpired`).
        """
        seen, epoch = self.topics_seen
        return seen == version and self.epoch >= epoch

    def next_unseeing_epoch(self, version: int) -> int:
        """Return the next epoch, for a change that does not look at the topics.

        It must not pass for the same epoch of a write that looked at them, and was taken back.
        """
        if not self.has_seen_topics(version):
            self.topics_seen = NO_TOPICS_SEEN
        return self.epoch + 1

    def hear(self, member_id: str, call: Call | None, began_ms: int, timeout_ms: int) -> None:
        """Note the latest request of a member, and the node time and length of the session that begins with it."""
        heard = self.members[member_id].heard
        heard.call, heard.began_ms, heard.timeout_ms = call or heard.call, began_ms, timeout_ms
