"""The lines of a log in order, and what became of each.

Each line is read for itself, so that no other line harms it, whatever it contains: the lines of several containers, of
other loggers and programs, and stack traces may stand between those of the coordinator. Only a line that has no time of
its own takes it from the line before, where a layout puts it there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from . import aiokafka, dms, java, kafka_python, librdkafka, server_log
from .events import events_of, whole_rebalance
from .layouts import plain, unwrapped
from .patterns import fields_of
from .sequence import NODE_MASK, Sequence
from .times import Clock, WallTime, at, time_in, time_of_next, zone_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .events import Event
    from .layouts import PlainLine
    from .patterns import Fields, LinePattern

BROKERS = {"server_log": server_log, "dms": dms}
"""The logs of brokers, by source."""

MARKED_CLIENTS = {"java": java, "librdkafka": librdkafka}
"""The logs of clients whose every line has a mark."""

OTHER_CLIENTS = {"aiokafka": aiokafka, "kafka_python": kafka_python}
"""The logs of clients of which some lines only have a mark."""

MARKS = {source: log.MARK for source, log in (BROKERS | MARKED_CLIENTS | OTHER_CLIENTS).items()}
"""Pattern of a log's lines, by source."""

CHANGES = {
    "joining": "the client sends JoinGroup",
    "joined": "the client joined a generation",
    "assigned": "the client received its assignment",
    "revoked": "the client revokes partitions",
    "lost": "the client lost its partitions",
    "rejoins": "the client must rejoin, with a reason",
    "failed": "a request of the client was refused",
    "left": "the client leaves",
}
"""The changes that clients log."""

NO_TIME = "neither this line nor the one before has a date and time like 2026-11-21 20:15:00,123"
CUT_OFF = "the line starts like one of the group coordinator, but is cut off or unknown"

FOREIGN, OTHER_TEXT, BAD = "foreign", "other_text", "bad_line"
"""The kinds of lines that are not understood (schema.UNREAD)."""

LINE_MAX = 32_768
"""Longest message in characters that is compared with the known ones."""

SHAPES_MAX = 20
"""Number of texts of a kind that a file is shown with; further ones are counted together."""

EXAMPLE_MAX = 500
"""Number of characters of an example."""

LAYOUTS_MAX = 100

TRIGGER_US = 1_000_000
"""A new epoch belongs to the change of a member if it follows within this time."""

_SERVER, _JAVA, _LIBRDKAFKA = (re.compile(log.MARK) for log in (server_log, java, librdkafka))
_PREFIX = re.compile(r"\[(?:Consumer|Worker) .*?, groupId=.*?\] |\[thrd:[^\]]*\]: (?:\S+: )?")
_HINT = re.compile(r"\[Group|\[Consumer |\[Worker |\[thrd:|_REBALANCE\"")
"""A part of every marked line; most lines have none."""

_WORD = re.compile(r"\w+")
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d", re.ASCII)
_JSON_TIME = re.compile(r'([^{]*)\{.*?"(epochSecond|timeMillis|@timestamp|timestamp|time|ts)"', re.ASCII)


@dataclass(slots=True)
class LogLine:
    """What became of a line: its `events` of a `source`, or the reason why it was not understood."""

    source: str | None = None
    events: list[Event] = field(default_factory=list)
    unread: str | None = None
    """FOREIGN, OTHER_TEXT or BAD."""
    detail: str | None = None


@dataclass(slots=True)
class UnreadLines:
    """A number of lines of one kind that were not understood, and the beginning of the first of them."""

    kind: str
    text: str
    """The words that they share; empty for lines that share none."""
    example: str
    n: int = 1


@dataclass(slots=True)
class _Layout:
    """The first and the last line with a layout of times, and whether a known line has it."""

    first: str
    last: str
    is_known: bool


