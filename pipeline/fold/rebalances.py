"""The rows of rebalances: silver/round, silver/arrival, gold/rebalance and gold/member_downtime."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from koordinator.emulator.trace.vocabulary import sub_cause
from koordinator.emulator.verify.lazy import lazy
from koordinator.emulator.verify.rebalances import target_of
from koordinator.trace.exchanges import OK
from koordinator.trace.rebalances import member_ids, straggler

from .group_facts import CLASSIC, CLIENT, CONSUMER, ms

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from koordinator.trace.exchanges import Exchange, Line
    from koordinator.trace.rebalances import Round

    from .group_facts import GroupFacts, Row
    from .partitions import PartitionFacts

INCREMENTAL = ("compatible", "sessioned", "stream")
"""Incremental protocols without `cooperative` in their name: Kafka Connect (KIP-415) and Kafka Streams."""

REJOINS = ("member_rejoin", "leader_rejoin", "metadata_change")
"""Causes of rebalances that an existing member triggers."""

TARGET = "assigned"
"""The cause of the last state of a consumer group's rebalance in a log, which has the target but not its end."""

STORM_GAP_MS = 1_000
"""A rebalance that starts within this time after the end of the last one belongs to the same storm."""


class RebalanceFacts:
    """The rebalances of a group."""

    def __init__(self, facts: GroupFacts, partitions: PartitionFacts) -> None:
        self._facts, self._partitions = facts, partitions

    @lazy
    def rounds(self) -> list[Row]:
        """silver/round: the rebalances, derived from state changes. A broker log has members' numbers in the body."""
        rows: list[Row] = []
        settled = self._facts.settled
        joined_before, life, chain = settled.joined_before, settled.life, settled.chain
        completed_before = settled.completed_before
        waiting: list[Row] = []
        for each in self._facts.rounds:
            late = each.timed_out[0] if each.timed_out else None
            row: Row = self._facts.key | {"rebalance_no": each.number, "outcome": each.outcome}
            row |= {name: each.start.get(name) for name in ("cause", "reason", "client_reason")}
            row |= _at("start", each.start) | _at("end", each.end)
            row |= {
                "type": CONSUMER if self._facts.trace.is_consumer_at(each.start["seq"]) else CLASSIC,
                "gen_before": each.start.get("generation"),
                "trigger_member": self._label(each.start.get("member_id")),
                "join_seq": each.join["seq"] if each.join else None,
                "over_us": each.barrier["group_ts_us"] if each.barrier else None,
                "gen_after": each.generation,
                "told_members": _body(each.barrier, "n_members"),
                "told_static": _body(each.end, "n_static") if each.outcome != "superseded" else None,
                "late_member": self._label(late["member_id"]) if late else None,
                "n_timed_out": len(each.timed_out),
                "life": life,
                "chain": chain,
                "joined_before": joined_before,
                "completed_before": completed_before,
                "completed_after": None,
            }
            rows.append(row)
            if each.outcome == "completed":
                for earlier in waiting:
                    earlier["completed_after"] = each.number
                completed_before, waiting = each.number, []
            waiting.append(row)
            joined_before = row["join_seq"] or joined_before
            chain += each.outcome != "superseded"
            if each.outcome == "emptied":
                life, completed_before, waiting = life + 1, None, []
        return rows

    def _label(self, member_id: str | None) -> str | None:
        return self._facts.trace.label(member_id) if member_id else None

    @lazy
    def arrivals(self) -> dict[int, list[Row]]:
        """silver/arrival, by rebalance: the members that joined in it, with their waiting times."""
        synced: dict[tuple[str, int | None], list[Exchange]] = defaultdict(list)
        for call in self._facts.trace.exchanges:
            if call.api == "SyncGroup" and call.response is not None:
                synced[call.member_id, call.generation].append(call)
        return {
            each.number: [self._arrival(each, joins, synced[joins[0].member_id, each.generation]) for joins in joined]
            for each, joined in zip(self._facts.rounds, self._facts.arrivals, strict=True)
        }

    def _arrival(self, each: Round, joins: list[Exchange], syncs: list[Exchange]) -> Row:
        first, last = joins[0], joins[-1]
        lists = (join.response_body.get("members") for join in joins)
        later = (sync.response for sync in syncs if each.join and sync.seq > each.join["seq"])
        synced = next(later, None)
        return self._facts.key | {
            "rebalance_no": each.number,
            "member_id": last.member_id,
            "member": self._label(last.member_id),
            "instance_id": last.instance_id,
            **{name: last.request.get(name) for name in CLIENT},
            "joined_seq": first.seq,
            "joined_us": first.request["group_ts_us"],
            "last_joined_seq": last.seq,
            "last_joined_us": last.request["group_ts_us"],
            "synced_us": synced["group_ts_us"] if synced else None,
            "protocol": max((join.response_body.get("protocol") or "" for join in joins), default=None) or None,
            "owns": any(join.request_body.get("owned") for join in joins),
            "members": next(filter(None, lists), None),
        }

    @lazy
    def rebalances(self) -> list[Row]:
        """gold/rebalance: every rebalance with its cause, its duration, and the partitions it moved."""
        rows: list[Row] = []
        settled = self._facts.settled
        base, storm = settled.base, dict(settled.storm)
        seen_in: dict[str, int] = {}
        statics = set(self._facts.trace.instances.values())
        for each, lines, joined in zip(self.rounds, self._facts.rounds, self._facts.arrivals, strict=True):
            before = rows[-1] if rows else settled.before
            ids = member_ids(joined) or target_of(self._facts.trace, lines)
            labels = dict.fromkeys(filter(None, map(self._label, ids)))
            row: Row = each | self._times(each, lines) | self._straggler(each, lines, joined)
            row["mode"], row["protocol"] = self._mode(each, lines)
            row |= self._moved(each, labels) | {"labels": [*labels]}
            row |= _members(each, base, labels, seen_in, statics)
            row["sub_cause"] = sub_cause(each["client_reason"])
            may_follow_up = before.get("mode") == "cooperative" and each["cause"] in REJOINS
            is_loser = may_follow_up and each["trigger_member"] in before["losers"]
            row["followup"] = row["sub_cause"] == "revoke_and_rejoin" or is_loser
            since_ms = ms(before.get("end_us"), each["start_us"])
            if since_ms is not None and since_ms <= STORM_GAP_MS:
                row["storm_id"] = storm["storm_id"] = "/".join(
                    map(str, (*self._facts.key.values(), storm["rebalance_no"]))
                )
            else:
                storm = row
            seen_in |= dict.fromkeys(labels, lines.number)
            if row["members_after"] is not None:
                base = row
            rows.append(row)
        return rows

    def _times(self, each: Row, lines: Round) -> Row:
        completed = each["outcome"] == "completed"
        fetch_us = self._first_fetch_us(each, lines) if completed else None
        # a log does not say when the members of a consumer group have their targets
        end_us = (
            None
            if completed and each["type"] == CONSUMER and (lines.end or {}).get("cause") == TARGET
            else each["end_us"]
        )
        return {
            "started_at": each["start_wall_us"],
            "t_start_us": each["start_us"],
            "t_join_done_us": each["over_us"],
            "t_sync_done_us": end_us if completed else None,
            "t_first_fetch_us": fetch_us,
            "join_ms": ms(each["start_us"], each["over_us"]),
            "sync_ms": ms(each["over_us"], end_us) if completed and each["join_seq"] else None,
            "total_ms": ms(each["start_us"], end_us),
            "resume_ms": ms(each["start_us"], fetch_us),
        }

    def _first_fetch_us(self, each: Row, lines: Round) -> int | None:
        """Return the time of the first OffsetFetch of the group, or Fetch of a member, until the next rebalance."""
        fetches = self._fetches
        at = bisect_left(fetches, each["end_seq"], key=itemgetter("seq"))
        number = lines.number - self._facts.settled.number
        following = self._facts.rounds[number : number + 1]
        if at == len(fetches) or (following and fetches[at]["seq"] > following[0].start["seq"]):
            return None
        # Fetch names no group: its group time is that of the rebalance's end plus the wall clock time since
        group_us = fetches[at].get("group_ts_us")
        us: int = each["end_us"] + fetches[at]["wall_ts"] - each["end_wall_us"] if group_us is None else group_us
        return us

    @lazy
    def _fetches(self) -> list[Line]:
        offset_fetches = [call.request for call in self._facts.trace.exchanges if call.api == "OffsetFetch"]
        return sorted([*offset_fetches, *(fetch.line for fetch in self._facts.fetches)], key=itemgetter("seq"))

    def _straggler(self, each: Row, lines: Round, joined: list[list[Exchange]]) -> Row:
        if each["gen_after"] is None:
            return {}
        late = (each["late_member"],) if each["late_member"] else ()
        member, wait_us = straggler([joins[-1] for joins in joined], late, lines.barrier, self._facts.trace.label)
        barrier_us = each["over_us"] - each["start_us"]
        share = wait_us / barrier_us if wait_us is not None and barrier_us > 0 else None
        wait_ms = None if wait_us is None else wait_us / 1000
        return {"straggler_member": member, "straggler_wait_ms": wait_ms, "straggler_share": share}

    def _mode(self, each: Row, lines: Round) -> tuple[str | None, str | None]:
        if each["type"] == CONSUMER:
            targets = (line for line in self._facts.trace.targets if line["generation"] == lines.generation)
            assignor = next((line["body"]["assignor"] for line in targets), None)
            return "cooperative", assignor or _body(lines.join, "assignor")
        rows = self.arrivals[each["rebalance_no"]]
        protocol = max((row["protocol"] or "" for row in rows), default="")
        if not protocol:
            return None, None
        name = protocol.lower()
        incremental = "cooperative" in name or name in INCREMENTAL or any(row["owns"] for row in rows)
        return ("cooperative" if incremental else "eager"), protocol

    def _moved(self, each: Row, labels: dict[str, None]) -> Row:
        """Return the moved partitions, the fewest moves that were needed, and `losers` of unassigned partitions.

        Fewest are those of any balanced assignment, or of this one if it moved fewer. In a balanced assignment each of
        M members has P // M partitions, and P % M of them have one more. So a member can keep at most P // M of its
        partitions, or one more.
        """
        moves = self._partitions.moves.get(each["rebalance_no"], [])
        losers = {move["old_member"] for move in moves if move["new_member"] is None}
        if not moves:
            return {"losers": losers}
        assigned = [move for move in moves if move["new_member"] is not None]
        owned = [move for move in assigned if move["is_life"] and move["old_member"] is not None]
        moved = minimum = sum(move["old_member"] != move["new_member"] for move in owned)
        if labels:
            had = [n for member, n in Counter(move["old_member"] for move in owned).items() if member in labels]
            fair, extra = divmod(len(assigned), len(labels))
            kept = sum(min(n, fair) for n in had) + min(sum(n > fair for n in had), extra)
            minimum = min(len(owned) - kept, moved)
        return {
            "losers": losers,
            "partitions_total": len(assigned),
            "partitions_moved": moved,
            "moves_minimum": minimum,
            "stickiness": minimum / moved if moved else 1.0,
        }

    def downtimes(self) -> Iterator[Row]:
        """Return gold/member_downtime: silver/arrival, with the partitions each member kept, received and lost."""
        committed: dict[str, list[int]] = defaultdict(list)
        for call in self._facts.trace.exchanges:
            if call.api == "OffsetCommit" and call.error == OK:
                committed[call.member_id].append(call.seq)
        for rebalance in self.rebalances:
            counts: dict[str, Counter[str]] = defaultdict(Counter)
            for move in self._partitions.moves.get(rebalance["rebalance_no"], ()):
                kept = move["had"] and move["old_member"] == move["new_member"]
                if move["new_member"] is not None:
                    counts[move["new_member"]]["kept_n" if kept else "assigned_n"] += 1
                if move["had"] and not kept:
                    counts[move["old_member"]]["revoked_n"] += 1
            for arrival in self.arrivals[rebalance["rebalance_no"]]:
                yield self._downtime(rebalance, arrival, counts[arrival["member"]], committed[arrival["member_id"]])

    @staticmethod
    def _downtime(rebalance: Row, arrival: Row, counts: Counter[str], commits: list[int]) -> Row:
        completed = rebalance["outcome"] == "completed"
        held = {name: counts[name] if completed else None for name in ("kept_n", "assigned_n", "revoked_n")}
        waited_ms = ms(arrival["joined_us"], arrival["synced_us"])
        start, joined = rebalance["start_seq"], arrival["joined_seq"]
        must_commit = held["revoked_n"] and joined > start
        at = bisect_left(commits, start)
        return (
            arrival
            | held
            | {
                "membership": "static" if arrival["instance_id"] else "dynamic",
                "mode": rebalance["mode"],
                "waited_ms": waited_ms,
                "stopped_ms": 0.0 if rebalance["mode"] == "cooperative" and held["revoked_n"] == 0 else waited_ms,
                "commit_before_revoke": at < len(commits) and commits[at] < joined if must_commit else None,
            }
        )


