"""The events of a trace: its lines as values with typed attributes, and what two lines have in common."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, cast

from koordinator.emulator.trace.vocabulary import is_expected_error

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")

SCHEMA_VERSION = 1
"""The version of the schema that this reader knows."""

SHOWN_MAX = 60

Connection = tuple[int | None, int | None]
"""The node and the connection, whose number is unique per node."""

Call = tuple[int | None, int | None, int | None]
"""The connection and the correlation id."""


class TraceError(ValueError):
    """A line that is no line of a trace: its number, its text, and a remedy."""


class _Column(Generic[T]):
    """A column of an event as an attribute; None if the event lacks it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, event: Any, owner: type | None = None) -> T:  # noqa: ANN401 - as descriptors do
        return cast("T", self if event is None else event.get(self._name))


class Event(dict[str, Any]):
    """A line of a trace, read-only. Its columns are keys, `event["kind"]`, and the usual ones attributes, too.

    An attribute is None if the event lacks the column. `koordinator.emulator.trace.vocabulary.KINDS` explains the
    kinds, `koordinator.emulator.trace.trace` the columns. `dict(event)` is a copy that may be changed.
    """

    __slots__ = ()

    seq = _Column[int]("seq")
    """The sequence number, which orders all events of a trace."""
    kind = _Column[str]("kind")
    """The kind, such as "request", "response", "state" or "member"."""
    wall_us = _Column[int]("wall_ts")
    """The wall clock, in microseconds since the epoch."""
    group_us = _Column[int | None]("group_ts_us")
    """The clock of the group, in microseconds."""
    node = _Column[int | None]("node")
    """The broker, by node id; None for the whole cluster."""
    group_id = _Column[str | None]("group_id")
    """The group."""
    conn_id = _Column[int | None]("conn_id")
    """The connection, whose number is unique per node."""
    correlation_id = _Column[int | None]("correlation_id")
    """The number of the request on its connection."""
    api = _Column[str | None]("api")
    """The API of a request or a response, as Kafka's schemas name it: "JoinGroup"."""
    api_version = _Column[int | None]("api_version")
    """The version of the API."""
    client_id = _Column[str | None]("client_id")
    """The client id."""
    member_id = _Column[str | None]("member_id")
    """The member id."""
    instance_id = _Column[str | None]("instance_id")
    """The `group.instance.id`."""
    generation = _Column[int | None]("generation")
    """The generation of a classic group, or the epoch of another one."""
    error = _Column[str | None]("error")
    """The error of a response by name; None for success."""
    change = _Column[str | None]("change")
    """What happened to the member, the connection, the node, the rule or the hold."""
    state_from = _Column[str | None]("state_from")
    """The state before a change."""
    state_to = _Column[str | None]("state_to")
    """The state after a change."""
    cause = _Column[str | None]("cause")
    """The kind of the reason, such as "member_join"."""
    reason = _Column[str | None]("reason")
    """The reason, in Kafka's own words."""
    latency_us = _Column[int | None]("latency_us")
    """The time between a request and its response on the wall clock, in microseconds."""
    rule_id = _Column[str | None]("rule_id")
    """The rule that applied to the request or the response."""

    @property
    def body(self) -> dict[str, Any]:
        """The columns that depend on the kind and the API; empty without any."""
        return self.get("body") or {}

    @property
    def call(self) -> Call:
        """The key of the call, equal for its request and response: node, connection and correlation id."""
        return call_of(self)

    @property
    def connection(self) -> Connection:
        """The node and the connection."""
        return connection_of(self)

    @property
    def is_error(self) -> bool:
        """Whether it is a response with an error that is not part of the protocol, as MEMBER_ID_REQUIRED is."""
        return is_error(self)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(f"event #{self.seq} is read-only; change a copy, dict(event)")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[Event], tuple[dict[str, Any]]]:
        return type(self), (dict(self),)

    def __repr__(self) -> str:
        return f"Event({super().__repr__()})"


def call_of(line: Mapping[str, Any]) -> Call:
    """Return the key of a call, equal for its request and response."""
    return line.get("node"), line.get("conn_id"), line.get("correlation_id")


def connection_of(line: Mapping[str, Any]) -> Connection:
    """Return the node and the number of a line's connection."""
    return line.get("node"), line.get("conn_id")


def time_us(line: Mapping[str, Any]) -> int:
    """Return the time of a line on the group's clock, in microseconds; that of the wall clock if it has no other."""
    return int(line["group_ts_us"] if "group_ts_us" in line else line["wall_ts"])


def is_error(line: Mapping[str, Any]) -> bool:
    """Return whether a line is a response with an error that is not part of the normal protocol."""
    error = line.get("error")
    return error is not None and line["kind"] == "response" and not is_expected_error(line.get("api", ""), error)


def event_of(line: str | bytes | Mapping[str, Any], number: int = 1) -> Event:
    """Return a line of a trace, as text or as a mapping, as an event. Raises TraceError if it is none."""
    if isinstance(line, Event):
        return line
    if isinstance(line, str | bytes):
        try:
            columns = json.loads(line)
        except ValueError:
            raise _invalid(line, number, "is no JSON; a line that is cut is read when it is complete") from None
    else:
        columns = line
    if not isinstance(columns, dict):
        raise _invalid(line, number, "is no JSON object; `koordinator serve --trace` writes one object a line")
    kind, seq = columns.get("kind"), columns.get("seq", 0)
    if not isinstance(kind, str):
        raise _invalid(line, number, "has no `kind`; `koordinator serve --trace` writes the kind of each event")
    if not isinstance(seq, int):
        raise _invalid(line, number, f"has the sequence number {seq!r}; it must be a whole number")
    version = columns.get("schema_version", SCHEMA_VERSION)
    if version != SCHEMA_VERSION:
        raise _invalid(line, number, f"has the schema version {version!r}; this koordinator reads {SCHEMA_VERSION}")
    return Event(columns)


def _invalid(line: object, number: int, problem: str) -> TraceError:
    text = line.decode(errors="replace") if isinstance(line, bytes) else str(line)
    text = text.strip()
    return TraceError(f"line {number}: {text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + '…'} {problem}")
