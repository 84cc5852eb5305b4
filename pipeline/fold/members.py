"""The rows of members and groups: silver/group, silver/member, and gold's states, commits and fencing."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

from koordinator.trace.exchanges import HEARTBEAT, OK
from koordinator.trace.tasks import STREAMS_HEARTBEAT

from .group_facts import CLASSIC, CLIENT, CONSUMER, NEVER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator.trace.exchanges import Line

    from .group_facts import GroupFacts, Row

FENCED = "FENCED_INSTANCE_ID"

DEAD = "Dead"

REFUSED = "refused"

KINDS = {"ShareGroupHeartbeat": "share", STREAMS_HEARTBEAT: "streams"}
"""The kinds of groups that an API belongs to alone."""

_OWNER = re.compile(r"(?:owned by|fenced by existing) member (\S+?)\.*\Z")
"""The end of Kafka's texts for a refused member: the one that has its group.instance.id."""


def group(facts: GroupFacts) -> Iterator[Row]:
    """Return the row of silver/group."""
    end = facts.trace.end or {}
    ends = {"end_seq": end.get("seq"), "end_wall_us": end.get("wall_ts"), "end_us": end.get("group_ts_us")}
    yield facts.key | {"type": _kind(facts)} | ends | {"lost": facts.trace.dropped or None}


def _kind(facts: GroupFacts) -> str:
    """Return the kind of a group at the end, by its last join or heartbeat, or else by its states."""
    for call in reversed(facts.trace.exchanges):
        if call.error == OK and call.api in KINDS:
            return KINDS[call.api]
        if call.error == OK and call.api in ("JoinGroup", HEARTBEAT):
            break
    return CONSUMER if facts.trace.is_consumer_at(NEVER) else CLASSIC


def member(facts: GroupFacts) -> Iterator[Row]:
    """Return the members that sent a request, or that an event of the group names."""
    trace = facts.trace
    for member_id in dict.fromkeys([*trace.by_member, *_named(facts)]):
        instance = trace.instances.get(member_id)
        row = facts.key | {"member_id": member_id, "member": instance or member_id, "is_static": bool(instance)}
        exchanges = trace.by_member.get(member_id)
        if not exchanges:
            yield row
            continue
        last = exchanges[-1]
        requests = [exchange.request for exchange in exchanges if exchange.request.get("client_software")]
        by = requests[0] if requests else {}
        principals = (exchange.request.get("principal") for exchange in exchanges)
        closed = trace.closed.get(last.connection)
        formed = (exchange.seq for exchange in exchanges if exchange.joined_generation is not None)
        yield row | {
            "client_id": trace.clients.get(member_id) or None,
            "principal": next(filter(None, principals), None),
            "client_software": by.get("client_software"),
            "client_version": by.get("client_version"),
            "first_seq": exchanges[0].seq,
            "last_seq": last.seq,
            "node": last.connection[0],
            "conn_id": last.connection[1],
            "closed_seq": closed["seq"] if closed else None,
            "by_broker": "reason" in closed if closed else None,
            "formed_seq": next(formed, None),
        }


def _named(facts: GroupFacts) -> Iterator[str]:
    for line in facts.trace.group_lines:
        is_new = line["seq"] >= facts.settled.cut_seq and line["kind"] not in ("request", "response")
        if is_new and line.get("member_id") and line.get("instance_id"):
            yield line["member_id"]


def state_time(facts: GroupFacts) -> Iterator[Row]:
    """Return gold/state_time, until the end of the trace; for a log that is the time of its last line.

    The time before a group's first state change is unknown and not counted. A deleted or unloaded group has no state.
    """
    if facts.trace.end is None:
        return
    us, visits = Counter(facts.settled.us), Counter(facts.settled.visits)
    end = facts.trace.end
    if facts.watched_until is not None and facts.trace.states and facts.trace.states[-1]["state_to"] != DEAD:
        end = max(end, facts.watched_until, key=itemgetter("group_ts_us"))
    for line, until in pairwise([*facts.trace.states, end]):
        us[line["state_to"]] += until["group_ts_us"] - line["group_ts_us"]
        visits[line["state_to"]] += 1
    for state, n in visits.items():
        yield facts.key | {"state": state, "ms": us[state] / 1000, "visits": n}


def commit(facts: GroupFacts) -> Iterator[Row]:
    """Return gold/commit. A commit in generation -1 comes from a client without a membership.

    In a consumer group the generation is the epoch of the member, which may be behind that of the group.
    """
    for call in facts.trace.exchanges:
        if call.api != "OffsetCommit":
            continue
        state, current = facts.state_at(call.seq)
        is_known = current is not None and call.generation is not None and call.generation >= 0
        is_known = is_known and not facts.trace.is_consumer_at(call.seq)
        lag = (current or 0) - (call.generation or 0) if is_known else None
        offsets = call.request_body.get("offsets")
        yield facts.key | {
            "seq": call.seq,
            "at": call.request["wall_ts"],
            "member_id": call.member_id or None,
            "member": call.instance_id or facts.trace.label(call.member_id) or None,
            **{name: call.request.get(name) for name in CLIENT},
            "generation": call.generation,
            "group_generation": current,
            "gen_lag": lag,
            "state_at": state,
            "error_code": (call.response or {}).get("error_code"),
            "error": call.error,
            "n_partitions": None if offsets is None else len(offsets),
            "is_zombie": (lag or 0) > 0,
        }


def fencing(facts: GroupFacts) -> Iterator[Row]:
    """Return gold/fencing: the replaced static members, and the refused requests of others (KIP-345)."""
    replaced_by: dict[str | None, str | None] = {}
    new_ids = {line["seq"]: new for line, new in facts.trace.replacements}
    for line in facts.trace.group_lines:
        if not _fences(line):
            continue
        instance = line.get("instance_id")
        owner = _OWNER.search(line.get("reason") or "") if line.get("change") == REFUSED else None
        replaced_by[instance] = owner[1] if owner else new_ids.get(line["seq"], replaced_by.get(instance))
        yield facts.key | {
            "seq": line["seq"],
            "at": line["wall_ts"],
            "instance_id": instance,
            "old_member": line.get("member_id"),
            "new_member": replaced_by[instance],
            "api": line.get("api", "JoinGroup"),
            "stage": facts.stage_of(line),
        }


def _fences(line: Line) -> bool:
    """Return whether a line replaces a static member, or refuses a request of one.

    A broker log tells of refused requests of consumer groups, whose instance id another member has (KIP-848).
    """
    if line["kind"] == "member":
        return line.get("change") in ("replaced", REFUSED)
    return line["kind"] == "response" and line.get("error") == FENCED
