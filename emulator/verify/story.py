"""The lines of one group, prepared: requests with their answers, who is who, and what the two clocks say.

A line is as `emulator.trace.trace` describes it. Lines that name no group (connections, nodes, fetches) are kept
beside the group's own, because a client is judged by them, too.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

Line = dict[str, Any]

NO_EVENTS = ("header", "test")
"""The kinds of lines that say of what the trace is."""

OK = "NONE"
"""The error of an answer that says all went well."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer, None if there is none (yet)."""

    request: Line
    response: Line | None

    @property
    def seq(self) -> int:
        """Where the request stands in the trace."""
        return int(self.request["seq"])

    @property
    def answered_seq(self) -> int | None:
        """Where its answer stands."""
        return None if self.response is None else int(self.response["seq"])

    @property
    def api(self) -> str:
        """The API, as Kafka's schemas name it."""
        return str(self.request["api"])

    @property
    def connection(self) -> tuple[int | None, int | None]:
        """The connection it came on: numbers are unique per node."""
        return self.request.get("node"), self.request.get("conn_id")

    @property
    def client_id(self) -> str:
        """What the client calls itself."""
        return str(self.request.get("client_id") or "")

    @property
    def asked_as(self) -> str:
        """The member id in the request, "" if it has none."""
        return str(self.request.get("member_id") or "")

    @property
    def member_id(self) -> str:
        """The member it is about: a JoinGroup without an id is of the member that the answer names."""
        told = None if self.response is None else self.response.get("member_id")
        return str(self.request.get("member_id") or told or "")

    @property
    def instance_id(self) -> str | None:
        """The `group.instance.id` in the request."""
        return self.request.get("instance_id")

    @property
    def generation(self) -> int | None:
        """The generation in the request; None if the API, or the member, has none."""
        generation = self.request.get("generation")
        return None if generation is None else int(generation)

    @property
    def formed(self) -> int | None:
        """The generation in the answer to a JoinGroup."""
        if self.api != "JoinGroup" or self.error != OK or self.response is None:
            return None
        generation = self.response.get("generation")
        return None if generation is None else int(generation)

    @property
    def error(self) -> str | None:
        """The error of the answer, "NONE" if all went well; None if it has not been answered."""
        return None if self.response is None else str(self.response.get("error") or OK)

    @property
    def asked(self) -> Line:
        """The body of the request."""
        return self.request.get("body") or {}

    @property
    def told(self) -> Line:
        """The body of the answer."""
        return (self.response or {}).get("body") or {}

    def __str__(self) -> str:
        name = self.instance_id or self.client_id or self.member_id
        who = f"{name} as member {self.asked_as}" if self.asked_as and self.asked_as != name else name
        generation = "" if self.generation in (None, -1) else f" (generation {self.generation})"
        by_rule = "" if self.response is None or not self.response.get("rule_id") else " by a rule of the test"
        answer = "no answer yet" if self.error is None else f"{'OK' if self.error == OK else self.error}{by_rule}"
        version = self.request.get("api_version")
        return f"#{self.seq} {self.api}{'' if version is None else f' v{version}'} from {who}{generation} -> {answer}"


class Story:
    """What a trace says of one group. `lines` is the whole trace of a cluster, or a part of it, the oldest first."""

    def __init__(self, lines: Iterable[Line], group_id: str) -> None:
        self.group_id = group_id
        everything = list(lines)
        self.lost = sum(int(line["count"]) for line in everything if line["kind"] == "dropped")
        """How many of its first events the trace has forgotten."""
        self.lines = [
            line for line in everything if line.get("group_id", group_id) == group_id and line["kind"] not in NO_EVENTS
        ]

    @cached_property
    def own(self) -> list[Line]:
        """The lines that name the group."""
        return [line for line in self.lines if line.get("group_id") == self.group_id]

    @cached_property
    def calls(self) -> list[Exchange]:
        """The requests that name the group, with their answers, in the order in which they came."""
        waiting: dict[tuple[object, ...], int] = {}
        requests: list[Line] = []
        answers: dict[int, Line] = {}
        for line in self.own:
            key = (line.get("node"), line.get("conn_id"), line.get("correlation_id"))
            if line["kind"] == "request":
                waiting[key] = len(requests)
                requests.append(line)
            elif line["kind"] == "response" and key in waiting:
                answers[waiting.pop(key)] = line
        return [Exchange(request, answers.get(at)) for at, request in enumerate(requests)]

    @cached_property
    def by_member(self) -> dict[str, list[Exchange]]:
        """The calls of each member id."""
        found: dict[str, list[Exchange]] = defaultdict(list)
        for call in self.calls:
            if call.member_id:
                found[call.member_id].append(call)
        return dict(found)

    @cached_property
    def instances(self) -> dict[str, str]:
        """The `group.instance.id` of each static member's ids."""
        found: dict[str, str] = {}
        for line in self.own:
            if line.get("instance_id") and line.get("member_id"):
                found[line["member_id"]] = line["instance_id"]
        for call in self.calls:
            if call.instance_id and call.member_id:
                found[call.member_id] = call.instance_id
        return found

    @cached_property
    def clients(self) -> dict[str, str]:
        """The client id of each member id."""
        return {call.member_id: call.client_id for call in self.calls if call.member_id and call.api == "JoinGroup"} | {
            call.member_id: call.client_id
            for call in self.calls
            if call.member_id and call.api in ("SyncGroup", "Heartbeat", "OffsetCommit")
        }

    def label(self, member_id: str) -> str:
        """What to call a member: by its `group.instance.id` if it is static, else by its member id."""
        return self.instances.get(member_id, member_id)

    def software(self, member_id: str) -> str:
        """Which client library a member says it is: " (librdkafka 2.16.1)", or nothing."""
        for call in self.by_member.get(member_id, ()):
            name, version = call.request.get("client_software"), call.request.get("client_version")
            if name:
                return f" ({name} {version})" if version else f" ({name})"
        return ""

    @cached_property
    def closed(self) -> dict[tuple[int | None, int | None], Line]:
        """The lines that say a connection was closed, by connection."""
        return {
            (line.get("node"), line.get("conn_id")): line
            for line in self.lines
            if line["kind"] == "conn" and line.get("change") == "closed"
        }

    def held_ms(self, connection: tuple[int | None, int | None], earlier: Line, later: Line) -> float:
        """How long, between two lines, requests of a connection were in hand: so long nothing else of it was read.

        A test may hold them, or answer late; what the client has sent meanwhile stands behind them.
        """
        held = 0.0
        for call in self.calls:
            if call.connection == connection and earlier["seq"] < call.seq < later["seq"]:
                until = later if call.response is None or call.response["seq"] > later["seq"] else call.response
                held += between_ms(call.request, until)
        return held

    @property
    def end(self) -> Line | None:
        """The last line that says what time it is in the group."""
        return next((line for line in reversed(self.own) if line.get("group_ts_us") is not None), None)


def between_ms(earlier: Line, later: Line) -> float:
    """How much time has passed by the wall's clock and by the group's: the lesser of the two.

    A jump of the group's clock takes no time of a client, and a group whose clock stands still lets nobody be late.
    """
    return min(_both_ms(earlier, later))


def at_least_ms(earlier: Line, later: Line) -> float:
    """The same, the greater of the two."""
    return max(_both_ms(earlier, later))


def _both_ms(earlier: Line, later: Line) -> list[float]:
    clocks = [
        (int(later[clock]) - int(earlier[clock])) / 1000
        for clock in ("wall_ts", "group_ts_us")
        if earlier.get(clock) is not None and later.get(clock) is not None
    ]
    return clocks or [0.0]
