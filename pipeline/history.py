"""The trace of a cluster that never was: nothing is kept of it but the lines.

Most of them are of heartbeats and commits that went the short way (`short_way`): these lines are made by filling in
what varies. What comes out is what the long way writes, byte for byte.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from koordinator.emulator.trace import lines as trace_lines
from koordinator.emulator.trace.lines import RequestReceived, ResponseSent
from koordinator.emulator.trace.messages import body_of
from koordinator.emulator.trace.retention import rough_size
from koordinator.emulator.trace.trace import Trace
from koordinator.wire.errors import Error
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.offset_commit import OffsetCommitRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from koordinator.emulator.core.effects import Call
    from koordinator.emulator.trace.lines import TraceEvent
    from koordinator.wire.apis import Message

VARYING = {"seq": -1, "wall_ts": -2, "correlation_id": -3, "generation": -4, "group_ts_us": -5000}
"""The numbers in which the same request differs from time to time, in their order, and what stands for each of them."""

Pattern = tuple[str, str, str, str, str, str]
"""A line in pieces, but for its end: between them goes what varies."""

Short = HeartbeatRequest | OffsetCommitRequest

Software = tuple[str, str]
"""The name and the version of a client library."""


@dataclass(slots=True)
class Passed:
    """What has gone over a connection: the number of the last request the long way, and how many the short one."""

    last: int = 0
    short: int = 0
    patterns: dict[tuple[int, int, str], tuple[Pattern, Pattern]] = field(default_factory=dict)
    """Those of requests and their answers, by API, error and member."""


_encoded = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class History(Trace):
    """A trace that keeps nothing: each line goes to the sink as it is made. All puppets use one `software`."""

    def __init__(
        self,
        wall_us: Callable[[], int],
        sink: Callable[[str], None],
        header: Mapping[str, object],
        software: Software = ("", ""),
    ) -> None:
        super().__init__(wall_us, capacity=0, sink=sink, header=header)
        self._write = sink
        self._software = software
        self._passed: defaultdict[int, Passed] = defaultdict(Passed)

    def add(self, wall_us: int, happening: TraceEvent, node_id: int) -> None:
        """Something happened on a node."""
        self._seq += 1
        line = trace_lines.line(self._seq, wall_us, happening, node_id)
        if isinstance(happening, RequestReceived | ResponseSent):
            call = happening.call if isinstance(happening, RequestReceived) else happening.asked.call
            passed = self._passed[call.connection]
            passed.last = call.correlation_id
            line["correlation_id"] = call.correlation_id + passed.short
            if self._software[0]:
                # the body stays the last of the columns
                body = line.pop("body", None)
                line["client_software"], line["client_version"] = self._software
                if body is not None:
                    line["body"] = body
        self._write(self.leaving(line))

    def add_short(self, now: int, call: Call, request: Short, response: Message, error_code: int, node_id: int) -> None:
        """A request went the short way, and was answered; `now` is the time of node, group and wall."""
        passed = self._passed[call.connection]
        passed.short += 1
        self._seq = seq = self._seq + 2
        said = call.api_key, error_code, request.member_id
        patterns = passed.patterns.get(said)
        if patterns is None:
            patterns = passed.patterns[said] = self._patterns_of(call, request, response, error_code, node_id)
        asked, answered = patterns
        asked_end = answered_end = "}"
        if isinstance(request, HeartbeatRequest):
            generation = request.generation_id
        else:
            generation = request.generation_id_or_member_epoch
            asked_end = _end_of_commit(request)
            if error_code:
                answered_end = _end(response)
        number, time = passed.last + passed.short, f"{now}000"
        # in place, and twice: a call takes as long as half of a line
        a, b, c, d, e, f = asked
        self._write(f"{a}{seq - 1}{b}{time}{c}{number}{d}{generation}{e}{time}{f}{asked_end}")
        a, b, c, d, e, f = answered
        self._write(f"{a}{seq}{b}{time}{c}{number}{d}{generation}{e}{time}{f}{answered_end}")

    def _patterns_of(
        self, call: Call, request: Short, response: Message, error_code: int, node_id: int
    ) -> tuple[Pattern, Pattern]:
        """Those of a request and its answer, which are the same as long as the member and the answer are."""
        size, group_now = rough_size(request), VARYING["group_ts_us"] // 1000
        asked = RequestReceived(call, request, request.group_id, 0, group_now, self._software, size, size)
        answered = ResponseSent(asked, response, Error(error_code), error_code, group_now, 0, 0, size, size)
        return self._pattern(asked, node_id), self._pattern(answered, node_id)

    def _pattern(self, happening: RequestReceived | ResponseSent, node_id: int) -> Pattern:
        line = trace_lines.line(VARYING["seq"], VARYING["wall_ts"], happening, node_id)
        line |= {name: VARYING[name] for name in ("correlation_id", "generation")}
        # the body is the last of the columns, and its end is not in the pattern
        line.pop("body", None)
        rest, pieces = self.leaving(line)[: -len("}")], []
        for name, stands_for_it in VARYING.items():
            # inside a text its quotes would have backslashes
            piece, found, rest = rest.partition(f'"{name}":{stands_for_it}')
            assert found, f"{name} is a column of every request and answer"
            pieces.append(f'{piece}"{name}":')
        seq, wall_ts, correlation_id, generation, group_ts = pieces
        return seq, wall_ts, correlation_id, generation, group_ts, rest


def _end_of_commit(request: OffsetCommitRequest) -> str:
    """What `_end` says, too, and takes three times as long for; a topic's name has nothing to be escaped."""
    offsets = ",".join(
        [
            f'["{topic.name}",{row.partition_index},{row.committed_offset}]'
            for topic in request.topics
            for row in topic.partitions
        ]
    )
    return f',"body":{{"offsets":[{offsets}]}}}}'


def _end(message: Message) -> str:
    body = body_of(message, 0)
    return "}" if body is None else f',"body":{_encoded(body)}}}'
