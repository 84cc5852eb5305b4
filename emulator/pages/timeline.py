"""Events of the trace as readable lines, for messages of failed waits and reports of failed tests.

+0.004s  ====     PreparingRebalance => CompletingRebalance, generation 1, after 2 ms
+1.310s  svc-1    OffsetCommit v8, generation 1, orders-2: 41 HELD by hold-1
+1.330s  svc-1    OffsetCommit v8, generation 1, orders-2: 41 -> UNKNOWN_MEMBER_ID, after 20 ms   <-- first error
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from koordinator.trace.events import call_of, is_error
from koordinator.trace.exchanges import EPOCH_HEARTBEATS

from .timeline_text import EventTexts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from koordinator.trace.exchanges import Line

NAME_WIDTH = 19

LINE_MAX = 200
"""The maximum length of a line, in characters."""

HEADING = "its last events:"
"""The line before the events of a group in a failure message."""

COMMIT = "OffsetCommit"
"""The API whose successful requests are only counted where the same client repeats them."""

FIND_COORDINATOR = "FindCoordinator"

NEEDS_HEARTBEATS = "; with group.protocol=consumer librdkafka joins no group before Kafka 4.0, and reports no error"

HEARTBEATS = {"Heartbeat", *EPOCH_HEARTBEATS}
"""The APIs whose successful requests are only counted."""

FIRST_ERROR = "   <-- first error"


def timeline(events: Sequence[Line], shown: int = 15) -> list[str]:
    """Return the last `shown` events, one line each, preceded by the first error; times start at the first event.

    Successful heartbeats are only counted, and so are share fetches without records and successful commits that their
    client repeats before anything else happens. A request with an immediate response is shown in that response.
    """
    if not events:
        return []
    start = events[0]["wall_ts"]
    texts = EventTexts(events)
    shown_events, repeated = _without_repeated_commits(
        [event for event, after in zip_longest(events, events[1:]) if not _is_redundant(event, after)]
    )
    first_error = next((event for event in shown_events if is_error(event)), None)
    last = shown_events[-shown:]
    lines = [_line(texts, event, start) + (FIRST_ERROR if event is first_error else "") for event in last]
    if first_error is not None and all(event is not first_error for event in last):
        lines = [_line(texts, first_error, start) + FIRST_ERROR, f"{'…':>10}", *lines]
    heartbeats = sum(_is_heartbeat(event) and event["kind"] == "response" for event in events)
    counts = [_count(heartbeats, "successful heartbeat")] if heartbeats else []
    counts += [_count(repeated, "repeated commit")] if repeated else []
    empty = sum(_is_empty_fetch(event) and event["kind"] == "response" for event in events)
    fetches = "share fetch" if empty == 1 else "share fetches"
    counts += [f"{empty} {fetches} without records"] if empty else []
    return [*lines, f"and {' and '.join(counts)}"] if counts else lines


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def by_group(events: Iterable[Line]) -> dict[str, list[Line]]:
    """Return the events of each group; groups with errors are last, and of the others those with the latest events."""
    groups: dict[str, list[Line]] = {}
    for event in events:
        if "group_id" in event:
            groups.setdefault(event["group_id"], []).append(event)
    ranked = sorted(groups.items(), key=lambda each: (any(map(is_error, each[1])), each[1][-1]["seq"]))
    return dict(ranked)


def refused_topics(events: Iterable[Line]) -> list[tuple[str, str, str]]:
    """Return client, topic and error for each topic with an error in the latest Metadata of a client."""
    latest: dict[str, list[list[str]]] = {}
    for event in events:
        if event["kind"] == "response" and event.get("api") == "Metadata":
            latest[event.get("client_id", "")] = (event.get("body") or {}).get("errors", [])
    return [(client, topic, error) for client, errors in latest.items() for topic, error in errors]


def unjoined_clients(events: Iterable[Line]) -> list[str]:
    """Return a line for each client that has looked up the coordinator of a group, and sent no request of the group.

    librdkafka sends no ConsumerGroupHeartbeat to a broker that lacks its version 1, and reports no error.
    """
    apis: dict[str, set[object]] = {}
    software: dict[str, str] = {}
    found: set[str] = set()
    for event in events:
        if event["kind"] in {"request", "response"}:
            client = event.get("client_id", "")
            apis.setdefault(client, set()).add(event["api"])
            software[client] = f"{event.get('client_software')} {event.get('client_version')}"
            if event["kind"] == "response" and not event.get("error"):
                found.add(client)
    return [
        f"client {client!r} found the coordinator, and sent no request of the group: it has not subscribed, waits for"
        f" its topics, or cannot reach the coordinator{NEEDS_HEARTBEATS if 'rdkafka' in software[client] else ''}"
        for client, sent in apis.items()
        if sent == {FIND_COORDINATOR} and client in found
    ]


def report(events: Sequence[Line], now: object, parked: Sequence[str] = (), elsewhere: Sequence[str] = ()) -> list[str]:
    """Return the lines after a failure message: a group's state, its parked requests and its last events.

    `elsewhere` are lines about other groups and nodes, which explain what the events do not.
    """
    held = [f"held just now: {each}" for each in parked]
    return [f"now: {now}", *elsewhere, *held, *last_events(events)]


def last_events(events: Sequence[Line]) -> list[str]:
    """Return the heading and the timeline of the events, or a line that there are none."""
    lines = timeline(events)
    return [HEADING, *lines] if lines else ["it has no events"]


def _without_repeated_commits(events: Sequence[Line]) -> tuple[list[Line], int]:
    """Return the events without successful commits that the same client repeats next, and the number of those."""
    succeeded = {call_of(event) for event in events if event["kind"] == "response" and not event.get("error")}
    kept: list[Line] = []
    repeated = 0
    # what follows an event decides, so backwards: the clients that commit before anything else happens
    committing: set[tuple[object, ...]] = set()
    for event in reversed(events):
        is_commit = event.get("api") == COMMIT and event["kind"] in {"request", "response"}
        if not is_commit or call_of(event) not in succeeded or "rule_id" in event:
            committing.clear()
        else:
            row = (event["kind"], event.get("group_id"), event.get("client_id"), event.get("member_id"))
            if row in committing:
                repeated += event["kind"] == "response"
                continue
            committing.add(row)
        kept.append(event)
    return kept[::-1], repeated


def _is_redundant(event: Line, after: Line | None) -> bool:
    if _is_empty_fetch(event):
        return True
    if after is not None and event["kind"] == "request" and after["kind"] == "response":
        return _is_heartbeat(event) or call_of(event) == call_of(after)
    # the rebalance that a member causes has the same reason
    is_repeated = after is not None and after["kind"] == "state" and event.get("reason") == after.get("reason")
    # the line of a loaded group counts its members
    is_repeated = is_repeated or event.get("change") == "loaded"
    return _is_heartbeat(event) or (event["kind"] == "member" and is_repeated)


def _is_heartbeat(event: Line) -> bool:
    """Return whether an event is a heartbeat that says nothing; a throttled one does."""
    if event["kind"] not in {"request", "response"} or event.get("api") not in HEARTBEATS or event.get("error"):
        return False
    return "throttle_time_ms" not in (event.get("body") or {})


def _is_empty_fetch(event: Line) -> bool:
    """Return whether a ShareFetch acknowledges nothing, or gets nothing: members fetch all the time (KIP-932)."""
    if event.get("api") != "ShareFetch" or event["kind"] not in {"request", "response"} or event.get("error"):
        return False
    shown = {"acknowledged", "acquired", "refused", "throttle_time_ms"}
    return not (event.get("body") or {}).keys() & shown


def _line(texts: EventTexts, event: Line, start_us: int) -> str:
    at_s = (event["wall_ts"] - start_us) / 1e6
    line = f"{at_s:+9.3f}s  {texts.subject(event):<{NAME_WIDTH}} {texts.text(event)}".rstrip()
    return line if len(line) <= LINE_MAX else f"{line[: LINE_MAX - 1]}…"
