"""The coordinator checks S01 to S10: whether an emulator or a broker follows the group protocol.

A response that a fault rule changed is not judged. The coordinator handled a request at some time between the request
and its response; so each state of the group in between counts.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from koordinator.trace.exchanges import OK
from koordinator.trace.rebalances import COMPLETING, PREPARING

from .group_trace import after
from .observations import Observations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator.trace.exchanges import Exchange, Line

    from .group_trace import GroupTrace

ID_REQUIRED_SINCE = 4
"""The version of JoinGroup from which a dynamic member must rejoin with an assigned id (KIP-394)."""

SLACK_MS = 1000
"""Tolerated delay of a removal: brokers check deadlines periodically, and a busy machine delays them."""

NEVER = 2**62
"""A sequence number beyond all events."""

ACCEPTED = (OK, "REBALANCE_IN_PROGRESS")
"""Errors that a valid member receives."""

SIGNS_OF_LIFE = ("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit")
"""The APIs whose successful responses restart a member's session."""

GENERATION_APIS = ("Heartbeat", "SyncGroup", "OffsetCommit", "TxnOffsetCommit")
"""The APIs whose requests name a member and its generation."""


def _joined(trace: GroupTrace) -> Iterator[Exchange]:
    """Return the JoinGroups that led into a generation, without those that a rule changed."""
    return (each for each in trace.exchanges if each.joined_generation is not None and not each.rule_id)


def generation_increments(trace: GroupTrace) -> Observations:
    """Check that each completed join barrier increments the generation by one (S01)."""
    observations = Observations()
    for before, line in pairwise(trace.states):
        if (before["state_to"], line.get("state_from")) == (PREPARING, PREPARING) and (
            line["state_to"] in (COMPLETING, "Empty")
        ):
            generation, last = line.get("generation"), before.get("generation")
            if last is not None and generation == last + 1:
                observations.add_pass(line)
            else:
                observations.add_failure(f"after generation {last} came {generation}", line)
    return observations


def single_leader(trace: GroupTrace) -> Observations:
    """Check that all members of a generation receive the same leader, which is one of them (S02).

    A static leader that rejoined has a new member id (KIP-345), while the others still know the old one. A leader
    outside of the generation is certain only if the trace has the start of the generation, and if the leader has no
    JoinGroup whose connection closed before the response: such a member stays until its session expires.
    """
    observations = Observations()
    marks = [line for line in trace.states if line["state_to"] in ("Dead", COMPLETING)]
    lives = [0]
    for line in marks:
        lives.append(lives[-1] + (line["state_to"] == "Dead"))
    generations: dict[tuple[int, int], list[tuple[Exchange, int | None]]] = defaultdict(list)
    for join in _joined(trace):
        if join.response_body.get("leader") and join.joined_generation is not None:
            at = bisect_right(marks, join.response_seq or 0, key=lambda line: int(line["seq"]))
            start = (COMPLETING, join.joined_generation)
            is_whole = at > 0 and (marks[at - 1]["state_to"], marks[at - 1].get("generation")) == start
            since = (int(marks[at - 2]["seq"]) if at > 1 else 0) if is_whole else None
            generations[lives[at], join.joined_generation].append((join, since))
    for (_, generation), joins in generations.items():
        leaders = sorted({trace.label(join.response_body["leader"]) for join, _ in joins})
        is_absent = leaders[0] not in {trace.label(join.member_id) for join, _ in joins}
        ends = (min(join.seq for join, _ in joins), max(join.response_seq or 0 for join, _ in joins))
        if len(leaders) > 1:
            observations.add_failure(f"generation {generation} has the leaders {' and '.join(leaders)}", *ends)
        elif is_absent and any(
            not _waits(trace, leaders[0], since, ends[1]) for _, since in joins if since is not None
        ):
            observations.add_failure(f"generation {generation} is led by {leaders[0]}, which is not in it", *ends)
        else:
            observations.add_pass(*ends)
    return observations


def _waits(trace: GroupTrace, label: str, since: int, until: int) -> bool:
    """Return whether a member sent a JoinGroup between two lines that never got its response."""
    return any(
        call.api == "JoinGroup" and call.response is None and label == (call.instance_id or call.request_member_id)
        for call in after(trace.exchanges, since)
        if call.seq < until
    )


def member_list_for_leader_only(trace: GroupTrace) -> Observations:
    """Check that the member list goes to the leader only (S03). The trace may omit a long list."""
    observations = Observations()
    for join in _joined(trace):
        leader = join.response_body.get("leader")
        if not leader or not join.response_body.get("members"):
            continue
        if leader == join.member_id:
            observations.add_pass(join)
        else:
            observations.add_failure(f"{join}: it is told of the members, and {leader} leads", join)
    return observations


