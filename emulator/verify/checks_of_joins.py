"""C01, C02, C08 and C09: how clients join, find their coordinator, and take an error."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING

from .findings import Findings
from .story import at_least_ms, between_ms

if TYPE_CHECKING:
    from .story import Exchange, Line, Story

LOOKUP_MS = 1000
"""So long a client may take to look for its coordinator, and ask the old one meanwhile: librdkafka looks twice a second
at most, and goes on beating until then."""

LOOP_CALLS, LOOP_MS = 15, 1000
"""The same refusal so many times within so long is a loop without a pause: clients' `retry.backoff.ms` is 100."""

FATAL = ("FENCED_INSTANCE_ID", "GROUP_MAX_SIZE_REACHED", "INCONSISTENT_GROUP_PROTOCOL")
"""Errors that asking again does not help against."""


def given_id_is_used(story: Story) -> Findings:
    """C01. KIP-394; librdkafka #5569: an id that is not used holds up the group until it expires."""
    found = Findings()
    for call in story.calls:
        if call.api != "JoinGroup" or call.error != "MEMBER_ID_REQUIRED" or call.response is None:
            continue
        given = call.response.get("member_id")
        if not given:
            continue
        session_ms = call.asked.get("session_timeout_ms", 0)
        used = next((each for each in story.calls if each.asked_as == given and each.seq > call.response["seq"]), None)
        again = _joined_anew(story, call, before=None if used is None else used.seq)
        if again is not None:
            found.wrong(
                f"{_name(story, given)} was given this id by {call}, and joined without it: {again}", call, again
            )
        elif used is not None and _own_ms(story, call, used.request) <= session_ms:
            found.right(call, used)
        elif used is not None:
            late_s = _own_ms(story, call, used.request) / 1000
            found.wrong(
                f"{_name(story, given)} used its id {late_s:g} s after it was given, {call}; its session timeout is "
                f"{session_ms / 1000:g} s",
                call,
                used,
            )
        elif call.connection in story.closed:
            found.right(call, story.closed[call.connection])
        elif story.end is not None and _own_ms(story, call, story.end) > session_ms:
            found.wrong(f"{_name(story, given)} has never used the id it was given by {call}", call)
        else:
            found.unclear(f"{_name(story, given)} has not used its id yet: {call}", call)
    return found


def _own_ms(story: Story, call: Exchange, later: Line) -> float:
    """How long a client has taken since an answer; what it had to wait for meanwhile is not its own time."""
    assert call.response is not None, "it was answered"
    return between_ms(call.response, later) - story.held_ms(call.connection, call.response, later)


def _joined_anew(story: Story, first: Exchange, before: int | None) -> Exchange | None:
    """A JoinGroup on the same connection that asks for an id once more, before the one that was given is used."""
    for call in story.calls:
        if before is not None and call.seq > before:
            return None
        if (
            call.seq > (first.answered_seq or first.seq)
            and (call.api, call.connection, call.asked_as, call.instance_id)
            == ("JoinGroup", first.connection, "", None)
            and call.client_id == first.client_id
        ):
            return call
    return None


def coordinator_is_looked_for(story: Story) -> Findings:
    """C02. librdkafka #3396: for ever between a broker that says "ask 2" and broker 2 that says "not me"."""
    found = Findings()
    lookups = [call for call in story.calls if call.api == "FindCoordinator"]
    moved: dict[tuple[object, ...], deque[Exchange]] = defaultdict(deque)
    for at, call in enumerate(story.calls):
        if call.error != "NOT_COORDINATOR" or call.response is None or call.api == "FindCoordinator":
            continue
        recent = moved[call.client_id, call.api]
        if _too_often(recent, call):
            found.wrong(
                f"{call.client_id} has asked {LOOP_CALLS} times within {LOOP_MS} ms who is no coordinator: {call}", call
            )
            recent.clear()
        following = next((each for each in story.calls[at + 1 :] if _asks_the_same_node(call, each)), None)
        limit = None if following is None else following.seq
        looked = next((each for each in lookups if _is_between(each, call, limit)), None)
        if looked is not None:
            found.right(call, looked)
        elif following is not None:
            found.wrong(f"{call}, and without a FindCoordinator asked again: {following}", call, following)
        elif call.connection in story.closed or call.api == "LeaveGroup":
            continue
        else:
            found.unclear(f"{call}, and has not looked for the coordinator yet", call)
    return found


