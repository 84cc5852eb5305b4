"""The records that every kind of group of the newer protocols has, each kind in classes of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..records import CoordinatorRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True, kw_only=True)
class RecordTypes:
    """The classes of the keys, and what the values of members say.

    `group` has the group's epoch, `target_epoch` that of its target, `member` a member's subscription or process,
    `target` its target, and `current` its epochs and assignment. No other kind has the records of `further`.
    `target_epoch_value` is the class of a value. `new_member` makes a member with an id, `described` and `reconciled`
    give it what a value of `member` or `current` says, and `target_of` reads a value of `target`. An empty group is
    deleted by tombstones with the keys `of_group`.
    """

    group: type[Any]
    target_epoch: type[Any]
    target_epoch_value: type[Any]
    member: type[Any]
    target: type[Any]
    current: type[Any]
    further: tuple[type[Any], ...]
    of_group: tuple[type[Any], ...]
    new_member: Callable[[str], Any]
    described: Callable[[Any, Any], Any]
    reconciled: Callable[[Any, Any], Any]
    target_of: Callable[[Any], Any]

    @property
    def keys(self) -> tuple[type[Any], ...]:
        """The classes of all keys."""
        return (self.group, self.target_epoch, self.member, self.target, self.current, *self.further)

    def changed_members(self, records: Iterable[CoordinatorRecord]) -> dict[str, None]:
        """Return the ids of the members that records put into the group's table, or change, in order."""
        keys = (self.member, self.current)
        return dict.fromkeys(record.key.member_id for record in records if isinstance(record.key, keys))

    def group_tombstones(self, group_id: str) -> list[CoordinatorRecord]:
        """Return the tombstones of an empty group."""
        return [CoordinatorRecord(key(group=group_id), None) for key in self.of_group]

    def member_tombstones(self, group_id: str, member_ids: Iterable[str]) -> list[CoordinatorRecord]:
        """Return the tombstones of members: current assignment, target, subscription or process."""
        return [
            CoordinatorRecord(key(group=group_id, member_id=member_id), None)
            for member_id in member_ids
            for key in (self.current, self.target, self.member)
        ]

    def target_epoch_record(self, group_id: str, epoch: int, computed_at: int) -> CoordinatorRecord:
        """Return the record of the epoch of a group's target; `computed_at` is in ms, 0 before 4.3."""
        value = self.target_epoch_value(assignment_epoch=epoch, assignment_timestamp=computed_at)
        return CoordinatorRecord(self.target_epoch(group=group_id), value)
