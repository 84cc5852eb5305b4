"""The trace: a ring of events, rendered as JSON lines in a versioned schema.

`vocabulary` lists the kinds of lines. The columns:

* Every event has `seq` (total order), `wall_ts` (microseconds since the epoch) and `kind`; `node`, unless it concerns
  the whole cluster; `group_id` and `group_ts_us`, the group's own time, if it concerns a group. Columns without a value
  are omitted.
* `header`: schema version, seed and versions, and the run (`run_metadata`): `run_id`, `test_id`, `rerun`, `repo`,
  `commit`, `branch`, `ci_provider`, `os`, `libs`.
* `request`, `response`: a fetch without records is no event; the next response or disconnection of its connection
  counts it (`empty_fetches`). `body.fetched` has a row for each partition with records: topic, partition, the offset
  of the first batch's first record, and the offset after the last record; `body.preferred` one for each partition that
  the client is told to fetch from another replica: topic, partition, node (KIP-392).
* Requests and responses of an authenticated client have its `principal` (`User:alice`).
* A throttled response has the time (`body.throttle_time_ms`); a throttled fetch without records is an event, too.
* A response to a fetch with `read_committed` has the aborted transactions, too (`body.aborted`: topic, partition,
  producer id, first offset). A response to a transactional Produce has the producer and `body.appended`: topic,
  partition, offset of the batch.
* A response to Metadata has the topics with an error, and that error (`body.errors`).
* Topics have their names, in versions with topic ids, too (KIP-516); an id that no topic has ever had stays an id.
* A ConsumerGroupHeartbeat has the fields that it does not leave unchanged (`body.owned`: partitions by topic); the
  `generation` of its response is the epoch of the member from then on (`body.assignment`, if there is a new one).
* `target`: `generation` is the epoch of the target, `body` has the assignor and the assignments by member id.
  `reconciliation`: `change` is the state of the member after its step, `generation` its epoch; `body` has its assigned
  partitions, and those that it has to give up first (`revoking`).
* `transaction`, and `offsets` with a cause `transaction_…`: `body` has the producer and its partitions or offsets.
* `state`, `member`: `cause` is the kind, `reason` Kafka's own words. A loaded member has its assignment as its body.
* `clock`: `cause` is the operation, or `auto`; `body` has `from_ms` and `to_ms`. The events between them follow.
* `puppet`: `body.holds` is the assignment after the change.
* `lag`: `body.lag_ms` is how late the server's loop ran; it starts that long before the line.
* `rule`: the request and response to which a rule applies have its `rule_id`, too. `synthetic` marks a response that
  Kafka would never send there.
* `verb`: `verb` is the operation, `body` its arguments. Its effects follow.
* `leader`: moving a partition of `__consumer_offsets` moves its groups.
* `test`: without `seq`; `test_id`, its `outcome` (passed, failed, error, skipped), `duration_ms`, `rerun` and `seed`.

Every line that leaves the process, into a file or a topic, has `trace_id`: 16 hexadecimal digits, a hash of the header.
The ring is bounded in events and in bytes (`retention`); `{"omitted_bytes": n}` replaces a body that is too large.
Kafka's clients read the lines as records of a topic (`topic`).
"""

from __future__ import annotations

import json
from collections import deque
from functools import cached_property
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING

from . import lines as trace_lines
from . import retention
from .events import concerns_all_groups, group_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from uuid import UUID

    from .events import TraceEvent

SCHEMA_VERSION = 1

TRACE_ID_DIGITS = 16

BYTES_MAX = 128 * 1024 * 1024
"""The limit on the estimated memory of messages and texts in the ring."""


