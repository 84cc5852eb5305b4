"""The trace: what happened, one JSON line each, in a versioned schema.

Kinds of event:

* `header`: the first line of a file; schema version, seed, versions; as far as whoever started the emulator says so
  (`run_metadata`) what ran: `run_id`, `test_id`, `rerun`, `repo`, `commit`, `branch`, `ci_provider`,
  `os`, `libs`.
* `request`, `response`: one of each for every call. A fetch that brings nothing is not an event: it is counted in
  the connection's next response or disconnection (`empty_fetches`). What one brings is in the response's
  `body.fetched`: topic, partition, the offset of the first batch's first record, and the one after the last record.
* `state`: a group changed its state; `cause` is its kind, `reason` Kafka's own words.
* `member`: a member came, went or was replaced. `avoided_static`: a static member came back without a rebalance.
* `timer`: a deadline passed; a check for old offsets is told if it has found something. `offsets`: committed offsets
  were dropped. `superseded`: a parked call will never be answered, because its member has sent another.
* `conn`: a connection was opened or closed. `dropped`: the ring was full, this many of the oldest events are gone.
* `node`: a node was started, stopped, killed, paused, resumed, added or removed.
* `clock`: a group's clock was moved, or made to run another way (`mode`); `cause` is the lever, or `auto`. `body` has
  `from_ms` and `to_ms`, where it was and where it goes; what it passes on the way follows.
* `puppet`: `puppet`, a member that lives in the emulator, was created, assigned
  something, has revoked or lost it, was stopped, or has failed; `body.holds` is what it holds then.
* `rule`: a rule was added, removed, or acted on a request (`used`). The events of that request and of its answer name
  it, too, as `rule_id`; `synthetic` is true of an answer that Kafka would never give there.
* `hold`: a hold was added or removed; a request entered it, was released, or waits behind one that is held.
* `verb`: a test's hand did something to a group, or to topics or settings: `verb` is what, `body` with what. What came
  of it follows.
* `leader`: a test's hand moved a partition, and with one of `__consumer_offsets` the groups it keeps, to a node.

The ring is bounded in events and in bytes: see `trace_kept` for what is kept of large messages. A body that is not
kept is `{"omitted_bytes": n}`.

A file that the pytest plugin writes ends with a line of the kind `test`, without a `seq`: `test_id`, its `outcome`
(passed, failed, error, skipped), `duration_ms`, `rerun` and `seed`.

Every line that leaves the process, into a file or a topic, has `trace_id`, by which it is known whatever file it comes
to: 16 hexadecimal digits, a hash of the header.

Every event has `seq` (total order), `wall_ts` (microseconds since the epoch) and `kind`, and all but the header and
`dropped` the `node` they happened on, unless that is the whole cluster; what concerns a group has
`group_id` and `group_ts_us`, the group's own time. Columns without a value are left out. In memory events are kept
as they came and rendered when somebody looks. Kafka's clients read the lines as records of a topic (`trace_topic`).
"""

from __future__ import annotations

import json
from collections import deque
from hashlib import sha256
from itertools import takewhile
from typing import TYPE_CHECKING

from . import lines as trace_lines
from . import retention as trace_kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from .lines import TraceEvent

SCHEMA_VERSION = 1

TRACE_ID_DIGITS = 16

BYTES_MAX = 128 * 1024 * 1024
"""How much the messages and texts of the events in the ring may take, roughly."""


