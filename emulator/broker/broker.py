"""The broker of a node: bytes and time in, bytes out. Frames, headers, versions, muting and the trace; no I/O.

A connection has one request in flight. Later bytes wait in its buffer until the response has left, so responses keep
the order of requests, and a parked JoinGroup delays the requests behind it. Kafka calls this muting (`SocketServer`).
A throttled connection is muted until its throttle time has passed.
An invalid frame closes its connection without a response.

No connection gets more than a turn: after enough responses for one `Send`, its other frames wait until the server
reports with `flushed` that the output was sent. So neither a flood of requests nor one of responses delays other
connections, or fills memory.

Puppets (`control.puppets`) exchange messages instead of bytes: their requests take the path of decoded frames, and
their responses go to the `inbox` without being encoded.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from koordinator.wire.apis import APIS, REQUEST_KEYS
from koordinator.wire.messages.api_versions import ApiVersionsRequest
from koordinator.wire.messages.find_coordinator import FindCoordinatorResponse
from koordinator.wire.primitives import Malformed

from ..core.acls.acl import user_principal
from ..core.effects import Call, CloseConnection, CoordinatorWrite, Failed, InternalTopicEffect, Reply, SendRequest
from ..trace.events import RequestReceived
from ..trace.messages import group_of_request
from ..trace.retention import SMALL_BYTES, estimate_size, retain
from ..trace.topic import READER_APIS
from .api_table import ApiTable, NotServed, body_size
from .authentication.authenticator import NotAuthenticated
from .authentication.distinguished_names import NoPrincipal, mapped
from .authorization.authorization import Authorization
from .authorization.guards import Admitted
from .connections import Answer, Connection, Send
from .error_responses import failure_of
from .failures import Failures
from .interceptor import Park, Respond, Serve, Write
from .log_writes import LogWrites
from .node_connections import NodeConnections
from .other_protocols import no_sasl_at, other_protocol
from .refused_features import refusal_of
from .request_reader import RequestReader
from .sasl_requests import SASL_APIS
from .trace_recorder import FETCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from koordinator.wire.apis import Message

    from ..config.settings import Settings
    from ..core.effects import Effect
    from ..core.node import NodeCore
    from ..trace.trace import Trace
    from .connections import Output
    from .interceptor import Step
    from .unreached_listeners import UnreachedListeners


REFUSAL_SHOWN_MAX = 500
"""Length of the reason of a refusal in the log: clients choose the names in it."""


class Broker(NodeConnections):
    """Serves the connections of a node.

    `log` gets a line for every connection that the broker closes, and for partitions that cannot be loaded.
    """

    def __init__(
        self,
        node: NodeCore,
        settings: Settings,
        trace: Trace,
        log: Callable[[str], None],
        requests: deque[tuple[int, SendRequest]] | None = None,
        failures: Failures | None = None,
    ) -> None:
        super().__init__(node, settings, trace, log)
        self._node_id = node.node_id
        self._identity = node.cluster.cluster_id, node.node_id
        self._api_table = ApiTable(settings, node.cluster.features)
        self.serves_requests = True
        """False while an operation replaces the cluster's content: requests wait for its end."""
        self._log_writes = LogWrites(node, log)
        authorizer = node.cluster.authorizer
        if authorizer is not None:
            self._authorization = Authorization(authorizer, node.cluster, self._host_log)
        self._reader = RequestReader(self._api_table, self._authentication.security, self._host_log)
        self._requests = deque() if requests is None else requests
        self._failures = Failures(log) if failures is None else failures
        self.unreached_listeners: UnreachedListeners | None = None
        """The detection of clients that cannot reach the cluster, if any."""

    # -- inputs ----------------------------------------------------------------------------------------------

    def identified(self, now: int, connection: int, subject: str) -> list[Output]:
        """Name a client by the subject of its certificate; a SASL listener names it otherwise."""
        peer = self._connections.get(connection)
        if peer is None or peer.authenticator is not None:
            return []
        try:
            peer.principal = user_principal(mapped(subject, self._settings.ssl_principal_mapping_rules))
        except NoPrincipal as error:
            self._close(now, peer, str(error), str(error))
        return self._serve(now)

    def send_message(self, now: int, connection: int, version: int, request: Message) -> list[Output]:
        """Process a puppet's request, after its earlier requests."""
        peer = self._connections.get(connection)
        if peer is None:
            return []
        assert peer.messages is not None, "only puppets send messages"
        peer.messages.append((version, request))
        return self._serve(now, peer)

    def received(self, now: int, connection: int, data: bytes) -> list[Output]:
        """Process bytes of a connection; the outputs may concern any connection."""
        peer = self._connections.get(connection)
        if peer is None:
            return []
        peer.frames.feed(data)
        return self._serve(now, peer)

    def resume(self, now: int, call: Call, steps: Iterable[Step]) -> list[Output]:
        """Continue a request that the interceptor has parked."""
        try:
            self._take_steps(now, call, steps)
        except Exception as error:  # noqa: BLE001 - a bug ends one request
            self._end_failed(now, Failed(error, (call,)))
        return self._serve(now)

    def flushed(self, now: int, connection: int) -> list[Output]:
        """Continue a connection whose turn had ended, after its output was sent."""
        peer = self._held_back.pop(connection, None)
        if peer is None:
            return []
        self._ready.append(peer)
        return self._serve(now)

    def load(self, now: int, topic: str, partition: int) -> list[Output]:
        """Load a partition of an internal topic, unless another node leads it now."""
        return self.perform(now, self._log_writes.load(now, topic, partition))

    def answered(self, now: int, token: int, response: Message | None) -> list[Output]:
        """Process another broker's response to a request of this one; None if it could not be reached."""
        try:
            effects = self.node.answered(now, token, response)
        except Exception as error:  # noqa: BLE001 - a bug ends one request
            effects = [Failed(error)]
        return self.perform(now, effects)

    def reload(self, now: int, topic: str, partition: int) -> list[Output]:
        """Reload a partition of an internal topic that was written by others than its coordinator."""
        return self.perform(now, self._log_writes.reload(now, topic, partition))

    def tick(self, now: int) -> list[Output]:
        """Fire everything due by `now`."""
        self._authentication.tick(now)
        while (due := self._throttled.pop_due(now)) is not None:
            self._end_throttle(now, due[1])
        return self.perform(now, self.node.tick(now))

    def perform(self, now: int, effects: Iterable[Effect]) -> list[Output]:
        """Perform effects that did not result from a request."""
        self._perform(now, effects)
        return self._serve(now)

    def deadline(self) -> int | None:
        """Return the time of the next `tick`, in integer milliseconds."""
        deadline = self.node.deadline()
        for due in (self._authentication.deadline(), self._throttled.next_deadline):
            if due is not None and (deadline is None or due < deadline):
                deadline = due
        return deadline

    # -- queries ---------------------------------------------------------------------------------------------

    def queued_requests(self, connection: int) -> list[tuple[Call, Message]]:
        """Return the decodable requests that wait behind the request in flight."""
        peer = self._connections.get(connection)
        if peer is None or peer.in_flight is None:
            return []
        if peer.messages is None:
            return self._reader.queued(peer)
        return [
            (peer.call(number, REQUEST_KEYS[type(request)], version), request)
            for number, (version, request) in enumerate(peer.messages, peer.requests_served + 1)
        ]

    # -- requests --------------------------------------------------------------------------------------------

    def _repeated_reason(self, peer: Connection, error: Malformed) -> str | None:
        """Return why a connection closes if clients repeat that, with the remedy."""
        protocol = self._authentication.security.protocol(peer.listener)
        own: str | None = None
        match error:
            case NotServed():
                own = ": ".join(filter(None, (" ".join(filter(None, peer.software)), str(error))))
            case NotAuthenticated():
                own = no_sasl_at(protocol, error)
        return other_protocol(peer.frames.start, protocol) or own

    def _serve(self, now: int, sender: Connection | None = None) -> list[Output]:
        """Serve all connections with a complete request and none in flight; return the collected output.

        The input of the `sender` has just arrived.
        """
        if sender is not None:
            if sender.in_flight is None:
                self._ready.append(sender)
            elif self.interceptor is not None:
                self.interceptor.on_queued(now, self, sender.in_flight.call)
        while self._ready and self.serves_requests:
            self._serving = peer = self._ready.popleft()
            try:
                if peer.messages is None:
                    self._serve_frames(now, peer)
                else:
                    self._serve_messages(now, peer, peer.messages)
            except Malformed as error:
                if not self._forget_closed(now, peer.number):
                    self._close(now, peer, str(error), self._repeated_reason(peer, error))
            except Exception as error:  # noqa: BLE001 - a bug ends one request
                self._serving = None
                self._end_failed_request(now, peer, error)
        self._serving = None
        outputs: list[Output] = []
        for peer in self._with_output:
            outputs.append(Send(peer.number, b"".join(peer.out), peer.number in self._held_back))
            peer.out.clear()
            peer.out_bytes = 0
        self._with_output.clear()
        if self._closing:
            outputs += self._closing
            self._closing.clear()
        return outputs

    def _serve_frames(self, now: int, peer: Connection) -> None:
        frames = peer.frames
        while frames and peer.in_flight is None and (peer.number in self._connections or peer.number in self._closed):
            if peer.is_refused or peer.is_throttled:
                return
            if peer.out and peer.has_had_its_turn:
                self._held_back[peer.number] = peer
                return
            frame = frames.next_frame()
            if frame is None:
                break
            received_us, size = self.trace.now_us(), len(frame)
            authenticator = peer.authenticator
            if authenticator is not None and authenticator.expects_tokens:
                peer.frame = b""
                self._authentication.take_tokens(now, peer, frame)
                continue
            call, request = self._reader.read(now, peer, frame)
            # frees the memory of a large one
            del frame
            self._accept(now, peer, call, request, received_us, size)
        if peer.in_flight is None and self._closed:
            self._forget_closed(now, peer.number)

    def _serve_messages(self, now: int, peer: Connection, messages: deque[tuple[int, Message]]) -> None:
        while messages and peer.in_flight is None and not peer.is_throttled and peer.number in self._connections:
            version, request = messages.popleft()
            key = REQUEST_KEYS[type(request)]
            self._api_table.check(key, version)
            peer.requests_served += 1
            call = peer.call(peer.requests_served, key, version)
            self._accept(now, peer, call, request, self.trace.now_us(), estimate_size(request))

    def _accept(self, now: int, peer: Connection, call: Call, request: Message, received_us: int, size: int) -> None:
        """Mark a request as in flight, and serve it unless the interceptor decides otherwise."""
        message, weight = (request, size) if size <= SMALL_BYTES else retain(request, size, peer.client_id)
        group_id = group_of_request(request)
        if self.unreached_listeners is not None and self.unreached_listeners.lookups:
            self.unreached_listeners.request_received(call, request, group_id)
        group_now = self._recorder.group_now(now, group_id)
        # positional: keyword arguments would double the cost of this method
        received = RequestReceived(call, message, group_id, received_us, group_now, peer.software, size, weight)
        interception = None if self.interceptor is None else self.interceptor.on_request(now, self, received, request)
        if interception is not None and interception.rule_id is not None:
            received = replace(received, rule_id=interception.rule_id)
        peer.in_flight = received
        if call.api_key not in READER_APIS or (
            call.api_key != FETCH and not self._recorder.is_of_trace_reader(peer, message)
        ):
            self.trace.add(received_us, received, self._node_id)
        if interception is None:
            self._serve_request(now, call, request)
            return
        for note in interception.notes:
            self._recorder.note(note)
        self._take_steps(now, call, interception.steps)

    def _serve_request(self, now: int, call: Call, request: Message) -> None:
        authentication = self._authentication
        is_of_sasl = call.api_key in SASL_APIS or call.connection in authentication.waiting
        if is_of_sasl and authentication.serve(now, call, request):
            return
        if isinstance(request, ApiVersionsRequest):
            response = self._api_table.versions(call, request, self._identity)
            if not response.error_code:
                self._authentication.told_versions(call.connection)
            self._perform(now, [Reply(call, response)])
        else:
            version = call.api_version
            normalize = self._api_table.adapters[call.api_key, version].normalize_request
            # `normalized`, inlined
            effects, normalized = self.node.tick(now), request if normalize is None else normalize(request, version)
            if self._authorization is not None:
                self._serve_allowed(now, effects, call, request, normalized)
            else:
                self._perform(now, effects + self._handle(now, call, normalized))

    def _serve_allowed(
        self, now: int, effects: list[Effect], call: Call, received: Message, normalized: Message
    ) -> None:
        """Serve what the client may do of a request, and refuse the rest."""
        assert self._authorization is not None
        verdict = self._authorization.admit(call, received, normalized)
        if isinstance(verdict, Admitted):
            effects += self._handle(now, call, verdict.request)
        elif not verdict.closes:
            effects.append(Reply(call, verdict.response))
        if verdict.closes:
            effects.append(CloseConnection(call, verdict.closes))
        self._perform(now, effects)

    def _handle(self, now: int, call: Call, request: object) -> list[Effect]:
        """Have the node serve a request; a bug ends it."""
        try:
            if self._quotas.are_set:
                return self._quotas.serve(now, call, request, self.node.handlers[call.api_key])
            return self.node.handlers[call.api_key](now, call, request)
        except Exception as error:  # noqa: BLE001 - a bug ends one request
            return [Failed(error, (call,))]

    def _take_steps(self, now: int, call: Call, steps: Iterable[Step]) -> None:
        """Take the steps of an interceptor; the client may have disconnected."""
        for step in steps:
            peer = self._connections.get(call.connection)
            if isinstance(step, Serve):
                self._serve_request(now, call, step.request)
            elif isinstance(step, Park) or peer is None or peer.in_flight is None or peer.in_flight.call is not call:
                continue
            elif isinstance(step, Respond):
                self._respond(now, peer, peer.in_flight, step.response, step)
            elif isinstance(step, Write):
                self._write(peer, step.data, ends=step.ends)
            else:
                self._close(now, peer, step.reason)

    # -- effects ---------------------------------------------------------------------------------------------

    def _perform(self, now: int, effects: Iterable[Effect]) -> None:
        waiting = list(effects)
        # the loop also performs the effects that it adds
        for effect in waiting:
            try:
                if isinstance(effect, Reply):
                    self._reply(now, effect.call, effect.response, effect.reason)
                elif isinstance(effect, InternalTopicEffect):
                    waiting += self._log_writes.perform(now, effect)
                elif isinstance(effect, SendRequest):
                    self._requests.append((self._node_id, effect))
                elif isinstance(effect, CloseConnection):
                    peer = self._connections.get(effect.call.connection)
                    if peer is not None:
                        self._close(now, peer, effect.reason)
                    else:
                        self._forget_closed(now, effect.call.connection)
                elif isinstance(effect, Failed):
                    self._end_failed(now, effect)
                else:
                    self._recorder.note(effect)
            except Malformed:
                raise
            except Exception as error:  # noqa: BLE001 - a bug ends one request
                self._end_failed(now, Failed(error, (effect.call,) if isinstance(effect, Reply) else ()))
                if isinstance(effect, CoordinatorWrite):
                    # the requests that wait for the write get an error, and what they changed is undone
                    waiting += self._log_writes.fail(now, effect)

    def _end_failed(self, now: int, failed: Failed) -> None:
        """Report a bug, and end the requests that wait for what has failed."""
        peers = [self._closed.get(call.connection) or self._connections.get(call.connection) for call in failed.calls]
        waiting = [
            peer
            for peer, call in zip(peers, failed.calls, strict=True)
            if peer is not None and peer.in_flight is not None and peer.in_flight.call is call
        ]
        if not waiting:
            self._failures.add(f"an input of node {self._node_id}", failed.error)
        for peer in waiting:
            self._end_failed_request(now, peer, failed.error)

    def _end_failed_request(self, now: int, peer: Connection, error: Exception) -> None:
        """Report a bug, and answer the request in flight with UNKNOWN_SERVER_ERROR; else close the connection."""
        received = peer.in_flight
        client = f"of connection {peer.number} of {peer.shown}"
        place = "a frame" if received is None else f"{APIS[received.call.api_key].name} v{received.call.api_version}"
        self._failures.add(f"{place} {client}", error, peer.frame)
        if received is not None:
            try:
                return self._respond(now, peer, received, failure_of(received.call, received.request), None)
            except Exception as second:  # noqa: BLE001 - the connection closes instead
                self._failures.add(f"the error response to {place}", second)
        if not self._forget_closed(now, peer.number) and peer.number in self._connections:
            self._close(now, peer, "a bug in koordinator ended a request")
        return None

    def _reply(self, now: int, call: Call, response: Message | None, reason: str) -> None:
        if self._authorization is not None and response is not None:
            response = self._authorization.complete(call, response)
        closed = self._closed.get(call.connection)
        peer = closed or self._connections.get(call.connection)
        if peer is None or peer.in_flight is None or peer.in_flight.call is not call:
            return
        if response is None and closed is None and self._quotas.are_set:
            _, mute_ms = self._quotas.throttle(now, peer.in_flight, None, int)
            if mute_ms:
                self._mute(now, peer, mute_ms)
        if response is None or closed is not None:
            self._end(peer)
            return
        peer.reason = reason
        steps = None if self.interceptor is None else self.interceptor.on_response(now, self, call, response)
        if steps is None:
            self._respond(now, peer, peer.in_flight, response, None)
        else:
            self._take_steps(now, call, steps)

    def _respond(
        self, now: int, peer: Connection, received: RequestReceived, response: Message, step: Respond | None
    ) -> None:
        """Send the response to the request in flight, altered by the interceptor's step, if any."""
        call, api_table = received.call, self._api_table
        key, version = call.api_key, call.api_version
        # sending the response ends the request
        reason = peer.reason
        if (key, version) not in api_table.adapters:
            # ApiVersions of another release: the response has the layout of version 0 (KIP-511)
            call, version = replace(call, api_version=0), 0
        adapter, numbering = api_table.adapters[key, version], api_table.numbering
        # `rendered`, inlined
        render = adapter.render_response
        rendered = response if render is None else render(response, version, numbering)
        mute_ms = 0 if step is None else step.mute_ms
        if self._quotas.are_set:
            throttled, throttle_ms = self._quotas.throttle(now, received, response, partial(body_size, call, rendered))
            mute_ms = max(mute_ms, throttle_ms)
            if throttled is not None and throttled is not response:
                response, rendered = throttled, adapter.rendered(throttled, version, numbering)
        if mute_ms:
            self._mute(now, peer, mute_ms)
        if peer.inbox is not None:
            assert step is None or step.alter is None, "a puppet's responses have no bytes"
            self._end(peer)
            self._recorder.answered(now, peer, received, response, rendered, estimate_size(response), step, reason)
            peer.inbox.append((now, Answer(peer.number, call, response)))
            return
        try:
            frame = api_table.encoded(peer, call, rendered)
        except ValueError as error:
            # the response repeats a client's text that is too long for its type, such as a member id
            self._close(now, peer, f"{APIS[key].name} v{version}: the response cannot be encoded: {error}")
            return
        if self.unreached_listeners is not None and isinstance(response, FindCoordinatorResponse):
            self.unreached_listeners.coordinator_found(now, call, response)
        refusal = reason or refusal_of(response)
        if refusal:
            refusal = refusal[:REFUSAL_SHOWN_MAX]
            line = f"client {peer.shown}: {APIS[key].name} is refused: {refusal}"
            self._host_log.tell(peer.client_host, refusal, line)
        altered = frame if step is None or step.alter is None else step.alter(frame)
        self._write(peer, altered, ends=step is None or step.ends)
        self._recorder.answered(now, peer, received, response, rendered, len(frame), step, reason)
