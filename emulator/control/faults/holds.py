"""Operations on holds and lock-steps, which stop requests before they are applied."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from ...config.suggest import unknown
from ...trace.events import RequestReceived
from ..resolve import error_name
from ..results import HoldEntry, HoldInfo, LockstepRound
from .actions import NoSuchRule, ReturnError, RuleConflict, RuleError
from .error_responses import check_place, is_served_first
from .faults import check_match, nearest
from .in_flight import HoldPoint
from .request_context import RequestContext
from .rules import ANY_API, Match

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.connections import Output
    from .fault_injector import FaultInjector
    from .in_flight import InFlightRequest


class Holds:
    """Operations on holds. A hold stops every matching request until it is released."""

    def __init__(
        self, runtime: ClusterRuntime, injector: FaultInjector, send: Callable[[Iterable[Output]], None]
    ) -> None:
        self._runtime = runtime
        self._injector = injector
        self._send = send
        self._numbers = count(1)

    def add(self, now: int, *, match: Mapping[str, object]) -> HoldInfo:
        """Hold matching requests from now on, and return the hold.

        Raise RuleError (a ValueError) if no request to this cluster can match.
        """
        return self._add(now, "hold", Match.of(match), ())

    def lockstep(self, now: int, *, api: str, group: str, clients: Sequence[str]) -> HoldInfo:
        """Hold a group's requests in rounds: release one request per client once every client has sent one.

        The seed determines the order within a round. Clients are named by client id or `group.instance.id`. Raise
        RuleError for an empty list or duplicate names.
        """
        names = tuple(clients)
        if not names or not all(names) or len(set(names)) < len(names):
            raise RuleError(f"clients {list(clients)!r}: must be one or more distinct client or instance ids")
        return self._add(now, "lockstep", Match(api, group=group), names)

    def all(self, now: int) -> list[HoldInfo]:
        """Return all holds and lock-steps, oldest first."""
        return [self.look(now, hold=hold) for hold in self._injector.hold_points]

    def look(self, _now: int, *, hold: str) -> HoldInfo:
        """Return a hold: `id`, `match`, `clients`, `entered`, `parked`, `behind`, `rounds` and `is_open`.

        `entered` counts all requests that entered. `parked` lists the held requests, in the shape of `faults.rule`;
        `behind` lists the requests that wait behind them on their connections. `rounds` counts complete rounds of a
        lock-step.
        """
        hold_point = self._hold_point(hold)
        return HoldInfo(
            id=hold_point.id,
            match=hold_point.match.data(),
            clients=list(hold_point.clients),
            entered=hold_point.entered,
            parked=[in_flight.summary() for in_flight in hold_point.inside],
            behind=[waiting.summary() for in_flight in hold_point.inside for waiting in in_flight.queued_behind()],
            rounds=hold_point.rounds,
            is_open=hold_point.is_open,
        )

    def entered(self, _now: int, *, hold: str) -> HoldEntry:
        """Return the wait condition of a hold: `ok` once a request, the `first`, has entered or none can enter.

        `deadlock` explains why none can: a matching request waits behind another hold, and every other connection that
        could send one is held as well.
        """
        hold_point = self._hold_point(hold)
        deadlock = None if hold_point.first is not None else self._deadlock(hold_point)
        first = None if hold_point.first is None else hold_point.first.summary()
        return HoldEntry(first is not None or deadlock is not None, first, deadlock)

    def near(self, _now: int, *, hold: str) -> str:
        """Describe the request that came closest to entering a hold."""
        return nearest(self._runtime, self._hold_point(hold).match)

    def round(self, _now: int, *, hold: str, number: int) -> LockstepRound:
        """Return the wait condition of a lock-step: `ok` after `number` complete rounds.

        `missing` lists the clients without a request in the current round.
        """
        hold_point = self._hold_point(hold)
        missing = set(hold_point.clients) - {hold_point.client_of(in_flight) for in_flight in hold_point.inside}
        return LockstepRound(hold_point.rounds >= number, hold_point.rounds, sorted(missing))

    def release(self, now: int, *, hold: str, error: str | int | None = None, at: str | None = None) -> None:
        """Resume the held requests and open the hold; with `error`, return that error without applying them.

        `error` is a name, or a number in the numbering of the cluster (`error.codes`).

        Raise RuleConflict (a RuleError) if no request has entered or the hold was released before.
        """
        hold_point = self._hold_point(hold)
        if hold_point.is_open:
            raise RuleConflict(f"{hold_point.id} on {hold_point.match}: already released")
        if not hold_point.entered:
            raise RuleConflict(
                f"{hold_point.id} on {hold_point.match}: no request has entered it; wait until one has entered"
            )
        action = None if error is None else self._error_action(hold_point, error_name(self._runtime, error), at)
        requests = self._open(hold_point)
        if action is None:
            self._send(self._injector.release(now, hold_point, requests))
        else:
            self._send(self._injector.refuse(now, hold_point, requests, action))

    def remove(self, now: int, *, hold: str) -> None:
        """Remove a hold and resume the requests in it."""
        hold_point = self._hold_point(hold)
        requests = self._open(hold_point)
        del self._injector.hold_points[hold]
        self._send(self._injector.release(now, hold_point, requests))
        self._injector.note_hold_point(now, "removed", hold_point)
        self._injector.update_registration()

    def parked(self, _now: int, *, group: str | None = None) -> list[str]:
        """Describe the held requests of a group, or of all groups, for the message of a failed wait."""
        return [
            self._describe(hold_point, in_flight)
            for hold_point in self._injector.hold_points.values()
            for in_flight in hold_point.inside
            if group is None or group in in_flight.context.groups
        ]

    def _add(self, now: int, kind: str, match: Match, clients: tuple[str, ...]) -> HoldInfo:
        check_match(self._runtime, match)
        hold_points = self._injector.hold_points
        hold_point = HoldPoint(f"{kind}-{next(self._numbers)}", match, clients)
        hold_points[hold_point.id] = hold_point
        self._injector.update_registration()
        self._injector.note_hold_point(now, "added", hold_point)
        return self.look(now, hold=hold_point.id)

    def _hold_point(self, hold: str) -> HoldPoint:
        hold_points = self._injector.hold_points
        if hold not in hold_points:
            raise NoSuchRule("hold", f"{unknown('hold', hold, hold_points)}; a removed hold cannot be used again")
        return hold_points[hold]

    @staticmethod
    def _open(hold_point: HoldPoint) -> list[InFlightRequest]:
        hold_point.is_open = True
        requests, hold_point.inside = hold_point.inside, []
        return requests

    @staticmethod
    def _error_action(hold_point: HoldPoint, error: str, at: str | None) -> ReturnError:
        action = ReturnError(error, at)
        for api in {in_flight.context.api for in_flight in hold_point.inside}:
            if is_served_first(api):
                raise RuleConflict(
                    f"{hold_point.id}: {api} does not support error responses; release it without an error"
                )
            check_place(api, at)
        return action

    @staticmethod
    def _describe(hold_point: HoldPoint, in_flight: InFlightRequest) -> str:
        connection = f"connection {in_flight.call.connection} of client {in_flight.context.client_id!r}"
        waiting = ", ".join(each.context.api for each in in_flight.queued_behind())
        behind = f"; behind it on that connection: {waiting}" if waiting else ""
        closed = " (closed)" if in_flight.client_closed else ""
        held_by = f"held by {hold_point.id} on {hold_point.match}"
        return f"{connection}{closed}: its {in_flight.context.api} is {held_by}{behind}"

    def _deadlock(self, hold_point: HoldPoint) -> str | None:
        """Explain why no request can enter before another hold is released; None if one can."""
        held = {
            in_flight.call.connection: (other, in_flight)
            for other in self._injector.hold_points.values()
            if other is not hold_point
            for in_flight in other.inside
            if not in_flight.client_closed
        }
        waiting = [
            (other, in_flight, each.context)
            for other, in_flight in held.values()
            for each in in_flight.queued_behind()
            if hold_point.match.admits(each.context)
        ]
        if not waiting or not self._possible_sources(hold_point.match) <= held.keys():
            return None
        other, in_flight, context = waiting[0]
        return (
            f"{hold_point.id} on {hold_point.match} waits for a {context.api} that is queued behind another hold: "
            f"{self._describe(other, in_flight)}. A connection is answered in order, so release {other.id} first."
        )

    def _possible_sources(self, match: Match) -> set[int]:
        """Return the open connections that sent requests of the same clients and groups before."""
        connections = {connection for broker in self._runtime for connection in broker.connections()}
        same_source = Match(ANY_API, client_id=match.client_id, group=match.group, broker=match.broker)
        return {
            event.call.connection
            for event in self._runtime.trace.events_after(0)
            if isinstance(event, RequestReceived)
            and event.call.connection in connections
            and (event.group_id is not None or match.group is None)
            and same_source.admits(RequestContext(self._runtime, match.broker or 0, event.call, event.request))
        }
