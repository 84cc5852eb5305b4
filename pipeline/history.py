"""Traces of clusters that never were: puppets on the core, in virtual time, and nothing is kept but the lines.

Nothing is made up: each request is judged by the coordinator that serves clients. Most of them are heartbeats and
commits, and theirs is a shorter way: to the coordinator directly, without the broker ring around it and the log of
`__consumer_offsets` behind it; and their lines are made by filling in what varies. What comes out is what the
long way writes, byte for byte.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from koordinator.emulator import trace_lines
from koordinator.emulator.brokers import PUPPETS_HOST
from koordinator.emulator.connections import Answer
from koordinator.emulator.controls.puppets.troupe import Troupe
from koordinator.emulator.core.effects import Append, Call, Reply
from koordinator.emulator.trace import Trace
from koordinator.emulator.trace_kept import rough_size
from koordinator.emulator.trace_lines import Answered, Asked
from koordinator.emulator.trace_messages import body_of, error_of, group_of_request
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

VARYING = {"seq": -1, "wall_ts": -2, "correlation_id": -3, "group_ts_us": -4000}
"""The numbers in which the same request differs from time to time, in their order, and what stands for each of them."""

SHORT = {HeartbeatRequest: ApiKey.HEARTBEAT, OffsetCommitRequest: ApiKey.OFFSET_COMMIT}
"""What goes the short way: the requests that are answered at once, whatever the answer is."""

Software = tuple[str, str]
"""The name and the version of a client library."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A line with a % for everything that varies."""

    text: str
    has_body: bool

    def filled(self, numbers: tuple[int, ...], message: Message) -> str:
        """The line with these numbers, and with the body of this message, if it has one."""
        return self.text % ((*numbers, _encoded(body_of(message, 0))) if self.has_body else numbers)


_encoded = json.JSONEncoder(separators=(",", ":")).encode


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
        # by connection: the number of the last request that went the long way, and how many have gone the short one
        self._long: dict[int, int] = {}
        self._short: dict[int, int] = {}
        self._patterns: dict[tuple[object, ...], tuple[Pattern, Pattern]] = {}

    def add(self, wall_us: int, happening: Happening, node_id: int) -> None:
        """Something happened on a node."""
        self._seq += 1
        line = trace_lines.line(self._seq, wall_us, happening, node_id)
        if isinstance(happening, Asked | Answered):
            call = happening.call if isinstance(happening, Asked) else happening.asked.call
            self._long[call.connection] = call.correlation_id
            line["correlation_id"] = call.correlation_id + self._short.get(call.connection, 0)
            if self._software[0]:
                # the body stays the last of the columns
                body = line.pop("body", None)
                line["client_software"], line["client_version"] = self._software
                if body is not None:
                    line["body"] = body
        self._write(self.leaving(line))

    def add_short(self, call: Call, request: Message, response: Message, group_now: int, node_id: int) -> None:
        """A request went the short way, and was answered."""
        connection = call.connection
        self._short[connection] = short = self._short.get(connection, 0) + 1
        self._seq = seq = self._seq + 2
        asked, answered = self._patterns_of(call, request, response, node_id)
        numbers = self.now_us(), self._long.get(connection, 0) + short, group_now * 1000
        self._write(asked.filled((seq - 1, *numbers), request))
        self._write(answered.filled((seq, *numbers), response))

    def _patterns_of(self, call: Call, request: Message, response: Message, node_id: int) -> tuple[Pattern, Pattern]:
        """Those of a request and its answer, which are the same as long as the member and the answer are."""
        error_code, member_id = error_of(response), getattr(request, "member_id", None)
        generation = getattr(request, "generation_id", None) or getattr(request, "generation_id_or_member_epoch", None)
        said = call.connection, call.api_key, error_code, member_id, generation
        patterns = self._patterns.get(said)
        if patterns is None:
            size, group_id, group_now = rough_size(request), group_of_request(request), VARYING["group_ts_us"] // 1000
            asked = Asked(call, request, group_id, 0, group_now, self._software, size, size)
            error = Error(error_code)
            answered = Answered(asked, response, error, error_code, group_now, 0, 0, size, size)
            patterns = self._patterns[said] = self._pattern(asked, node_id), self._pattern(answered, node_id)
        return patterns

    def _pattern(self, happening: Asked | Answered, node_id: int) -> Pattern:
        line = trace_lines.line(VARYING["seq"], VARYING["wall_ts"], happening, node_id)
        line["correlation_id"] = VARYING["correlation_id"]
        has_body = line.pop("body", None) is not None
        text = self.leaving(line).replace("%", "%%")
        for name, stands_for_it in VARYING.items():
            # inside a text its quotes would have backslashes
            text = text.replace(f'"{name}":{stands_for_it}', f'"{name}":%d', 1)
        # the body is the last of the columns
        return Pattern(f'{text[:-1]},"body":%s}}' if has_body else text, has_body)


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
        node = self._broker.node
        call = self._calls.get((connection, type(request)))
        due = node.deadline()
        if call is None or (due is not None and due <= now):
            # what is due happens before it, and is in the trace before it
            super().ask(now, connection, request)
            return
        (effect,) = node.coordinator.handle(now, call, request)
        if isinstance(effect, Append):
            # nobody will ever read the log of this cluster
            (effect,) = node.coordinator.appended(now, effect.token, Error.NONE)
        assert isinstance(effect, Reply)
        assert effect.response is not None, f"{effect} is no answer"
        group_id = group_of_request(request)
        assert group_id is not None, "members speak for one group"
        self._history.add_short(call, request, effect.response, self.group_now(now, group_id), node.node_id)
        self._mail.append((now, Answer(connection, call, effect.response)))
