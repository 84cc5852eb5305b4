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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from koordinator.emulator.apis import api_versions
from koordinator.emulator.apis.numbering import NUMBERINGS
from koordinator.emulator.apis.releases import ACCEPTED, ADVERTISED
from koordinator.emulator.apis.served import SERVED
from koordinator.emulator.core.cluster import OFFSETS_TOPIC, PLAINTEXT
from koordinator.emulator.core.effects import Append, Call, Hangup, Reply, Rewritten
from koordinator.emulator.core.refusal import RefusedError
from koordinator.emulator.offsets_log import batch_of, records_of
from koordinator.emulator.trace_kept import kept, rough_size
from koordinator.emulator.trace_lines import Answered, Asked, Connected, Disconnected, error_of, group_of_request
from koordinator.wire import headers
from koordinator.wire.apis import APIS, ApiKey
from koordinator.wire.codec import decode, encode
from koordinator.wire.errors import Error
from koordinator.wire.frames import FrameBuffer
from koordinator.wire.messages.api_versions import ApiVersionsRequest
from koordinator.wire.messages.fetch import FetchResponse
from koordinator.wire.primitives import Malformed
from koordinator.wire.values import value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from koordinator.emulator.apis.numbering import Numbering
    from koordinator.emulator.core.effects import Effect
    from koordinator.emulator.core.node import Node
    from koordinator.emulator.settings import Settings
    from koordinator.emulator.store import Store
    from koordinator.emulator.trace import Trace
    from koordinator.emulator.trace_lines import Happening
    from koordinator.wire.apis import Message


ANSWERS_AT_ONCE = 32
ANSWER_BYTES_AT_ONCE = 256 * 1024
"""A connection's turn ends with the answer that brings it to so many answers, or bytes of them."""

READ_AHEAD_BYTES = 64 * 1024
"""So much may wait behind a request in hand before nothing more is read. If nothing were, nobody would notice that a
client has gone whose request will never be answered."""

UNSUPPORTED_VERSION = ApiVersionsRequest()
"""Stands for an ApiVersions of a version that is not served."""

FETCH, NONE = ApiKey.FETCH, Error.NONE
"""Looked up once, because it is the dearest part of a comparison."""

SHOWN_MAX = 200
"""The most characters of a client's own words in a line of the log."""


@value
class Send:
    """Bytes for a connection; everything it gets from one input, in one piece. `more` is held back until `flushed`."""

    connection: int
    data: bytes
    more: bool = False


@value
class Close:
    """Close a connection once what was sent to it has left; `reason` is for the log."""

    connection: int
    reason: str


Output = Send | Close


@value
class Answer:
    """What a puppet is told, as the core has answered: Kafka's error numbers, and the shape of the newest version."""

    connection: int
    call: Call
    response: Message


Mail = deque[tuple[int, Answer | Close]]
"""What has come of the connections of puppets, and when, in the node's time; the puppets empty it."""

REQUEST_KEYS = {api.request: key for key, api in APIS.items()}


@dataclass(slots=True, eq=False)
class Connection:
    """One client connection. `in_hand` is the request it waits for the answer to, if there is one.

    `out`, of `out_bytes`, collects what leaves it with the present input. A puppet's has no frames but `messages`, with
    the version of each, that wait to be served.
    """

    number: int
    client_host: str
    listener: str
    frames: FrameBuffer
    in_hand: Asked | None = None
    out: list[bytes] = field(default_factory=list)
    out_bytes: int = 0
    client_id: str = ""
    software: tuple[str, str] = ("", "")
    empty_fetches: int = 0
    messages: deque[tuple[int, Message]] | None = None
    asked: int = 0

    @property
    def had_its_turn(self) -> bool:
        """Whether what is to leave now is enough for once."""
        return len(self.out) >= ANSWERS_AT_ONCE or self.out_bytes >= ANSWER_BYTES_AT_ONCE


@dataclass(frozen=True, slots=True)
class Service:
    """What is done for one version of an API: the message that is read, and how it is translated (`apis.served`)."""

    request: type[Message]
    ask: Callable[[Message, int], Message]
    answer: Callable[[Message, int, Numbering], Message]


