"""The broker ring: bytes and time in, bytes out. Frames, headers, versions, muting and the trace; still no I/O.

A connection has one request in hand; what it sends meanwhile waits in its buffer until the answer has left, so that
answers keep the order of requests and a parked JoinGroup holds up what is behind it. Kafka calls this muting
(`SocketServer`). A frame that cannot be read closes its connection without an answer, and nothing else.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from koordinator.emulator.apis import api_versions
from koordinator.emulator.apis.numbering import NUMBERINGS
from koordinator.emulator.apis.served import SERVED, VERSIONS
from koordinator.emulator.core.effects import Append, Call, Hangup, Reply
from koordinator.emulator.trace_lines import Answered, Asked, Connected, Disconnected, error_of, group_of_request
from koordinator.wire import headers
from koordinator.wire.apis import APIS, ApiKey
from koordinator.wire.codec import decode, encode
from koordinator.wire.errors import Error
from koordinator.wire.frames import FrameBuffer
from koordinator.wire.messages.api_versions import ApiVersionsRequest
from koordinator.wire.messages.fetch import FetchResponse
from koordinator.wire.primitives import Malformed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from koordinator.emulator.core.effects import Effect
    from koordinator.emulator.core.node import Node
    from koordinator.emulator.settings import Settings
    from koordinator.emulator.trace import Trace
    from koordinator.wire.apis import Message


@dataclass(frozen=True, slots=True)
class Send:
    """Bytes for a connection; everything it gets from one input, in one piece."""

    connection: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Close:
    """Close a connection once what was sent to it has left; `reason` is for the log."""

    connection: int
    reason: str


Output = Send | Close


@dataclass(slots=True)
class InHand:
    """The request a connection waits for, as the core sees it and as it came in."""

    call: Call
    request: Message
    asked_us: int
    folded: bool


@dataclass(slots=True, eq=False)
class Connection:
    """One client connection. `out` collects what leaves it with the present input."""

    number: int
    client_host: str
    frames: FrameBuffer
    in_hand: InHand | None = None
    out: list[bytes] = field(default_factory=list)
    client_id: str = ""
    software: tuple[str, str] = ("", "")
    empty_fetches: int = 0


class Broker:
    """Serves connections from a node.

    `log` gets one line for every connection closed by us. Writes to `__consumer_offsets` are kept in memory, so they
    are done at once.
    """

    def __init__(self, node: Node, settings: Settings, trace: Trace, log: Callable[[str], None]) -> None:
        self.node = node
        self.trace = trace
        self._settings = settings
        self._number = NUMBERINGS[settings.error_codes]
        self._log = log
        self._connections: dict[int, Connection] = {}
        self._dirty: dict[Connection, None] = {}
        self._ready: deque[Connection] = deque()
        self._closing: list[Close] = []

    # -- inputs ----------------------------------------------------------------------------------------------

    def connected(self, now: int, connection: int, client_host: str) -> None:
        """A client has connected; `client_host` as Java prints an address, `/127.0.0.1`."""
        del now
        frames = FrameBuffer(self._settings.socket_request_max_bytes)
        self._connections[connection] = Connection(connection, client_host, frames)
        self.trace.add(self.trace.now_us, Connected(connection, client_host))

    def received(self, now: int, connection: int, data: bytes) -> list[Output]:
        """Bytes have come in. Answers may be due to this connection and to any other."""
        peer = self._connections.get(connection)
        if peer is None:
            return []
        peer.frames.feed(data)
        if peer.in_hand is None:
            self._ready.append(peer)
        return self._serve(now)

    def disconnected(self, now: int, connection: int, reason: str = "") -> None:
        """A connection is gone. Its members are not: they are when their session is."""
        del now
        peer = self._connections.pop(connection, None)
        if peer is not None:
            self.node.disconnected(connection)
            gone = Disconnected(connection, peer.client_host, peer.client_id, reason, peer.empty_fetches)
            self.trace.add(self.trace.now_us, gone)

    def tick(self, now: int) -> list[Output]:
        """Let everything due by `now` happen."""
        self._perform(now, self.node.tick(now))
        return self._serve(now)

    def perform(self, now: int, effects: Iterable[Effect]) -> list[Output]:
        """Carry out effects that came of something else than a request: a test's hand on a clock or a topic."""
        self._perform(now, effects)
        return self._serve(now)

    def deadline(self) -> int | None:
        """When `tick` is wanted next, in integer milliseconds."""
        return self.node.deadline()

    # -- what is there ---------------------------------------------------------------------------------------

    def is_muted(self, connection: int) -> bool:
        """Whether a request is in hand, so that nothing more is to be read from the connection."""
        peer = self._connections.get(connection)
        return peer is not None and peer.in_hand is not None

    def client_ids(self) -> dict[int, str]:
        """The open connections, with the client id each last named."""
        return {number: peer.client_id for number, peer in self._connections.items()}

    # -- requests --------------------------------------------------------------------------------------------

    def _serve(self, now: int) -> list[Output]:
        """Serve every connection that has a frame and no request in hand, until none has; then what leaves."""
        while self._ready:
            peer = self._ready.popleft()
            try:
                while peer.in_hand is None and peer.number in self._connections:
                    frame = peer.frames.next_frame()
                    if frame is None:
                        break
                    self._serve_frame(now, peer, frame)
            except Malformed as error:
                self._close(peer, str(error))
        outputs: list[Output] = [Send(peer.number, b"".join(peer.out)) for peer in self._dirty if peer.out]
        for peer in self._dirty:
            peer.out = []
        self._dirty.clear()
        outputs += self._closing
        self._closing = []
        return outputs

    def _serve_frame(self, now: int, peer: Connection, frame: bytes) -> None:
        header, body = headers.read_request_header(frame)
        key, version = header.api_key, header.api_version
        peer.client_id = header.client_id or ""
        known = version in VERSIONS[key]
        request: Message
        if not known:
            # only ApiVersions gets here: its answer has the layout of version 0 whatever was asked (KIP-511)
            request, version = ApiVersionsRequest(), 0
        else:
            try:
                request = decode(APIS[key].request, version, frame[body:])
            except Malformed as error:
                raise Malformed(f"{APIS[key].name} v{version}: {error}") from error
        call = Call(peer.number, header.correlation_id, key, version, peer.client_id, peer.client_host)
        peer.in_hand = InHand(call, request, self.trace.now_us, folded=key == ApiKey.FETCH)
        if isinstance(request, ApiVersionsRequest):
            peer.software = (request.client_software_name, request.client_software_version)
        if not peer.in_hand.folded:
            self._note_request(now, peer, peer.in_hand)
        if isinstance(request, ApiVersionsRequest):
            row = api_versions.respond(request, version, VERSIONS) if known else api_versions.unsupported(VERSIONS)
            self._perform(now, [Reply(call, row)])
        else:
            self._perform(now, self.node.handle(now, call, SERVED[key].ask(request, version)))

    # -- effects ---------------------------------------------------------------------------------------------

    def _perform(self, now: int, effects: Iterable[Effect]) -> None:
        waiting = deque([effects])
        while waiting:
            for effect in waiting.popleft():
                match effect:
                    case Reply(call, response):
                        self._reply(now, call, response)
                    case Hangup(call, reason):
                        self._hang_up(call, reason)
                    case Append(token):
                        # kept in memory: written as soon as it is asked for
                        waiting.append(self.node.appended(now, token, Error.NONE))
                    case _:
                        self.trace.add(self.trace.now_us, effect)

    def _reply(self, now: int, call: Call, response: Message | None) -> None:
        peer = self._connections.get(call.connection)
        if peer is None or peer.in_hand is None or peer.in_hand.call is not call:
            # its client has gone in the meantime
            return
        in_hand, peer.in_hand = peer.in_hand, None
        self._ready.append(peer)
        if response is None:
            return
        rendered = SERVED[call.api_key].answer(response, call.api_version, self._number)
        try:
            self._send(peer, call.api_key, call.api_version, call.correlation_id, rendered)
        except ValueError as error:
            # what the client named cannot be said back to it: a member id longer than a string may be
            self._close(peer, f"{APIS[call.api_key].name} v{call.api_version}: no answer can be encoded: {error}")
            return
        self._note_response(now, peer, in_hand, response, rendered)

    def _hang_up(self, call: Call, reason: str) -> None:
        peer = self._connections.get(call.connection)
        if peer is not None:
            self._close(peer, reason)

    def _send(self, peer: Connection, key: int, version: int, correlation_id: int, response: Message) -> None:
        peer.out.append(headers.frame(headers.response_header(key, version, correlation_id), encode(response, version)))
        self._dirty[peer] = None

    def _close(self, peer: Connection, reason: str) -> None:
        self._log(f"connection {peer.number} of {peer.client_id!r} ({peer.client_host}) closed: {reason}")
        peer.in_hand = None
        self.disconnected(0, peer.number, reason)
        self._closing.append(Close(peer.number, reason))

    # -- trace -----------------------------------------------------------------------------------------------

    def _ahead_ms(self, request: Message) -> int:
        group = self.node.coordinator.groups.get(group_of_request(request) or "")
        return group.offset_ms if group is not None else 0

    def _note_request(self, now: int, peer: Connection, in_hand: InHand) -> None:
        request = in_hand.request
        self.trace.add(in_hand.asked_us, Asked(in_hand.call, request, now, self._ahead_ms(request), peer.software))

    def _note_response(self, now: int, peer: Connection, in_hand: InHand, response: Message, rendered: Message) -> None:
        if in_hand.folded:
            if isinstance(response, FetchResponse) and _brings_nothing(response):
                peer.empty_fetches += 1
                return
            self._note_request(now, peer, in_hand)
        now_us = self.trace.now_us
        answered = Answered(
            call=in_hand.call,
            request=in_hand.request,
            response=response,
            error=Error(error_of(response)),
            error_code=error_of(rendered),
            now=now,
            ahead_ms=self._ahead_ms(in_hand.request),
            latency_us=now_us - in_hand.asked_us,
            software=peer.software,
            empty_fetches=peer.empty_fetches,
        )
        peer.empty_fetches = 0
        self.trace.add(now_us, answered)


def _brings_nothing(response: FetchResponse) -> bool:
    return response.error_code == 0 and not any(
        partition.records or partition.error_code for topic in response.responses for partition in topic.partitions
    )
