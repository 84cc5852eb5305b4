"""The trace of one group: its lines, requests paired with responses, member names, and elapsed time on two clocks.

`emulator.trace.trace` describes the lines. Lines that name no group (connections, nodes, fetches) stay beside the
group's own lines, because the client checks need them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING

from koordinator.trace.exchanges import EPOCH_HEARTBEATS, paired
from koordinator.trace.names import is_member_of

from ..trace.vocabulary import METADATA_KINDS
from .lazy import lazy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from koordinator.trace.exchanges import Exchange, Line

LATER_APIS = ("SyncGroup", "Heartbeat", "OffsetCommit", *EPOCH_HEARTBEATS)
"""The APIs of a member whose requests have its latest client id."""

_REPLACED = re.compile(r"(?:was replaced by|assigning new member id|Created a new member) ([^\s,]+)")
"""Texts for a replaced static member that name the new member id: the emulator's, those of Kafka before 3.0, and those
for consumer groups (KIP-848)."""


class GroupTrace:
    """The trace of one group. `lines` is the trace of a cluster, or a part of it, oldest line first."""

    def __init__(self, lines: Iterable[Line], group_id: str) -> None:
        self.group_id = group_id
        cluster_lines = list(lines)
        self.dropped = sum(int(line["count"]) for line in cluster_lines if line["kind"] == "dropped")
        """The number of oldest events that the ring discarded."""
        self.lines = [
            line
            for line in cluster_lines
            if line.get("group_id", group_id) == group_id and line["kind"] not in METADATA_KINDS
        ]

    @lazy
    def group_lines(self) -> list[Line]:
        """The lines that name the group."""
        return [line for line in self.lines if line.get("group_id") == self.group_id]

    @lazy
    def exchanges(self) -> list[Exchange]:
        """The requests that name the group, with their responses, in the order of the requests."""
        return paired(self.group_lines)

    def client_exchanges(self, api: str) -> list[Exchange]:
        """Return the requests of an API that name no group, of the group's clients by client id."""
        names = {*self.clients.values()}
        lines = (line for line in self.lines if line.get("api") == api and "group_id" not in line)
        return paired(line for line in lines if line.get("client_id", "") in names)

    @lazy
    def by_member(self) -> dict[str, list[Exchange]]:
        """The exchanges of each member id."""
        exchanges: dict[str, list[Exchange]] = defaultdict(list)
        for exchange in self.exchanges:
            if exchange.member_id:
                exchanges[exchange.member_id].append(exchange)
        return dict(exchanges)

    @lazy
    def by_connection(self) -> dict[tuple[int | None, int | None], list[Exchange]]:
        """The exchanges of each connection."""
        exchanges: dict[tuple[int | None, int | None], list[Exchange]] = defaultdict(list)
        for exchange in self.exchanges:
            exchanges[exchange.connection].append(exchange)
        return dict(exchanges)

    @lazy
    def states(self) -> list[Line]:
        """The changes of the group's state."""
        return [line for line in self.group_lines if line["kind"] == "state"]

    @lazy
    def targets(self) -> list[Line]:
        """The targets of a consumer group."""
        return [line for line in self.group_lines if line["kind"] == "target"]

    @lazy
    def member_changes(self) -> dict[str, list[Line]]:
        """The lines in which each member was added, removed, replaced, or given an id."""
        changes: dict[str, list[Line]] = defaultdict(list)
        for line in self.group_lines:
            if line["kind"] == "member" and line.get("member_id"):
                changes[line["member_id"]].append(line)
        return dict(changes)

    @lazy
    def _protocols(self) -> list[tuple[int, bool]]:
        """The lines that show the kind of the group, each with whether it is a consumer group."""
        marks = []
        for line in self.group_lines:
            if line["kind"] in ("target", "reconciliation") or line.get("state_to") in ("Assigning", "Reconciling"):
                marks.append((int(line["seq"]), True))
            elif line.get("state_to") in ("PreparingRebalance", "CompletingRebalance"):
                marks.append((int(line["seq"]), False))
        return marks

    def is_consumer_at(self, seq: int) -> bool:
        """Return whether the group is a consumer group (KIP-848) at a line; states like Stable do not show it."""
        at = bisect_right(self._protocols, seq, key=lambda mark: mark[0])
        return bool(self._protocols) and self._protocols[max(at - 1, 0)][1]

    @lazy
    def deletions(self) -> list[int]:
        """The sequence numbers of the lines with which the group was deleted: its generations begin again."""
        dead = (line for line in self.states if line["state_to"] == "Dead")
        return [int(line["seq"]) for line in dead if line.get("cause") == "removed"]

    @lazy
    def joins(self) -> dict[int, list[Exchange]]:
        """The successful JoinGroups of each generation."""
        joins: dict[int, list[Exchange]] = defaultdict(list)
        for exchange in self.exchanges:
            if exchange.joined_generation is not None:
                joins[exchange.joined_generation].append(exchange)
        return dict(joins)

    @lazy
    def instances(self) -> dict[str, str]:
        """The `group.instance.id` of each static member id."""
        instances: dict[str, str] = {}
        for line in self.group_lines:
            if line.get("instance_id") and line.get("member_id"):
                instances[line["member_id"]] = line["instance_id"]
        for exchange in self.exchanges:
            if exchange.instance_id and exchange.member_id:
                instances[exchange.member_id] = exchange.instance_id
        new = {new: line["instance_id"] for line, new in self.replacements if new and line.get("instance_id")}
        return new | instances

    @lazy
    def replacements(self) -> list[tuple[Line, str | None]]:
        """The lines that replace a static member, each with the new member id; None if no line names it.

        Broker logs name the new id before Kafka 3.0 only. Elsewhere it is the next id that consists of the instance id
        and a UUID, as Kafka makes them (GroupMetadata.generateMemberId).
        """
        lines = [line for line in self.group_lines if line.get("member_id")]
        return [
            (line, _successor(line, lines[at + 1 :]))
            for at, line in enumerate(lines)
            if (line["kind"], line.get("change")) == ("member", "replaced")
        ]

    @lazy
    def clients(self) -> dict[str, str]:
        """The client id of each member id."""
        members = [exchange for exchange in self.exchanges if exchange.member_id]
        return {each.member_id: each.client_id for each in members if each.api == "JoinGroup"} | {
            each.member_id: each.client_id for each in members if each.api in LATER_APIS
        }

    def label(self, member_id: str) -> str:
        """Return the `group.instance.id` of a static member, else the member id."""
        return self.instances.get(member_id, member_id)

    def software(self, member_id: str) -> str:
        """Return the client library that a member reports, such as " (librdkafka 2.16.1)"; "" if it reports none."""
        for exchange in self.by_member.get(member_id, ()):
            name, version = exchange.request.get("client_software"), exchange.request.get("client_version")
            if name:
                return f" ({name} {version})" if version else f" ({name})"
        return ""

    def describe(self, member_id: str) -> str:
        """Return a member's label and its client library."""
        return f"{self.label(member_id)}{self.software(member_id)}"

    @lazy
    def closed(self) -> dict[tuple[int | None, int | None], Line]:
        """The closing line of each closed connection (node, number)."""
        return {
            (line.get("node"), line.get("conn_id")): line
            for line in self.lines
            if line["kind"] == "conn" and line.get("change") == "closed"
        }

    def closing(self, connection: tuple[int | None, int | None]) -> Line | None:
        """Return the closing line of a connection with the group's time before it; None if it is open."""
        closed = self.closed.get(connection)
        if closed is None or "group_ts_us" in closed:
            return closed
        at = bisect_right(self.group_lines, closed["seq"], key=lambda line: int(line["seq"]))
        times = (line["group_ts_us"] for line in reversed(self.group_lines[:at]) if "group_ts_us" in line)
        group_ts_us = next(times, None)
        return closed if group_ts_us is None else {**closed, "group_ts_us": group_ts_us}

    @lazy
    def last_requests(self) -> dict[str, int]:
        """The sequence number of the last request under each client id, also of those without a group."""
        requests = (line for line in self.lines if line["kind"] == "request")
        return {line.get("client_id") or "": int(line["seq"]) for line in requests}

    def blocked_ms(self, connection: tuple[int | None, int | None], earlier: Line, later: Line) -> float:
        """Return how long requests of a connection were in flight between two lines.

        The broker reads nothing else from the connection meanwhile, so a request that a test holds or delays also
        delays the requests behind it.
        """
        blocked = 0.0
        for exchange in after(self.by_connection.get(connection, ()), earlier["seq"]):
            if exchange.seq >= later["seq"]:
                break
            response = exchange.response
            until = later if response is None or response["seq"] > later["seq"] else response
            blocked += between_ms(exchange.request, until)
        return blocked

    def lagged_ms(self, earlier: Line, later: Line) -> float:
        """Return for how long the emulator was too busy to read requests between two lines."""
        lagged_us = 0
        for line in self.lines:
            if line["kind"] == "lag":
                began_us = max(int(earlier["wall_ts"]), int(line["wall_ts"]) - int(line["body"]["lag_ms"]) * 1000)
                lagged_us += max(0, min(int(later["wall_ts"]), int(line["wall_ts"])) - began_us)
        return lagged_us / 1000

    @property
    def end(self) -> Line | None:
        """The last line that has the group's time."""
        return next((line for line in reversed(self.group_lines) if line.get("group_ts_us") is not None), None)