def errors_in_kafkas_order(trace: GroupTrace) -> Observations:
    """Check that an unknown member gets UNKNOWN_MEMBER_ID, a wrong generation ILLEGAL_GENERATION, others neither (S04).

    Requests at a time when the group's generation is unknown are not judged.
    """
    observations = Observations()
    reigns, memberships = _reigns(trace), _memberships(trace)
    is_loading = any(line["state_to"] == "Dead" for line in trace.states)
    for call in trace.exchanges:
        if (
            call.api not in GENERATION_APIS
            or (call.generation is None or call.generation < 0)
            or (call.rule_id or not call.member_id or call.request_body.get("offsets", True) == [])
            or call.error not in (*ACCEPTED, "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID")
        ):
            continue
        reasons = (
            _generation_violation(call, reigns),
            _membership_violation(call, memberships.get(call.member_id, []), is_loading=is_loading),
        )
        for reason in filter(None, reasons):
            observations.add_failure(f"{call}: {reason}", call, n=call.count)
        if not any(reasons):
            observations.add_pass(call, n=call.count)
    return observations


@dataclass(frozen=True, slots=True)
class _Reign:
    """The time of a generation, from an event to another; -1 while the group was dead or unloaded.

    It is also -1 in a consumer group, whose members have epochs of their own.
    """

    generation: int
    since: int
    until: int


def _reigns(trace: GroupTrace) -> list[_Reign]:
    changes: list[tuple[int, int]] = []
    for line in trace.states:
        is_unknown = line["state_to"] == "Dead" or trace.is_consumer_at(int(line["seq"]))
        generation = -1 if is_unknown else line.get("generation")
        if generation is not None and (not changes or changes[-1][0] != generation):
            changes.append((generation, int(line["seq"])))
    ends = [*(since for _, since in changes[1:]), NEVER]
    return [_Reign(generation, since, until) for (generation, since), until in zip(changes, ends, strict=False)]


def _generation_violation(call: Exchange, reigns: list[_Reign]) -> str:
    answered = call.response_seq or 0
    first = bisect_right(reigns, call.seq, key=lambda reign: reign.until)
    during = reigns[first : bisect_left(reigns, answered, key=lambda reign: reign.since)]
    named = [reign for reign in during if reign.generation == call.generation]
    is_known = bool(during) and during[0].since < call.seq and min(reign.generation for reign in during) >= 0
    if call.error in ACCEPTED and not named and is_known:
        return "the group was in another generation"
    is_current = any(reign.since < call.seq and reign.until > answered for reign in named)
    return "it is the group's" if call.error == "ILLEGAL_GENERATION" and is_current else ""


def _memberships(trace: GroupTrace) -> dict[str, list[Line]]:
    """Return the lines after which each member was, or was not, in the group."""
    memberships: dict[str, list[Line]] = defaultdict(list)
    for line in trace.group_lines:
        is_change = line["kind"] == "member" and line.get("change") in ("added", "removed", "replaced", "loaded")
        if (is_change or line["kind"] == "avoided_static") and line.get("member_id"):
            memberships[line["member_id"]].append(line)
    return memberships


def _membership_violation(call: Exchange, changes: list[Line], *, is_loading: bool) -> str:
    at = bisect_left(changes, call.seq, key=lambda line: int(line["seq"]))
    if at == 0 or (at < len(changes) and changes[at]["seq"] < (call.response_seq or 0)):
        return ""
    last = changes[at - 1]
    is_member = last["kind"] == "avoided_static" or last["change"] in ("added", "loaded")
    if not is_member:
        may_be_accepted = is_loading and (call.api, call.error) == ("Heartbeat", OK)
        return "" if may_be_accepted or call.error == "UNKNOWN_MEMBER_ID" else "it was no member"
    is_known = call.instance_id is None or call.instance_id == last.get("instance_id")
    is_wrong = call.error == "UNKNOWN_MEMBER_ID" and is_known and not is_loading
    return "it was a member" if is_wrong else ""


def member_id_required_once(trace: GroupTrace) -> Observations:
    """Check that a JoinGroup without an id gets an id and an error (KIP-394), and no other does (S05)."""
    observations = Observations()
    for join in trace.exchanges:
        if join.api != "JoinGroup" or join.rule_id or join.error not in (OK, "MEMBER_ID_REQUIRED"):
            continue
        is_new = not join.request_member_id and join.instance_id is None
        requires_id = is_new and join.request.get("api_version", 0) >= ID_REQUIRED_SINCE
        if requires_id == (join.error == "MEMBER_ID_REQUIRED"):
            observations.add_pass(join)
        else:
            text = "without an id" if requires_id else "it needs no id, or has one"
            observations.add_failure(f"{join}: {text}", join)
    return observations


