"""Traces of clusters that never were: puppets on the core, in virtual time, and nothing is kept but the lines.

Nothing is made up: each request is judged by the coordinator that serves clients. Most of them are heartbeats and
commits, and theirs is a shorter way: to the coordinator directly, without the broker ring around it and the log of
`__consumer_offsets` behind it; and their lines are made by filling in what varies. What comes out is what the
long way writes, byte for byte.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from koordinator.emulator import trace_lines
from koordinator.emulator.brokers import PUPPETS_HOST
from koordinator.emulator.connections import Answer
from koordinator.emulator.controls.puppets.troupe import Troupe
from koordinator.emulator.core.effects import Append, Call, Reply
from koordinator.emulator.trace import Trace
from koordinator.emulator.trace_kept import rough_size
from koordinator.emulator.trace_lines import Answered, Asked
from koordinator.emulator.trace_messages import body_of, error_of
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.offset_commit import OffsetCommitRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from koordinator.emulator.brokers import Brokers
    from koordinator.emulator.controls.puppets.line import Line
    from koordinator.emulator.trace_lines import Happening
    from koordinator.wire.apis import Message

VARYING = {"seq": -1, "wall_ts": -2, "correlation_id": -3, "generation": -4, "group_ts_us": -5000}
"""The numbers in which the same request differs from time to time, in their order, and what stands for each of them."""

Short = HeartbeatRequest | OffsetCommitRequest

SHORT = {HeartbeatRequest: ApiKey.HEARTBEAT, OffsetCommitRequest: ApiKey.OFFSET_COMMIT}
"""What goes the short way: the requests that are answered at once, whatever the answer is."""

Software = tuple[str, str]
"""The name and the version of a client library."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A line in pieces: between them goes what varies. The body, if it has one, is the last of the columns."""

    pieces: tuple[str, ...]
    has_body: bool

    def filled(self, seq: int, numbers: tuple[str, str, str, str], message: Message) -> str:
        """The line with these numbers, and with the body of this message, if it has one."""
        begin, after_seq, after_wall, after_correlation, after_generation, end = self.pieces
        wall_us, correlation_id, generation, group_us = numbers
        body = f',"body":{_encoded(body_of(message, 0))}}}' if self.has_body else "}"
        return (
            f"{begin}{seq}{after_seq}{wall_us}{after_wall}{correlation_id}{after_correlation}{generation}"
            f"{after_generation}{group_us}{end}{body}"
        )


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

    def add(self, wall_us: int, happening: Happening, node_id: int) -> None:
        """Something happened on a node."""
        self._seq += 1
        line = trace_lines.line(self._seq, wall_us, happening, node_id)
        if isinstance(happening, Asked | Answered):
            call = happening.call if isinstance(happening, Asked) else happening.asked.call
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

    def add_short(
        self, call: Call, request: Short, response: Message, error_code: int, group_now: int, node_id: int
    ) -> None:
        """A request went the short way, and was answered."""
        passed = self._passed[call.connection]
        passed.short += 1
        self._seq = seq = self._seq + 2
        if isinstance(request, HeartbeatRequest):
            generation = request.generation_id
        else:
            generation = request.generation_id_or_member_epoch
        said = call.api_key, error_code, request.member_id
        patterns = passed.patterns.get(said)
        if patterns is None:
            patterns = passed.patterns[said] = self._patterns_of(call, request, response, error_code, node_id)
        asked, answered = patterns
        numbers = str(self.now_us()), str(passed.last + passed.short), str(generation), f"{group_now}000"
        self._write(asked.filled(seq - 1, numbers, request))
        self._write(answered.filled(seq, numbers, response))

    def _patterns_of(
        self, call: Call, request: Short, response: Message, error_code: int, node_id: int
    ) -> tuple[Pattern, Pattern]:
        """Those of a request and its answer, which are the same as long as the member and the answer are."""
        size, group_now = rough_size(request), VARYING["group_ts_us"] // 1000
        asked = Asked(call, request, request.group_id, 0, group_now, self._software, size, size)
        answered = Answered(asked, response, Error(error_code), error_code, group_now, 0, 0, size, size)
        return self._pattern(asked, node_id), self._pattern(answered, node_id)

    def _pattern(self, happening: Asked | Answered, node_id: int) -> Pattern:
        line = trace_lines.line(VARYING["seq"], VARYING["wall_ts"], happening, node_id)
        line |= {name: VARYING[name] for name in ("correlation_id", "generation")}
        has_body = line.pop("body", None) is not None
        rest, pieces = self.leaving(line)[: -len("}")], []
        for name, stands_for_it in VARYING.items():
            # inside a text its quotes would have backslashes
            piece, found, rest = rest.partition(f'"{name}":{stands_for_it}')
            assert found, f"{name} is a column of every request and answer"
            pieces.append(f'{piece}"{name}":')
        return Pattern((*pieces, rest), has_body)


class ShortWay(Troupe):
    """The puppets of a cluster of one node. What they ask most goes to its coordinator directly."""

    def __init__(self, brokers: Brokers, history: History) -> None:
        super().__init__(brokers)
        (self._broker,) = brokers
        self._history = history
        self._calls: dict[tuple[int, type[Message]], Call] = {}

    def connect(self, now: int, node_id: int, client_id: str, line: Line) -> int:
        """Connect a line to a node; the number of the connection."""
        connection = super().connect(now, node_id, client_id, line)
        for kind, key in SHORT.items():
            self._calls[connection, kind] = Call(connection, 0, key, self.version(key), client_id, PUPPETS_HOST)
        return connection

    def ask(self, now: int, connection: int, request: Message) -> None:
        """Send a request, in the newest version."""
        if not isinstance(request, (HeartbeatRequest, OffsetCommitRequest)):
            super().ask(now, connection, request)
            return
        coordinator = self._broker.node.coordinator
        # nobody fetches here: what is due is a group's
        due = coordinator.deadline()
        if due is not None and due <= now:
            # what is due happens before it, and is in the trace before it
            super().ask(now, connection, request)
            return
        call = self._calls[connection, type(request)]
        (effect,) = coordinator.handle(now, call, request)
        if isinstance(effect, Append):
            # nobody will ever read the log of this cluster
            (effect,) = coordinator.appended(now, effect.token, Error.NONE)
        assert isinstance(effect, Reply)
        response = effect.response
        assert response is not None, f"{effect} is no answer"
        error_code = error_of(response)
        group_now, node_id = self.group_now(now, request.group_id), self._broker.node.node_id
        self._history.add_short(call, request, response, error_code, group_now, node_id)
        if self._mail or (error_code and type(request) is HeartbeatRequest):
            self._mail.append((now, Answer(connection, call, response)))
        else:
            # nothing follows from it, so that it is read at once makes no difference
            self._lines[connection].answered(now, connection, response)
