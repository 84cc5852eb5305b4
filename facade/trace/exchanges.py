"""Requests with their responses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .events import connection_of, is_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .events import Connection

T = TypeVar("T")

Line = dict[str, Any]

OK = "NONE"
"""The error name of a successful response."""

HEARTBEAT = "ConsumerGroupHeartbeat"
"""The only request of the members of a consumer group, besides those for offsets (KIP-848)."""

EPOCH_HEARTBEATS = frozenset({HEARTBEAT, "ShareGroupHeartbeat", "StreamsGroupHeartbeat"})
"""The heartbeats with which members join and leave (KIP-848, KIP-932, KIP-1071)."""

JOINING_EPOCH = 0
"""The epoch of a heartbeat that joins."""

LEAVING_EPOCH, STATIC_LEAVING_EPOCH = -1, -2
"""The epochs of a heartbeat that leaves, for good or for a while."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its response; the response is None while there is none.

    The checks read most fields many times, so they are no properties.
    """

    request: Line
    response: Line | None
    seq: int = field(init=False)
    """The sequence number of the request."""
    response_seq: int | None = field(init=False)
    """The sequence number of the response."""
    api: str = field(init=False)
    """The API, as Kafka's schemas name it."""
    connection: Connection = field(init=False)
    """The node and the connection, whose number is unique per node."""
    client_id: str = field(init=False)
    """The client id; "" if the request has none."""
    request_member_id: str = field(init=False)
    """The member id in the request; "" if it has none."""
    member_id: str = field(init=False)
    """The member id in the request, else the id that a JoinGroup response assigns."""
    generation: int | None = field(init=False)
    """The generation in the request; None if the API or the member has none."""
    error: str | None = field(init=False)
    """The error of the response, "NONE" for success; None without a response."""

    def __post_init__(self) -> None:
        request, response = self.request, self.response
        member_id = own_id = str(request.get("member_id") or "")
        generation, response_seq, error = request.get("generation"), None, None
        if response is not None:
            response_seq, error = int(response["seq"]), str(response.get("error") or OK)
            member_id = own_id or str(response.get("member_id") or "")
        become = object.__setattr__
        become(self, "seq", int(request["seq"]))
        become(self, "response_seq", response_seq)
        become(self, "api", str(request["api"]))
        become(self, "connection", connection_of(request))
        become(self, "client_id", str(request.get("client_id") or ""))
        become(self, "request_member_id", own_id)
        become(self, "member_id", member_id)
        become(self, "generation", None if generation is None else int(generation))
        become(self, "error", error)

    @property
    def group_id(self) -> str | None:
        """The group that the request names."""
        return self.request.get("group_id")

    @property
    def sent_us(self) -> int:
        """When the request was received, in microseconds of the wall clock."""
        return int(self.request["wall_ts"])

    @property
    def answered_us(self) -> int | None:
        """When the response was sent, in microseconds of the wall clock."""
        return None if self.response is None else int(self.response["wall_ts"])

    @property
    def is_error(self) -> bool:
        """Whether the response has an error that is not part of the protocol, as MEMBER_ID_REQUIRED is."""
        return self.response is not None and is_error(self.response)

    @property
    def instance_id(self) -> str | None:
        """The `group.instance.id` in the request."""
        return self.request.get("instance_id")

    @property
    def software(self) -> str:
        """The client library that the client reports, such as "librdkafka 2.16.1"; "" if it reports none."""
        return " ".join(filter(None, (self.request.get("client_software"), self.request.get("client_version"))))

    @property
    def joined_generation(self) -> int | None:
        """The generation in a successful JoinGroup response."""
        if self.api != "JoinGroup" or self.error != OK or self.response is None:
            return None
        generation = self.response.get("generation")
        return None if generation is None else int(generation)

    @property
    def member_epoch(self) -> int | None:
        """The epoch of the member in a successful response of ConsumerGroupHeartbeat."""
        if self.api != HEARTBEAT or self.error != OK or self.response is None:
            return None
        return int(self.response["generation"])

    @property
    def leaves(self) -> bool:
        """Whether the request leaves the group."""
        return self.api == "LeaveGroup" or (
            self.api == HEARTBEAT and self.generation in (LEAVING_EPOCH, STATIC_LEAVING_EPOCH)
        )

    @property
    def joins(self) -> bool:
        """Whether the request joins the group."""
        return self.api == "JoinGroup" or (self.api == HEARTBEAT and self.generation == JOINING_EPOCH)

    @property
    def committed(self) -> list[tuple[str, int, int]]:
        """The topics, partitions and offsets of a commit that the coordinator has stored."""
        if self.error is None:
            return []
        body = self.response_body
        if "refused" not in body and self.error != OK:
            # a broker or a rule that gives no rows, or a body that is too large for the trace
            return []
        refused = {(row[0], row[1]) for row in body.get("refused", ())}
        rows = ((row[0], row[1], row[2]) for row in self.request_body.get("offsets") or ())
        return [row for row in rows if (row[0], row[1]) not in refused]

    @property
    def rule_id(self) -> str | None:
        """The fault rule that applied to the response, or to the request."""
        return (self.response or {}).get("rule_id") or self.request.get("rule_id")

    @property
    def count(self) -> int:
        """The number of equal heartbeats that this one stands for."""
        return int(self.request.get("count", 1))

    @property
    def request_body(self) -> Line:
        """The body of the request."""
        return self.request.get("body") or {}

    @property
    def response_body(self) -> Line:
        """The body of the response."""
        return (self.response or {}).get("body") or {}

    def __str__(self) -> str:
        name = self.instance_id or self.client_id or self.member_id
        has_other_id = self.request_member_id and self.request_member_id != name
        sender = f"{name} as member {self.request_member_id}" if has_other_id else name
        generation = "" if self.generation in (None, -1) else f" (generation {self.generation})"
        by_rule = "" if self.response is None or not self.response.get("rule_id") else " by a rule of the test"
        outcome = "no response yet" if self.error is None else f"{'OK' if self.error == OK else self.error}{by_rule}"
        version = self.request.get("api_version")
        api = self.api if version is None else f"{self.api} v{version}"
        return f"#{self.seq} {api} from {sender}{generation} -> {outcome}"


