"""Client checks of joining: use of the assigned member id (C01), rejoin in time (C08), and the check of retries (C09).

After a refused commit a member joins (C13), and a leader sends its SyncGroup (C14).
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING

from .group_trace import after, client_ms
from .lookup_checks import LOOP_MS, LOOP_REQUESTS, is_loop
from .members import removals
from .observations import Observations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator.trace.exchanges import Exchange, Line

    from .group_trace import GroupTrace

FATAL = (
    "FENCED_INSTANCE_ID",
    "GROUP_MAX_SIZE_REACHED",
    "INCONSISTENT_GROUP_PROTOCOL",
    "UNRELEASED_INSTANCE_ID",
    "UNSUPPORTED_ASSIGNOR",
    "INVALID_REGULAR_EXPRESSION",
)
"""Errors that a retry does not resolve."""

REFUSED_COMMITS = ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION")
"""Errors of a commit after which the member has to join."""


def assigned_id_is_used(trace: GroupTrace) -> Observations:
    """Find member ids, assigned with MEMBER_ID_REQUIRED, that a client uses late or never (C01).

    KIP-394; librdkafka #5569: an unused id delays the group until it expires.
    """
    observations = Observations()
    for join in trace.exchanges:
        if join.api != "JoinGroup" or join.error != "MEMBER_ID_REQUIRED" or join.response is None:
            continue
        assigned = join.response.get("member_id")
        if assigned:
            _check_assigned_id(trace, observations, join, join.response, assigned)
    return observations


def _check_assigned_id(
    trace: GroupTrace, observations: Observations, join: Exchange, response: Line, assigned: str
) -> None:
    session_ms = join.request_body.get("session_timeout_ms", 0)
    name = trace.describe(assigned)
    later = after(trace.by_member.get(assigned, ()), response["seq"])
    use = next((each for each in later if each.request_member_id == assigned), None)
    second = _join_without_id(trace, join, before=None if use is None else use.seq)
    closed = trace.closing(join.connection)
    until = closed or trace.end
    if second is not None:
        observations.add_failure(
            f"{name} was assigned this id by {join}, and joined without it: {second}", join, second
        )
    elif use is not None and client_ms(trace, join, use.request) <= session_ms:
        observations.add_pass(join, use)
    elif use is not None:
        late_s = client_ms(trace, join, use.request) / 1000
        observations.add_failure(
            f"{name} used its id {late_s:g} s after it was assigned, {join}; its session timeout is "
            f"{session_ms / 1000:g} s",
            join,
            use,
        )
    elif closed is not None and client_ms(trace, join, closed) <= session_ms:
        observations.add_pass(join, closed)
    elif until is not None and client_ms(trace, join, until) > session_ms:
        observations.add_failure(f"{name} has never used the id that was assigned by {join}", join)
    else:
        observations.add_unclear(f"{name} has not used its id yet: {join}", join)


def _join_without_id(trace: GroupTrace, first: Exchange, before: int | None) -> Exchange | None:
    """Return the next JoinGroup without a member id on the same connection, before the assigned id is used."""
    for exchange in after(trace.by_connection[first.connection], first.response_seq or first.seq):
        if before is not None and exchange.seq > before:
            return None
        if (exchange.api, exchange.request_member_id, exchange.instance_id) == ("JoinGroup", "", None) and (
            exchange.client_id == first.client_id
        ):
            return exchange
    return None


def rejoins(trace: GroupTrace) -> Observations:
    """Find members that do not rejoin within their rebalance timeout after REBALANCE_IN_PROGRESS (C08, KIP-62)."""
    observations = Observations()
    for member_id, exchanges in trace.by_member.items():
        timeout_ms = 0
        signal: Exchange | None = None
        join: Exchange | None = None
        for exchange in exchanges:
            if exchange.api == "JoinGroup":
                timeout_ms = exchange.request_body.get("rebalance_timeout_ms", timeout_ms)
                join = exchange
            if signal is not None and signal.response is not None and exchange.seq > signal.response["seq"]:
                if exchange.api == "JoinGroup":
                    if client_ms(trace, signal, exchange.request) > timeout_ms:
                        _add_late(trace, observations, signal, timeout_ms, exchange)
                    else:
                        observations.add_pass(signal, exchange)
                    signal = None
                elif exchange.api == "LeaveGroup":
                    observations.add_pass(signal, exchange)
                    signal = None
            if exchange.error == "REBALANCE_IN_PROGRESS" and signal is None and _signals_rebalance(exchange, join):
                signal = exchange
        if signal is not None:
            _check_missing_join(trace, observations, member_id, signal, timeout_ms)
    return observations


def _signals_rebalance(exchange: Exchange, join: Exchange | None) -> bool:
    """Return whether a response signals a rebalance that the member has not joined yet.

    OffsetCommit responses do not count: the error also occurs after the member has joined.
    """
    joined_seq = None if join is None else join.response_seq
    is_joining = join is not None and (joined_seq is None or joined_seq > (exchange.response_seq or 0))
    return exchange.api in ("Heartbeat", "SyncGroup") and not is_joining


def _check_missing_join(
    trace: GroupTrace, observations: Observations, member_id: str, signal: Exchange, timeout_ms: int
) -> None:
    assert signal.response is not None, "the exchange has a response"
    answered = signal.response["seq"]
    removal = next((line for line in removals(trace, {member_id}) if line["seq"] > answered), None)
    closed = trace.closing(signal.connection)
    until = removal or closed or trace.end
    new_member_join = next(_joins_of(trace, member_id, answered), None)
    if new_member_join is not None and client_ms(trace, signal, new_member_join.request) <= timeout_ms:
        observations.add_pass(signal, new_member_join)
    elif until is not None and client_ms(trace, signal, until) > timeout_ms:
        _add_late(trace, observations, signal, timeout_ms, new_member_join)
    elif removal is None and closed is None:
        observations.add_unclear(f"{signal}, and has not joined again yet", signal)


def _add_late(
    trace: GroupTrace, observations: Observations, signal: Exchange, timeout_ms: int, join: Exchange | None
) -> None:
    delay = "has not joined again" if join is None else f"joined again too late: {join}"
    evidence = [signal] if join is None else [signal, join]
    software = trace.software(signal.member_id)
    text = f"{signal}{software}, and {delay}; its rebalance timeout is {timeout_ms / 1000:g} s"
    observations.add_failure(text, *evidence)


def no_tight_loop(trace: GroupTrace) -> Observations:
    """Find clients that retry a fatal error on one connection without backoff (C09)."""
    observations = Observations()
    recent: dict[tuple[object, ...], deque[Exchange]] = defaultdict(deque)
    for exchange in trace.exchanges:
        if exchange.error in FATAL:
            errors = recent[exchange.connection, exchange.api, exchange.error]
            if is_loop(errors, exchange):
                client = f"{exchange.client_id}{trace.software(exchange.member_id)}"
                observations.add_failure(
                    f"{client} sent {LOOP_REQUESTS} requests within {LOOP_MS} ms: {exchange}", *errors
                )
                errors.clear()
            else:
                observations.add_pass(exchange)
    return observations


def joins_after_refused_commit(trace: GroupTrace) -> Observations:
    """Find members of a classic group that never join after a commit was refused as of no member (C13).

    Java's consumer gives up its generation with such a response and joins with its next poll
    (`ConsumerCoordinator.OffsetCommitResponseHandler`), which is due within its rebalance timeout (KIP-62).
    """
    observations = Observations()
    for member_id, exchanges in trace.by_member.items():
        for commit in exchanges:
            is_commit = commit.api in ("OffsetCommit", "TxnOffsetCommit") and (commit.generation or 0) >= 0
            if is_commit and commit.error in REFUSED_COMMITS and not trace.is_consumer_at(commit.seq):
                _check_refused_commit(trace, observations, member_id, commit)
    return observations


def _check_refused_commit(trace: GroupTrace, observations: Observations, member_id: str, commit: Exchange) -> None:
    assert commit.response is not None, "the exchange has a response"
    own = trace.by_member[member_id]
    timeout_ms = _rebalance_timeout_ms(own)
    joins = [each for each in own if each.api == "JoinGroup" and each.seq < commit.response["seq"]]
    # the member may have joined while the commit was in flight, or be in a later generation already
    join = next((each for each in joins if each.response_seq is None or each.response_seq > commit.seq), None)
    join = join or next((each for each in joins if (each.joined_generation or 0) > (commit.generation or 0)), None)
    join = join or next(_joins_of(trace, member_id, commit.response["seq"]), None)
    reaction = join or next((each for each in after(own, commit.response["seq"]) if each.leaves), None)
    closed = trace.closing(commit.connection)
    until = closed or trace.end
    name = commit.instance_id or commit.client_id or member_id
    text = f"{name}'s commit #{commit.seq} was refused with {commit.error}; it has not joined since"
    if reaction is not None:
        observations.add_pass(commit, reaction)
    elif timeout_ms is not None and until is not None and client_ms(trace, commit, until) > timeout_ms:
        software = trace.software(member_id)
        text = f"{text}{software}; its rebalance timeout is {timeout_ms / 1000:g} s"
        observations.add_failure(text, commit)
    elif closed is None:
        observations.add_unclear(text, commit)


def leader_syncs(trace: GroupTrace) -> Observations:
    """Find leaders of a classic group that got the member list and sent no SyncGroup (C14).

    The others wait for the assignment; Kafka removes such a leader after its rebalance timeout
    (`GroupMetadataManager.expirePendingSync`).
    """
    observations = Observations()
    for join in trace.exchanges:
        if join.joined_generation is None or join.response is None:
            continue
        member_id = str(join.response.get("member_id") or join.member_id)
        if join.response_body.get("leader") == member_id:
            _check_leader(trace, observations, member_id, join, join.response)
    return observations


def _check_leader(
    trace: GroupTrace, observations: Observations, member_id: str, join: Exchange, response: Line
) -> None:
    own = trace.by_member.get(member_id, [])
    timeout_ms = join.request_body.get("rebalance_timeout_ms", 0)
    later = after(own, response["seq"])
    reaction = next((each for each in later if each.api in ("SyncGroup", "JoinGroup") or each.leaves), None)
    removal = next((line for line in removals(trace, {member_id}) if line["seq"] > response["seq"]), None)
    closed = trace.closing(join.connection)
    until = removal or closed or trace.end
    name = join.instance_id or join.client_id or member_id
    text = f"{name} leads generation {join.joined_generation} since #{join.seq}"
    if reaction is not None and client_ms(trace, join, reaction.request) <= timeout_ms:
        observations.add_pass(join, reaction)
    elif reaction is not None:
        late_s = client_ms(trace, join, reaction.request) / 1000
        observations.add_failure(f"{text}; its {reaction.api} #{reaction.seq} came {late_s:g} s later", join, reaction)
    elif until is not None and (
        client_ms(trace, join, until) > timeout_ms or (removal is not None and removal.get("cause") == "sync_timeout")
    ):
        observations.add_failure(f"{text}; it has sent no SyncGroup{trace.software(member_id)}", join)
    elif removal is None and closed is None:
        observations.add_unclear(f"{text}; it has sent no SyncGroup yet", join)


def _rebalance_timeout_ms(exchanges: list[Exchange]) -> int | None:
    """Return the rebalance timeout in a member's last JoinGroup that names one."""
    named = (each.request_body.get("rebalance_timeout_ms") for each in reversed(exchanges) if each.api == "JoinGroup")
    return next((ms for ms in named if ms is not None), None)


def _joins_of(trace: GroupTrace, member_id: str, seq: int) -> Iterator[Exchange]:
    """Return the JoinGroups of a member after a line: with its id, or without one on a connection that it has used.

    Clients with several connections to the coordinator may use one for JoinGroup alone.
    """
    connections = dict.fromkeys(each.connection for each in trace.by_member.get(member_id, ()))
    found = [
        each
        for connection in connections
        for each in after(trace.by_connection[connection], seq)
        if each.api == "JoinGroup" and each.request_member_id in ("", member_id)
    ]
    yield from sorted(found, key=lambda each: each.seq)
