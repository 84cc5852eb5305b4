"""The broker ring: bytes and time in, bytes out. Frames, headers, versions, muting and the trace; still no I/O.

A connection has one request in hand; what it sends meanwhile waits in its buffer until the answer has left, so that
answers keep the order of requests and a parked JoinGroup holds up what is behind it. Kafka calls this muting
(`SocketServer`). A frame that cannot be read closes its connection without an answer, and nothing else.

Nobody gets more than a turn: when a connection has been answered enough for one `Send`, its other frames wait until the
shell says with `flushed` that this has left. So neither a flood of requests nor one of answers keeps others waiting, or
fills memory faster than it is taken.

A puppet (`controls.puppets`) speaks messages, not bytes: what it asks takes the same way as a frame that has been read,
and what it is told is put into the `mail` instead of being encoded.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire import headers
from koordinator.wire.apis import APIS, REQUEST_KEYS
from koordinator.wire.codec import encode
from koordinator.wire.frames import FrameBuffer
from koordinator.wire.messages.api_versions import ApiVersionsRequest
from koordinator.wire.messages.find_coordinator import FindCoordinatorResponse
from koordinator.wire.primitives import Malformed

from ..core.cluster import PLAINTEXT
from ..core.effects import Append, Call, CloseConnection, OffsetsTopicWritten, Reply
from ..trace.events import Connected, Disconnected, RequestReceived
from ..trace.messages import group_of_request
from ..trace.retention import estimate_size, retain
from ..trace.topic import READER_APIS
from .api_table import ApiTable
from .connections import Answer, Close, Connection, Send
from .group_logs import GroupLogs
from .interceptor import Park, Respond, Serve, Write
from .trace_recorder import FETCH, TraceRecorder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from koordinator.wire.apis import Message

    from ..config.settings import Settings
    from ..core.effects import Effect
    from ..core.node import NodeCore
    from ..trace.trace import Trace
    from .connections import Inbox, Output
    from .interceptor import Interceptor, Step
    from .store import Store
    from .unreached_listeners import UnreachedListeners


SHOWN_MAX = 200
"""The most characters of a client's own words in a line of the log."""


