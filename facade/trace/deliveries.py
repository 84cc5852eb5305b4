"""The deliveries of the records of share groups: who acquired which records, and how each delivery ended (KIP-932).

A delivery begins with the response that says the records are acquired. It ends with the request that acknowledges them,
if the response accepts that, or with the line that says their locks have ended.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from .events import call_of, connection_of, time_us

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .events import Call

SHARE_APIS = frozenset({"ShareFetch", "ShareAcknowledge"})
"""The APIs whose requests acknowledge records; responses of the first have acquired ones."""

ACKNOWLEDGED = {"accept": "accepted", "release": "released", "reject": "rejected", "gap": "gap"}
"""The outcome of a delivery by the word of its acknowledgement."""

RENEW = "renew"
"""The acknowledgement that begins the lock again (KIP-1222)."""

LOCK_ENDS = {"lock_expired": "expired"}
"""The outcomes of deliveries whose lock has ended; other causes are their own words."""

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
    """Whether the records were given up: rejected, or their lock ended at the delivery limit."""

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
class _Acknowledged:
    """The deliveries that a member's request acknowledges, each with the word for it; the response decides."""

    member_id: str
    parts: tuple[tuple[str, ShareDelivery], ...]


class ShareDeliveries:
    """The deliveries of one share group, line by line. It keeps those that have not ended."""

    def __init__(self, group_id: str) -> None:
        self._id = group_id
        self._held: dict[Partition, list[ShareDelivery]] = {}
        self._waiting: dict[Call, _Acknowledged] = {}

    @property
    def open(self) -> list[ShareDelivery]:
        """The deliveries that have not ended."""
        waiting = (delivery for each in self._waiting.values() for _, delivery in each.parts)
        held = (delivery for each in self._held.values() for delivery in each)
        return sorted((*held, *waiting), key=attrgetter("acquired_seq", "topic", "partition", "first_offset"))

    def feed(self, line: Mapping[str, Any]) -> list[ShareDelivery]:
        """Take the next line of the group; return the deliveries that it ends."""
        kind = line["kind"]
        if kind == "locks":
            return list(self._locks_ended(line))
        if line.get("api") not in SHARE_APIS:
            return []
        if kind == "request":
            self._requested(line)
        elif kind == "response":
            return list(self._responded(line))
        elif kind == "superseded":
            return self._give_back([call_of(line)])
        return []

    def close(self, line: Mapping[str, Any]) -> list[ShareDelivery]:
        """Take the end of a connection: its acknowledgements get no response, and may have been accepted or not."""
        connection = connection_of(line)
        return self._give_back([call for call in self._waiting if call[:2] == connection])

    def _requested(self, line: Mapping[str, Any]) -> None:
        member_id = str(line.get("member_id") or "")
        end = {"ended_seq": line["seq"], "ended_us": time_us(line)}
        parts = tuple(
            (word, replace(each, **end))
            for topic, number, first, last, types in (line.get("body") or {}).get("acknowledged", ())
            for word, begin, until in _runs(first, last, types)
            for each in self._cut((topic, number), begin, until, member_id)
        )
        self._waiting[call_of(line)] = _Acknowledged(member_id, parts)

    def _responded(self, line: Mapping[str, Any]) -> Iterator[ShareDelivery]:
        waiting = self._waiting.pop(call_of(line), None)
        if waiting is None:
            return
        body = line.get("body") or {}
        refused = {(topic, number) for topic, number, _ in body.get("refused", ())}
        is_answered = line.get("error") is None or bool(refused)
        for word, each in waiting.parts:
            if not is_answered or (each.topic, each.partition) in refused:
                yield from self._hold_on(each)
            elif word == RENEW:
                yield from self._hold_on(replace(each, renewals=each.renewals + 1))
            else:
                yield replace(each, outcome=ACKNOWLEDGED.get(word, word), is_archived=word == "reject")
        for topic, number, first, last, count in body.get("acquired", ()):
            for each in self._cut((topic, number), first, last):
                yield replace(each, outcome=UNKNOWN)
            columns = {"acquired_seq": line["seq"], "acquired_us": time_us(line)}
            self._hold(ShareDelivery(self._id, topic, number, first, last, count, waiting.member_id, **columns))

    def _locks_ended(self, line: Mapping[str, Any]) -> Iterator[ShareDelivery]:
        cause = str(line.get("cause"))
        end = {"outcome": LOCK_ENDS.get(cause, cause), "ended_seq": line["seq"], "ended_us": time_us(line)}
        for topic, number, first, last, _, state in (line.get("body") or {}).get("ended", ()):
            for each in self._cut((topic, number), first, last):
                yield replace(each, **end, is_archived=state == "archived")

    def _give_back(self, calls: Iterable[Call]) -> list[ShareDelivery]:
        """Let members hold what requests without a response acknowledge; return the deliveries that end with it."""
        waiting = [self._waiting.pop(call) for call in calls if call in self._waiting]
        return [ended for each in waiting for _, delivery in each.parts for ended in self._hold_on(delivery)]

    def _hold_on(self, delivery: ShareDelivery) -> Iterator[ShareDelivery]:
        """Let a member hold records whose delivery did not end with its acknowledgement.

        If they have been delivered again, the end of this delivery is unknown.
        """
        delivery = replace(delivery, ended_seq=None, ended_us=None)
        held = self._held.get((delivery.topic, delivery.partition), [])
        after = bisect_left(held, delivery.first_offset, key=_last)
        if after < len(held) and held[after].first_offset <= delivery.last_offset:
            yield replace(delivery, outcome=UNKNOWN)
        else:
            self._hold(delivery)

    def _hold(self, delivery: ShareDelivery) -> None:
        held = self._held.setdefault((delivery.topic, delivery.partition), [])
        held.insert(bisect_left(held, delivery.first_offset, key=_first), delivery)

    def _cut(self, place: Partition, first: int, last: int, member_id: str | None = None) -> list[ShareDelivery]:
        """Take the held records of a range, or those of one member; a delivery that goes beyond it is divided."""
        held = self._held.get(place)
        if not held or last < first:
            return []
        begin, end = bisect_left(held, first, key=_last), bisect_right(held, last, key=_first)
        cut: list[ShareDelivery] = []
        kept: list[ShareDelivery] = []
        for each in held[begin:end]:
            if member_id is not None and each.member_id != member_id:
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


def _runs(first: int, last: int, types: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Return the ranges of records that are acknowledged in the same way; one word stands for all records."""
    if len(types) == 1:
        yield types[0], first, last
        return
    for word, run in groupby(range(first, min(last, first + len(types) - 1) + 1), lambda offset: types[offset - first]):
        offsets = list(run)
        yield word, offsets[0], offsets[-1]
