"""The checks: S01 to S10 of the coordinator, an emulator or a broker, and C01 to C10 of its clients.

The client checks judge as `koordinator.emulator.verify.conformance` does, by what the coordinator saw: a client that
does wrong is found out; what cannot be seen from the server's side is inconclusive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .client_commits import COOPERATIVE, committed_before_revoke, no_old_generation
from .client_joins import coordinator_is_looked_for, given_id_is_used, no_tight_loop, rejoins
from .client_members import heartbeats, leaving
from .client_owners import owned_once, revoked_first
from .server_answers import answered_once, refused_as_kafka_does, static_member_is_back
from .server_groups import id_required_once, members_for_the_leader, one_leader, one_more_each_time, protocol_of_all
from .server_members import never_too_many, removed_in_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from .story import Story

ERROR, WARNING = "error", "warning"
"""Severities: against the protocol, or against good manners."""


@dataclass(frozen=True, slots=True)
class Check:
    """A named predicate over what a trace says of a group. `judge` gives its findings (`judging.found`).

    `about` is a condition on silver/event, or on what else `among` names of a Story: where no row meets it there is
    nothing to be judged.
    """

    id: str
    title: str
    severity: str
    about: str
    judge: Callable[[Story], DataFrame]
    among: str = "event"


STATES, JOINS, SYNCS = "kind = 'state'", "api = 'JoinGroup'", "api = 'SyncGroup'"
COMMITS = "api = 'OffsetCommit'"

CHECKS = (
    Check("S01", "the generation rises by one with every join barrier that falls", ERROR, STATES, one_more_each_time),
    Check("S02", "a generation has one leader, which is a member", ERROR, JOINS, one_leader),
    Check("S03", "only the leader is told who the members are", ERROR, JOINS, members_for_the_leader),
    Check(
        "S04",
        "a wrong generation is refused with ILLEGAL_GENERATION, an unknown member first with UNKNOWN_MEMBER_ID",
        ERROR,
        "api IN ('Heartbeat', 'SyncGroup', 'OffsetCommit', 'TxnOffsetCommit')",
        refused_as_kafka_does,
    ),
    Check(
        "S05",
        "who joins without an id is refused once with MEMBER_ID_REQUIRED, and given one",
        ERROR,
        JOINS,
        id_required_once,
    ),
    Check(
        "S06",
        "a silent member is removed when its session has passed: not before, and soon after",
        ERROR,
        "cause = 'session_expired'",
        removed_in_time,
    ),
    Check(
        "S07",
        "a group has never more members than group.max.size, as far as it can be known",
        ERROR,
        "error = 'GROUP_MAX_SIZE_REACHED'",
        never_too_many,
    ),
    Check(
        "S08",
        "a static member that is back does not begin a rebalance, and its old member id is fenced",
        ERROR,
        "kind = 'member' AND change = 'replaced'",
        static_member_is_back,
    ),
    Check("S09", "the protocol that is chosen is one that every member supports", ERROR, JOINS, protocol_of_all),
    Check(
        "S10",
        "every request is answered once, in the order of its connection",
        ERROR,
        "kind = 'request'",
        answered_once,
    ),
    Check(
        "C01",
        "the id given with MEMBER_ID_REQUIRED is used within the session timeout",
        ERROR,
        "error = 'MEMBER_ID_REQUIRED'",
        given_id_is_used,
    ),
    Check(
        "C02",
        "after NOT_COORDINATOR the coordinator is looked for before it is asked again, and not without end",
        ERROR,
        "error = 'NOT_COORDINATOR'",
        coordinator_is_looked_for,
    ),
    Check(
        "C03",
        "no commit in an old generation after a newer JoinGroup of the same member",
        ERROR,
        COMMITS,
        no_old_generation,
    ),
    Check(
        "C04",
        "heartbeats come in time and not in a storm, and nothing is sent with generation -1 after a sync",
        WARNING,
        "api IN ('SyncGroup', 'Heartbeat')",
        heartbeats,
    ),
    Check(
        "C05",
        "a dynamic member leaves when it is closed, a static member does not",
        WARNING,
        "api = 'LeaveGroup' OR kind = 'conn' AND change = 'closed'",
        leaving,
    ),
    Check(
        "C06",
        "cooperative: a partition is revoked before another gets it, and never used by two",
        ERROR,
        f"formed IS NOT NULL AND protocol LIKE '{COOPERATIVE}'",
        revoked_first,
        among="call",
    ),
    Check("C07", "in a stable generation every partition is owned exactly once", ERROR, SYNCS, owned_once),
    Check(
        "C08",
        "REBALANCE_IN_PROGRESS is answered by a JoinGroup within the rebalance timeout",
        ERROR,
        "error = 'REBALANCE_IN_PROGRESS'",
        rejoins,
    ),
    Check(
        "C09",
        "fatal errors are not asked for again and again without a pause",
        WARNING,
        "error IN ('FENCED_INSTANCE_ID', 'GROUP_MAX_SIZE_REACHED', 'INCONSISTENT_GROUP_PROTOCOL')",
        no_tight_loop,
    ),
    Check(
        "C10",
        "what was consumed is committed before it is revoked, if the member commits automatically",
        WARNING,
        COMMITS,
        committed_before_revoke,
    ),
)