def _asks_the_same_node(first: Exchange, call: Exchange) -> bool:
    """Whether it is the same client's request to the node that is no coordinator, when it had time to look for it."""
    same = call.connection == first.connection or (bool(call.member_id) and call.member_id == first.member_id)
    return (
        same
        and call.api != "FindCoordinator"
        and call.request.get("node") == first.request.get("node")
        and first.response is not None
        and call.seq > first.response["seq"]
        and at_least_ms(first.response, call.request) > LOOKUP_MS
    )


def _is_between(lookup: Exchange, first: Exchange, limit: int | None) -> bool:
    after = first.answered_seq or first.seq
    return lookup.client_id == first.client_id and after < lookup.seq < (limit or lookup.seq + 1)


def rejoins(story: Story) -> Findings:
    """C08. KIP-62: whoever is told of a rebalance has its rebalance timeout to join again."""
    found = Findings()
    for member_id, calls in story.by_member.items():
        timeout_ms = 0
        told: Exchange | None = None
        joining: Exchange | None = None
        for call in calls:
            if call.api == "JoinGroup":
                timeout_ms = call.asked.get("rebalance_timeout_ms", timeout_ms)
                joining = call
            if told is not None and told.response is not None and call.seq > told.response["seq"]:
                if call.api == "JoinGroup":
                    late = _own_ms(story, told, call.request) > timeout_ms
                    _late(story, found, told, timeout_ms, call) if late else found.right(told, call)
                    told = None
                elif call.api == "LeaveGroup":
                    found.right(told, call)
                    told = None
            if call.error == "REBALANCE_IN_PROGRESS" and told is None and _is_news(call, joining):
                told = call
        if told is not None:
            _never_rejoined(story, found, member_id, told, timeout_ms)
    return found


def _is_news(call: Exchange, joining: Exchange | None) -> bool:
    """Whether it tells of a rebalance the member has not begun to join. A commit may be refused within one, too."""
    answered = None if joining is None else joining.answered_seq
    is_waiting = joining is not None and (answered is None or answered > (call.answered_seq or 0))
    return call.api in ("Heartbeat", "SyncGroup") and not is_waiting


def _never_rejoined(story: Story, found: Findings, member_id: str, told: Exchange, timeout_ms: int) -> None:
    assert told.response is not None, "it was told"
    removed = _removal(story, member_id, told.response)
    until = removed or story.end
    anew = next(
        (
            call
            for call in story.calls
            if call.api == "JoinGroup" and call.connection == told.connection and call.seq > told.response["seq"]
        ),
        None,
    )
    if anew is not None:
        # it has forgotten its id, for a good reason or not, and is a new member now
        found.right(told, anew)
    elif told.connection in story.closed or until is None:
        return
    elif _own_ms(story, told, until) > timeout_ms:
        _late(story, found, told, timeout_ms, None)
    elif removed is None:
        found.unclear(f"{told}, and has not joined again yet", told)


def _late(story: Story, found: Findings, told: Exchange, timeout_ms: int, call: Exchange | None) -> None:
    when = "has not joined again" if call is None else f"joined again too late: {call}"
    shown = [told] if call is None else [told, call]
    software = story.software(told.member_id)
    found.wrong(f"{told}{software}, and {when}; its rebalance timeout is {timeout_ms / 1000:g} s", *shown)


def _removal(story: Story, member_id: str, after: Line) -> Line | None:
    return next(
        (
            line
            for line in story.own
            if line["kind"] == "member"
            and line["member_id"] == member_id
            and line["change"] in ("removed", "replaced")
            and line["seq"] > after["seq"]
        ),
        None,
    )


def no_tight_loop(story: Story) -> Findings:
    """C09. The same fatal error on one connection again and again, and the client does not pause."""
    found = Findings()
    recent: dict[tuple[object, ...], deque[Exchange]] = defaultdict(deque)
    for call in story.calls:
        if call.error in FATAL:
            key = (call.connection, call.api, call.error)
            if _too_often(recent[key], call):
                found.wrong(
                    f"{call.client_id}{story.software(call.member_id)} has asked {LOOP_CALLS} times within {LOOP_MS} "
                    f"ms: {call}",
                    *recent[key],
                )
                recent[key].clear()
            else:
                found.right(call)
    return found


def _too_often(recent: deque[Exchange], call: Exchange) -> bool:
    recent.append(call)
    while len(recent) > LOOP_CALLS:
        recent.popleft()
    return len(recent) == LOOP_CALLS and at_least_ms(recent[0].request, call.request) <= LOOP_MS


def _name(story: Story, member_id: str) -> str:
    return f"{story.label(member_id)}{story.software(member_id)}"