def session_expiry_in_time(trace: GroupTrace) -> Observations:
    """Check that a silent member is removed soon after its session timeout, and not before (S06).

    Each successful response restarts the session, but for that to a SyncGroup in a stable group, with which only some
    releases do. A member with a parked request is not silent. A session also restarts when a coordinator loads the
    member, and a test may end it at any time. Members without a response since their join are not judged: new members
    have a longer timeout.
    """
    observations = Observations()
    actions = [
        int(line["seq"])
        for line in trace.lines
        if line["kind"] in ("verb", "node", "leader") or line.get("cause") == "loaded"
    ]
    for member_id, changes in trace.member_changes.items():
        for line in changes:
            if (line.get("change"), line.get("cause")) != ("removed", "session_expired"):
                continue
            calls = [call for call in trace.by_member.get(member_id, ()) if call.seq < line["seq"]]
            timeouts = [call.request_body["session_timeout_ms"] for call in calls if _names_timeout(call)]
            if not timeouts or any(call.rule_id for call in calls):
                continue
            last = calls[-1]
            at = bisect_right(actions, last.seq)
            is_ended_by_test = at < len(actions) and actions[at] < line["seq"]
            if _is_waiting(calls, line["seq"]) or is_ended_by_test:
                continue
            _check_expiry(trace, observations, line, calls, timeouts)
    return observations


def _is_waiting(calls: list[Exchange], seq: int) -> bool:
    """Return whether a request since the last renewal of the session has no response before a line."""
    for call in reversed(calls):
        if call.response_seq is None or call.response_seq > seq:
            return True
        if _renews(call):
            return False
    return False


def _renews(call: Exchange) -> bool:
    return call.api in SIGNS_OF_LIFE and call.error == OK


def _is_stable_sync(trace: GroupTrace, call: Exchange) -> bool:
    """Return whether a member asked a stable group for its assignment, as a static member does after its return."""
    at = bisect_left(trace.states, call.seq, key=lambda line: int(line["seq"]))
    return call.api == "SyncGroup" and at > 0 and trace.states[at - 1]["state_to"] == "Stable"


def _names_timeout(call: Exchange) -> bool:
    return call.api == "JoinGroup" and call.request_body.get("session_timeout_ms") is not None


def _check_expiry(
    trace: GroupTrace, observations: Observations, expiry: Line, calls: list[Exchange], timeouts: list[int]
) -> None:
    renewals = [call.request["group_ts_us"] for call in calls if _renews(call) and not _is_stable_sync(trace, call)]
    responses = [call.response["group_ts_us"] for call in calls if call.response is not None]
    late_ms = (expiry["group_ts_us"] - max(responses)) / 1000 - trace.lagged_ms(calls[-1].response or expiry, expiry)
    silent_ms = (expiry["group_ts_us"] - max(renewals)) / 1000 if renewals else late_ms
    is_early = bool(renewals) and silent_ms < min(timeouts)
    if is_early or late_ms > max(timeouts) + SLACK_MS:
        ms, timeout_ms = (silent_ms, min(timeouts)) if is_early else (late_ms, max(timeouts))
        text = f"{trace.label(expiry['member_id'])} was removed {_seconds(ms)} s after its last request; its session"
        observations.add_failure(f"{text} timeout is {_seconds(timeout_ms)} s", calls[-1], expiry)
    else:
        observations.add_pass(calls[-1], expiry)


def _seconds(ms: float) -> str:
    return f"{ms / 1000:.3f}".rstrip("0").rstrip(".")


def group_max_size_kept(trace: GroupTrace) -> Observations:
    """Check that no generation has more members than a group that was full had when it refused one (S07, KAFKA-9885).

    The trace does not contain group.max.size, so a group that never refused a member is not judged. Members that have
    an id but have not joined yet count, too, when a member is refused.
    """
    observations = Observations()
    refused = {call.seq for call in trace.exchanges if call.error == "GROUP_MAX_SIZE_REACHED" and call.rule_id is None}
    if not refused:
        return observations
    size, limit = 0, None
    pending: set[str] = set()
    for line in trace.group_lines:
        change, member_id = line.get("change"), line.get("member_id", "")
        if line["seq"] in refused:
            limit = min(limit or NEVER, size + len(pending))
        elif line["kind"] == "member":
            size += {"added": 1, "removed": -1}.get(str(change), 0)
            pending.discard(member_id)
            if change == "pending":
                pending.add(member_id)
        elif line["kind"] == "timer" and line.get("timer") == "PendingMemberExpiry":
            pending.discard(member_id)
        elif limit is not None and line["kind"] == "state" and line["state_to"] == COMPLETING:
            if size > limit:
                text = f"a generation of {size} members, and with {limit} somebody was refused"
                observations.add_failure(text, line)
            else:
                observations.add_pass(line)
    return observations


