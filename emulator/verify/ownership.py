"""Ownership of partitions: assignments of a group's members, compared with topics and with expectations."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..config.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Assignment = dict[str, list[int]]
"""Topic -> partitions."""


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """A member of a consumer group: its label, its assignment (topic -> partitions) and its subscribed topics."""

    label: str
    assignment: Mapping[str, Collection[int]]
    topics: Collection[str]


def owners_by_partition(assignments: Mapping[str, Mapping[str, Collection[int]]]) -> dict[tuple[str, int], list[str]]:
    """Return the labels of the owners of each partition (topic, number)."""
    owners: dict[tuple[str, int], list[str]] = defaultdict(list)
    for label, assignment in assignments.items():
        for topic, partitions in assignment.items():
            for partition in partitions:
                owners[topic, partition].append(label)
    return dict(owners)


def ownership_errors(
    members: Collection[MemberAssignment],
    partition_counts: Mapping[str, int],
    topics: Collection[str] | None = None,
    *,
    may_share: bool = False,
) -> list[str]:
    """Return each violation of "every partition has exactly one owner"; an empty list if there is none.

    If members `may_share` partitions, as those of a share group, of "every partition has an owner".

    `partition_counts` maps topics to their number of partitions. `topics` limits the check; it defaults to the topics
    that the members subscribe to.
    """
    checked = sorted({topic for member in members for topic in member.topics} if topics is None else topics)
    owners = owners_by_partition({member.label: member.assignment for member in members})
    errors = [] if members else ["there are no members"]
    for topic in checked:
        count = partition_counts.get(topic)
        if count is None:
            errors.append(f"there is no topic {topic!r}{did_you_mean(topic, partition_counts)}")
            continue
        unowned = [number for number in range(count) if (topic, number) not in owners]
        if unowned:
            errors.append(f"{topic} {unowned} has no owner")
    for (topic, number), labels in sorted(owners.items()):
        if len(labels) > 1 and topic in checked and not may_share:
            errors.append(f"{topic} {number} is owned by {' and '.join(labels)}")
    return errors


def assignment_differences(expected: Mapping[str, Assignment], actual: Mapping[str, Assignment]) -> list[str]:
    """Return the differences between two assignments by member; order and topics without partitions do not count."""
    differences = []
    for label in sorted({*expected, *actual}):
        wanted, owned = _normalized(expected.get(label)), _normalized(actual.get(label))
        if wanted == owned:
            continue
        if owned is None:
            differences.append(f"{label}: expected {format_assignment(expected[label])}, but there is no such member")
        elif wanted is None:
            differences.append(f"{label}: unexpected member, owns {format_assignment(actual[label])}")
        else:
            differences.append(
                f"{label}: expected {format_assignment(expected[label])}, owns {format_assignment(actual[label])}"
            )
    return differences


def _normalized(assignment: Assignment | None) -> Assignment | None:
    if assignment is None:
        return None
    return {topic: sorted(partitions) for topic, partitions in assignment.items() if partitions}


def format_assignment(assignment: Mapping[str, Collection[int]]) -> str:
    """Return an assignment as text: "orders [0, 1], other [2]", or "nothing"."""
    topics = (f"{topic} {sorted(numbers)}" for topic, numbers in sorted(assignment.items()) if numbers)
    return ", ".join(topics) or "nothing"
