"""Zombie commits: commits of an old generation, of a former member, or of another member's partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .group_trace import OK
from .ownership import owners_by_partition
from .rebalances import COMPLETING, assignments

if TYPE_CHECKING:
    from .group_trace import Exchange, GroupTrace

STALE, NOT_A_MEMBER, NOT_THE_OWNER = "stale_generation", "not_a_member", "not_the_owner"


@dataclass(frozen=True, slots=True)
class Zombie:
    """A commit of a member that lost the right to commit.

    `kind` is one of:

    * stale_generation: the group was `behind` generations ahead of the commit;
    * not_a_member: the member had left, or had been removed or replaced;
    * not_the_owner: another member owned `partitions` (topic, number) by then.

    The coordinator rejects the first two kinds; it does not check the third.
    """

    exchange: Exchange
    kind: str
    reason: str
    behind: int
    partitions: tuple[tuple[str, int], ...] = ()

    @property
    def was_accepted(self) -> bool:
        """Whether the coordinator stored the offsets, those of `partitions` if there are any."""
        stored = {(topic, partition) for topic, partition, _ in self.exchange.committed}
        return bool(stored.intersection(self.partitions) if self.partitions else self.exchange.error == OK)

    def __str__(self) -> str:
        return f"{self.exchange}: {self.reason}"


def zombies(trace: GroupTrace) -> list[Zombie]:
    """Return the zombie commits, in the order of their requests.

    The state of the group at the time of the request decides, not that of the response: a member in good standing sent
    a commit that a hold or the network delayed. Commits in generation -1 come from consumers that assign their
    partitions themselves, and from administrators.
    """
    commits = {exchange.seq: exchange for exchange in trace.exchanges if exchange.api == "OffsetCommit"}
    owners = {sync.seq: owners_by_partition(held) for sync, held in assignments(trace)}
    owned: dict[tuple[str, int], list[str]] = {}
    owned_generation = generation = -1
    removed: dict[str, str] = {}
    result = []
    for line in trace.group_lines:
        if line["kind"] == "state" and line["state_to"] == COMPLETING:
            generation = int(line["generation"])
        elif line["kind"] == "member":
            if line["change"] in ("removed", "replaced"):
                removed[str(line.get("member_id"))] = f"it was {line['change']}, {line.get('cause')}, at #{line['seq']}"
            elif line["change"] == "added":
                removed.pop(str(line.get("member_id")), None)
        elif line["kind"] == "request" and line["seq"] in owners:
            owned, owned_generation = owners[line["seq"]], int(line["generation"])
        elif line["kind"] == "request" and line["seq"] in commits:
            commit = commits[line["seq"]]
            if commit.generation is None or commit.generation < 0:
                continue
            behind = max(generation - commit.generation, 0)
            if commit.member_id in removed:
                result.append(Zombie(commit, NOT_A_MEMBER, removed[commit.member_id], behind))
            elif behind:
                result.append(Zombie(commit, STALE, f"the group was in generation {generation}", behind))
            else:
                foreign = _foreign_partitions(trace, commit, owned if owned_generation == commit.generation else {})
                if foreign:
                    text = ", ".join(f"{topic} {number} of {owner}" for (topic, number), owner in foreign.items())
                    result.append(Zombie(commit, NOT_THE_OWNER, f"it commits {text}", 0, tuple(foreign)))
    return result


def _foreign_partitions(
    trace: GroupTrace, commit: Exchange, owners: dict[tuple[str, int], list[str]]
) -> dict[tuple[str, int], str]:
    """Return the committed partitions that another member owns, with that owner.

    Partitions without an owner do not count: a cooperative member commits the partitions that it revokes after the
    generation has begun, and they stay without an owner until the next one.
    """
    label = trace.label(commit.member_id)
    committed = [(row[0], row[1]) for row in commit.request_body.get("offsets", ())]
    return {at: owners[at][0] for at in committed if at in owners and label not in owners[at]}
