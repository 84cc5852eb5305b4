"""gold/client_join: rebalances as client logs describe them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from koordinator.emulator.trace.vocabulary import sub_cause

from .group_facts import ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from koordinator.trace.exchanges import Line

    from .group_facts import Row

CLIENT = "client"
"""The kind of lines from client logs, which describe no group as a coordinator does."""


def client_joins(trace_id: str, lines: Sequence[Line]) -> Iterator[Row]:
    """Return one row for each join of a client, from its first JoinGroup to its assignment.

    A JoinGroup repeated with an assigned member id (KIP-394), or after an error, belongs to the same join. The cause of
    the first join is `member_join`. That of the others is the `sub_cause` of the reason that the client logged before;
    None if it logged none.
    """
    clients: dict[tuple[str | None, str | None], list[Line]] = defaultdict(list)
    for line in lines:
        if line["kind"] == CLIENT:
            clients[line.get("group_id"), line.get("client_id")].append(line)
    for (group_id, client_id), its_lines in clients.items():
        for join in _joins(its_lines):
            start_us, joined_us, assigned_us = (join.pop(name, None) for name in ("us", "joined_us", "assigned_us"))
            yield {
                "trace_id": trace_id,
                "group_id": group_id,
                "client_id": client_id,
                "started_at": start_us,
                **join,
                "join_ms": ms(start_us, joined_us),
                "total_ms": ms(start_us, assigned_us),
            }


def _joins(lines: Sequence[Line]) -> list[Row]:
    joins: list[Row] = []
    step = reason = None
    for line in lines:
        change = line.get("change")
        if change == "joining" and step != "joining":
            cause = sub_cause(reason) if joins else "member_join"
            joins.append({"source": line.get("source"), "start_seq": line["seq"], "us": line["wall_ts"]})
            joins[-1] |= {"cause": cause, "reason": reason}
        if change in ("joining", "joined", "assigned", "left"):
            step = change
        # the reason precedes the join
        if change in ("rejoins", "joined", "left"):
            reason = line.get("reason") if change == "rejoins" else None
        if not joins:
            continue
        join = joins[-1]
        if line.get("member_id"):
            join["member_id"] = max(join.get("member_id", ""), line["member_id"])
        if change == "joined" and line.get("generation") is not None:
            join["generation"] = max(join.get("generation", line["generation"]), line["generation"])
        if change in ("joined", "assigned"):
            join.setdefault(f"{change}_us", line["wall_ts"])
    return joins
