"""Client checks of joining: use of the assigned member id (C01), coordinator lookup (C02), rejoin in time (C08).

The check of retries after fatal errors (C09) is here, too, because it shares the retry limit with C02.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING

from .group_trace import after, at_least_ms, between_ms
from .members import removals
from .observations import Observations

if TYPE_CHECKING:
    from .group_trace import Exchange, GroupTrace, Line

LOOKUP_MS = 1000
"""The time a client has to look up its coordinator; meanwhile it may send requests to the old one.

librdkafka looks it up at most twice a second, and sends heartbeats until then.
"""

LOOP_REQUESTS, LOOP_MS = 15, 1000
"""This many equal errors within this time are a loop without backoff: `retry.backoff.ms` of clients is 100."""

FATAL = (
    "FENCED_INSTANCE_ID",
    "GROUP_MAX_SIZE_REACHED",
    "INCONSISTENT_GROUP_PROTOCOL",
    "UNRELEASED_INSTANCE_ID",
    "UNSUPPORTED_ASSIGNOR",
    "INVALID_REGULAR_EXPRESSION",
)
"""Errors that a retry does not resolve."""


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
    if second is not None:
        observations.add_failure(
            f"{name} was assigned this id by {join}, and joined without it: {second}", join, second
        )
    elif use is not None and _client_ms(trace, join, use.request) <= session_ms:
        observations.add_pass(join, use)
    elif use is not None:
        late_s = _client_ms(trace, join, use.request) / 1000
        observations.add_failure(
            f"{name} used its id {late_s:g} s after it was assigned, {join}; its session timeout is "
            f"{session_ms / 1000:g} s",
            join,
            use,
        )
    elif join.connection in trace.closed:
        observations.add_pass(join, trace.closed[join.connection])
    elif trace.end is not None and _client_ms(trace, join, trace.end) > session_ms:
        observations.add_failure(f"{name} has never used the id that was assigned by {join}", join)
    else:
        observations.add_unclear(f"{name} has not used its id yet: {join}", join)


def _client_ms(trace: GroupTrace, exchange: Exchange, later: Line) -> float:
    """Return the client's own time since a response, without the time its connection was blocked."""
    assert exchange.response is not None, "the exchange has a response"
    return between_ms(exchange.response, later) - trace.blocked_ms(exchange.connection, exchange.response, later)


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


def coordinator_is_looked_up(trace: GroupTrace) -> Observations:
    """Find clients that retry after NOT_COORDINATOR without a FindCoordinator, or in a loop (C02).

    librdkafka #3396: an endless loop between a broker that names broker 2, and broker 2, which is not the coordinator.
    """
    observations = Observations()
    lookups: dict[str, list[Exchange]] = defaultdict(list)
    for exchange in trace.exchanges:
        if exchange.api == "FindCoordinator":
            lookups[exchange.client_id].append(exchange)
    recent: dict[tuple[object, ...], deque[Exchange]] = defaultdict(deque)
    for exchange in trace.exchanges:
        if exchange.error != "NOT_COORDINATOR" or exchange.response is None or exchange.api == "FindCoordinator":
            continue
        errors = recent[exchange.client_id, exchange.api]
        if _is_loop(errors, exchange):
            text = f"{exchange.client_id} sent {LOOP_REQUESTS} requests within {LOOP_MS} ms to a node that is not the"
            observations.add_failure(f"{text} coordinator: {exchange}", exchange)
            errors.clear()
        answered = exchange.response["seq"]
        own = (trace.by_connection[exchange.connection], trace.by_member.get(exchange.member_id, ()))
        retries = (next((later for later in after(each, answered) if _is_retry(exchange, later)), None) for each in own)
        retry = min((each for each in retries if each is not None), key=lambda each: each.seq, default=None)
        lookup = next(after(lookups[exchange.client_id], answered), None)
        if lookup is not None and (retry is None or lookup.seq < retry.seq):
            observations.add_pass(exchange, lookup)
        elif retry is not None:
            observations.add_failure(f"{exchange}, and retried without a FindCoordinator: {retry}", exchange, retry)
        elif exchange.connection in trace.closed or exchange.leaves:
            continue
        else:
            observations.add_unclear(f"{exchange}, and has not looked up the coordinator yet", exchange)
    return observations


def _is_retry(first: Exchange, later: Exchange) -> bool:
    """Return whether a later request of the same client goes to the same node, after the time for a lookup."""
    return (
        later.api != "FindCoordinator"
        and later.request.get("node") == first.request.get("node")
        and first.response is not None
        and at_least_ms(first.response, later.request) > LOOKUP_MS
    )


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
                    if _client_ms(trace, signal, exchange.request) > timeout_ms:
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
    removal = next((line for line in removals(trace, {member_id}) if line["seq"] > signal.response["seq"]), None)
    until = removal or trace.end
    later = after(trace.by_connection[signal.connection], signal.response["seq"])
    new_member_join = next((exchange for exchange in later if exchange.api == "JoinGroup"), None)
    if new_member_join is not None:
        observations.add_pass(signal, new_member_join)
    elif signal.connection in trace.closed or until is None:
        return
    elif _client_ms(trace, signal, until) > timeout_ms:
        _add_late(trace, observations, signal, timeout_ms, None)
    elif removal is None:
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
            if _is_loop(errors, exchange):
                client = f"{exchange.client_id}{trace.software(exchange.member_id)}"
                observations.add_failure(
                    f"{client} sent {LOOP_REQUESTS} requests within {LOOP_MS} ms: {exchange}", *errors
                )
                errors.clear()
            else:
                observations.add_pass(exchange)
    return observations


def _is_loop(recent: deque[Exchange], exchange: Exchange) -> bool:
    """Add an exchange; return whether the last LOOP_REQUESTS of them took at most LOOP_MS."""
    recent.append(exchange)
    while len(recent) > LOOP_REQUESTS:
        recent.popleft()
    return len(recent) == LOOP_REQUESTS and at_least_ms(recent[0].request, exchange.request) <= LOOP_MS
