"""The rows of partitions: the leaders' assignments, the moves between members, and the gaps without an owner."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from operator import itemgetter
from typing import TYPE_CHECKING

from koordinator.emulator.verify.lazy import lazy
from koordinator.trace.exchanges import OK

from .group_facts import CONSUMER, NEVER, Row, ms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator.trace.exchanges import Line
    from koordinator.trace.rebalances import Round

    from .group_facts import GroupFacts

Place = tuple[str, int]
"""A topic and a partition."""

Marks = list[tuple[int, int | None]]
"""Values, each with the sequence number from which it counts."""

MOVED = ("rebalance_no", "topic", "partition", "old_member", "new_member")


class PartitionFacts:
    """The partitions of a group in the course of its rebalances."""

    def __init__(self, facts: GroupFacts) -> None:
        self._facts = facts

    @lazy
    def assignment(self) -> list[Row]:
        """silver/assignment: the partitions in the first accepted SyncGroup with assignments of each generation.

        Of a consumer group the targets.
        """
        firsts: dict[int | None, Row] = {}
        for call in self._facts.trace.exchanges:
            if call.api == "SyncGroup" and call.error == OK and call.request_body.get("assignments"):
                firsts.setdefault(call.generation, {"seq": call.seq, "assignments": call.request_body["assignments"]})
        for line in self._facts.trace.targets:
            firsts.setdefault(line["generation"], {"seq": line["seq"], "assignments": line["body"]["assignments"]})
        return [
            self._facts.key
            | {"generation": generation, "seq": first["seq"], "member_id": member_id}
            | {"member": self._facts.trace.label(member_id), "topic": topic, "partition": partition}
            for generation, first in firsts.items()
            for member_id, topics in first["assignments"].items()
            for topic, partitions in (topics or {}).items()
            for partition in partitions
        ]

    @lazy
    def moves(self) -> dict[int, list[Row]]:
        """silver/move, by rebalance. Only completed rebalances count, with the assignment between start and end.

        A partition that stays unassigned in several rebalances has a row for the first of them only.
        """
        assigned: dict[int | None, list[Row]] = defaultdict(list)
        for row in self.assignment:
            assigned[row["generation"]].append(row)
        moves: dict[int, list[Row]] = defaultdict(list)
        # each owner with its life and rebalance
        owners: dict[Place, tuple[str, int, int]] = {}
        life, previous = self._facts.settled.life, None
        last: set[Place] = set()
        for each in self._facts.rounds:
            if each.outcome == "emptied":
                life, previous, last = life + 1, None, set()
            if each.outcome != "completed" or each.join is None or each.end is None:
                continue
            now: dict[Place, str] = {}
            for row in assigned[each.generation]:
                if each.start["seq"] < row["seq"] < each.end["seq"]:
                    at = (row["topic"], row["partition"])
                    now[at] = min(now.get(at, row["member"]), row["member"])
            for at in last - now.keys():
                lost = {"old_member": owners[at][0], "new_member": None, "had": True, "is_life": True}
                moves[each.number].append(self._row(each.number, at, lost))
            for at, member in now.items():
                owner, its_life, number = owners.get(at, (None, None, None))
                had = {"had": number is not None and number == previous, "is_life": its_life == life}
                moves[each.number].append(self._row(each.number, at, {"old_member": owner, "new_member": member} | had))
                owners[at] = (member, life, each.number)
            previous, last = each.number, set(now)
        return moves

    def _row(self, number: int, at: Place, columns: Row) -> Row:
        return self._facts.key | {"rebalance_no": number, "topic": at[0], "partition": at[1]} | columns

    def gaps(self, rebalances: list[Row], arrivals: dict[int, list[Row]]) -> Iterator[Row]:
        """Return gold/partition_gap: the moves between two owners.

        A cooperative rebalance revokes a partition in its first round (a row without `new_member`) and assigns it in
        the second (a row with both members). The gap starts at the JoinGroup of the second round, in which the old
        owner no longer claims the partition. An eager member gives up its partitions with its first JoinGroup, even
        one for a rebalance that another superseded. A member that did not join gave them up when it left. In a consumer
        group the gap lasts from the old owner's acknowledgement to the step that gives the partition to the new one.
        """
        left: dict[str, Marks] = defaultdict(list)
        for span in sorted(self._facts.spans, key=lambda span: span.get("left_seq", 0)):
            if "left_seq" in span:
                left[span["member"]].append((span["left_seq"], span["left_us"]))
        committed, fetched = self._committed(), self._fetched()
        first_us: dict[str, int] = {}
        for each, rebalance in zip(self._facts.rounds, rebalances, strict=True):
            joined_us: dict[str, int] = {}
            synced_us: dict[str, int] = {}
            for row in sorted(arrivals[each.number], key=lambda row: int(row["joined_seq"])):
                first_us.setdefault(row["member"], row["joined_us"])
                joined_us.setdefault(row["member"], row["joined_us"])
                if row["synced_us"] is not None:
                    synced_us[row["member"]] = min(synced_us.get(row["member"], NEVER), row["synced_us"])
            for move in self.moves.get(each.number, ()):
                old, new = move["old_member"], move["new_member"]
                if old == new:
                    continue
                end_seq, place = rebalance["end_seq"], (old, move["topic"], move["partition"])
                given_up_us = (
                    (first_us if rebalance["mode"] == "eager" else joined_us)[old] if old in joined_us else None
                )
                taken_us = synced_us.get(new)
                if rebalance["type"] == CONSUMER:
                    given_up_us, taken_us = self._handover(each, place, new)
                offset, position = _as_of(committed.get(place), end_seq), _as_of(fetched.get(place), end_seq)
                unread = None if offset is None or position is None else max(0, position - offset)
                yield (
                    self._facts.key
                    | {name: move[name] for name in MOVED}
                    | {
                        "gap_ms": ms(given_up_us or _as_of(left.get(old), end_seq), taken_us),
                        "last_committed": offset,
                        "last_fetched": position,
                        "redelivered_records": unread,
                    }
                )
            if each.outcome != "superseded":
                first_us = {}

    def _handover(self, each: Round, place: tuple[str, str, int], new: str) -> tuple[int | None, int | None]:
        """Return when the old owner no longer held a partition of a consumer group, and when the new one got it."""
        old, topic, partition = place
        given_up_us = taken_us = None
        for line in self._steps[bisect_left(self._steps, each.start["seq"], key=itemgetter("seq")) :]:
            member, body = self._facts.trace.label(line["member_id"]), line["body"]
            is_assigned = partition in body["assigned"].get(topic, ())
            if member == old and given_up_us is None and not is_assigned:
                given_up_us = None if partition in body["revoking"].get(topic, ()) else line["group_ts_us"]
            elif member == new and taken_us is None and is_assigned:
                taken_us = line["group_ts_us"]
        return given_up_us, taken_us

    @lazy
    def _steps(self) -> list[Line]:
        return [line for line in self._facts.trace.group_lines if line["kind"] == "reconciliation"]

    def _committed(self) -> dict[tuple[str, str, int], Marks]:
        """Return the offsets that members committed.

        The trace has the first error of a commit; a partly refused commit therefore counts as refused.
        """
        committed: dict[tuple[str, str, int], Marks] = defaultdict(list)
        for call in self._facts.trace.exchanges:
            if call.api == "OffsetCommit" and call.error == OK:
                member = call.instance_id or self._facts.trace.label(call.member_id)
                for topic, partition, offset, *_ in call.request_body.get("offsets") or ():
                    committed[member, topic, partition].append((call.seq, offset))
        return committed

    def _fetched(self) -> dict[tuple[str, str, int], Marks]:
        """Return the offsets up to which members received records."""
        fetched: dict[tuple[str, str, int], Marks] = defaultdict(list)
        for fetch in self._facts.fetches:
            for topic, partition, _, until in (fetch.line.get("body") or {}).get("fetched") or ():
                fetched[fetch.member, topic, partition].append((fetch.line["seq"], until))
        return fetched


def _as_of(marks: Marks | None, seq: int) -> int | None:
    """Return the value of the last mark before an event."""
    at = bisect_left(marks or (), seq, key=itemgetter(0))
    return marks[at - 1][1] if marks and at else None
