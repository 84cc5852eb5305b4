"""C06 and C07: who owns what, and from whom it came."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .findings import Findings
from .ownership import faults, owners
from .rebalances import assignments
from .story import OK
from .zombies import FOREIGN, zombies

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .ownership import Owner
    from .story import Exchange, Story

Partition = tuple[str, int]


def revoked_first(story: Story) -> Findings:
    """C06. KIP-429: what a member still owns when it joins it keeps, or nobody has it until the next generation."""
    found = Findings()
    held: dict[str, set[Partition]] = {}
    claims: dict[str, set[Partition]] = {}
    cooperative: set[int] = set()
    for call in story.calls:
        label = story.label(call.member_id)
        if call.formed is not None:
            claims[label] = _claimed(call) & held.get(label, set())
            if is_cooperative(call):
                cooperative.add(call.formed)
        elif call.api == "SyncGroup" and call.error == OK:
            if call.generation in cooperative and call.asked.get("assignments"):
                _judge(story, found, call, claims)
            held[label] = _partitions(call.told.get("assignment"))
    for zombie in zombies(story):
        if zombie.kind == FOREIGN and zombie.was_accepted and zombie.call.generation in cooperative:
            found.wrong(f"{zombie}{story.software(zombie.call.member_id)}", zombie.call)
    return found


def _judge(story: Story, found: Findings, sync: Exchange, claims: Mapping[str, set[Partition]]) -> None:
    given = {story.label(member_id): topics or {} for member_id, topics in sync.asked["assignments"].items()}
    faulty = False
    for partition, labels in owners(given).items():
        losers = [each for each in given if partition in claims.get(each, ()) and each not in labels]
        if losers:
            faulty = True
            topic, number = partition
            found.wrong(
                f"{story.label(sync.member_id)}{story.software(sync.member_id)} leads, and gave {topic} {number} to "
                f"{labels[0]} while {losers[0]} owned it: {sync}",
                sync,
            )
    if not faulty:
        found.right(sync)


def owned_once(story: Story, now: tuple[tuple[Owner, ...], Mapping[str, int]] | None) -> Findings:
    """C07. No generation gives a partition to two; and as the group is now, if it is stable, none is left over.

    Only the present generation is asked for partitions that nobody owns, because how many a topic had before is not in
    the trace. `now`: members and partitions of a group that is stable. A cooperative generation may leave over what it
    takes from somebody: the next one is to follow.
    """
    found = Findings()
    given = assignments(story)
    leaders = {
        call.generation or 0: call
        for call in reversed(story.calls)
        if call.api == "SyncGroup" and call.error == OK and call.asked.get("assignments")
    }
    for generation, held in given.items():
        twice = {at: labels for at, labels in owners(held).items() if len(labels) > 1}
        for (topic, number), labels in twice.items():
            found.wrong(
                f"in generation {generation} {topic} {number} was given to {' and '.join(labels)}", leaders[generation]
            )
        if not twice:
            found.right(leaders[generation])
    if now is not None and any(member.topics for member in now[0]):
        members, partitions = now
        wrong = faults(members, partitions)
        last = [leaders[max(leaders)]] if leaders else []
        if wrong and _follow_up_is_due(story, members):
            found.unclear(f"{'; '.join(wrong)}: the second round has not come yet", *last)
        elif wrong:
            found.wrong(f"the group is stable, and {'; '.join(wrong)}", *last)
    return found


def _follow_up_is_due(story: Story, members: tuple[Owner, ...]) -> bool:
    """Whether somebody was just asked to give something up (KIP-429): its next JoinGroup lets it be given to others."""
    joins = [call for call in story.calls if call.formed is not None]
    newest = max((call.formed or 0 for call in joins), default=0)
    last = {story.label(call.member_id): call for call in joins if call.formed == newest and is_cooperative(call)}
    now = {
        member.label: _partitions({topic: list(held) for topic, held in member.assignment.items()})
        for member in members
    }
    return any(_claimed(call) - now.get(label, set()) for label, call in last.items())


def is_cooperative(join: Exchange) -> bool:
    """Whether the generation that a JoinGroup has formed uses an incremental assignor, by its name."""
    return "cooperative" in str(join.told.get("protocol"))


def _claimed(join: Exchange) -> set[Partition]:
    return _partitions(join.asked.get("owned"))


def _partitions(assignment: Mapping[str, list[int]] | None) -> set[Partition]:
    return {(topic, number) for topic, numbers in (assignment or {}).items() for number in numbers}
