"""A group of a trace, as the fold sees it: its lines, the stays of its members, and what they fetched."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from koordinator.emulator.verify.lazy import lazy
from koordinator.emulator.verify.rebalances import rounds
from koordinator.trace.exchanges import HEARTBEAT, OK

from .settled import LEFT, Settled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from koordinator.emulator.verify.group_trace import GroupTrace
    from koordinator.trace.exchanges import Exchange, Line
    from koordinator.trace.rebalances import Round

Row = dict[str, Any]
"""A row of a table, by column; missing columns are null."""

NEVER = 2**62
"""A sequence number beyond all events."""

WATCHED = "watched"
"""The kind of the line that the pipeline adds at the end of a log: it has the time of the log's last line."""

JOIN_FIELDS = ("session_timeout_ms", "rebalance_timeout_ms", "protocol_type", "protocols", "topics")
"""Columns of silver/member_span from the body of a JoinGroup."""

CLASSIC, CONSUMER = "classic", "consumer"
"""The kinds of groups, as ListGroups names them (KIP-848)."""

CLIENT = ("client_id", "principal", "client_software", "client_version")


@dataclass(frozen=True, slots=True)
class Fetch:
    """A response that brought records to a member; Fetch names neither group nor member."""

    member: str
    line: Line


class GroupFacts:
    """The lines of a group, and the facts that several tables need. `fetches` is set once all groups are known.

    The `settled` part of a log's group is history before these lines.
    """

    def __init__(self, trace_id: str, trace: GroupTrace, settled: Settled | None = None) -> None:
        self.trace_id, self.trace, self.settled = trace_id, trace, settled or Settled()
        self.key = {"trace_id": trace_id, "group_id": trace.group_id}
        self.fetches: list[Fetch] = []

    @lazy
    def rounds(self) -> list[Round]:
        """The rebalances."""
        return [replace(each, number=self.settled.number + each.number) for each in rounds(self.trace)]

    @lazy
    def arrivals(self) -> list[list[list[Exchange]]]:
        """For each rebalance, the JoinGroups of each member."""
        return [each.arrivals(self.trace.joins.get(each.generation or 0, ())) for each in self.rounds]

    @lazy
    def spans(self) -> list[Row]:
        """silver/member_span: every stay, by member and time.

        A stay starts with `added` or `loaded`, or with the join alone: that of a member that replaces a static one
        (KIP-345), or that joined before the trace began. In a log it may start with the replacement of the old member.
        The last join determines the member's fields, and the first one its client id.
        """
        marks: dict[str | None, list[tuple[int, Line, Exchange | None]]] = {}
        for line in self.trace.group_lines:
            if line["kind"] in ("member", "puppet") and line.get("member_id"):
                marks.setdefault(line["member_id"], []).append((line["seq"], line, None))
        for line, new_id in self.trace.replacements:
            marks.setdefault(new_id, []).append((line["seq"], line | {"change": "added"}, None))
        for exchange in self.trace.exchanges:
            if exchange.joins and exchange.error == OK and exchange.member_id:
                marks.setdefault(exchange.member_id, []).append((exchange.seq, exchange.request, exchange))
        return [span for member_id, each in marks.items() for span in self._stays(member_id, each)]

    def _stays(self, member_id: str | None, marks: list[tuple[int, Line, Exchange | None]]) -> list[Row]:
        instance = max((line["instance_id"] for _, line, _ in marks if line.get("instance_id")), default=None)
        named = {
            "member_id": member_id,
            "member": instance or member_id,
            "instance_id": instance,
            "membership": "static" if instance else "dynamic",
            "puppet": any(line["kind"] == "puppet" for _, line, _ in marks),
        }
        stays: list[Row] = []
        stay: Row = {}
        for seq, line, join in sorted(marks, key=lambda mark: mark[0]):
            if "joined_seq" not in stay and (join or line.get("change") in ("added", "loaded")):
                stay |= {"joined_seq": seq, "joined_us": line.get("group_ts_us")}
            if join:
                first = {name: stay[name] for name in ("client_id", "answered_seq") if name in stay}
                stay |= {name: line.get(name) for name in CLIENT}
                stay |= _join_fields(join) | {"answered_seq": join.response_seq} | first
            elif line.get("change") in LEFT:
                reason = "replaced" if line["change"] == "replaced" else line.get("cause")
                stays.append(stay | {"left_seq": seq, "left_us": line.get("group_ts_us"), "end_reason": reason})
                stay = {}
        return [self.key | named | each for each in [*stays, stay] if "joined_seq" in each]

    @property
    def watched_until(self) -> Line | None:
        """The end of the log; None for other traces."""
        return next((line for line in reversed(self.trace.lines) if line["kind"] == WATCHED), None)

    def state_at(self, seq: int) -> tuple[str | None, int | None]:
        """Return the state and the generation before an event; None if they are unknown."""
        states, seqs = self._states
        return states[bisect_left(seqs, seq)]

    def stage_of(self, fencing: Line) -> str | None:
        """Return the state before a member was fenced."""
        return fencing["stage"] if "stage" in fencing else self.state_at(fencing["seq"])[0]

    @lazy
    def _states(self) -> tuple[list[tuple[str | None, int | None]], list[int]]:
        states: list[tuple[str | None, int | None]] = [(None, None)]
        for line in self.trace.states:
            states.append((line["state_to"], line.get("generation", states[-1][1])))
        return states, [int(line["seq"]) for line in self.trace.states]

    def software(self, member_id: str | None) -> str | None:
        """Return a member's client library and its version; None if it is unknown."""
        return self.trace.software(member_id or "").strip(" ()") or None


def _join_fields(join: Exchange) -> Row:
    """Return the columns from a JoinGroup, or from the first heartbeat of a member of a consumer group."""
    body = join.request_body
    fields: Row = {name: body.get(name) for name in JOIN_FIELDS}
    if join.api == HEARTBEAT:
        fields |= {"protocol_type": CONSUMER, "protocols": [body["assignor"]] if body.get("assignor") else None}
    return fields


def find_fetches(groups: Sequence[GroupFacts], lines: Sequence[Line]) -> None:
    """Set the fetches of each group: the responses with records, in the order of the trace.

    The member is the one with the connection's client id, unless several members have that id at the time. A member
    has it from the response to its first JoinGroup on, so that no later line changes the members of a time.
    """
    stays: dict[str, list[tuple[int, int, GroupFacts, str]]] = defaultdict(list)
    for group in groups:
        for span in group.spans:
            if span.get("client_id") is not None:
                stay = (span["answered_seq"], span.get("left_seq", NEVER), group, span["member"])
                stays[span["client_id"]].append(stay)
    waiting = {client_id: sorted(each, key=itemgetter(0), reverse=True) for client_id, each in stays.items()}
    current: dict[str, list[tuple[int, int, GroupFacts, str]]] = defaultdict(list)
    for line in lines:
        if line["kind"] != "response" or line.get("api") != "Fetch" or not line.get("body", {}).get("fetched"):
            continue
        client_id, seq = line.get("client_id", ""), line["seq"]
        later = waiting.get(client_id, [])
        while later and later[-1][0] < seq:
            current[client_id].append(later.pop())
        current[client_id] = [stay for stay in current[client_id] if stay[1] > seq]
        if len(current[client_id]) == 1:
            ((_, _, group_of_member, member),) = current[client_id]
            group_of_member.fetches.append(Fetch(member, line))


def ms(earlier_us: int | None, later_us: int | None) -> float | None:
    """Return the milliseconds between two times in microseconds; None if one is unknown."""
    return None if earlier_us is None or later_us is None else (later_us - earlier_us) / 1000
