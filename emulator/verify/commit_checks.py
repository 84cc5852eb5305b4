"""Client checks of commits: no commit in an old generation (C03), a commit before partitions are revoked (C10)."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from operator import itemgetter
from typing import TYPE_CHECKING

from koordinator.trace.exchanges import OK

from .observations import Observations

if TYPE_CHECKING:
    from koordinator.trace.exchanges import Exchange

    from .group_trace import GroupTrace


def no_old_generation(trace: GroupTrace) -> Observations:
    """Find commits in a generation older than that of the member's last JoinGroup response (C03)."""
    observations = Observations()
    joins: dict[str, list[Exchange]] = defaultdict(list)
    for exchange in trace.exchanges:
        if exchange.joined_generation is not None:
            joins[exchange.member_id].append(exchange)
        if exchange.api != "OffsetCommit" or exchange.generation is None or exchange.generation < 0:
            continue
        newer = [
            join
            for join in joins[exchange.member_id]
            if (join.joined_generation or 0) > exchange.generation
            and (join.response_seq or exchange.seq) < exchange.seq
        ]
        if newer:
            text = f"{exchange}{trace.software(exchange.member_id)}, after {newer[-1]}"
            observations.add_failure(text, newer[-1], exchange)
        else:
            observations.add_pass(exchange)
    return observations


def committed_before_revoke(trace: GroupTrace, *, auto_commit: bool | None) -> Observations:
    """Find members that fetched records and revoked their partitions, by JoinGroup or LeaveGroup, uncommitted (C10).

    Only the eager protocol revokes every partition to join. The trace does not show whether a member commits
    automatically, or whether its application received the fetched records. A missing commit is therefore unclear
    unless `auto_commit` is True. Records that the member fetches after REBALANCE_IN_PROGRESS do not count.
    """
    observations = Observations()
    if auto_commit is False:
        return observations
    unique, all_fetches = _unique_clients(trace), _fetches(trace)
    for member_id, exchanges in trace.by_member.items():
        fetches = all_fetches[trace.clients.get(member_id, "")] if member_id in unique else []
        commits = [each for each in exchanges if each.api == "OffsetCommit" and each.error == OK]
        if not commits and auto_commit is None:
            continue
        for revoke, signal in _revokes(exchanges):
            earlier = [commit for commit in commits if commit.seq < revoke.seq]
            since = earlier[-1].seq if earlier else exchanges[0].seq
            at = bisect_right(fetches, since)
            if at == len(fetches) or fetches[at] >= (signal or revoke).seq:
                # a commit is the only evidence if the fetches may belong to another member
                if earlier:
                    observations.add_pass(earlier[-1], revoke)
                continue
            text = (
                f"{trace.describe(member_id)} gave up its partitions with {revoke}, and has "
                f"committed nothing since it fetched at #{fetches[at]}"
            )
            (observations.add_failure if auto_commit else observations.add_unclear)(text, revoke)
    return observations


def _revokes(exchanges: list[Exchange]) -> list[tuple[Exchange, Exchange | None]]:
    """Return each request by which a member revokes all partitions, with the Heartbeat that signalled the rebalance."""
    revokes: list[tuple[Exchange, Exchange | None]] = []
    signal: Exchange | None = None
    owns = eager = False
    for exchange in exchanges:
        if exchange.error == "REBALANCE_IN_PROGRESS" and exchange.api == "Heartbeat":
            signal = signal or exchange
        elif exchange.api in ("LeaveGroup", "JoinGroup"):
            if exchange.api == "LeaveGroup" or eager:
                if owns:
                    revokes.append((exchange, signal))
                owns = False
            signal = None
        if exchange.api == "SyncGroup" and exchange.error == OK:
            owns = any((exchange.response_body.get("assignment") or {}).values())
        if exchange.joined_generation is not None:
            eager = "cooperative" not in str(exchange.response_body.get("protocol"))
    return revokes


def _fetches(trace: GroupTrace) -> dict[str, list[int]]:
    """Return the Fetch responses that carried records to each client id."""
    fetches: dict[str, list[int]] = defaultdict(list)
    for line in trace.lines:
        if line["kind"] == "response" and line.get("api") == "Fetch" and (line.get("body") or {}).get("fetched"):
            fetches[line.get("client_id") or ""].append(int(line["seq"]))
    return fetches


def _unique_clients(trace: GroupTrace) -> set[str]:
    """Return the members that shared their client id with no other member at the same time.

    A client that rejoins gets a new member id.
    """
    unique: set[str] = set()
    last: dict[str, tuple[str, int]] = {}
    for member_id, exchanges in sorted(trace.by_member.items(), key=lambda item: item[1][0].seq):
        client_id = trace.clients.get(member_id, "")
        before, until = last.get(client_id, ("", -1))
        if exchanges[0].seq > until:
            unique.add(member_id)
        else:
            unique.discard(before)
        last[client_id] = max((before, until), (member_id, exchanges[-1].seq), key=itemgetter(1))
    return unique