class Broker:
    """Serves connections from a node.

    `log` gets one line for every connection closed by us, and for groups that cannot be loaded. With a `store` records
    are on disk before anybody is told of them, or can read them: what comes in meanwhile is written with them, at the
    next `tick`, for which `deadline` asks at once. Without one they are kept in memory, and writing them is done as
    soon as it is asked for.
    """

    def __init__(
        self,
        node: Node,
        settings: Settings,
        trace: Trace,
        log: Callable[[str], None],
        store: Store | None = None,
        mail: Mail | None = None,
    ) -> None:
        self.node = node
        self.trace = trace
        self._node_id = node.node_id
        self._settings = settings
        self._number = NUMBERINGS[settings.error_codes]
        self._log = log
        self._advertised = ADVERTISED[settings.kafka_version]
        self._services = {
            (key, version): Service(APIS[key].request, SERVED[key].ask, SERVED[key].answer)
            for key, versions in ACCEPTED[settings.kafka_version].items()
            for version in versions
        }
        self._clocks = node.cluster.group_clocks
        self._connections: dict[int, Connection] = {}
        self._dirty: dict[Connection, None] = {}
        self._ready: deque[Connection] = deque()
        self._serving: Connection | None = None
        self._held_back: dict[int, Connection] = {}
        self._closing: list[Close] = []
        self._store = store
        self._tokens: list[int] = []
        self._due_since: int | None = None
        self._mail: Mail = deque() if mail is None else mail

    # -- inputs ----------------------------------------------------------------------------------------------

    def connected(self, now: int, connection: int, client_host: str, listener: str = PLAINTEXT) -> None:
        """A client has connected to a listener; `client_host` as Java prints an address, `/127.0.0.1`."""
        del now
        frames = FrameBuffer(self._settings.socket_request_max_bytes)
        self._connections[connection] = Connection(connection, client_host, listener, frames)
        self._note(Connected(connection, client_host))

    def puppet_connected(self, now: int, connection: int, client_host: str, client_id: str) -> None:
        """A puppet has connected: it will `ask`, and its answers go into the mail."""
        self.connected(now, connection, client_host)
        peer = self._connections[connection]
        peer.messages, peer.client_id = deque(), client_id

    def ask(self, now: int, connection: int, version: int, request: Message) -> list[Output]:
        """A puppet has sent a request, which is served when those before it have been answered."""
        peer = self._connections.get(connection)
        if peer is None:
            return []
        assert peer.messages is not None, "only puppets speak messages"
        peer.messages.append((version, request))
        if peer.in_hand is None:
            self._ready.append(peer)
        return self._serve(now)

    def received(self, now: int, connection: int, data: bytes) -> list[Output]:
        """Bytes have come in. Answers may be due to this connection and to any other."""
        peer = self._connections.get(connection)
        if peer is None:
            return []
        peer.frames.feed(data)
        if peer.in_hand is None:
            self._ready.append(peer)
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
        del now
        peer = self._connections.pop(connection, None)
        if peer is not None:
            self._held_back.pop(connection, None)
            self.node.disconnected(connection)
            gone = Disconnected(connection, peer.client_host, peer.client_id, reason, peer.empty_fetches)
            self._note(gone)

    def leaders_changed(self, now: int) -> list[Output]:
        """The cluster has other leaders: give up what is not this node's now, begin to load what has become its."""
        return self.perform(now, self.node.leaders_changed(now))

    def load(self, now: int, partition: int) -> list[Output]:
        """Read a partition of `__consumer_offsets` that was begun to be loaded, from its first record to its last."""
        if partition not in self.node.coordinator.stage.loading:
            # another node has it by now
            return []
        return self.perform(now, self._load(now, partition))

    def rewritten(self, now: int, partition: int) -> list[Output]:
        """Somebody has written to a partition of `__consumer_offsets`: its groups are what is written there now."""
        return self.perform(now, [Rewritten(partition)])

    def close(self, now: int, reason: str) -> list[Output]:
        """The node goes down: every connection is closed."""
        outputs: list[Output] = []
        for peer in list(self._connections.values()):
            self.disconnected(now, peer.number, reason)
            if peer.messages is None:
                outputs.append(Close(peer.number, reason))
            else:
                self._mail.append((now, Close(peer.number, reason)))
        return outputs

    def topics_deleted(self, now: int, names: Iterable[str]) -> list[Output]:
        """Another node was told to delete topics."""
        return self.perform(now, self.node.topics_deleted(now, names))

    def tick(self, now: int) -> list[Output]:
        """Let everything due by `now` happen."""
        self._perform(now, self.node.tick(now))
        self._flush(now)
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
        if self._tokens or self.node.data.holds:
            self._flush(now)
            self._due_since = now

    # -- what is there ---------------------------------------------------------------------------------------

    def is_muted(self, connection: int) -> bool:
        """Whether nothing more is to be read: a request is in hand, and as much waits behind it as may."""
        peer = self._connections.get(connection)
        return peer is not None and peer.in_hand is not None and len(peer.frames) >= READ_AHEAD_BYTES

    def client_ids(self) -> dict[int, str]:
        """The open connections, with the client id each last named."""
        return {number: peer.client_id for number, peer in self._connections.items()}

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
        if self._store is not None and self._due_since is None and (self._tokens or self.node.data.holds):
            self._due_since = now
        if self._closing:
            outputs += self._closing
            self._closing.clear()
        return outputs

    def _serve_frames(self, now: int, peer: Connection) -> None:
        frames = peer.frames
        while frames and peer.in_hand is None and peer.number in self._connections:
            if peer.out and peer.had_its_turn:
                self._held_back[peer.number] = peer
                return
            frame = frames.next_frame()
            if frame is None:
                return
            request = self._take_in_hand(now, peer, frame)
            del frame  # of a large one there are copies enough
            self._serve_request(now, peer, request)

    def _serve_messages(self, now: int, peer: Connection, messages: deque[tuple[int, Message]]) -> None:
        while messages and peer.in_hand is None and peer.number in self._connections:
            version, request = messages.popleft()
            key = REQUEST_KEYS[type(request)]
            if (key, version) not in self._services:
                raise Malformed(f"{APIS[key].name} v{version}: not served by Kafka {self._settings.kafka_version}")
            peer.asked += 1
            self._took(now, peer, request, key, version, peer.asked, self.trace.now_us(), rough_size(request))
            self._serve_request(now, peer, request)

    def _take_in_hand(self, now: int, peer: Connection, frame: bytes) -> Message:
        """Read a request; what cannot be read is Malformed."""
        asked_us = self.trace.now_us()
        header, body = headers.read_request_header(frame)
        key, version = header.api_key, header.api_version
        if header.client_id != peer.client_id:
            # the same text again is kept once, however many events name it
            peer.client_id = header.client_id or ""
        request: Message
        service = self._services.get((key, version))
        if service is not None:
            try:
                request = decode(service.request, version, frame[body:])
            except Malformed as error:
                raise Malformed(f"{APIS[key].name} v{version}: {error}") from error
        elif key == ApiKey.API_VERSIONS:
            # its answer has the layout of version 0 whatever was asked (KIP-511)
            request, version = UNSUPPORTED_VERSION, 0
        else:
            raise Malformed(f"{APIS[key].name} v{version}: not served by Kafka {self._settings.kafka_version}")
        if isinstance(request, ApiVersionsRequest):
            peer.software = (request.client_software_name, request.client_software_version)
        # by position: so many keywords take longer than all the rest of this
        self._took(now, peer, request, key, version, header.correlation_id, asked_us, len(frame))
        return request

    def _took(  # noqa: PLR0913, PLR0917 - what is known of a request
        self,
        now: int,
        peer: Connection,
        request: Message,
        key: int,
        version: int,
        correlation_id: int,
        asked_us: int,
        size: int,
    ) -> None:
        """A request is in hand from now on."""
        message, weight = kept(request, size, peer.client_id)
        group_id = group_of_request(request)
        call = Call(peer.number, correlation_id, key, version, peer.client_id, peer.client_host, peer.listener)
        asked = Asked(call, message, group_id, asked_us, self._group_now(now, group_id), peer.software, size, weight)
        peer.in_hand = asked
        if key != FETCH:
            self.trace.add(asked_us, asked, self._node_id)

    def _serve_request(self, now: int, peer: Connection, request: Message) -> None:
        assert peer.in_hand is not None
        call = peer.in_hand.call
        if isinstance(request, ApiVersionsRequest):
            known = request is not UNSUPPORTED_VERSION
            version = call.api_version
            served = self._advertised
            answer = api_versions.respond(request, version, served) if known else api_versions.unsupported(served)
            self._perform(now, [Reply(call, answer)])
        else:
            service = self._services[call.api_key, call.api_version]
            self._perform(now, self.node.handle(now, call, service.ask(request, call.api_version)))

    # -- effects ---------------------------------------------------------------------------------------------

    def _perform(self, now: int, effects: Iterable[Effect]) -> None:
        waiting = list(effects)
        # what a write brings about comes behind what is there
        for effect in waiting:
            if isinstance(effect, Reply):
                self._reply(now, effect.call, effect.response)
            elif isinstance(effect, Append):
                waiting += self._append(now, effect)
            elif isinstance(effect, Rewritten):
                coordinator = self.node.coordinator
                waiting += coordinator.unload(now, effect.partition) + coordinator.begin_load(now, effect.partition)
                waiting += self._load(now, effect.partition)
            elif isinstance(effect, Hangup):
                self._hang_up(now, effect.call, effect.reason)
            else:
                self._note(effect)

    def _append(self, now: int, effect: Append) -> list[Effect]:
        """Write records of a group."""
        try:
            topic = self.node.cluster.offsets_topic()
        except RefusedError as error:
            return self.node.appended(now, effect.token, error.error)
        effects = self.node.data.append(now, topic, effect.partition, batch_of(effect.records, now))
        if self._store is None:
            return effects + self.node.appended(now, effect.token, NONE)
        self._tokens.append(effect.token)
        return effects

    def _flush(self, now: int) -> None:
        """Write what waits to be written, all at once; then let those go on who wait for it."""
        data, error = self.node.data, NONE
        if self._store is None or not (self._tokens or data.holds):
            return
        try:
            for topic, partition, batches in data.unwritten():
                self._store.append(topic.name, topic.topic_id, partition, batches)
            self._store.sync()
        except OSError:
            error = Error.KAFKA_STORAGE_ERROR
        tokens, self._tokens = self._tokens, []
        effects = data.written(now, error)
        for token in tokens:
            effects += self.node.appended(now, token, error)
        for topic, partition, batches in data.compacted():
            self._store.rewrite(topic.name, topic.topic_id, partition, batches)
        self._perform(now, effects)

    def _load(self, now: int, partition: int) -> list[Effect]:
        coordinator = self.node.coordinator
        log = self.node.cluster.log(OFFSETS_TOPIC, partition)
        try:
            records = [] if log is None else list(records_of(log.records()))
        except (Malformed, ImportError) as error:
            self._log(f"{OFFSETS_TOPIC}-{partition} cannot be loaded by node {self._node_id}: {error}")
            return coordinator.load_failed(now, partition)
        return coordinator.loaded(now, partition, records)

    def _reply(self, now: int, call: Call, response: Message | None) -> None:
        peer = self._connections.get(call.connection)
        if peer is None or peer.in_hand is None or peer.in_hand.call is not call:
            # its client has gone in the meantime
            return
        asked, peer.in_hand = peer.in_hand, None
        if peer is not self._serving:
            self._ready.append(peer)
        if response is None:
            return
        key, version = call.api_key, call.api_version
        rendered = self._services[key, version].answer(response, version, self._number)
        if peer.messages is not None:
            self._note_response(now, peer, asked, response, rendered, rough_size(response))
            self._mail.append((now, Answer(peer.number, call, response)))
            return
        try:
            header = headers.response_header(key, version, call.correlation_id)
            frame = headers.frame(header, encode(rendered, version))
        except ValueError as error:
            # what the client named cannot be said back to it: a member id longer than a string may be
            self._close(now, peer, f"{APIS[key].name} v{version}: no answer can be encoded: {error}")
            return
        peer.out.append(frame)
        peer.out_bytes += len(frame)
        self._dirty[peer] = None
        self._note_response(now, peer, asked, response, rendered, len(frame))

    def _hang_up(self, now: int, call: Call, reason: str) -> None:
        peer = self._connections.get(call.connection)
        if peer is not None:
            self._close(now, peer, reason)

    def _close(self, now: int, peer: Connection, reason: str) -> None:
        # what a client made up is quoted, so that the line stays one, and cut
        self._log(f"connection {peer.number} of {peer.client_id[:SHOWN_MAX]!r} ({peer.client_host}) closed: {reason}")
        peer.in_hand = None
        self.disconnected(now, peer.number, reason)
        close = Close(peer.number, reason)
        if peer.messages is None:
            self._closing.append(close)
        else:
            self._mail.append((now, close))

    # -- trace -----------------------------------------------------------------------------------------------

    def _note(self, happening: Happening) -> None:
        self.trace.add(self.trace.now_us(), happening, self._node_id)

    def _group_now(self, now: int, group_id: str | None) -> int:
        clock = self._clocks.get(group_id) if group_id is not None else None
        # as `Stage.enter` does
        return now if clock is None else now * clock.pace + clock.origin

    def _note_response(
        self, now: int, peer: Connection, asked: Asked, response: Message, rendered: Message, size: int
    ) -> None:
        if asked.call.api_key == FETCH:
            # noted only if it brings something
            if isinstance(response, FetchResponse) and _brings_nothing(response):
                peer.empty_fetches += 1
                return
            self.trace.add(asked.asked_us, asked, self._node_id)
        now_us = self.trace.now_us()
        error_number = error_of(response)
        message, weight = kept(response, size, peer.client_id)
        # the request is the event's as well: the other one may have fallen off the ring
        weight += asked.weight
        error = Error(error_number) if error_number else NONE
        error_code = error_number if rendered is response else error_of(rendered)
        group_now, latency_us = self._group_now(now, asked.group_id), now_us - asked.asked_us
        answered = Answered(asked, message, error, error_code, group_now, latency_us, peer.empty_fetches, size, weight)
        peer.empty_fetches = 0
        self.trace.add(now_us, answered, self._node_id)


def _brings_nothing(response: FetchResponse) -> bool:
    return response.error_code == 0 and not any(
        partition.records or partition.error_code for topic in response.responses for partition in topic.partitions
    )