class Broker:
    """Serves connections from a node.

    `log` gets one line for every connection closed by us, and for groups that cannot be loaded. With a `store` records
    are on disk before anybody is told of them, or can read them: what comes in meanwhile is written with them, at the
    next `tick`, for which `deadline` asks at once. Without one they are kept in memory, and writing them is done as
    soon as it is asked for.
    """

    def __init__(
        self,
        node: NodeCore,
        settings: Settings,
        trace: Trace,
        log: Callable[[str], None],
        store: Store | None = None,
        inbox: Inbox | None = None,
    ) -> None:
        self.node = node
        self.trace = trace
        self._node_id = node.node_id
        self._settings = settings
        self._log = log
        self._api_table = ApiTable(settings)
        self._recorder = TraceRecorder(node, trace)
        self._connections: dict[int, Connection] = {}
        self._dirty: dict[Connection, None] = {}
        self._ready: deque[Connection] = deque()
        self._serving: Connection | None = None
        self._held_back: dict[int, Connection] = {}
        self._closing: list[Close] = []
        self._logs = GroupLogs(node, store, log)
        self._keeps = store is not None
        self._due_since: int | None = None
        self._inbox: Inbox = deque() if inbox is None else inbox
        self.interceptor: Interceptor | None = None
        """Who is asked about requests and answers, if anybody is."""
        self.unreached_listeners: UnreachedListeners | None = None
        """Who looks after clients that may not reach the cluster, if anybody does."""

    # -- inputs ----------------------------------------------------------------------------------------------

    def connected(self, now: int, connection: int, client_host: str, listener: str = PLAINTEXT) -> None:
        """A client has connected to a listener; `client_host` as Java prints an address, `/127.0.0.1`."""
        del now
        frames = FrameBuffer(self._settings.socket_request_max_bytes)
        self._connections[connection] = Connection(connection, client_host, listener, frames)
        self._recorder.note(Connected(connection, client_host))

    def puppet_connected(self, now: int, connection: int, client_host: str, client_id: str) -> None:
        """A puppet has connected: it will `ask`, and its answers go into the mail."""
        self.connected(now, connection, client_host)
        peer = self._connections[connection]
        peer.messages, peer.client_id = deque(), client_id

    def send_message(self, now: int, connection: int, version: int, request: Message) -> list[Output]:
        """A puppet has sent a request, which is served when those before it have been answered."""
        peer = self._connections.get(connection)
        if peer is None:
            return []
        assert peer.messages is not None, "only puppets speak messages"
        peer.messages.append((version, request))
        self._fed(now, peer)
        return self._serve(now)

    def received(self, now: int, connection: int, data: bytes) -> list[Output]:
        """Bytes have come in. Answers may be due to this connection and to any other."""
        peer = self._connections.get(connection)
        if peer is None:
            return []
        peer.frames.feed(data)
        if peer.in_flight is None:
            self._ready.append(peer)
        elif self.interceptor is not None:
            self.interceptor.on_queued(now, self, peer.in_flight.call)
        return self._serve(now)

    def resume(self, now: int, call: Call, steps: Iterable[Step]) -> list[Output]:
        """Go on with a request that was parked by the gate."""
        self._take_steps(now, call, steps)
        return self._serve(now)

    def flushed(self, now: int, connection: int) -> list[Output]:
        """What was sent to a connection has left: serve what was held back until then, if there is anything."""
        peer = self._held_back.pop(connection, None)
        if peer is None:
            return []
        self._ready.append(peer)
        return self._serve(now)

    def disconnected(self, now: int, connection: int, reason: str = "") -> None:
        """A connection is gone. Its members are not: they are when their session is."""
        peer = self._connections.pop(connection, None)
        if peer is not None:
            self._held_back.pop(connection, None)
            if self.interceptor is not None:
                self.interceptor.on_disconnected(now, self, connection)
            self.node.disconnected(connection)
            gone = Disconnected(connection, peer.client_host, peer.client_id, reason, peer.empty_fetches)
            self._recorder.note(gone)

    def leaders_changed(self, now: int) -> list[Output]:
        """The cluster has other leaders: give up what is not this node's now, begin to load what has become its."""
        return self.perform(now, self.node.leaders_changed(now))

    def load(self, now: int, partition: int) -> list[Output]:
        """Read a partition of `__consumer_offsets` that was begun to be loaded, from its first record to its last."""
        if partition not in self.node.coordinator.store.loading:
            # another node has it by now
            return []
        return self.perform(now, self._logs.load(now, partition))

    def rewritten(self, now: int, partition: int) -> list[Output]:
        """Somebody has written to a partition of `__consumer_offsets`: its groups are what is written there now."""
        return self.perform(now, [OffsetsTopicWritten(partition)])

    def close(self, now: int, reason: str) -> list[Output]:
        """The node goes down: every connection is closed."""
        outputs: list[Output] = []
        for peer in list(self._connections.values()):
            self.disconnected(now, peer.number, reason)
            if peer.messages is None:
                outputs.append(Close(peer.number, reason))
            else:
                self._inbox.append((now, Close(peer.number, reason)))
        return outputs

    def topics_deleted(self, now: int, names: Iterable[str]) -> list[Output]:
        """Another node was told to delete topics."""
        return self.perform(now, self.node.topics_deleted(now, names))

    def tick(self, now: int) -> list[Output]:
        """Let everything due by `now` happen."""
        self._perform(now, self.node.tick(now))
        self._perform(now, self._logs.flush(now))
        self._due_since = None
        return self._serve(now)

    def perform(self, now: int, effects: Iterable[Effect]) -> list[Output]:
        """Carry out effects that came of something else than a request: a test's hand on a clock or a topic."""
        self._perform(now, effects)
        return self._serve(now)

    def deadline(self) -> int | None:
        """When `tick` is wanted next, in integer milliseconds."""
        return self.node.deadline() if self._due_since is None else self._due_since

    def flush(self, now: int) -> None:
        """Have written what waits to be. Answers that are due then leave at the next `tick`, for which it is time."""
        if self._logs.wait:
            self._perform(now, self._logs.flush(now))
            self._due_since = now

    # -- what is there ---------------------------------------------------------------------------------------

    def is_muted(self, connection: int) -> bool:
        """Whether nothing more is to be read: a request is in hand, and as much waits behind it as may."""
        peer = self._connections.get(connection)
        return peer is not None and peer.is_muted

    def clients(self) -> dict[int, tuple[str, str]]:
        """The open connections of clients, with the client id each last named, and its host; puppets are none."""
        clients = (peer for peer in self._connections.values() if peer.messages is None)
        return {peer.number: (peer.client_id, peer.client_host) for peer in clients}

    def connections(self) -> Iterable[int]:
        """The open connections, of clients and of puppets."""
        return self._connections.keys()

    def requests_in_flight(self) -> list[Call]:
        """The requests that wait for their answer."""
        return [peer.in_flight.call for peer in self._connections.values() if peer.in_flight is not None]

    def queued_requests(self, connection: int) -> list[tuple[Call, Message]]:
        """The requests that wait on a connection behind the one in hand, as far as they can be read."""
        peer = self._connections.get(connection)
        if peer is None or peer.in_flight is None:
            return []
        waiting: list[tuple[Call, Message]] = []
        if peer.messages is not None:
            for number, (version, request) in enumerate(peer.messages, peer.asked + 1):
                waiting.append((self._call(peer, number, REQUEST_KEYS[type(request)], version), request))
            return waiting
        with suppress(Malformed):
            for frame in peer.frames.complete():
                header, body = headers.read_request_header(frame)
                version, request = self._api_table.read(header, frame[body:])
                waiting.append((self._call(peer, header.correlation_id, header.api_key, version), request))
        return waiting

    # -- requests --------------------------------------------------------------------------------------------

    def _serve(self, now: int) -> list[Output]:
        """Serve every connection that has a frame and no request in hand, until none has; then what leaves."""
        while self._ready:
            self._serving = peer = self._ready.popleft()
            try:
                if peer.messages is None:
                    self._serve_frames(now, peer)
                else:
                    self._serve_messages(now, peer, peer.messages)
            except Malformed as error:
                self._close(now, peer, str(error))
        self._serving = None
        outputs: list[Output] = []
        for peer in self._dirty:
            outputs.append(Send(peer.number, b"".join(peer.out), peer.number in self._held_back))
            peer.out.clear()
            peer.out_bytes = 0
        self._dirty.clear()
        if self._keeps and self._due_since is None and self._logs.wait:
            self._due_since = now
        if self._closing:
            outputs += self._closing
            self._closing.clear()
        return outputs

    def _serve_frames(self, now: int, peer: Connection) -> None:
        frames = peer.frames
        while frames and peer.in_flight is None and peer.number in self._connections:
            if peer.out and peer.had_its_turn:
                self._held_back[peer.number] = peer
                return
            frame = frames.next_frame()
            if frame is None:
                return
            received_us, size = self.trace.now_us(), len(frame)
            header, body = headers.read_request_header(frame)
            if header.client_id != peer.client_id:
                # the same text again is kept once, however many events name it
                peer.client_id = header.client_id or ""
            version, request = self._api_table.read(header, frame[body:])
            del frame  # of a large one there are copies enough
            if isinstance(request, ApiVersionsRequest):
                peer.software = (request.client_software_name, request.client_software_version)
            number, key = header.correlation_id, header.api_key
            call = Call(peer.number, number, key, version, peer.client_id, peer.client_host, peer.listener)
            self._accept(now, peer, call, request, received_us, size)

    def _serve_messages(self, now: int, peer: Connection, messages: deque[tuple[int, Message]]) -> None:
        while messages and peer.in_flight is None and peer.number in self._connections:
            version, request = messages.popleft()
            key = REQUEST_KEYS[type(request)]
            self._api_table.check(key, version)
            peer.asked += 1
            call = self._call(peer, peer.asked, key, version)
            self._accept(now, peer, call, request, self.trace.now_us(), estimate_size(request))

    def _fed(self, now: int, peer: Connection) -> None:
        """Something more has come in on a connection."""
        if peer.in_flight is None:
            self._ready.append(peer)
        elif self.interceptor is not None:
            self.interceptor.on_queued(now, self, peer.in_flight.call)

    @staticmethod
    def _call(peer: Connection, correlation_id: int, key: int, version: int) -> Call:
        return Call(peer.number, correlation_id, key, version, peer.client_id, peer.client_host, peer.listener)

    def _accept(self, now: int, peer: Connection, call: Call, request: Message, received_us: int, size: int) -> None:
        """A request is in hand from now on, and served, unless the gate has it otherwise."""
        message, weight = retain(request, size, peer.client_id)
        group_id = group_of_request(request)
        if self.unreached_listeners is not None and self.unreached_listeners.seekers:
            self.unreached_listeners.came(call, group_id)
        group_now = self._recorder.group_now(now, group_id)
        # by position: so many keywords take longer than all the rest of this
        asked = RequestReceived(call, message, group_id, received_us, group_now, peer.software, size, weight)
        verdict = None if self.interceptor is None else self.interceptor.on_request(now, self, asked, request)
        if verdict is not None and verdict.rule_id is not None:
            asked = replace(asked, rule_id=verdict.rule_id)
        peer.in_flight = asked
        if call.api_key not in READER_APIS or (
            call.api_key != FETCH and not self._recorder.is_of_reader(peer, message)
        ):
            self.trace.add(received_us, asked, self._node_id)
        if verdict is None:
            self._serve_request(now, call, request)
            return
        for note in verdict.notes:
            self._recorder.note(note)
        self._take_steps(now, call, verdict.steps)

    def _serve_request(self, now: int, call: Call, request: Message) -> None:
        if isinstance(request, ApiVersionsRequest):
            self._perform(now, [Reply(call, self._api_table.versions(call, request))])
        else:
            version = call.api_version
            service = self._api_table.table[call.api_key, version]
            self._perform(now, self.node.handle(now, call, service.normalize_request(request, version)))

    def _take_steps(self, now: int, call: Call, steps: Iterable[Step]) -> None:
        """Do what the gate has said; its client may have gone in the meantime."""
        for step in steps:
            peer = self._waiting(call)
            if isinstance(step, Serve):
                self._serve_request(now, call, step.request)
            elif peer is None or isinstance(step, Park):
                continue
            elif isinstance(step, Respond):
                assert peer.in_flight is not None, "an answer is one to a request in hand"
                self._respond(now, peer, peer.in_flight, step.response, step)
            elif isinstance(step, Write):
                self._write(peer, step.data, ends=step.ends)
            else:
                self._close(now, peer, step.reason)

    # -- effects ---------------------------------------------------------------------------------------------

    def _perform(self, now: int, effects: Iterable[Effect]) -> None:
        waiting = list(effects)
        # what a write brings about comes behind what is there
        for effect in waiting:
            if isinstance(effect, Reply):
                self._reply(now, effect.call, effect.response)
            elif isinstance(effect, Append):
                waiting += self._logs.append(now, effect)
            elif isinstance(effect, OffsetsTopicWritten):
                coordinator = self.node.coordinator
                waiting += coordinator.unload(now, effect.partition) + coordinator.begin_load(now, effect.partition)
                waiting += self._logs.load(now, effect.partition)
            elif isinstance(effect, CloseConnection):
                self._hang_up(now, effect.call, effect.reason)
            else:
                self._recorder.note(effect)

    def _waiting(self, call: Call) -> Connection | None:
        """The connection that waits for the answer to a call; None if its client has gone in the meantime."""
        peer = self._connections.get(call.connection)
        return None if peer is None or peer.in_flight is None or peer.in_flight.call is not call else peer

    def _reply(self, now: int, call: Call, response: Message | None) -> None:
        peer = self._connections.get(call.connection)
        if peer is None or peer.in_flight is None or peer.in_flight.call is not call:
            # its client has gone in the meantime
            return
        if response is None:
            self._end(peer)
            return
        steps = None if self.interceptor is None else self.interceptor.on_response(now, self, call, response)
        if steps is None:
            self._respond(now, peer, peer.in_flight, response, None)
        else:
            self._take_steps(now, call, steps)

    def _respond(
        self, now: int, peer: Connection, asked: RequestReceived, response: Message, step: Respond | None
    ) -> None:
        """Let the answer to the request in hand leave; as the gate has said, if it has said anything."""
        call, services = asked.call, self._api_table
        key, version = call.api_key, call.api_version
        rendered = services.table[key, version].render_response(response, version, services.number)
        if peer.messages is not None:
            if step is not None and step.alter is not None:
                return
            self._end(peer)
            self._recorder.answered(now, peer, asked, response, rendered, estimate_size(response), step)
            self._inbox.append((now, Answer(peer.number, call, response)))
            return
        try:
            header = headers.response_header(key, version, call.correlation_id)
            frame = headers.frame(header, encode(rendered, version))
        except ValueError as error:
            # what the client named cannot be said back to it: a member id longer than a string may be
            self._close(now, peer, f"{APIS[key].name} v{version}: no answer can be encoded: {error}")
            return
        if self.unreached_listeners is not None and isinstance(response, FindCoordinatorResponse):
            self.unreached_listeners.told(now, call, response)
        if step is None:
            # as `_write` does
            peer.in_flight = None
            if peer is not self._serving:
                self._ready.append(peer)
            peer.out.append(frame)
            peer.out_bytes += len(frame)
            self._dirty[peer] = None
        else:
            self._write(peer, frame if step.alter is None else step.alter(frame), ends=step.ends)
        self._recorder.answered(now, peer, asked, response, rendered, len(frame), step)

    def _write(self, peer: Connection, data: bytes, *, ends: bool) -> None:
        if ends:
            self._end(peer)
        peer.out.append(data)
        peer.out_bytes += len(data)
        self._dirty[peer] = None

    def _end(self, peer: Connection) -> None:
        """Nothing is in hand any more."""
        peer.in_flight = None
        if peer is not self._serving:
            self._ready.append(peer)

    def _hang_up(self, now: int, call: Call, reason: str) -> None:
        peer = self._connections.get(call.connection)
        if peer is not None:
            self._close(now, peer, reason)

    def _close(self, now: int, peer: Connection, reason: str) -> None:
        # what a client made up is quoted, so that the line stays one, and cut
        self._log(f"connection {peer.number} of {peer.client_id[:SHOWN_MAX]!r} ({peer.client_host}) closed: {reason}")
        peer.in_flight = None
        self.disconnected(now, peer.number, reason)
        close = Close(peer.number, reason)
        if peer.messages is None:
            self._closing.append(close)
        else:
            self._inbox.append((now, close))
