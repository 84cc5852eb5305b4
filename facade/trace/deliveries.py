"""The deliveries of the records of share groups: who acquired which records, and how each delivery ended (KIP-932).

A delivery begins with the response that says the records are acquired. It ends with the request that acknowledges them,
if the response accepts that, or with the line that says their locks have ended. A line before the response says which
of the released records were delivered too often.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from .events import time_us
from .exchanges import Calls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

SHARE_APIS = frozenset({"ShareFetch", "ShareAcknowledge"})
"""The APIs whose requests acknowledge records; responses of the first have acquired ones."""

ACKNOWLEDGED = {"accept": "accepted", "release": "released", "reject": "rejected", "gap": "gap"}
"""The outcome of a delivery by the word of its acknowledgement."""

RELEASE, REJECT, RENEW = "release", "reject", "renew"
"""Acknowledgements: deliver it again, give it up, begin its lock again (KIP-1222)."""

LOCK_ENDS = {"lock_expired": "expired"}
"""The outcomes of deliveries whose lock has ended; other causes are their own words."""

GIVEN_UP = frozenset({"archived", "archiving"})
"""The states of records that are given up; archiving ones become dead letters (KIP-1191)."""

OPEN, UNKNOWN = "open", "unknown"

Partition = tuple[str, int]
"""A topic and a partition."""


@dataclass(frozen=True, slots=True)
class ShareDelivery:
    """Consecutive records that a member of a share group acquired together, and that met the same end.

    Times in microseconds are those of the group's clock. `outcome` is "accepted", "released", "rejected" or "gap" as
    the member acknowledged; "expired", "session_closed" or "forced" as the lock ended; "unknown" if the next delivery
    of the records has begun and the trace does not show the end of this one; "open" without an end.
    """

    group_id: str
    topic: str
    partition: int
    first_offset: int
    last_offset: int
    delivery_count: int
    """The number of the delivery, from 1."""
    member_id: str
    acquired_seq: int
    """The sequence number of the response with the records."""
    acquired_us: int
    outcome: str = OPEN
    ended_seq: int | None = None
    """The sequence number of the acknowledging request, or of the line that ends the lock."""
    ended_us: int | None = None
    renewals: int = 0
    """The number of times that the member renewed the lock."""
    is_archived: bool = False
    """Whether the records were given up: rejected, or released or their lock ended at the delivery limit."""

    @property
    def n_records(self) -> int:
        """The number of records."""
        return self.last_offset - self.first_offset + 1

    @property
    def held_ms(self) -> float | None:
        """The time from the acquisition to the end in milliseconds; None without an end."""
        return None if self.ended_us is None else (self.ended_us - self.acquired_us) / 1000

    def __str__(self) -> str:
        offsets = str(self.first_offset) + (f"-{self.last_offset}" if self.last_offset > self.first_offset else "")
        count = f" (delivery {self.delivery_count})" if self.delivery_count > 1 else ""
        return (
            f"#{self.acquired_seq} {self.topic}-{self.partition}: {offsets}{count} to {self.member_id}, {self.outcome}"
        )


_first, _last = attrgetter("first_offset"), attrgetter("last_offset")


@dataclass(frozen=True, slots=True)
class _ShareRequest:
    """A request that waits for its response. `rows` has topic, partition, first and last offset, word."""

    member_id: str
    seq: int
    us: int
    rows: tuple[tuple[str, int, int, int, str], ...]


class ShareDeliveries:
    """The deliveries of one share group, line by line. It keeps those that have not ended."""

    def __init__(self, group_id: str) -> None:
        self._id = group_id
        self._held: dict[Partition, list[ShareDelivery]] = {}
        self._requests: Calls[_ShareRequest] = Calls()

    @property
    def open(self) -> list[ShareDelivery]:
        """The deliveries that have not ended."""
        held = (delivery for each in self._held.values() for delivery in each)
        return sorted(held, key=attrgetter("acquired_seq", "topic", "partition", "first_offset"))

    def feed(self, line: Mapping[str, Any]) -> list[ShareDelivery]:
        """Take the next line of the group; return the deliveries that it ends."""
        kind = line["kind"]
        if kind == "locks":
            return list(self._locks_ended(line))
        if kind == "archived":
            self._archived(line)
            return []
        if line.get("api") not in SHARE_APIS:
            return []
        if kind == "request":
            self._requests.take(line, _request(line))
        elif kind == "superseded":
            self._requests.pop(line)
        elif kind == "response" and (request := self._requests.pop(line)) is not None:
            return [*self._acknowledged(request, line), *self._acquired(request, line)]
        return []

    def close(self, line: Mapping[str, Any]) -> None:
        """Take the end of a connection: its requests get no response, and may have been accepted or not."""
        self._requests.close(line)

    def _acknowledged(self, request: _ShareRequest, line: Mapping[str, Any]) -> Iterator[ShareDelivery]:
        refused = {(topic, number) for topic, number, _ in (line.get("body") or {}).get("refused", ())}
        if line.get("error") is not None and not refused:
            return
        for topic, number, first, last, word in request.rows:
            if (topic, number) not in refused:
                yield from self._end(request, (topic, number), first, last, word)

    def _end(
        self, request: _ShareRequest, place: Partition, first: int, last: int, word: str
    ) -> Iterator[ShareDelivery]:
        """End the deliveries to a member that its request acknowledges, or renew their locks."""

        def is_meant(held: ShareDelivery) -> bool:
            return held.member_id == request.member_id and held.acquired_seq < request.seq

        for each in self._cut(place, first, last, is_meant):
            if word == RENEW:
                self._hold(replace(each, renewals=each.renewals + 1))
            else:
                end = replace(each, outcome=ACKNOWLEDGED.get(word, word), ended_seq=request.seq, ended_us=request.us)
                yield replace(end, is_archived=each.is_archived or word == REJECT)

    def _acquired(self, request: _ShareRequest, line: Mapping[str, Any]) -> Iterator[ShareDelivery]:
        for topic, number, first, last, count in (line.get("body") or {}).get("acquired", ()):
            place = (topic, number)
            if self._held.get(place):
                yield from self._released(place, first, last)
                yield from (replace(each, outcome=UNKNOWN) for each in self._cut(place, first, last))
            acquired = {"acquired_seq": line["seq"], "acquired_us": time_us(line)}
            self._hold(ShareDelivery(self._id, topic, number, first, last, count, request.member_id, **acquired))

    def _released(self, place: Partition, first: int, last: int) -> Iterator[ShareDelivery]:
        """End deliveries that a request without a response yet released: another member has the records."""
        for request in self._requests.values():
            for topic, number, begin, end, word in request.rows:
                if word == RELEASE and (topic, number) == place:
                    yield from self._end(request, place, max(first, begin), min(last, end), word)

    def _locks_ended(self, line: Mapping[str, Any]) -> Iterator[ShareDelivery]:
        cause = str(line.get("cause"))
        end = {"outcome": LOCK_ENDS.get(cause, cause), "ended_seq": line["seq"], "ended_us": time_us(line)}
        for topic, number, first, last, _, state in (line.get("body") or {}).get("ended", ()):
            for each in self._cut((topic, number), first, last):
                yield replace(each, **end, is_archived=state in GIVEN_UP)

    def _archived(self, line: Mapping[str, Any]) -> None:
        """Mark deliveries whose release, which is answered next, is the last one."""
        for topic, number, first, last, _, _ in line["body"]["archived"]:
            for each in self._cut((topic, number), first, last, lambda held: held.member_id == line.get("member_id")):
                self._hold(replace(each, is_archived=True))

    def _hold(self, delivery: ShareDelivery) -> None:
        held = self._held.setdefault((delivery.topic, delivery.partition), [])
        held.insert(bisect_left(held, delivery.first_offset, key=_first), delivery)

    def _cut(
        self, place: Partition, first: int, last: int, is_meant: Callable[[ShareDelivery], bool] = lambda _: True
    ) -> list[ShareDelivery]:
        """Take deliveries of the records in a range from the held ones; one that goes beyond it is divided."""
        held = self._held.get(place)
        if not held or last < first:
            return []
        begin, end = bisect_left(held, first, key=_last), bisect_right(held, last, key=_first)
        cut: list[ShareDelivery] = []
        kept: list[ShareDelivery] = []
        for each in held[begin:end]:
            if not is_meant(each):
                kept.append(each)
                continue
            if each.first_offset < first:
                kept.append(replace(each, last_offset=first - 1))
            begins, ends = max(each.first_offset, first), min(each.last_offset, last)
            cut.append(replace(each, first_offset=begins, last_offset=ends))
            if each.last_offset > last:
                kept.append(replace(each, first_offset=last + 1))
        held[begin:end] = kept
        return cut


def _request(line: Mapping[str, Any]) -> _ShareRequest:
    rows = (
        (topic, number, begin, until, word)
        for topic, number, first, last, types in (line.get("body") or {}).get("acknowledged", ())
        for word, begin, until in _runs(first, last, types)
    )
    return _ShareRequest(str(line.get("member_id") or ""), line["seq"], time_us(line), tuple(rows))


def _runs(first: int, last: int, types: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Return the ranges of records that are acknowledged in the same way; one word stands for all records."""
    if len(types) == 1:
        yield types[0], first, last
        return
    for word, run in groupby(range(first, min(last, first + len(types) - 1) + 1), lambda offset: types[offset - first]):
        offsets = list(run)
        yield word, offsets[0], offsets[-1]
