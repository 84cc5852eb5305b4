"""The rebalances and the assignments in the whole trace of a group."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from koordinator.trace.exchanges import OK
from koordinator.trace.rebalances import Rounds, rebalances_of

if TYPE_CHECKING:
    from koordinator.trace.exchanges import Exchange
    from koordinator.trace.rebalances import Rebalance, Round

    from .group_trace import GroupTrace


def rebalances(trace: GroupTrace) -> list[Rebalance]:
    """Return every rebalance that began, oldest first."""
    return rebalances_of(trace.group_lines)


def rounds(trace: GroupTrace) -> list[Round]:
    """Return the lines of every rebalance that began, oldest first."""
    reader = Rounds()
    ended = [each for line in trace.group_lines if (each := reader.feed(line)) is not None]
    return [*ended, *([reader.open] if reader.open else [])]


def target_of(trace: GroupTrace, lines: Round) -> dict[str, dict[str, list[int]]]:
    """Return the target of a rebalance of a consumer group, by member id; empty for a classic group."""
    return next((line["body"]["assignments"] for line in trace.targets if line["generation"] == lines.generation), {})


def assignments(trace: GroupTrace) -> list[tuple[Exchange, dict[str, dict[str, list[int]]]]]:
    """Return the leader's SyncGroup of each generation, with its assignment: member label -> topic -> partitions.

    Only assignments that the coordinator accepted, and only in the consumer protocol's format. A group that was deleted
    counts its generations from the beginning.
    """
    found: dict[tuple[int, int], tuple[Exchange, dict[str, dict[str, list[int]]]]] = {}
    for exchange in trace.exchanges:
        assigned = exchange.request_body.get("assignments")
        if exchange.api == "SyncGroup" and assigned and exchange.error == OK and exchange.generation is not None:
            labelled = {trace.label(member_id): dict(topics or {}) for member_id, topics in assigned.items()}
            life = bisect_right(trace.deletions, exchange.seq)
            found.setdefault((life, exchange.generation), (exchange, labelled))
    return list(found.values())