class Calls(Generic[T]):
    """The requests that wait for their responses, each with a value of the reader."""

    def __init__(self) -> None:
        self._open: dict[Connection, dict[int | None, T]] = {}

    def take(self, line: Mapping[str, Any], value: T) -> T | None:
        """Take a line: note the value of a request; return that of the request of a response, and forget it."""
        if line["kind"] == "request":
            self._open.setdefault(connection_of(line), {})[line.get("correlation_id")] = value
        elif line["kind"] == "response":
            return self.pop(line)
        return None

    def get(self, line: Mapping[str, Any]) -> T | None:
        """Return the value of the request that waits in a line's call."""
        return self._open.get(connection_of(line), {}).get(line.get("correlation_id"))

    def pop(self, line: Mapping[str, Any]) -> T | None:
        """Return the value of the request that waits in a line's call, and forget it."""
        waiting = self._open.get(connection_of(line))
        value = None if waiting is None else waiting.pop(line.get("correlation_id"), None)
        if waiting is not None and not waiting:
            del self._open[connection_of(line)]
        return value

    def close(self, line: Mapping[str, Any]) -> list[T]:
        """Forget the requests of a line's connection, which is closed, and return their values."""
        return list(self._open.pop(connection_of(line), {}).values())

    def values(self) -> list[T]:
        """Return the values of all requests that wait."""
        return [value for waiting in self._open.values() for value in waiting.values()]


def paired(lines: Iterable[Line]) -> list[Exchange]:
    """Return the requests with their responses, in the order of the requests."""
    calls: Calls[int] = Calls()
    requests: list[Line] = []
    responses: dict[int, Line] = {}
    for line in lines:
        at = calls.take(line, len(requests))
        if line["kind"] == "request":
            requests.append(line)
        elif at is not None:
            responses[at] = line
    return [Exchange(request, responses.get(at)) for at, request in enumerate(requests)]
