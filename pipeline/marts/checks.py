"""The checks: S01 to S10 for the coordinator (emulator or broker), C01 to C10 for its clients.

The client checks give the verdicts of `koordinator.emulator.verify.conformance`. They rely on the coordinator's view: a
violation is certain, and a behaviour that the coordinator cannot observe is inconclusive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..vocabulary import CLIENT_CHECKS
from .client_commits import COOPERATIVE, commit_before_revoke, no_stale_commit
from .client_joins import assigned_id_is_used, coordinator_lookup, no_tight_loop, rejoin_in_time
from .client_members import heartbeats, leave_on_close
from .client_owners import revoke_before_assign, single_owner
from .server_answers import errors_in_kafkas_order, one_response_in_order, static_rejoin_without_rebalance
from .server_groups import (
    generation_increments,
    member_id_required_once,
    member_list_for_leader_only,
    protocol_supported_by_all,
    single_leader,
)
from .server_members import group_max_size_kept, session_expiry_in_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from .check_input import CheckInput

ERROR, WARNING = "error", "warning"
"""Severities: a violation of the protocol, or bad practice."""


@dataclass(frozen=True, slots=True)
class Check:
    """A named check of one group in a trace; `judge` returns its findings (`findings.findings`).

    `about` is a condition on silver/event, or on the table `among` of a CheckInput. Without a matching row the check
    has nothing to judge.
    """

    id: str
    title: str
    severity: str
    about: str
    judge: Callable[[CheckInput], DataFrame]
    among: str = "event"


STATES, JOINS, SYNCS = "kind = 'state'", "api = 'JoinGroup'", "api = 'SyncGroup'"
COMMITS = "api = 'OffsetCommit'"

CHECKS = (
    Check(
        "S01", "the generation increments by one with each completed join barrier", ERROR, STATES, generation_increments
    ),
    Check("S02", "each generation has exactly one leader, which is one of its members", ERROR, JOINS, single_leader),
    Check("S03", "only the leader receives the member list", ERROR, JOINS, member_list_for_leader_only),
    Check(
        "S04",
        "an unknown member gets UNKNOWN_MEMBER_ID, then a wrong generation gets ILLEGAL_GENERATION",
        ERROR,
        "api IN ('Heartbeat', 'SyncGroup', 'OffsetCommit', 'TxnOffsetCommit')",
        errors_in_kafkas_order,
    ),
    Check(
        "S05",
        "a member that joins without an id gets MEMBER_ID_REQUIRED once, with an id",
        ERROR,
        JOINS,
        member_id_required_once,
    ),
    Check(
        "S06",
        "a silent member is removed soon after its session timeout, and not before",
        ERROR,
        "cause = 'session_expired'",
        session_expiry_in_time,
    ),
    Check(
        "S07",
        "a group never exceeds group.max.size, as far as the trace shows",
        ERROR,
        "error = 'GROUP_MAX_SIZE_REACHED'",
        group_max_size_kept,
    ),
    Check(
        "S08",
        "a static member rejoins a Stable group without a rebalance, and its old member id is fenced",
        ERROR,
        "kind = 'member' AND change = 'replaced'",
        static_rejoin_without_rebalance,
    ),
    Check("S09", "every member supports the selected protocol", ERROR, JOINS, protocol_supported_by_all),
    Check(
        "S10",
        "each request gets exactly one response, in the order of its connection",
        ERROR,
        "kind = 'request'",
        one_response_in_order,
    ),
    Check("C01", CLIENT_CHECKS["C01"], ERROR, "error = 'MEMBER_ID_REQUIRED'", assigned_id_is_used),
    Check("C02", CLIENT_CHECKS["C02"], ERROR, "error = 'NOT_COORDINATOR'", coordinator_lookup),
    Check("C03", CLIENT_CHECKS["C03"], ERROR, COMMITS, no_stale_commit),
    Check("C04", CLIENT_CHECKS["C04"], WARNING, "api IN ('SyncGroup', 'Heartbeat')", heartbeats),
    Check(
        "C05",
        CLIENT_CHECKS["C05"],
        WARNING,
        "api = 'LeaveGroup' OR kind = 'conn' AND change = 'closed'",
        leave_on_close,
    ),
    Check(
        "C06",
        CLIENT_CHECKS["C06"],
        ERROR,
        f"formed IS NOT NULL AND protocol LIKE '{COOPERATIVE}'",
        revoke_before_assign,
        among="call",
    ),
    Check("C07", CLIENT_CHECKS["C07"], ERROR, SYNCS, single_owner),
    Check("C08", CLIENT_CHECKS["C08"], ERROR, "error = 'REBALANCE_IN_PROGRESS'", rejoin_in_time),
    Check(
        "C09",
        CLIENT_CHECKS["C09"],
        WARNING,
        "error IN ('FENCED_INSTANCE_ID', 'GROUP_MAX_SIZE_REACHED', 'INCONSISTENT_GROUP_PROTOCOL')",
        no_tight_loop,
    ),
    Check("C10", CLIENT_CHECKS["C10"], WARNING, COMMITS, commit_before_revoke),
)
