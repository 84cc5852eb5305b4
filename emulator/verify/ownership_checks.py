"""Client checks of ownership: revoke before reassigning (C06), exactly one owner for every partition (C07)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.trace.exchanges import OK

from .consumer_group_checks import owned_as_assigned
from .observations import Observations
from .ownership import owners_by_partition, ownership_errors
from .rebalances import assignments
from .zombies import zombies

if TYPE_CHECKING:
    from collections.abc import Mapping

    from koordinator.trace.exchanges import Exchange

    from .group_trace import GroupTrace
    from .ownership import MemberAssignment

Partition = tuple[str, int]


def revoked_first(trace: GroupTrace) -> Observations:
    """Find owned partitions that a cooperative leader gave to another member without a generation between (C06).

    KIP-429: a partition that a member still owns when it joins stays with it, or has no owner until the next
    generation. A member of a consumer group reports only partitions that it was assigned, and has not given up.
    """
    observations = Observations()
    assigned: dict[str, set[Partition]] = {}
    claims: dict[str, set[Partition]] = {}
    cooperative: set[int] = set()
    for exchange in trace.exchanges:
        label = trace.label(exchange.member_id)
        if exchange.joined_generation is not None:
            claims[label] = _claimed(exchange) & assigned.get(label, set())
            if is_cooperative(exchange):
                cooperative.add(exchange.joined_generation)
        elif exchange.api == "SyncGroup" and exchange.error == OK:
            if exchange.generation in cooperative and exchange.request_body.get("assignments"):
                _check_assignment(trace, observations, exchange, claims)
            assigned[label] = _partitions(exchange.response_body.get("assignment"))
    for zombie in zombies(trace):
        gives_up = zombie.exchange.generation in cooperative or trace.is_consumer_at(zombie.exchange.seq)
        if zombie.partitions and zombie.was_accepted and gives_up:
            observations.add_failure(f"{zombie}{trace.software(zombie.exchange.member_id)}", zombie.exchange)
    owned_as_assigned(trace, observations)
    return observations


def _check_assignment(
    trace: GroupTrace, observations: Observations, sync: Exchange, claims: Mapping[str, set[Partition]]
) -> None:
    by_label = {trace.label(member): topics or {} for member, topics in sync.request_body["assignments"].items()}
    failed = False
    for partition, labels in owners_by_partition(by_label).items():
        losers = [label for label in by_label if partition in claims.get(label, ()) and label not in labels]
        if losers:
            failed = True
            topic, number = partition
            observations.add_failure(
                f"{trace.describe(sync.member_id)} leads, and gave {topic} {number} to "
                f"{labels[0]} while {losers[0]} owned it: {sync}",
                sync,
            )
    if not failed:
        observations.add_pass(sync)


def owned_once(
    trace: GroupTrace, current: tuple[tuple[MemberAssignment, ...], Mapping[str, int]] | None
) -> Observations:
    """Find partitions with two owners in any generation, or without an owner in the current one (C07).

    `current` has the members and the partition counts of a Stable group, else it is None. Only the current generation
    is checked for partitions without an owner, because the trace lacks earlier partition counts. A cooperative
    generation may leave revoked partitions without an owner until the next one.
    """
    observations = Observations()
    last: list[Exchange] = []
    for sync, by_label in assignments(trace):
        last = [sync]
        shared = {at: labels for at, labels in owners_by_partition(by_label).items() if len(labels) > 1}
        for (topic, number), labels in shared.items():
            text = f"in generation {sync.generation} {topic} {number} was given to {' and '.join(labels)}"
            observations.add_failure(text, sync)
        if not shared:
            observations.add_pass(sync)
    if current is not None and any(member.topics for member in current[0]):
        members, partition_counts = current
        errors = ownership_errors(members, partition_counts)
        if errors and _follow_up_is_due(trace, members):
            observations.add_unclear(f"{'; '.join(errors)}: the follow-up rebalance has not started yet", *last)
        elif errors:
            observations.add_failure(f"the group is stable, and {'; '.join(errors)}", *last)
    return observations


def _follow_up_is_due(trace: GroupTrace, members: tuple[MemberAssignment, ...]) -> bool:
    """Return whether a member must revoke partitions and rejoin, which starts the second rebalance of KIP-429."""
    joins = [exchange for exchange in trace.exchanges if exchange.joined_generation is not None]
    newest = max((join.joined_generation or 0 for join in joins), default=0)
    last_joins = {
        trace.label(join.member_id): join for join in joins if join.joined_generation == newest and is_cooperative(join)
    }
    owned = {
        member.label: _partitions({topic: list(numbers) for topic, numbers in member.assignment.items()})
        for member in members
    }
    return any(_claimed(join) - owned.get(label, set()) for label, join in last_joins.items())


def is_cooperative(join: Exchange) -> bool:
    """Return whether a JoinGroup joined a generation with an incremental assignor, by the assignor's name."""
    return "cooperative" in str(join.response_body.get("protocol"))


def _claimed(join: Exchange) -> set[Partition]:
    return _partitions(join.request_body.get("owned"))


def _partitions(assignment: Mapping[str, list[int]] | None) -> set[Partition]:
    return {(topic, number) for topic, numbers in (assignment or {}).items() for number in numbers}
