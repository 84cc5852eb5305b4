"""Who owns which partition: of a group as it is, by what its members have been assigned and what they subscribe to."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Assignment = dict[str, list[int]]
"""Topic -> partitions."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A member of a consumer group: what it is called, what it has been assigned, and which topics it wants."""

    label: str
    assignment: Mapping[str, Collection[int]]
    topics: Collection[str]


def owners(held: Mapping[str, Mapping[str, Collection[int]]]) -> dict[tuple[str, int], list[str]]:
    """Who owns each partition, by topic and number."""
    found: dict[tuple[str, int], list[str]] = defaultdict(list)
    for label, assignment in held.items():
        for topic, partitions in assignment.items():
            for partition in partitions:
                found[topic, partition].append(label)
    return dict(found)


def faults(
    members: Collection[Owner], partitions: Mapping[str, int], topics: Collection[str] | None = None
) -> list[str]:
    """What is wrong, if not every partition is owned by exactly one member; nothing if all is well.

    `partitions` are how many each topic has, `topics` which are looked at: those that the members subscribe to, if
    nothing is said.
    """
    wanted = sorted({topic for member in members for topic in member.topics} if topics is None else topics)
    by_partition = owners({member.label: member.assignment for member in members})
    found = [] if members else ["there are no members"]
    for topic in wanted:
        count = partitions.get(topic)
        if count is None:
            found.append(f"there is no topic {topic!r}")
            continue
        nobody = [number for number in range(count) if (topic, number) not in by_partition]
        if nobody:
            found.append(f"nobody owns {topic} {nobody}")
    for (topic, number), labels in sorted(by_partition.items()):
        if len(labels) > 1 and topic in wanted:
            found.append(f"{topic} {number} is owned by {' and '.join(labels)}")
    return found


def difference(expected: Mapping[str, Assignment], seen: Mapping[str, Assignment]) -> list[str]:
    """Where two assignments, by member, differ; the order of partitions, and topics with none, make no difference."""
    found = []
    for label in sorted({*expected, *seen}):
        wanted, held = _plain(expected.get(label)), _plain(seen.get(label))
        if wanted == held:
            continue
        if held is None:
            found.append(f"{label}: expected {brief(expected[label])}, but there is no such member")
        elif wanted is None:
            found.append(f"{label}: is a member nobody expected, and owns {brief(seen[label])}")
        else:
            found.append(f"{label}: expected {brief(expected[label])}, owns {brief(seen[label])}")
    return found


def _plain(assignment: Assignment | None) -> Assignment | None:
    if assignment is None:
        return None
    return {topic: sorted(partitions) for topic, partitions in assignment.items() if partitions}


def brief(assignment: Mapping[str, Collection[int]]) -> str:
    """An assignment for people: "orders [0, 1], other [2]", or "nothing"."""
    return ", ".join(f"{topic} {sorted(numbers)}" for topic, numbers in sorted(assignment.items()) if numbers) or (
        "nothing"
    )
