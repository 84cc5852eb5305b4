"""Commits of members that should not commit any more: of an old generation, of nobody, of what another owns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .ownership import owners
from .rebalances import COMPLETING, assignments
from .story import OK

if TYPE_CHECKING:
    from .story import Exchange, Story

STALE, GONE, FOREIGN = "stale_generation", "not_a_member", "not_the_owner"


@dataclass(frozen=True, slots=True)
class Zombie:
    """A commit that came from the past.

    `kind` is one of:

    * stale_generation: the group was in a newer generation when the commit came (`behind` by so many);
    * not_a_member: the member had left, been removed or been replaced before;
    * not_the_owner: another member owned `partitions` (topic, number) by then.

    The coordinator refuses the first two; of the third it knows nothing.
    """

    call: Exchange
    kind: str
    why: str
    behind: int
    partitions: tuple[tuple[str, int], ...] = ()

    @property
    def was_accepted(self) -> bool:
        """Whether the offsets have been stored."""
        return self.call.error == OK

    def __str__(self) -> str:
        return f"{self.call}: {self.why}"


def zombies(story: Story) -> list[Zombie]:
    """The zombie commits, in the order in which they came.

    A commit is judged by how the group was when it came, not when it was answered: one that a hold kept back, or the
    network, was sent by a member in good standing. One in generation -1 is of a consumer that assigns its partitions
    itself, or an administrator.
    """
    by_seq = {call.seq: call for call in story.calls if call.api == "OffsetCommit"}
    by_generation = {generation: owners(held) for generation, held in assignments(story).items()}
    generation = -1
    gone: dict[str, str] = {}
    found = []
    for line in story.own:
        if line["kind"] == "state" and line["state_to"] == COMPLETING:
            generation = int(line["generation"])
        elif line["kind"] == "member":
            if line["change"] in ("removed", "replaced"):
                gone[line["member_id"]] = f"it was {line['change']}, {line.get('cause')}, at #{line['seq']}"
            elif line["change"] == "added":
                gone.pop(line["member_id"], None)
        elif line["kind"] == "request" and line["seq"] in by_seq:
            call = by_seq[line["seq"]]
            if call.generation is None or call.generation < 0:
                continue
            behind = max(generation - call.generation, 0)
            if call.member_id in gone:
                found.append(Zombie(call, GONE, gone[call.member_id], behind))
            elif behind:
                found.append(Zombie(call, STALE, f"the group was in generation {generation}", behind))
            else:
                foreign = _foreign(story, call, by_generation.get(call.generation, {}))
                if foreign:
                    text = ", ".join(f"{topic} {number} of {owner}" for (topic, number), owner in foreign.items())
                    found.append(Zombie(call, FOREIGN, f"it commits {text}", 0, tuple(foreign)))
    return found


def _foreign(story: Story, call: Exchange, held: dict[tuple[str, int], list[str]]) -> dict[tuple[str, int], str]:
    """What it commits of others' partitions.

    What nobody owns is not among it: a cooperative member commits what it gives up when the generation in which it has
    to give it up has begun, and nobody has it until the next one.
    """
    label = story.label(call.member_id)
    committed = [(row[0], row[1]) for row in call.asked.get("offsets", ())]
    return {at: held[at][0] for at in committed if at in held and label not in held[at]}
