"""The client checks C01 to C10: whether the members of a group behaved as Kafka's protocol asks of a client.

Each is judged by what the coordinator saw. A client that does wrong is found out; what cannot be seen from the server's
side (whether a client that is gone has crashed or does not leave, whether it commits automatically) is inconclusive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import checks_of_commits, checks_of_joins, checks_of_members, checks_of_owners, names
from .findings import FAIL, INCONCLUSIVE, PASS, Findings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .ownership import Owner
    from .story import Story


@dataclass(frozen=True, slots=True)
class Now:
    """How the group is at the end of the story, as far as C07 wants to know: None is not known.

    `is_stable`: in the state Stable. `partitions`: how many each topic has.
    """

    is_stable: bool
    members: tuple[Owner, ...]
    partitions: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a check: `status` is pass, fail, inconclusive or not_applicable.

    `evidence` are sequence numbers of trace lines: of what was wrong, if something was; else of what was looked at.
    """

    id: str
    title: str
    status: str
    evidence: tuple[int, ...]
    message: str

    def __str__(self) -> str:
        return f"{self.id} {self.title}: {self.status}{f': {self.message}' if self.message else ''}"


TITLES = {
    "C01": "the id given with MEMBER_ID_REQUIRED is used within the session timeout",
    "C02": "after NOT_COORDINATOR the coordinator is looked for before it is asked again, and not without end",
    "C03": "no commit in an old generation after a newer JoinGroup of the same member",
    "C04": "heartbeats come in time and not in a storm, and nothing is sent with generation -1 after a sync",
    "C05": "a dynamic member leaves when it is closed, a static member does not",
    "C06": "cooperative: a partition is revoked before another gets it, and never used by two",
    "C07": "in a stable generation every partition is owned exactly once",
    "C08": "REBALANCE_IN_PROGRESS is answered by a JoinGroup within the rebalance timeout",
    "C09": "fatal errors are not asked for again and again without a pause",
    "C10": "what was consumed is committed before it is revoked, if the member commits automatically",
}


def conformance(
    story: Story, now: Now | None = None, *, ignore: Iterable[str] = (), auto_commit: bool | None = None
) -> list[Verdict]:
    """The verdict of each check but those in `ignore`. Raises ValueError if there is no such check.

    `auto_commit`: whether the members commit automatically; the trace cannot say so, and without it C10 never fails.
    """
    left_out = {names.checked("the check", each, TITLES) for each in ignore}
    judged: dict[str, Callable[[], Findings]] = {
        "C01": lambda: checks_of_joins.given_id_is_used(story),
        "C02": lambda: checks_of_joins.coordinator_is_looked_for(story),
        "C03": lambda: checks_of_commits.no_old_generation(story),
        "C04": lambda: checks_of_members.heartbeats(story),
        "C05": lambda: checks_of_members.leaving(story),
        "C06": lambda: checks_of_owners.revoked_first(story),
        "C07": lambda: checks_of_owners.owned_once(
            story, None if now is None or not now.is_stable else (now.members, now.partitions)
        ),
        "C08": lambda: checks_of_joins.rejoins(story),
        "C09": lambda: checks_of_joins.no_tight_loop(story),
        "C10": lambda: checks_of_commits.committed_before_revoke(story, auto_commit=auto_commit),
    }
    return [_verdict(check_id, judge(), story.lost) for check_id, judge in judged.items() if check_id not in left_out]


def _verdict(check_id: str, findings: Findings, lost: int) -> Verdict:
    status, said = findings.status, findings.message
    if status == PASS and lost:
        status, said = INCONCLUSIVE, f"the trace has forgotten its first {lost} events"
    return Verdict(check_id, TITLES[check_id], status, findings.evidence, said)


def failures(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Those that failed."""
    return [verdict for verdict in verdicts if verdict.status == FAIL]
