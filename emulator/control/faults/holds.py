"""Holds and lock-steps: requests that wait, before they are applied, until somebody says that they may go on."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from ...trace.lines import RequestReceived
from ..suggest import unknown
from .actions import Error, RuleError
from .error_responses import PLACES_OF, is_applied
from .faults import check_match, nearest
from .in_flight import HoldPoint
from .request_context import RequestContext
from .rules import ANY_API, Match

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.connections import Output
    from .fault_injector import FaultInjector
    from .in_flight import InFlightRequest


class Holds:
    """Stops requests and lets them go. As long as a hold is closed every request that matches is stopped at it."""

    def __init__(
        self, brokers: ClusterRuntime, gatekeeper: FaultInjector, leave: Callable[[Iterable[Output]], None]
    ) -> None:
        self._brokers = brokers
        self._gatekeeper = gatekeeper
        self._leave = leave
        self._numbers = count(1)

    def add(self, now: int, *, match: Mapping[str, object]) -> dict[str, object]:
        """Hold what matches, from now on; gives what `look` does. RuleError (a ValueError) if nothing ever can."""
        return self._add(now, "hold", Match.of(match), ())

    def lockstep(self, now: int, *, api: str, group: str, clients: Sequence[str]) -> dict[str, object]:
        """Hold these requests of a group until there is one of every client; then serve them in an order of the seed.

        And so on, round by round. A client is named by its client id or its `group.instance.id`.
        """
        names = tuple(clients)
        if not names or not all(names) or len(set(names)) < len(names):
            raise RuleError(f"clients {list(clients)!r}: must be different client or instance ids, at least one")
        return self._add(now, "lockstep", Match(api, group=group), names)

    def all(self, now: int) -> list[dict[str, object]]:
        """The holds and lock-steps there are, the oldest first, each as `look` gives it."""
        return [self.look(now, hold=hold) for hold in self._gatekeeper.stops]

    def look(self, now: int, *, hold: str) -> dict[str, object]:
        """A hold: `id match clients entered inside behind rounds is_open`.

        `entered` is how many ever did; `inside` the requests in it now, as `faults.rule` gives them, and `behind` those
        that wait behind these on their connections; `rounds` is how often a lock-step was complete.
        """
        del now
        stop = self._stop(hold)
        return {
            "id": stop.id,
            "match": stop.match.data(),
            "clients": list(stop.clients),
            "entered": stop.has_entered,
            "inside": [passage.data() for passage in stop.inside],
            "behind": [waiting.data() for passage in stop.inside for _, waiting in self._behind(passage)],
            "rounds": stop.rounds,
            "is_open": stop.is_open,
        }

    def entered(self, now: int, *, hold: str) -> dict[str, object]:
        """To be waited for: `ok` when a request has entered, the `first`; or, with a text in `deadlock`, when none can.

        That is so if a request that would enter stands behind another hold, and every connection that could bring
        another one is stopped, too.
        """
        del now
        stop = self._stop(hold)
        deadlock = None if stop.first is not None else self._deadlock(stop)
        first = None if stop.first is None else stop.first.data()
        return {"ok": first is not None or deadlock is not None, "first": first, "deadlock": deadlock}

    def near(self, now: int, *, hold: str) -> str:
        """What came nearest to entering a hold that nothing has entered, in words."""
        del now
        return nearest(self._brokers, self._stop(hold).match)

    def round(self, now: int, *, hold: str, number: int) -> dict[str, object]:
        """To be waited for: `ok` when a lock-step has been complete so often; `missing` are the clients it lacks."""
        del now
        stop = self._stop(hold)
        missing = set(stop.clients) - {stop.client_of(passage) for passage in stop.inside}
        return {"ok": stop.rounds >= number, "rounds": stop.rounds, "missing": sorted(missing)}

    def release(self, now: int, *, hold: str, error: str | None = None, at: str | None = None) -> None:
        """Let go what is held, and hold nothing more; with an error, answer it so without applying it.

        RuleError if nothing has entered, or it was released before.
        """
        stop = self._stop(hold)
        if stop.is_open:
            raise RuleError(f"{stop.id} on {stop.match}: was released before")
        if not stop.has_entered:
            raise RuleError(f"{stop.id} on {stop.match}: nothing has entered it; wait for that first (wait_entered)")
        refusal = None if error is None else self._refusal(stop, error, at)
        passages = self._open(stop)
        if refusal is None:
            self._leave(self._gatekeeper.let_go(now, stop, passages))
        else:
            self._leave(self._gatekeeper.refuse(now, stop, passages, refusal))

    def remove(self, now: int, *, hold: str) -> None:
        """End a hold: what is in it goes on, and nothing is held any more. Nothing else happens if it was released."""
        stop = self._stop(hold)
        passages = self._open(stop)
        del self._gatekeeper.stops[hold]
        self._leave(self._gatekeeper.let_go(now, stop, passages))
        self._gatekeeper.note_stop(now, "removed", stop)
        self._gatekeeper.changed()

    def blocked(self, now: int, *, group: str | None = None) -> list[str]:
        """What holds keep back just now, of a group or of all, in words; for the message of a wait that has failed."""
        del now
        return [
            self._said(stop, passage)
            for stop in self._gatekeeper.stops.values()
            for passage in stop.inside
            if group is None or group in passage.sight.groups
        ]

    # -- inside ----------------------------------------------------------------------------------------------

    def _add(self, now: int, kind: str, match: Match, clients: tuple[str, ...]) -> dict[str, object]:
        check_match(self._brokers, match)
        stops = self._gatekeeper.stops
        stop = HoldPoint(f"{kind}-{next(self._numbers)}", match, clients)
        stops[stop.id] = stop
        self._gatekeeper.changed()
        self._gatekeeper.note_stop(now, "added", stop)
        return self.look(now, hold=stop.id)

    def _stop(self, hold: str) -> HoldPoint:
        stops = self._gatekeeper.stops
        if hold not in stops:
            raise RuleError(f"{unknown('hold', hold, stops)}; one that has ended is not there any more")
        return stops[hold]

    @staticmethod
    def _open(stop: HoldPoint) -> list[InFlightRequest]:
        stop.is_open = True
        passages, stop.inside = stop.inside, []
        return passages

    @staticmethod
    def _refusal(stop: HoldPoint, error: str, at: str | None) -> Error:
        refusal = Error(error, at)
        for api in {passage.sight.api for passage in stop.inside}:
            places = PLACES_OF.get(api, ())
            if not places or is_applied(api):
                raise RuleError(f"{stop.id}: {api} cannot be answered with an error; release it without one")
            if at is not None and at not in places:
                raise RuleError(f"error at {at!r}: an answer to {api} has them at {' and '.join(places)}")
        return refusal

    def _behind(self, passage: InFlightRequest) -> Iterator[tuple[RequestContext, InFlightRequest]]:
        for call, request in passage.broker.behind(passage.call.connection):
            sight = RequestContext(self._brokers, passage.sight.node_id, call, request)
            yield sight, type(passage)(passage.broker, call, request, sight)

    def _said(self, stop: HoldPoint, passage: InFlightRequest) -> str:
        who = f"connection {passage.call.connection} of client {passage.sight.client_id!r}"
        waiting = ", ".join(sight.api for sight, _ in self._behind(passage))
        behind = f"; behind it on that connection: {waiting}" if waiting else ""
        gone = " (which has closed)" if passage.client_is_gone else ""
        return f"{who}{gone}: its {passage.sight.api} is held by {stop.id} on {stop.match}{behind}"

    def _deadlock(self, stop: HoldPoint) -> str | None:
        """Why nothing can enter as long as other holds stay closed; None if something may."""
        stopped = {
            passage.call.connection: (other, passage)
            for other in self._gatekeeper.stops.values()
            if other is not stop
            for passage in other.inside
            if not passage.client_is_gone
        }
        waiting = [
            (other, passage, sight)
            for other, passage in stopped.values()
            for sight, _ in self._behind(passage)
            if stop.match.admits(sight)
        ]
        if not waiting or not self._may_come_from(stop.match) <= stopped.keys():
            return None
        other, passage, sight = waiting[0]
        return (
            f"{stop.id} on {stop.match} waits for a {sight.api} that stands behind another hold: "
            f"{self._said(other, passage)}. A connection is answered in order, so release {other.id} first."
        )

    def _may_come_from(self, match: Match) -> set[int]:
        """The open connections that have spoken for the same clients and groups before."""
        open_now = {number for broker in self._brokers for number in broker.connections()}
        same = Match(ANY_API, client_id=match.client_id, group=match.group, broker=match.broker)
        return {
            each.call.connection
            for each in self._brokers.trace.happenings(0)
            if isinstance(each, RequestReceived)
            and each.call.connection in open_now
            and (each.group_id is not None or match.group is None)
            and same.admits(RequestContext(self._brokers, match.broker or 0, each.call, each.request))
        }
