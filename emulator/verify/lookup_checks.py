"""The client check of coordinator lookups (C02), and the limit of retries that it shares with C09."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING

from koordinator.trace.exchanges import OK

from .group_trace import after, at_least_ms, client_ms
from .observations import Observations

if TYPE_CHECKING:
    from koordinator.trace.exchanges import Exchange

    from .group_trace import GroupTrace

    Connection = tuple[int | None, int | None]

LOOKUP_MS = 1000
"""The time a client has to look up its coordinator; meanwhile it may send requests to the old one.

librdkafka looks it up at most twice a second, and sends heartbeats until then.
"""

LATE_MS = 5000
"""A lookup after this time may have another reason than the error: the client may have been silent until then."""

LOOP_REQUESTS, LOOP_MS = 15, 1000
"""This many equal errors within this time are a loop without backoff: `retry.backoff.ms` of clients is 100."""

LOOKUP, NOT_COORDINATOR = "FindCoordinator", "NOT_COORDINATOR"

ELSEWHERE = (LOOKUP, "AddOffsetsToTxn")
"""The APIs that name a group, but ask any broker, or the coordinator of a transactional id."""


def coordinator_is_looked_up(trace: GroupTrace) -> Observations:
    """Find clients that retry after NOT_COORDINATOR without a FindCoordinator, or in a loop (C02).

    librdkafka #3396: an endless loop between a broker that names broker 2, and broker 2, which is not the coordinator.
    KAFKA-13563: a consumer never looks it up again.
    """
    observations = Observations()
    lookups = _lookups(trace)
    recent: dict[tuple[object, ...], deque[Exchange]] = defaultdict(deque)
    for exchange in filter(_is_refused, trace.exchanges):
        errors = recent[exchange.client_id, exchange.api]
        if is_loop(errors, exchange):
            text = f"{exchange.client_id} sent {LOOP_REQUESTS} requests within {LOOP_MS} ms to a node that is not the"
            observations.add_failure(f"{text} coordinator: {exchange}", exchange)
            errors.clear()
        answered = exchange.response_seq or 0
        own = (trace.by_connection[exchange.connection], trace.by_member.get(exchange.member_id, ()))
        retries = (next((later for later in after(each, answered) if _is_retry(exchange, later)), None) for each in own)
        retry = min((each for each in retries if each is not None), key=lambda each: each.seq, default=None)
        lookup = lookups.get(exchange.seq)
        if lookup is not None and (retry is None or lookup.seq < retry.seq):
            late_ms = client_ms(trace, exchange, lookup.request)
            if late_ms <= LATE_MS:
                observations.add_pass(exchange, lookup)
            else:
                text = f"{exchange}, and looked up the coordinator only {late_ms / 1000:.3g} s later: {lookup}"
                observations.add_unclear(text, exchange, lookup)
        elif retry is not None:
            observations.add_failure(f"{exchange}, and retried without a FindCoordinator: {retry}", exchange, retry)
        elif not exchange.leaves and not _has_ended(trace, exchange):
            observations.add_unclear(f"{exchange}, and has not looked up the coordinator yet", exchange)
    return observations


def is_loop(recent: deque[Exchange], exchange: Exchange) -> bool:
    """Add an exchange; return whether the last LOOP_REQUESTS of them took at most LOOP_MS."""
    recent.append(exchange)
    while len(recent) > LOOP_REQUESTS:
        recent.popleft()
    return len(recent) == LOOP_REQUESTS and at_least_ms(recent[0].request, exchange.request) <= LOOP_MS


def _is_refused(exchange: Exchange) -> bool:
    return exchange.error == NOT_COORDINATOR and exchange.api not in ELSEWHERE


def _is_retry(first: Exchange, later: Exchange) -> bool:
    """Return whether a later request of the same client goes to the same node, after the time for a lookup."""
    return (
        later.api not in ELSEWHERE
        and later.request.get("node") == first.request.get("node")
        and first.response is not None
        and at_least_ms(first.response, later.request) > LOOKUP_MS
    )


def _has_ended(trace: GroupTrace, exchange: Exchange) -> bool:
    """Return whether the client closed the connection at once, and sent nothing later under its name.

    Java's client closes the connection to an old coordinator and goes on.
    """
    closed = trace.closing(exchange.connection)
    if closed is None or client_ms(trace, exchange, closed) > LOOKUP_MS:
        return False
    return trace.last_requests.get(exchange.client_id, 0) < int(closed["seq"])


def _lookups(trace: GroupTrace) -> dict[int, Exchange]:
    """Return the lookup that each refused request led to, by the sequence number of that request.

    Clients with equal ids take turns: a lookup is that of the client whose connection it came on, or whose lookup on
    that connection failed before, else of the one that has waited longest. A lookup that was sent while the request was
    in flight counts, too.
    """
    events = [(each.response_seq or 0, each) for each in trace.exchanges if _is_refused(each)]
    events += [(each.seq, each) for each in trace.exchanges if each.api == LOOKUP]
    waiting: dict[str, dict[str, list[Exchange]]] = defaultdict(dict)
    retrying: dict[Connection, str] = {}
    latest: dict[tuple[str, str | None], Exchange] = {}
    found: dict[int, Exchange] = {}
    for _, each in sorted(events, key=lambda event: event[0]):
        senders, member = waiting[each.client_id], _first_member(trace, each.connection)
        if each.api == LOOKUP:
            sender = member or retrying.pop(each.connection, None) or next(iter(senders), None)
            latest[each.client_id, sender] = each
            if sender is not None:
                found |= {refused.seq: each for refused in senders.pop(sender, ())}
                if each.error != OK:
                    retrying[each.connection] = sender
            continue
        sender = member or str(each.connection)
        known = (latest.get((each.client_id, name)) for name in (sender, None))
        lookup = next((lookup for lookup in known if lookup is not None and lookup.seq > each.seq), None)
        if lookup is None:
            senders.setdefault(sender, []).append(each)
        else:
            found[each.seq] = lookup
    return found


def _first_member(trace: GroupTrace, connection: Connection) -> str | None:
    """Return the first member that used a connection, which stands for its client; None if none did."""
    return next((each.member_id for each in trace.by_connection[connection] if each.member_id), None)