class Trace:
    """A ring of events, and a sink that gets every event as a JSON line.

    `wall_us` gives the wall clock in microseconds; it only dates events, nothing is decided by it.
    """

    def __init__(
        self,
        wall_us: Callable[[], int],
        capacity: int = 100_000,
        sink: Callable[[str], None] | None = None,
        header: Mapping[str, object] | None = None,
    ) -> None:
        self._ring: deque[tuple[int, int, TraceEvent, int, int]] = deque()
        self._capacity = capacity
        self._bytes = 0
        self.now_us = wall_us
        """The wall clock, in microseconds since the epoch."""
        self._sink = sink
        self._seq = self._cleared = 0
        said = {"kind": "header", "schema_version": SCHEMA_VERSION, "wall_ts": wall_us(), **(header or {})}
        self.header = {"trace_id": sha256(_text(said).encode()).hexdigest()[:TRACE_ID_DIGITS], **said}
        """The first line of a file of the trace."""
        self.observers: list[Callable[[TraceEvent], None]] = []
        """Who is told of everything that happens, as it happens."""
        if sink is not None:
            sink(self.leaving(self.header))

    @property
    def last_seq(self) -> int:
        """The sequence number of the newest event; 0 before the first."""
        return self._seq

    @property
    def oldest_seq(self) -> int:
        """The sequence number of the oldest event that is kept: one that is to come, if none is."""
        return self._seq - len(self._ring) + 1

    @property
    def begins_at(self) -> int:
        """The number of the first of `lines_from`: the header stands before what is kept, and what is lost is told."""
        lost = self._seq - len(self._ring)
        return lost - 1 if lost > self._cleared else lost

    def leaving(self, line: Mapping[str, object]) -> str:
        """A line as it leaves this process."""
        return _text({"trace_id": self.header["trace_id"], **line})

    def add(self, wall_us: int, happening: TraceEvent, node_id: int) -> None:
        """Something happened on a node."""
        self._seq += 1
        weight = trace_kept.weight(happening)
        ring = self._ring
        ring.append((self._seq, wall_us, happening, node_id, weight))
        self._bytes += weight
        while len(ring) > self._capacity or self._bytes > BYTES_MAX:
            self._bytes -= ring.popleft()[-1]
        for observer in self.observers:
            observer(happening)
        if self._sink is not None:
            self._sink(self.leaving(trace_lines.line(self._seq, wall_us, happening, node_id)))

    def clear(self) -> None:
        """Forget what has happened; numbers go on, and a file keeps what it has."""
        self._ring.clear()
        self._bytes = 0
        self._cleared = self._seq

    def happenings(self, since: int) -> list[TraceEvent]:
        """What has happened after sequence number `since`, as it came, as far as it is still in the ring."""
        newest = []
        for seq, _, happening, _, _ in reversed(self._ring):
            if seq <= since:
                break
            newest.append(happening)
        return newest[::-1]

    def events(self, since: int = 0, group: str | None = None) -> list[dict[str, object]]:
        """Events after sequence number `since`, the oldest first; of one group, if `group` is given.

        If events have fallen off the ring, the first one says how many.
        """
        lines: list[dict[str, object]] = []
        lost = self._seq - len(self._ring)
        if lost > max(since, self._cleared):
            lines.append(self._dropped(lost))
        newer = list(takewhile(lambda event: event[0] > since, reversed(self._ring)))
        for seq, wall_us, happening, node_id, _ in reversed(newer):
            if group is None or trace_lines.group_of(happening) == group:
                lines.append(trace_lines.line(seq, wall_us, happening, node_id))
        return lines

    def lines_from(self, number: int) -> Iterator[tuple[int, str]]:
        """What leaves this process, from the line of this number on (`begins_at` to `last_seq`), and when each was.

        First comes the header, then, if events have fallen off the ring, a line that says how many, then the events:
        their numbers are their `seq`. Times are microseconds of the wall's clock.
        """
        ring, lost, begins_at = self._ring, self._seq - len(self._ring), self.begins_at
        if number == begins_at:
            wall_us = self.header["wall_ts"]
            assert isinstance(wall_us, int), "a header has the time it was written"
            yield wall_us, self.leaving(self.header)
            number += 1
        if number == lost > begins_at:
            yield self._dropped_us, self.leaving(self._dropped(lost))
            number += 1
        for at in range(number - lost - 1, len(ring)):
            seq, wall_us, happening, node_id, _ = ring[at]
            yield wall_us, self.leaving(trace_lines.line(seq, wall_us, happening, node_id))

    def times(self) -> Iterator[tuple[int, int]]:
        """The number of each event that is kept, and when it happened, in microseconds of the wall's clock."""
        return ((event[0], event[1]) for event in self._ring)

    @property
    def _dropped_us(self) -> int:
        return self._ring[0][1] if self._ring else self.now_us()

    def _dropped(self, lost: int) -> dict[str, object]:
        return {"seq": lost, "wall_ts": self._dropped_us, "kind": "dropped", "count": lost - self._cleared}


# made once: `json.dumps` makes an encoder for every line; and nothing in a line contains itself
_text = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