class Trace:
    """A ring of events, with a sink that receives every event as a JSON line.

    `wall_us` returns the wall clock in microseconds; it only dates events. `header` returns more columns of the first
    line, and is called when somebody reads it. `topic_name` returns the name of the topic that has or had an id.
    """

    def __init__(
        self,
        wall_us: Callable[[], int],
        capacity: int = 100_000,
        sink: Callable[[str], None] | None = None,
        header: Callable[[], Mapping[str, object]] = dict,
        topic_name: Callable[[UUID], str | None] = lambda _: None,
    ) -> None:
        self._ring: deque[tuple[int, int, TraceEvent, int, int]] = deque()
        self._capacity = capacity
        self._bytes = 0
        self.now_us = wall_us
        """The wall clock, in microseconds since the epoch."""
        self._sink, self._topic_name = sink, topic_name
        self._seq = self._cleared = 0
        self._started_us, self._more_header = wall_us(), header
        self.observers: list[Callable[[TraceEvent], None]] = []
        """Callbacks for every event."""
        if sink is not None:
            sink(self.encode(self.header))

    @cached_property
    def header(self) -> dict[str, object]:
        """The first line of a trace file."""
        columns = {"kind": "header", "schema_version": SCHEMA_VERSION, "wall_ts": self._started_us}
        columns.update(self._more_header())
        return {"trace_id": sha256(_json(columns).encode()).hexdigest()[:TRACE_ID_DIGITS], **columns}

    @property
    def last_seq(self) -> int:
        """The sequence number of the newest event; 0 before the first."""
        return self._seq

    @property
    def oldest_seq(self) -> int:
        """The sequence number of the oldest event in the ring; of the next event if the ring is empty."""
        return self._seq - len(self._ring) + 1

    @property
    def first_number(self) -> int:
        """The number of the first of `lines_from`: the header, then a `dropped` line if events were lost."""
        lost = self._seq - len(self._ring)
        return lost - 1 if lost > self._cleared else lost

    def encode(self, line: Mapping[str, object]) -> str:
        """Return a line as text, with `trace_id`."""
        return _json({"trace_id": self.header["trace_id"], **line})

    def add(self, wall_us: int, event: TraceEvent, node_id: int) -> None:
        """Append an event of a node, and evict the oldest events beyond the limits."""
        self._seq += 1
        weight = event.weight if isinstance(event, retention.EXCHANGED) else retention.weight(event)
        ring = self._ring
        ring.append((self._seq, wall_us, event, node_id, weight))
        self._bytes += weight
        while len(ring) > self._capacity or self._bytes > BYTES_MAX:
            self._bytes -= ring.popleft()[-1]
        for observer in self.observers:
            observer(event)
        if self._sink is not None:
            self._sink(self.encode(trace_lines.line(self._seq, wall_us, event, node_id, self._topic_name)))

    def clear(self) -> None:
        """Empty the ring. Sequence numbers continue, and a file keeps its lines."""
        self._ring.clear()
        self._bytes = 0
        self._cleared = self._seq

    def events_after(self, since: int) -> list[TraceEvent]:
        """Return the events in the ring after sequence number `since`, oldest first."""
        newest = []
        for seq, _, event, _, _ in reversed(self._ring):
            if seq <= since:
                break
            newest.append(event)
        return newest[::-1]

    def events(self, since: int = 0, group: str | None = None, until: int | None = None) -> list[dict[str, object]]:
        """Return the lines after sequence number `since`, oldest first; those of one group, if `group` is given.

        What a test did to a topic or to the cluster concerns every group. `until` is the last sequence number, by
        default that of the newest event.

        If the ring dropped events in that range, a `dropped` line comes first.
        """
        lines: list[dict[str, object]] = []
        ring, lost = self._ring, self._seq - len(self._ring)
        if lost > max(since, self._cleared):
            lines.append(self._dropped(lost))
        last = self._seq if until is None else min(until, self._seq)
        # from the end: a deque finds no place in its middle
        newest_first = islice(reversed(ring), self._seq - last, max(self._seq - max(since, lost), 0))
        for seq, wall_us, event, node_id, _ in reversed(list(newest_first)):
            if group is None or group_of(event) == group or concerns_all_groups(event):
                lines.append(trace_lines.line(seq, wall_us, event, node_id, self._topic_name))
        return lines

    def lines_from(self, number: int) -> Iterator[tuple[int, str]]:
        """Yield the wall time (µs) and text of each line from a number on, between `first_number` and `last_seq`.

        The header comes first, then a `dropped` line if the ring dropped events, then the events, whose numbers are
        their `seq`.
        """
        ring, lost, first = self._ring, self._seq - len(self._ring), self.first_number
        if number == first:
            yield self._started_us, self.encode(self.header)
            number += 1
        if number == lost > first:
            yield self._dropped_us, self.encode(self._dropped(lost))
            number += 1
        for at in range(number - lost - 1, len(ring)):
            seq, wall_us, event, node_id, _ = ring[at]
            yield wall_us, self.encode(trace_lines.line(seq, wall_us, event, node_id, self._topic_name))

    def times(self) -> Iterator[tuple[int, int]]:
        """Yield the sequence number and wall time (µs) of each event in the ring."""
        return ((entry[0], entry[1]) for entry in self._ring)

    @property
    def _dropped_us(self) -> int:
        return self._ring[0][1] if self._ring else self.now_us()

    def _dropped(self, lost: int) -> dict[str, object]:
        return {"seq": lost, "wall_ts": self._dropped_us, "kind": "dropped", "count": lost - self._cleared}


# one encoder for all lines: `json.dumps` would make one for each; no line contains itself
_json = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