def _successor(replaced: Line, later: Iterable[Line]) -> str | None:
    match = _REPLACED.search(replaced.get("reason") or "")
    if match:
        return match[1]
    instance_id, old_id = replaced.get("instance_id") or "", replaced["member_id"]
    ids = (line["member_id"] for line in later)
    return next((each for each in ids if each != old_id and is_member_of(instance_id, each)), None)


def after(exchanges: Sequence[Exchange], seq: int) -> Iterator[Exchange]:
    """Return the exchanges whose request comes after a line; they are in the order of their requests."""
    return islice(exchanges, bisect_right(exchanges, seq, key=lambda exchange: exchange.seq), None)


def between_ms(earlier: Line, later: Line) -> float:
    """Return the time between two lines on the wall clock and the group's clock, the lesser of the two.

    A jump of the group's clock costs a client no time, and no client is late while the group's clock stands still.
    """
    return min(_both_ms(earlier, later))


def client_ms(trace: GroupTrace, exchange: Exchange, later: Line) -> float:
    """Return the client's own time since a response, without the time its connection was blocked."""
    assert exchange.response is not None, "the exchange has a response"
    return between_ms(exchange.response, later) - trace.blocked_ms(exchange.connection, exchange.response, later)


def at_least_ms(earlier: Line, later: Line) -> float:
    """Return the time between two lines on the wall clock and the group's clock, the greater of the two."""
    return max(_both_ms(earlier, later))


def _both_ms(earlier: Line, later: Line) -> list[float]:
    clocks = [
        (int(later[clock]) - int(earlier[clock])) / 1000
        for clock in ("wall_ts", "group_ts_us")
        if earlier.get(clock) is not None and later.get(clock) is not None
    ]
    return clocks or [0.0]
