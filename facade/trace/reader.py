"""The reader of a trace: lines in, and what they settle out.

It keeps only what is open: requests without a response until their connection is closed, the members of each group, the
rebalance of each group that goes on, with its JoinGroups, the records that members of share groups hold, the tasks
that members of streams groups have, and a counter for each group id.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koordinator.emulator.trace.vocabulary import METADATA_KINDS

from .deliveries import ShareDeliveries, ShareDelivery
from .events import Event, event_of
from .exchanges import EPOCH_HEARTBEATS, OK, Calls, Exchange
from .names import without_uuid
from .rebalances import Rebalance, Rebalances
from .tasks import TaskStay, TaskStays

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MEMBER_APIS = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", *EPOCH_HEARTBEATS})
"""The APIs to whose requests only members get a response without an error."""


@dataclass(frozen=True, slots=True)
class Membership:
    """A member of a group, from the line that adds it to the line that ends its membership."""

    group_id: str
    member_id: str
    instance_id: str | None = None
    """The `group.instance.id`; None for a dynamic member."""
    client_id: str = ""
    """The client id; "" as long as no response shows it."""
    software: str = ""
    """The client library that the member reports, such as "librdkafka 2.16.1"; "" if it reports none."""
    joined_seq: int | None = None
    """The sequence number of the line that adds it; None if the trace begins later."""
    left_seq: int | None = None
    """The sequence number of the line that ends its membership; None if it is a member."""
    cause: str | None = None
    """The cause of its end, such as "member_leave" or "session_expired"; None if it is a member."""

    @property
    def label(self) -> str:
        """The `group.instance.id` of a static member, else the member id."""
        return self.instance_id or self.member_id

    @property
    def name(self) -> str:
        """The `group.instance.id`, else the client id, else the member id without its UUID."""
        return self.instance_id or self.client_id or without_uuid(self.member_id)


Settled = Event | Exchange | Membership | Rebalance | ShareDelivery | TaskStay
"""What a line settles: itself, a call, and what ended: a membership, a rebalance, a delivery, a task with a member."""


class TraceReader:
    """Reads the lines of a trace one by one."""

    def __init__(self) -> None:
        self._number = 0
        self._calls: Calls[Event] = Calls()
        self._groups: dict[str, _Group] = {}

    def feed(self, line: str | bytes | Mapping[str, Any]) -> list[Settled]:
        """Return the event of the next line, and what it settles.

        A line is JSON text or a mapping; of a blank line nothing is returned. An exchange is settled by its response,
        or, without a response, by the end of its connection. Memberships, rebalances, deliveries and tasks are settled
        by their ends. Raises TraceError (a ValueError) for a line that is no
        line of a trace.
        """
        self._number += 1
        if isinstance(line, str | bytes) and not line.strip():
            return []
        event = event_of(line, self._number)
        settled: list[Settled] = [event]
        if event.kind in METADATA_KINDS:
            return settled
        calls = list(self._ended_calls(event))
        settled += calls
        if event.kind == "conn" and event.change == "closed":
            for group_id in {call.group_id for call in calls if call.group_id is not None}:
                settled += self._groups[group_id].close(event)
        elif event.group_id is not None:
            group = self._groups.get(event.group_id)
            if group is None:
                group = self._groups[event.group_id] = _Group(event.group_id)
            settled += group.feed(event, calls[-1] if event.kind == "response" and calls else None)
        return settled

    def _ended_calls(self, event: Event) -> Iterator[Exchange]:
        """Return the exchanges that an event settles."""
        if event.kind in {"request", "superseded"}:
            former = self._calls.pop(event)
            if former is not None:
                yield Exchange(former, None)
        if event.kind == "conn" and event.change == "closed":
            for unanswered in self._calls.close(event):
                yield Exchange(unanswered, None)
        request = self._calls.take(event, event)
        if request is not None:
            yield Exchange(request, event)

    def open(self) -> list[Exchange | Membership | Rebalance | ShareDelivery | TaskStay]:
        """Return what is not settled: requests without a response, members with their records and tasks, rebalances."""
        calls = sorted((Exchange(request, None) for request in self._calls.values()), key=lambda each: each.seq)
        groups = self._groups.values()
        return [
            *calls,
            *(member for group in groups for member in group.members.values()),
            *(rebalance for group in groups for rebalance in group.rebalances.unsettled),
            *(delivery for group in groups for delivery in group.deliveries.open),
            *(stay for group in groups for stay in group.tasks.open),
        ]


class _Group:
    """The members, rebalances, deliveries and tasks of one group that are not settled."""

    def __init__(self, group_id: str) -> None:
        self.members: dict[str, Membership] = {}
        self.rebalances = Rebalances()
        self.deliveries = ShareDeliveries(group_id)
        self.tasks = TaskStays(group_id)
        self._id = group_id

    def feed(self, event: Event, call: Exchange | None) -> Iterator[Settled]:
        """Take the next event of the group, and the exchange that it settles."""
        member_id = event.member_id or ""
        if event.kind == "member" and event.change in {"added", "loaded"}:
            self.members[member_id] = Membership(self._id, member_id, event.instance_id, joined_seq=event.seq)
        elif event.kind == "member" and event.change in {"removed", "replaced"}:
            yield from self._end([member_id], event)
        elif event.kind == "state" and event.state_to in {"Empty", "Dead"}:
            yield from self._end(list(self.members), event)
        elif call is not None and call.member_id and call.error == OK and call.api in MEMBER_APIS and not call.leaves:
            self._confirm(call)
        self.rebalances.feed(event)
        yield from self._settled()
        yield from self.deliveries.feed(event)
        yield from self.tasks.feed(event)

    def close(self, event: Event) -> Iterator[Settled]:
        """Take the end of a connection that has requests of the group."""
        self.rebalances.close(event)
        yield from self._settled()
        self.deliveries.close(event)

    def _settled(self) -> Iterator[Rebalance]:
        found = list(self.rebalances.settled())
        if found:
            self.rebalances.forget_names(self.members.__contains__)
        yield from found

    def _end(self, member_ids: Iterable[str], event: Event) -> Iterator[Membership]:
        for member_id in member_ids:
            member = self.members.pop(member_id, None) or Membership(self._id, member_id, event.instance_id)
            yield replace(member, left_seq=event.seq, cause=event.cause)

    def _confirm(self, call: Exchange) -> None:
        """Take from a response what it shows of a member."""
        before = self.members.get(call.member_id) or Membership(self._id, call.member_id)
        if not before.client_id or before.instance_id is None is not call.instance_id:
            self.members[call.member_id] = replace(
                before,
                instance_id=before.instance_id or call.instance_id,
                client_id=call.client_id,
                software=call.software,
            )


@dataclass(frozen=True, slots=True)
class Timeline:
    """A trace as a whole: its events, and what they show, oldest first."""

    events: tuple[Event, ...]
    """The events in the order of the trace; the header and the outcome of a test are not among them."""
    exchanges: tuple[Exchange, ...]
    """The requests with their responses, in the order of the requests."""
    memberships: tuple[Membership, ...]
    """The memberships, in the order in which the trace shows their beginning."""
    rebalances: tuple[Rebalance, ...]
    """The rebalances of all groups, in the order of their starts; the last one of a group may be open."""
    deliveries: tuple[ShareDelivery, ...]
    """The deliveries of records to members of share groups, in the order of the responses with the records."""
    tasks: tuple[TaskStay, ...]
    """The tasks of members of streams groups, in the order of the responses that assign them."""
    header: Event | None = None
    """The first line of a trace file."""

    @property
    def errors(self) -> tuple[Exchange, ...]:
        """The exchanges with errors that are not part of the protocol, as MEMBER_ID_REQUIRED is."""
        return tuple(each for each in self.exchanges if each.is_error)

    @property
    def group_ids(self) -> tuple[str, ...]:
        """The groups, in the order of their first events."""
        return tuple(dict.fromkeys(each.group_id for each in self.events if each.group_id is not None))


def read(source: str | PathLike[str] | Iterable[str | bytes | Mapping[str, Any]], group: str | None = None) -> Timeline:
    """Return a trace as a whole. `source` is the path of a trace file, or its lines, as text or as mappings.

    `read(cluster.events())` reads the trace of a running cluster. With a `group` only the lines that name it are read.
    Raises OSError if the file cannot be read, and TraceError (a ValueError) for the first line that is no line of a
    trace.
    """
    if isinstance(source, str | PathLike):
        with Path(source).open(encoding="utf-8") as lines:
            return _read(lines, group)
    return _read(source, group)


def _read(lines: Iterable[str | bytes | Mapping[str, Any]], group: str | None) -> Timeline:
    reader = TraceReader()
    found: list[Settled] = []
    for number, line in enumerate(lines, start=1):
        if isinstance(line, str | bytes) and not line.strip():
            continue
        event = event_of(line, number)
        if group in {None, event.group_id} or event.kind in METADATA_KINDS:
            found += reader.feed(event)
    found += reader.open()
    events = [each for each in found if isinstance(each, Event)]
    exchanges = [each for each in found if isinstance(each, Exchange)]
    members = [each for each in found if isinstance(each, Membership)]
    rebalances = [each for each in found if isinstance(each, Rebalance)]
    deliveries = [each for each in found if isinstance(each, ShareDelivery)]
    tasks = [each for each in found if isinstance(each, TaskStay)]
    return Timeline(
        events=tuple(each for each in events if each.kind not in METADATA_KINDS),
        exchanges=tuple(sorted(exchanges, key=lambda each: each.seq)),
        memberships=tuple(sorted(members, key=lambda each: each.joined_seq or 0)),
        rebalances=tuple(sorted(rebalances, key=lambda each: each.start_seq)),
        deliveries=tuple(
            sorted(deliveries, key=attrgetter("acquired_seq", "group_id", "topic", "partition", "first_offset"))
        ),
        tasks=tuple(sorted(tasks, key=attrgetter("given_seq", "type", "subtopology", "partition"))),
        header=next((each for each in events if each.kind == "header"), None),
    )