def static_rejoin_without_rebalance(trace: GroupTrace) -> Observations:
    """Check that a static member that rejoins a Stable group with the same protocol only changes its member id (S08).

    KIP-345. The old member id is fenced.
    """
    observations = Observations()
    joins: dict[str | None, list[Exchange]] = defaultdict(list)
    for call in trace.exchanges:
        if call.api == "JoinGroup" and not call.request_member_id and not call.rule_id and call.response is not None:
            joins[call.instance_id].append(call)
    replacements = (
        line
        for changes in trace.member_changes.values()
        for line in changes
        if line.get("change") == "replaced" and line.get("instance_id")
    )
    for line in replacements:
        at = bisect_left(trace.states, line["seq"], key=lambda state: int(state["seq"]))
        if at > 0 and trace.states[at - 1]["state_to"] == "Stable":
            for join in joins[line["instance_id"]]:
                if join.seq < line["seq"] < (join.response_seq or 0):
                    _check_return(observations, join, trace.states[at:])
        for call in after(trace.by_member.get(line["member_id"], ()), line["seq"]):
            if (call.request_member_id, call.instance_id) != (line["member_id"], line["instance_id"]) or call.rule_id:
                continue
            if call.error in (*ACCEPTED, "ILLEGAL_GENERATION"):
                text = f"{call}: another has its place since #{line['seq']}"
                observations.add_failure(text, line, call, n=call.count)
            elif call.error == "FENCED_INSTANCE_ID":
                observations.add_pass(line, call)
    return observations


def _check_return(observations: Observations, join: Exchange, states: list[Line]) -> None:
    answered = join.response_seq or 0
    during = (line for line in states if line["state_to"] == PREPARING and line["seq"] < answered)
    started = next(during, None)
    if started is None:
        observations.add_pass(join, answered)
    elif started.get("cause") != "protocol_change":
        observations.add_failure(f"{join}: a rebalance began, {started.get('cause')}", join, started)


def protocol_supported_by_all(trace: GroupTrace) -> Observations:
    """Check that every member offers the selected assignor (S09)."""
    observations = Observations()
    for join in _joined(trace):
        protocol, offered = join.response_body.get("protocol"), join.request_body.get("protocols")
        if protocol is None or not offered:
            continue
        if protocol in offered:
            observations.add_pass(join)
        else:
            observations.add_failure(f"{join}: {protocol} was chosen, it offers {', '.join(offered)}", join)
    return observations


def one_response_in_order(trace: GroupTrace) -> Observations:
    """Check that each request of a connection gets its response before the broker reads the next (S10).

    A rule may drop a response, a Produce with acks=0 has none, and neither has a request that the member repeated
    elsewhere.
    """
    observations = Observations()
    connections: dict[tuple[object, object], list[Line]] = defaultdict(list)
    ruled: set[tuple[object, object, object]] = set()
    for line in trace.lines:
        node, connection = line.get("node"), line.get("conn_id")
        if connection is None:
            continue
        if line["kind"] in ("request", "response", "superseded") and line.get("api") != "Produce":
            connections[node, connection].append(line)
        elif line["kind"] == "rule" and line.get("change") == "used":
            ruled.add((node, connection, line.get("correlation_id")))
    counts = {call.response_seq: call.count for call in trace.exchanges}
    for (node, connection), lines in connections.items():
        for before, line, following in zip([None, *lines], lines, [*lines[1:], None], strict=False):
            if line.get("group_id") is None:
                continue
            number = line.get("correlation_id")
            if line["kind"] == "request" and following is not None and following["kind"] == "request":
                if not line.get("rule_id") and (node, connection, number) not in ruled:
                    text = f"#{line['seq']} {line['api']} was not answered before #{following['seq']} was read"
                    observations.add_failure(text, line, following)
            elif line["kind"] == "response" and before is not None:
                is_answer = before["kind"] == "request" and before.get("correlation_id") == number is not None
                if is_answer or line.get("rule_id"):
                    observations.add_pass(line, n=counts.get(line["seq"], 1))
                else:
                    text = f"#{line['seq']} answers a {line['api']} that does not wait for an answer"
                    observations.add_failure(text, line)
    return observations
