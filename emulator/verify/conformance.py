"""The client checks C01 to C10: whether the members of a group follow Kafka's client protocol.

Each check judges what the coordinator sees. Behaviour that the server's side does not show is inconclusive: whether a
closed client crashed or never leaves, and whether a client commits automatically.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..trace.vocabulary import CHECKS
from . import commit_checks, join_checks, member_checks, ownership_checks
from .names import require_known
from .observations import FAIL, INCONCLUSIVE, PASS, Observations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

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
    checks: dict[str, Callable[[], Observations]] = {
        "C01": lambda: join_checks.assigned_id_is_used(trace),
        "C02": lambda: join_checks.coordinator_is_looked_up(trace),
        "C03": lambda: commit_checks.no_old_generation(trace),
        "C04": lambda: member_checks.heartbeats(trace),
        "C05": lambda: member_checks.leaving(trace),
        "C06": lambda: ownership_checks.revoked_first(trace),
        "C07": lambda: ownership_checks.owned_once(trace, stable),
        "C08": lambda: join_checks.rejoins(trace),
        "C09": lambda: join_checks.no_tight_loop(trace),
        "C10": lambda: commit_checks.committed_before_revoke(trace, auto_commit=auto_commit),
    }
    return [_verdict(check_id, check(), trace.dropped) for check_id, check in checks.items() if check_id not in ignored]


def _verdict(check_id: str, observations: Observations, dropped: int) -> Verdict:
    status, message = observations.status, observations.message
    if status == PASS and dropped:
        status, message = INCONCLUSIVE, f"the trace lacks its first {dropped} events"
    return Verdict(check_id, CHECKS[check_id], status, observations.evidence, message)


def failures(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts of failed checks."""
    return [verdict for verdict in verdicts if verdict.status == FAIL]
