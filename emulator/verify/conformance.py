"""The checks: C01 to C14, whether the members of a group follow Kafka's client protocol, and S01 to S16 of its server.

Each client check judges what the coordinator sees. Behaviour that the server's side does not show is inconclusive:
whether a closed client crashed or never leaves, and whether a client commits automatically.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..trace.vocabulary import CHECKS
from . import (
    commit_checks,
    consumer_group_checks,
    join_checks,
    lookup_checks,
    member_checks,
    ownership_checks,
    server_checks,
    share_checks,
    transaction_checks,
)
from .names import require_known
from .observations import FAIL, INCONCLUSIVE, PASS, Observations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from koordinator.trace.exchanges import Line

    from .group_trace import GroupTrace
    from .ownership import MemberAssignment


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a check: `status` is pass, fail, inconclusive or not_applicable.

    `evidence` has the sequence numbers of the trace lines that decide the status.
    """

    id: str
    title: str
    status: str
    evidence: tuple[int, ...]
    message: str

    def __str__(self) -> str:
        return f"{self.id} {self.title}: {self.status}{f': {self.message}' if self.message else ''}"


def conformance(
    trace: GroupTrace,
    stable: tuple[tuple[MemberAssignment, ...], Mapping[str, int]] | None = None,
    *,
    ignore: Iterable[str] = (),
    auto_commit: bool | None = None,
) -> list[Verdict]:
    """Return the verdict of each check except those in `ignore`. Raises ValueError for an unknown check.

    `stable` has the members and the number of partitions of each topic, if the group is Stable at the end of its trace.
    `auto_commit` states whether the members commit automatically, which the trace does not show; without it the commit
    before a revoke (C10) never fails.
    """
    ignored = {require_known("the check", check, CHECKS) for check in ignore}
    checks = client_checks(trace, stable, auto_commit=auto_commit)
    judged = ((check_id, check) for check_id, check in checks.items() if check_id not in ignored)
    return [_verdict(check_id, CHECKS[check_id], check(), trace.dropped) for check_id, check in judged]


def client_checks(
    trace: GroupTrace,
    stable: tuple[tuple[MemberAssignment, ...], Mapping[str, int]] | None = None,
    *,
    auto_commit: bool | None = None,
) -> dict[str, Callable[[], Observations]]:
    """Return the client checks by number; the arguments are those of `conformance`."""
    return {
        "C01": lambda: join_checks.assigned_id_is_used(trace),
        "C02": lambda: lookup_checks.coordinator_is_looked_up(trace),
        "C03": lambda: commit_checks.no_old_generation(trace),
        "C04": lambda: member_checks.heartbeats(trace),
        "C05": lambda: member_checks.leaving(trace),
        "C06": lambda: ownership_checks.revoked_first(trace),
        "C07": lambda: ownership_checks.owned_once(trace, stable),
        "C08": lambda: join_checks.rejoins(trace),
        "C09": lambda: join_checks.no_tight_loop(trace),
        "C10": lambda: commit_checks.committed_before_revoke(trace, auto_commit=auto_commit),
        "C11": lambda: consumer_group_checks.everything_after_error(trace),
        "C12": lambda: consumer_group_checks.latest_epoch(trace),
        "C13": lambda: join_checks.joins_after_refused_commit(trace),
        "C14": lambda: join_checks.leader_syncs(trace),
    }


SERVER_CHECKS: dict[str, tuple[str, Callable[[GroupTrace], Observations]]] = {
    "S01": (
        "the generation increments by one with each completed join barrier",
        server_checks.generation_increments,
    ),
    "S02": ("each generation has exactly one leader, which is one of its members", server_checks.single_leader),
    "S03": ("only the leader receives the member list", server_checks.member_list_for_leader_only),
    "S04": (
        "an unknown member gets UNKNOWN_MEMBER_ID, then a wrong generation gets ILLEGAL_GENERATION",
        server_checks.errors_in_kafkas_order,
    ),
    "S05": (
        "a member that joins without an id gets MEMBER_ID_REQUIRED once, with an id",
        server_checks.member_id_required_once,
    ),
    "S06": (
        "a silent member is removed soon after its session timeout, and not before",
        server_checks.session_expiry_in_time,
    ),
    "S07": ("a group never exceeds group.max.size, as far as the trace shows", server_checks.group_max_size_kept),
    "S08": (
        "a static member rejoins a Stable group without a rebalance, and its old member id is fenced",
        server_checks.static_rejoin_without_rebalance,
    ),
    "S09": ("every member supports the selected protocol", server_checks.protocol_supported_by_all),
    "S10": (
        "each request gets exactly one response, in the order of its connection",
        server_checks.one_response_in_order,
    ),
    "S11": (
        "consumer group: a partition has one member at a time, the next one only after its release",
        consumer_group_checks.released_first,
    ),
    "S12": (
        "consumer group: targets have rising epochs, and the epoch of a member never goes back",
        consumer_group_checks.epochs_rise,
    ),
    "S13": ("share group: no record is delivered while a member holds it", share_checks.held_once),
    "S14": (
        "share group: the delivery count of a record rises by one with each delivery, and is within the limit",
        share_checks.deliveries_counted,
    ),
    "S15": (
        "share group: an available record is delivered before new ones, a finished one never again",
        share_checks.delivered_in_turn,
    ),
    "S16": (
        "share group: only the holder of a record acknowledges it with success",
        share_checks.acknowledged_by_holder,
    ),
}
"""The coordinator checks by number: title and function."""


def transaction_verdicts(lines: Iterable[Line]) -> list[Verdict]:
    """Return the verdicts of the checks of transactions, T01 to T03, over the lines of a whole trace."""
    lines = list(lines)
    dropped = sum(int(line["count"]) for line in lines if line["kind"] == "dropped")
    found = transaction_checks.check_transactions(lines)
    return [_verdict(check, transaction_checks.TITLES[check], each, dropped) for check, each in found.items()]


def _verdict(check_id: str, title: str, observations: Observations, dropped: int) -> Verdict:
    status, message = observations.status, observations.message
    if status == PASS and dropped:
        status, message = INCONCLUSIVE, f"the trace lacks its first {dropped} events"
    return Verdict(check_id, title, status, observations.evidence, message)


def failures(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts of failed checks."""
    return [verdict for verdict in verdicts if verdict.status == FAIL]