def _at(name: str, line: Line | None) -> Row:
    columns = {"seq": "seq", "wall_us": "wall_ts", "us": "group_ts_us"}
    return {f"{name}_{column}": None if line is None else line.get(key) for column, key in columns.items()}


def _body(line: Line | None, name: str) -> Any:  # noqa: ANN401 - a JSON value
    return ((line or {}).get("body") or {}).get(name)


def _members(each: Row, base: Row, labels: dict[str, None], seen_in: dict[str, int], statics: Collection[str]) -> Row:
    """Return the numbers of members before and after; `base` is the last rebalance after which they are known.

    A group older than the trace is unknown; a group in generation 0 is new. A log has the number of members only.
    """
    emptied = each["outcome"] == "emptied"
    n_members = len(labels) or None
    after = 0 if emptied else n_members if n_members is not None else each["told_members"]
    before = base["members_after"] if base else 0 if each["gen_before"] == 0 else None
    is_known = before == 0 or base.get("n_members") is not None
    stayed = sum(bool(base) and seen_in.get(label) == base["rebalance_no"] for label in labels)
    n_joined = 0 if emptied else n_members - stayed if is_known and n_members is not None else None
    n_static = sum(label in statics for label in labels) if labels else each["told_static"]
    n_static = n_static if each["join_seq"] is not None else None
    membership = None
    if n_static is not None and after is not None:
        membership = "dynamic" if n_static == 0 < after else "static" if n_static == after else "mixed"
    counts = [n for n in (before, after, n_joined) if n is not None]
    return {
        "n_members": n_members,
        "members_before": before,
        "members_after": after,
        "n_joined": n_joined,
        "n_left": counts[0] - counts[1] + counts[2] if len(counts) == 3 else None,  # noqa: PLR2004 - all are known
        "n_static": n_static,
        "membership": membership,
    }
