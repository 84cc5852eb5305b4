"""Checks of share groups (KIP-932): the coordinator S13 to S16, from the records that members acquire.

A record has a holder from the response that delivers it to its acknowledgement, or to the line that says its lock has
ended. What the trace does not show is not judged: after a broker was started or stopped, a leader moved, offsets were
changed or records deleted, nothing is known of the records before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from koordinator.trace.events import call_of, connection_of
from koordinator.trace.exchanges import OK, Exchange

from .observations import Observations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator.trace.exchanges import Line

    from .group_trace import GroupTrace

Partition = tuple[str, int]

DELIVERIES_MAX = 25
"""The highest limit of deliveries that a broker accepts (`group.share.max.delivery.count.limit`)."""

FETCH, ACKNOWLEDGE = "ShareFetch", "ShareAcknowledge"

STATE_WRITE = "WriteShareGroupState"
"""The request that stores changes of records; if a rule answers it, the trace does not show what becomes of them."""

CHANGES_OF_OFFSETS = (
    *("AlterShareGroupOffsets", "DeleteShareGroupOffsets"),
    *("DeleteGroups", "DeleteRecords", "DeleteTopics"),
)
"""Requests after which nothing is known of the records before."""

FORGETTING_KINDS = ("node", "leader")
"""Kinds of lines after which share partitions may have been loaded again."""

REFUSED_AS_WRONG = (42, 121)
"""INVALID_REQUEST and INVALID_RECORD_STATE: refused acknowledgements that change nothing."""

FINAL = ("accept", "reject", "gap")
"""The acknowledgements after which a record is not delivered again."""


@dataclass(slots=True)
class _Record:
    """A record as the trace shows it: its latest delivery, its holder, and the line after which it has none.

    `left` is "" while it is held or nothing is known, else "finished" or "available".
    """

    delivered: Line
    count: int
    holder: str = ""
    left: str = ""
    line: Line | None = None

    def ends(self, left: str, line: Line) -> None:
        """Take the record from its holder."""
        self.holder, self.left, self.line = "", left, line


@dataclass(slots=True)
class _Findings:
    """The observations of the four checks."""

    held_once: Observations = field(default_factory=Observations)
    counted: Observations = field(default_factory=Observations)
    delivered_in_turn: Observations = field(default_factory=Observations)
    acknowledged_by_holder: Observations = field(default_factory=Observations)


def held_once(trace: GroupTrace) -> Observations:
    """Find records that were delivered to a member while another one held them (S13)."""
    return _followed(trace).held_once


def deliveries_counted(trace: GroupTrace) -> Observations:
    """Find delivery counts that do not rise by one with each delivery, or beyond every limit (S14)."""
    return _followed(trace).counted


def delivered_in_turn(trace: GroupTrace) -> Observations:
    """Find finished records that were delivered again, and available ones that were passed over (S15).

    A member gets available records before new ones. One that is passed over may have been deleted from the log, unless
    an earlier record comes with the new ones.
    """
    return _followed(trace).delivered_in_turn


def acknowledged_by_holder(trace: GroupTrace) -> Observations:
    """Find acknowledgements that were accepted although another member held the record (S16)."""
    return _followed(trace).acknowledged_by_holder


def _followed(trace: GroupTrace) -> _Findings:
    found = _Findings()
    _Records(trace, found).follow()
    return found


class _Records:
    """The records of a share group, followed through its trace."""

    def __init__(self, trace: GroupTrace, found: _Findings) -> None:
        self._trace, self._found = trace, found
        self._records: dict[Partition, dict[int, _Record]] = {}
        self._most = 0
        # requests that a test kept back: their responses tell of an earlier time
        self._held = {call_of(line) for line in trace.lines if line["kind"] == "hold" and line.get("correlation_id")}
        self._exchanges = {
            id(line): exchange
            for exchange in trace.exchanges
            if exchange.api in (FETCH, ACKNOWLEDGE)
            for line in (exchange.request, exchange.response)
            if line is not None
        }

    def follow(self) -> None:
        """Go through the lines; those of other groups have nothing to find."""
        for line in self._trace.lines if self._exchanges else ():
            exchange = self._exchanges.get(id(line))
            if exchange is not None and line is exchange.request:
                self._requested(exchange)
            elif exchange is not None:
                self._responded(exchange)
            elif line["kind"] == "locks":
                self._locks_ended(line)
            elif self._forgets(line):
                self._records.clear()
            elif line["kind"] == "conn" and line.get("change") == "closed":
                self._closed(line)

    @staticmethod
    def _forgets(line: Line) -> bool:
        if line["kind"] in FORGETTING_KINDS or (line["kind"] == "verb" and line.get("verb") != "expire_locks"):
            return True
        is_unwritten = line.get("api") == STATE_WRITE and line.get("rule_id") is not None
        return is_unwritten or line.get("api") in CHANGES_OF_OFFSETS

    def _closed(self, line: Line) -> None:
        """Forget who holds the records that a closed connection has acquired; most are released by now."""
        for records in self._records.values():
            for record in records.values():
                if record.holder and connection_of(record.delivered) == connection_of(line):
                    record.holder = ""

    # -- acknowledgements ----------------------------------------------------------------------------------------

    def _requested(self, exchange: Exchange) -> None:
        """Judge acknowledgements that were accepted, and take the records from their holders."""
        refused = {(topic, number): code for topic, number, code in exchange.response_body.get("refused", ())}
        is_known = exchange.error == OK or "refused" in exchange.response_body
        for topic, number, first, last, types in exchange.request_body.get("acknowledged", ()):
            place = (topic, number)
            code = refused.get(place)
            if code in REFUSED_AS_WRONG:
                continue
            if exchange.rule_id or not is_known or code is not None:
                self._records.pop(place, None)
                continue
            for offset, record in self._between(place, first, last):
                kind = types[offset - first] if len(types) > 1 else types[0]
                self._acknowledged(exchange, place, offset, record, kind)

    def _acknowledged(self, exchange: Exchange, place: Partition, offset: int, record: _Record, kind: str) -> None:
        name, found = exchange.member_id, self._found.acknowledged_by_holder
        if record.holder and record.holder != name:
            text = f"{name} acknowledged {_named(place, offset)}, which {record.holder} held: {exchange}"
            found.add_failure(text, record.delivered, exchange)
        elif record.holder:
            found.add_pass(exchange)
        if kind in FINAL:
            record.ends("finished", exchange.request)
        elif kind == "release":
            # after the last delivery it is given up, and the trace does not show the limit
            is_again = record.count < max(2, self._most)
            record.ends("available" if is_again and exchange.response is not None else "", exchange.response or {})

    def _between(self, place: Partition, first: int, last: int) -> list[tuple[int, _Record]]:
        records = self._records.get(place, {})
        return [(offset, record) for offset, record in records.items() if first <= offset <= last]

    def _locks_ended(self, line: Line) -> None:
        for topic, number, first, last, _, state in line["body"]["ended"]:
            for _, record in self._between((topic, number), first, last):
                record.ends("available" if state == "available" else "finished", line)

    # -- deliveries ----------------------------------------------------------------------------------------------

    def _responded(self, exchange: Exchange) -> None:
        """Judge the records that a response delivers, and note their holder."""
        rows = exchange.response_body.get("acquired", ())
        if exchange.response is None or exchange.rule_id or call_of(exchange.request) in self._held:
            for topic, number, *_ in rows:
                self._records.pop((topic, number), None)
            return
        by_place: dict[Partition, list[tuple[int, int]]] = {}
        for topic, number, first, last, count in rows:
            by_place.setdefault((topic, number), []).extend((offset, count) for offset in range(first, last + 1))
        for place, delivered in by_place.items():
            self._passed_over(exchange, place, [offset for offset, _ in delivered])
            for offset, count in delivered:
                self._delivered(exchange, place, offset, count)
        if rows:
            for each in (self._found.held_once, self._found.counted, self._found.delivered_in_turn):
                each.add_pass(exchange.response, of=exchange.member_id)

    def _delivered(self, exchange: Exchange, place: Partition, offset: int, count: int) -> None:
        assert exchange.response is not None, "it is a response that delivers records"
        record, line, name = self._records.setdefault(place, {}).get(offset), exchange.response, exchange.member_id
        where, found = _named(place, offset), self._found
        before = 0 if record is None else record.count
        if count > DELIVERIES_MAX or (record is not None and count != before + 1):
            text = f"{where} has delivery count {count} after {before}: {exchange}"
            found.counted.add_failure(text, *([record.delivered] if record else []), line, of=name)
        if record is not None and record.holder:
            text = f"{where} was delivered to {name} while {record.holder} held it: {exchange}"
            found.held_once.add_failure(text, record.delivered, line, of=name)
        if record is not None and record.left == "finished" and record.line is not None:
            text = f"{where} was delivered to {name}, although it was finished in #{record.line['seq']}: {exchange}"
            found.delivered_in_turn.add_failure(text, record.line, line, of=name)
        self._most = max(self._most, count)
        self._records[place][offset] = _Record(line, count, name)

    def _passed_over(self, exchange: Exchange, place: Partition, offsets: list[int]) -> None:
        """Find records that were available before the request, and that come later than new ones."""
        known = self._records.get(place, {})
        new = [offset for offset in offsets if offset not in known]
        if not new:
            return
        assert exchange.response is not None, "it is a response that delivers records"
        passed: Iterator[tuple[int, Line]] = (
            (offset, record.line)
            for offset, record in sorted(known.items())
            if record.left == "available" and record.line is not None and offset < max(new) and offset not in offsets
        )
        for offset, line in passed:
            if line.get("seq", exchange.seq) < exchange.seq:
                text = f"{_named(place, offset)} is available since #{line['seq']}, and was passed over: {exchange}"
                report = partial(self._found.delivered_in_turn.add_failure, text)
                if offset < min(offsets):
                    report = partial(self._found.delivered_in_turn.add_unclear, text)
                report(line, exchange.response, of=exchange.member_id)


def _named(place: Partition, offset: int) -> str:
    return f"{place[0]}-{place[1]}: {offset}"