class LogReader:
    """Reads the lines of one file in order.

    `client` is the source in OTHER_CLIENTS of lines without a mark, if any. Times that name no zone are in `time_zone`.
    If the file continues, `earlier` has the last event of each broker (0 for clients): its `seq` and its group time.
    """

    def __init__(
        self,
        time_zone: str = "UTC",
        client: str | None = None,
        earlier: Mapping[tuple[bool, int], tuple[int, int | None]] | None = None,
    ) -> None:
        self._zone, self._client, self._earlier = zone_of(time_zone), client, earlier or {}
        self._clocks: dict[object, Clock] = defaultdict(Clock)
        self._sequences: dict[tuple[bool, int], Sequence] = {}
        self._times_of_next: dict[str, WallTime] = {}
        self._groups: dict[str, str] = {}
        self._groups_of_clients: dict[object, str | None] = {}
        self._other_groups: set[str] = set()
        self._triggers: dict[object, tuple[int, Event]] = {}
        self._returned: dict[object, Event] = {}
        self._unread: dict[tuple[str, str], UnreadLines] = {}
        self._layouts: dict[str, _Layout] = {}
        self._layouts_before: dict[str, str] = {}

    def read(self, raw: str) -> LogLine:
        """Read the next line."""
        line = self._read(raw)
        if line.unread is not None:
            self._count(line, raw)
        for event in line.events:
            if event.get("member_id") and event.get("group_id"):
                self._groups.setdefault(event["member_id"], event["group_id"])
        return line

    def group_of(self, event: Event) -> str | None:
        """Return the group of an event, once all lines are read.

        Before Kafka 2.5 the line of a returning static member lacks the group; other lines about the member have it.
        """
        group: str | None = event.get("group_id") or self._groups.get(event.get("old_member_id") or "")
        return group

    @property
    def unread(self) -> list[UnreadLines]:
        """The lines that were not understood, by kind and text."""
        return list(self._unread.values())

    def watched(self) -> Iterator[tuple[str, bool, int, int]]:
        """Return for each layout of times whether known lines have it, and the first and the last time.

        What was watched lasts from the first line in the layout of the known lines to the last.
        """
        for layout, seen in self._layouts.items():
            times = [time for raw in (seen.first, seen.last) if (time := self._time_of(plain(raw))) is not None]
            if times:
                yield layout, seen.is_known, times[0].us, times[-1].us

    def _read(self, raw: str) -> LogLine:
        if self._client is None and not _HINT.search(raw):
            return self._foreign(raw)
        line = plain(raw)
        before = self._times_of_next.pop(line.stream, None)
        found = self._known(line)
        if found is None:
            return self._foreign(raw)
        source, message, fields, head = found
        if fields is None:
            self._see(raw, is_known=False)
            if source == "server_log" and server_log.IS_BARE.search(message):
                return LogLine(source)
            is_cut = source == "server_log" and server_log.BEGINS.search(message)
            return LogLine(source, [], BAD, CUT_OFF) if is_cut else LogLine(source, [], OTHER_TEXT, message)
        if "kind" not in fields and source == "dms":
            return LogLine(source)
        time = time_in(head, self._zone) or self._time_around(line) or before
        if time is None:
            return LogLine(source, [], BAD, NO_TIME)
        self._see(raw, is_known=True)
        return LogLine(source, self._events(source, fields, message, line, time))

    def _known(self, line: PlainLine) -> tuple[str, str, Fields | None, str] | None:
        """Return the source of a line, its message, its fields, and the text before it; None for a foreign line."""
        if line.dms is not None:
            is_dms = str(line.dms.get("type", "")).endswith("_REBALANCE")
            return ("dms", "", dms.fields(line.dms) or {}, "") if is_dms else None
        text = line.text
        mark = _SERVER.search(text)
        if mark:
            node = server_log.NODE.match(mark[0])
            message = server_log.message(text[mark.end() :])
            fields = self._fields(message, (*server_log.OTHER_GROUPS, *server_log.KNOWN))
            if fields is not None and node:
                fields = fields[0] | {"node": node[1]}, fields[1]
            return "server_log", message, fields and fields[0], text[: mark.start()]
        for source, regex in (("java", _JAVA), ("librdkafka", _LIBRDKAFKA)):
            mark = regex.search(text)
            if mark:
                found = self._fields(text, MARKED_CLIENTS[source].KNOWN)
                return source, text[mark.start() :], found and found[0], text[: found[1] if found else mark.start()]
        if self._client is not None:
            found = self._fields(text, OTHER_CLIENTS[self._client].KNOWN)
            return (self._client, text[found[1] :], found[0], text[: found[1]]) if found else None
        return None

    @staticmethod
    def _fields(text: str, known: tuple[LinePattern, ...]) -> tuple[Fields, int] | None:
        return fields_of(text, known) if len(text) <= LINE_MAX else None

    def _events(self, source: str, fields: Fields, message: str, line: PlainLine, time: WallTime) -> list[Event]:
        """Return the events of a known line with their times and numbers."""
        is_broker = source in BROKERS
        node = dms.number(line.dms, "coordinatorId") if line.dms else int(fields["node"]) if "node" in fields else None
        log = (is_broker, (node or 0) & NODE_MASK)
        clock = self._clocks[log if is_broker else (source, line.stream)]
        wall_us = clock.read(time)
        clock_us = clock.now_us if clock.now_us is not None else wall_us
        if "kind" not in fields:
            self._note(fields, log, clock_us, message)
            return []
        if fields.get("group_id") in self._other_groups:
            return []
        events = whole_rebalance(fields) if source == "dms" else events_of(fields, message)
        if is_broker:
            self._complete(events, fields, log, clock_us)
        else:
            self._name_group(events[0], (source, line.stream))
        if log not in self._sequences:
            self._sequences[log] = Sequence(node, self._earlier.get(log, (None, None))[0])
        least_us = self._earlier.get(log, (None, None))[1] or 0
        for number, event in enumerate(events):
            event |= {"source": source, "node": node, "wall_us": wall_us, "seq": self._sequences[log].number(clock_us)}
            if source != "dms" or number == len(events) - 1:
                event["group_us"] = max(clock_us, least_us)
        return events

    def _note(self, fields: Fields, log: object, clock_us: int, message: str) -> None:
        """Remember what a line without events says about later ones."""
        if "cause" in fields:
            event = fields | {"reason": message}
            self._triggers[log, fields["group_id"]] = clock_us, {**event}
        elif "group_id" in fields:
            self._other_groups.add(fields["group_id"])

    def _complete(self, events: list[Event], fields: Fields, log: object, clock_us: int) -> None:
        """Fill in columns that an earlier line contains.

        "No rebalance" follows directly after the line of the returning static member, and a new epoch after the line of
        the member that caused it.
        """
        (event, *_), key = events, (log, fields.get("group_id"))
        if event["kind"] == "avoided_static" and log in self._returned:
            event |= {name: value for name, value in self._returned[log].items() if value}
        elif event.get("change") == "replaced":
            returned = {"member_id": fields.get("new_member_id"), "old_member_id": event.get("member_id")}
            self._returned[log] = {name: event.get(name) for name in ("group_id", "instance_id")} | returned
            event["old_member_id"] = event.get("member_id")
        elif event["kind"] == "member" and event.get("change") in ("added", "removed"):
            self._triggers[key] = clock_us, event
        elif event.get("state_to") == "Assigning":
            since_us, trigger = self._triggers.pop(key, (None, None))
            if event["generation"]:
                event["generation"] -= 1
            event["cause"] = "other"
            if trigger is not None and since_us is not None and clock_us - since_us <= TRIGGER_US:
                names = ("cause", "member_id", "instance_id", "reason", "client_reason")
                event |= {name: trigger.get(name) for name in names}

    def _name_group(self, event: Event, stream: object) -> None:
        """Fill in the group of a client, which some of its lines lack."""
        key = stream, event.get("client_id")
        group = event.get("group_id") or self._groups_of_clients.get(key)
        self._groups_of_clients[key] = event["group_id"] = group

    def _time_around(self, line: PlainLine) -> WallTime | None:
        """Return the time of a JSON record or a collector."""
        return at(line.time) if isinstance(line.time, int) else time_in(line.time or "", self._zone)

    def _time_of(self, line: PlainLine) -> WallTime | None:
        """Return the time of any line: the first one in its text, else that of its wrapper."""
        own = _DATE_TIME.search(line.text, 0, 200)
        until = own.end() + len(",123456+00:00") if own else 0
        return time_in(line.text[:until], self._zone) or self._time_around(line)

    def _foreign(self, raw: str) -> LogLine:
        """Look at a foreign line only for the time of the next line, and for that of the log."""
        self._see(raw, is_known=False)
        if self._times_of_next or ", 20" in raw[:60]:
            line = unwrapped(raw)
            self._times_of_next.pop(line.stream, None)
            time = time_of_next(line.text, self._zone)
            if time is not None:
                self._times_of_next[line.stream] = time
                return LogLine()
        return LogLine(unread=FOREIGN)

    def _see(self, raw: str, *, is_known: bool) -> None:
        """Keep the first and the last line of each layout of times."""
        record = _JSON_TIME.match(raw, 0, 400) if "{" in raw[:80] else None
        own = record or _DATE_TIME.search(raw, 0, 200)
        if own is None:
            return
        before = f"{record[1]}{{{record[2]}" if record else raw[: own.start()]
        layout = self._layouts_before.get(before)
        if layout is None:
            stream, text, *_ = unwrapped(before)
            layout = f"{stream}|" + _WORD.sub("w", text)
            if len(self._layouts_before) < LAYOUTS_MAX:
                self._layouts_before[before] = layout
        seen = self._layouts.get(layout)
        if seen is not None:
            seen.is_known = seen.is_known or is_known
            seen.last = raw
        elif is_known or len(self._layouts) < LAYOUTS_MAX:
            self._layouts[layout] = _Layout(raw, raw, is_known)

    def _count(self, line: LogLine, raw: str) -> None:
        kind = line.unread or FOREIGN
        text = {FOREIGN: "", BAD: line.detail or ""}.get(kind, _shape(line.detail or ""))
        if (kind, text) not in self._unread and sum(each == kind for each, _ in self._unread) >= SHAPES_MAX:
            text = ""
        counted = self._unread.get((kind, text))
        if counted is None:
            self._unread[kind, text] = UnreadLines(kind, text, _printable(raw[:EXAMPLE_MAX]))
        else:
            counted.n += 1


def _printable(text: str) -> str:
    """Return a text without characters that a terminal would obey."""
    letters = (each if each.isprintable() else " " if each.isspace() else "\N{REPLACEMENT CHARACTER}" for each in text)
    return "".join(letters)


def _shape(message: str) -> str:
    """Return the first words of a message, up to the first one that is a name or a number."""
    words = _PREFIX.sub("", message, count=1).removeprefix("[").split()[:8]
    plain_words = []
    for word in words:
        if not re.fullmatch(r"[A-Za-z'()-]+[,.:;]?", word):
            break
        plain_words.append(word)
    return " ".join(plain_words)
