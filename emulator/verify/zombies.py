"""Zombie commits: commits of an old generation, of a former member, or of another member's partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from koordinator.trace.exchanges import OK
from koordinator.trace.rebalances import COMPLETING

from .consumer_group_checks import Holders
from .ownership import owners_by_partition
from .rebalances import assignments

if TYPE_CHECKING:
    from koordinator.trace.exchanges import Exchange, Line

    from .group_trace import GroupTrace

Owners = dict[tuple[str, int], list[str]]
"""The labels of the members that own each partition."""

STALE, NOT_A_MEMBER, NOT_THE_OWNER = "stale_generation", "not_a_member", "not_the_owner"


@dataclass(frozen=True, slots=True)
class Zombie:
    """A commit of a member that lost the right to commit.

    `kind` is one of:

    * stale_generation: the group was `behind` generations ahead of the commit. In a consumer group (KIP-848) the
      member was that many epochs ahead, and another member held `partitions`: Kafka takes commits of earlier epochs
      for partitions that stay (KIP-1251);
    * not_a_member: the member had left, or had been removed or replaced;
    * not_the_owner: another member owned `partitions` (topic, number) by then.

    The coordinator rejects the first two kinds (but see KIP-1251); it does not check the third.
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
    standing = Standing(trace)
    result = []
    for line in trace.group_lines:
        standing.follow(line)
        commit = commits.get(line["seq"])
        if commit is not None and commit.generation is not None and commit.generation >= 0:
            zombie = standing.zombie(commit, commit.generation)
            if zombie is not None:
                result.append(zombie)
    return result


class Standing:
    """The members that may commit, by partition, at a line of the trace."""

    def __init__(self, trace: GroupTrace) -> None:
        self._trace = trace
        self._assignments = {sync.seq: owners_by_partition(held) for sync, held in assignments(trace)}
        self._owned: Owners = {}
        self._owned_generation = self._generation = -1
        self._removed: dict[str, str] = {}
        self._holders = Holders()
        self._epochs: dict[str, int] = {}

    def follow(self, line: Line) -> None:
        """Take the next line of the group."""
        self._holders.follow(line)
        if line["kind"] == "state" and line["state_to"] == COMPLETING:
            self._generation = int(line["generation"])
        elif line["kind"] == "member":
            member_id = str(line.get("member_id"))
            if line["change"] in ("removed", "replaced"):
                self._removed[member_id] = f"it was {line['change']}, {line.get('cause')}, at #{line['seq']}"
            elif line["change"] == "added":
                self._removed.pop(member_id, None)
        elif line["kind"] == "reconciliation":
            self._epochs[str(line["member_id"])] = int(line["generation"])
        elif line["kind"] == "request" and line["seq"] in self._assignments:
            self._owned, self._owned_generation = self._assignments[line["seq"]], int(line["generation"])

    def zombie(self, commit: Exchange, generation: int) -> Zombie | None:
        """Return a commit in a generation as a zombie, if it is one now."""
        is_consumer = self._trace.is_consumer_at(commit.seq)
        latest = self._epochs.get(commit.member_id, generation) if is_consumer else self._generation
        behind = max(latest - generation, 0)
        if commit.member_id in self._removed:
            return Zombie(commit, NOT_A_MEMBER, self._removed[commit.member_id], behind)
        if behind and not is_consumer:
            return Zombie(commit, STALE, f"the group was in generation {latest}", behind)
        foreign = _foreign_partitions(self._trace, commit, self._owners(generation, is_consumer=is_consumer))
        if not foreign:
            return None
        text = "it commits " + ", ".join(f"{topic} {number} of {owner}" for (topic, number), owner in foreign.items())
        if behind:
            return Zombie(commit, STALE, f"{text}; its epoch is {latest}", behind, tuple(foreign))
        return Zombie(commit, NOT_THE_OWNER, text, 0, tuple(foreign))

    def _owners(self, generation: int, *, is_consumer: bool) -> Owners:
        if is_consumer:
            return {at: [self._trace.label(step["member_id"])] for at, step in self._holders.items()}
        return self._owned if self._owned_generation == generation else {}


def _foreign_partitions(trace: GroupTrace, commit: Exchange, owners: Owners) -> dict[tuple[str, int], str]:
    """Return the committed partitions that another member owns, with that owner.

    Partitions without an owner do not count: a cooperative member commits the partitions that it revokes after the
    generation has begun, and they stay without an owner until the next one.
    """
    label = trace.label(commit.member_id)
    committed = [(row[0], row[1]) for row in commit.request_body.get("offsets", ())]
    return {at: owners[at][0] for at in committed if at in owners and label not in owners[at]}
