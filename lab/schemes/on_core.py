"""Schemes on the emulator's own coordinator: its puppets join, and its trace is their record."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from koordinator.emulator.config.options import Options
from koordinator.emulator.core.groups.facts import MemberChanged, StateChanged, TargetComputed
from koordinator.emulator.trace.events import PuppetChanged, RequestReceived, ResponseSent
from koordinator.handles.cluster import Cluster
from koordinator.handles.simulation import HOST, VirtualTimePort
from koordinator.wire.codec import encode
from koordinator.wire.errors import Error
from koordinator.wire.frames import request_header, response_header
from koordinator.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from koordinator.wire.messages.consumer_protocol import ConsumerProtocolSubscription, write_subscription
from koordinator.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from koordinator.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from koordinator.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest

from ..load import GROUP, TOPIC
from ..record import FactKind
from .scheme import Scheme

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.emulator.trace.events import TraceEvent
    from koordinator.handles.faults import Hold
    from koordinator.handles.nodes import Node
    from koordinator.handles.puppets import Puppet
    from koordinator.handles.words import GroupProtocol
    from koordinator.wire.apis import Message

    from ..load import Load

UUID_CHARS = 37
"""The part of a member id after the client id or instance id: a dash and a UUID."""

ONCE = "once"
"""The client id of requests without a member's connection."""

FRAME_BYTES = 4
"""The length before each request and response."""

ASSIGNMENT_INTERVAL_MS = 1_000
"""The interval between two targets of a consumer group by Kafka's defaults."""

SESSION_MIN_MS, HEARTBEAT_MIN_MS = 45_000, 5_000
"""The shortest session timeout and heartbeat interval of Kafka's defaults for groups without a leader."""

SESSION_MAX_MS, HEARTBEAT_MAX_MS = 1_800_000, 15_000
"""The longest session timeout of the lab's brokers, and the longest heartbeat interval of Kafka's defaults."""


@dataclass(frozen=True, slots=True)
class Members:
    """The configuration of the members: their puppets' protocol, and whether they are static (KIP-345).

    With `group_protocol` "consumer" (KIP-848) the coordinator assigns, and `protocols` names its assignor. In "share"
    (KIP-932) and "streams" (KIP-1071) there is none to name.
    """

    protocols: tuple[str, ...] = ()
    is_static: bool = False
    protocol_type: str = "consumer"
    group_protocol: GroupProtocol = "classic"

    @property
    def is_classic(self) -> bool:
        """Whether a leader assigns, and the members have the timeouts."""
        return self.group_protocol == "classic"

    @property
    def is_immediate(self) -> bool:
        """Whether members take an assignment at once: their work is not in order, or has threads of its own."""
        return self.group_protocol in {"share", "streams"} or self.protocol_type == "connect"

    def config(self, load: Load) -> dict[str, object]:
        """Return the settings of the brokers: without a leader they include the members' timeouts."""
        config: dict[str, object] = {
            "group.initial.rebalance.delay.ms": 3000,
            "group.max.session.timeout.ms": SESSION_MAX_MS,
        }
        if not self.is_classic:
            session_ms, heartbeat_ms = _ms(load.session_timeout_s), _ms(load.heartbeat_interval_s)
            kind = f"group.{self.group_protocol}"
            config |= {
                f"{kind}.session.timeout.ms": session_ms,
                f"{kind}.heartbeat.interval.ms": heartbeat_ms,
                # Kafka's own: the profile has none
                f"{kind}.assignment.interval.ms": ASSIGNMENT_INTERVAL_MS,
                f"{kind}.min.session.timeout.ms": min(SESSION_MIN_MS, session_ms),
                f"{kind}.min.heartbeat.interval.ms": min(HEARTBEAT_MIN_MS, heartbeat_ms),
                f"{kind}.max.session.timeout.ms": max(SESSION_MAX_MS, session_ms),
                f"{kind}.max.heartbeat.interval.ms": max(HEARTBEAT_MAX_MS, heartbeat_ms),
            }
        return config | dict(load.config)


class CoreScheme(Scheme):
    """A group of puppets on a cluster of two brokers."""

    def __init__(self, load: Load, members: Members, *, brokers: int = 2) -> None:
        super().__init__(load)
        self.members = members
        self._topics: dict[str, int] = {TOPIC: load.partitions}
        options = Options(
            host=HOST,
            brokers=brokers,
            topics=dict(self._topics),
            config=members.config(load),
            seed=load.seed,
            kafka_version=load.kafka_version,
        )
        self.port = VirtualTimePort(options)
        self.cluster = Cluster(self.port)
        self.group = self.cluster.group(GROUP)
        self.observe(self._observe)
        self._holds: dict[str, Hold] = {}
        self._puppets: dict[str, Puppet] = {}
        self._ids: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._closing: set[str] = set()
        self._sizes: dict[object, int] = {}
        self._stopped: Node | None = None

    @property
    def now_ms(self) -> int:
        """The virtual time."""
        return self.port.now

    def pass_time(self, seconds: float) -> None:
        """Advance time, with everything that is due."""
        self.port.pass_time(round(seconds * 1000))

    def start(self, name: str, batch_s: float | None = None) -> None:
        """Start a process: a new puppet, or the one that stopped."""
        batch_ms = self._up(name, batch_s)
        if name not in self._puppets:
            self._puppets[name] = self._create(name, batch_ms, name)
        puppet = self._puppets[name]
        if puppet.state == "leaving":
            # the process before did not wait for the response
            puppet.stop()
        puppet.join()

    def close(self, name: str) -> None:
        """Close a process: a static member sends no LeaveGroup (KIP-345), or leaves for a while (KIP-848)."""
        self._closing.add(name)
        puppet, is_static = self._puppets[name], self.members.is_static
        if is_static and self.members.is_classic:
            puppet.stop()
        else:
            puppet.leave(temporarily=is_static)
        self._closing.discard(name)
        self.record.add(self.now_ms, FactKind.DOWN, name)

    def kill(self, name: str) -> None:
        """Kill a process."""
        self._puppets[name].stop()
        self.record.add(self.now_ms, FactKind.DOWN, name, is_clean=False)

    def cut_off(self, name: str) -> None:
        """Hold all requests of a member."""
        hold = self._holds[name] = self.cluster.hold("*", client_id=name, optional=True)
        hold.__enter__()

    def reconnect(self, name: str) -> None:
        """Let the held requests of a member through."""
        self._holds.pop(name).__exit__()

    def grow(self, count: int) -> None:
        """Add partitions, or tasks to the connector."""
        self.partitions = self._topics[TOPIC] = self.cluster.topic(TOPIC).add_partitions(count)
        self.record.add(self.now_ms, FactKind.GREW, partitions=range(self.partitions))

    def stop_broker(self) -> None:
        """Stop the coordinator's broker; the other one loads its groups."""
        self._stopped = self.cluster.coordinator(self.group)
        assert self._stopped is not None
        self._stopped.stop()

    def start_broker(self) -> None:
        """Start the stopped broker again."""
        assert self._stopped is not None
        self._stopped.start()

    def observe(self, observer: Callable[[TraceEvent], None]) -> None:
        """Call `observer` with every event of the trace."""
        self.port.built.runtime.trace.observers.append(observer)

    def abandon_join(self, version: int) -> None:
        """Send the first JoinGroup of a new client, and close its connection before it reads the response."""
        subscription = write_subscription(ConsumerProtocolSubscription(topics=(TOPIC,)))
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=round(self.load.session_timeout_s * 1000),
            rebalance_timeout_ms=round(self.load.rebalance_timeout_s * 1000),
            protocol_type=self.members.protocol_type,
            protocols=tuple(
                JoinGroupRequestProtocol(name=name, metadata=subscription) for name in self.members.protocols
            ),
        )
        self.send(request, version)

    def send(self, request: Message, version: int) -> None:
        """Send a request to the coordinator on a connection of its own, and close that before the response."""
        node, runtime = self.cluster.coordinator(self.group), self.port.built.runtime
        if node is not None:
            connection = runtime.connect_in_process(self.now_ms, node.id, ONCE, deque())
            runtime.send_message(self.now_ms, connection, version, request)
            runtime.disconnected(self.now_ms, connection)

    def end(self) -> None:
        """Stop the cluster."""
        self.cluster.stop()

    def _create(self, name: str, batch_ms: int, instance_id: str) -> Puppet:
        is_worker = self.members.protocol_type == "connect"
        return self.group.create_puppet(
            name,
            self.members.protocols or None,
            protocol_type=self.members.protocol_type,
            instance_id=instance_id if self.members.is_static else None,
            topics=self._topics if is_worker else [TOPIC],
            behaviour="healthy" if self.members.is_immediate else {"kind": "straggler", "delay_s": batch_ms / 1000},
            group_protocol=self.members.group_protocol,
            session_timeout=self.load.session_timeout_s if self.members.is_classic else None,
            rebalance_timeout=self.load.rebalance_timeout_s,
            heartbeat_interval=self.load.heartbeat_interval_s,
            scheduled_rebalance_max_delay=self.load.max_delay_s if is_worker else None,
        )

    def _observe(self, event: TraceEvent) -> None:
        """Record an event of the trace."""
        record, now = self.record, self.now_ms
        match event:
            case RequestReceived():
                self._requested(event)
            case ResponseSent():
                record.message_bytes += self._response_bytes(event)
                record.notifications += event.error is Error.REBALANCE_IN_PROGRESS or _has_news(event)
            case PuppetChanged(change="assigned" | "revoked" | "lost"):
                numbers = (number for _, held in event.holds for number in held if number >= 0)
                is_clean = event.change != "lost" or event.name in self._closing
                record.add(now, FactKind.HOLDS, event.name, numbers, is_clean=is_clean)
                self._ids[event.name] = event.member_id
            case StateChanged(after="CompletingRebalance") | TargetComputed():
                record.rebalances[""] += 1
            case MemberChanged(change="removed" | "replaced"):
                record.forget(event.member_id)
                name = self._name_of(event.member_id)
                if self._ids.get(name) == event.member_id:
                    record.add(now, FactKind.FENCED, name)
            case MemberChanged(change="pending"):
                record.keep(event.member_id, len(event.member_id))
            case MemberChanged():
                subscription = self._sizes.get(self._name_of(event.member_id), 0)
                record.keep(event.member_id, len(event.member_id) + subscription)
            case _:
                pass

    def _name_of(self, member_id: str) -> str:
        """Return the client id of a member; a member id that the client chose is without it (KIP-1082)."""
        return self._names.get(member_id) or member_id[:-UUID_CHARS]

    def _requested(self, event: RequestReceived) -> None:
        call, message = event.call, event.request

        def header() -> int:
            return len(request_header(call.api_key, call.api_version, 0, call.client_id))

        size = self._bytes(_request_key(call.client_id, message), message, call.api_version, header)
        match message:
            case JoinGroupRequest():
                self._sizes[call.client_id] = sum(len(each.metadata) for each in message.protocols)
            case ConsumerGroupHeartbeatRequest():
                self._names[message.member_id] = call.client_id
                if message.subscribed_topic_names is not None:
                    self._sizes[call.client_id] = sum(map(len, message.subscribed_topic_names))
            case ShareGroupHeartbeatRequest() | StreamsGroupHeartbeatRequest():
                self._names[message.member_id] = call.client_id
            case _:
                pass
        self.record.request(type(message).__name__.removesuffix("Request"), size)

    def _response_bytes(self, event: ResponseSent) -> int:
        call, response = event.received.call, event.response
        key: object = None
        if isinstance(response, HeartbeatResponse):
            key = event.error
        elif isinstance(response, ConsumerGroupHeartbeatResponse) and response.assignment is None:
            key = type(response), event.error, response.error_message
        return self._bytes(
            key, response, call.api_version, lambda: len(response_header(call.api_key, call.api_version, 0))
        )

    def _bytes(self, key: object, message: Message, version: int, header: Callable[[], int]) -> int:
        """Return the size of a frame; a frame with a key is measured once."""
        size = self._sizes.get(key) if key is not None else None
        if size is None:
            size = FRAME_BYTES + header() + len(encode(message, version))
            if key is not None:
                self._sizes[key] = size
        return size


def _request_key(client_id: str, message: Message) -> object:
    """Return a key that heartbeats of the same size share; None for other requests."""
    match message:
        case HeartbeatRequest():
            return client_id, message.generation_id
        case ConsumerGroupHeartbeatRequest(subscribed_topic_names=None, topic_partitions=None):
            return type(message), client_id
        case _:
            return None


def _has_news(event: ResponseSent) -> bool:
    """Return whether the response to a heartbeat of a member has a changed assignment (KIP-848)."""
    request, response = event.received.request, event.response
    return (
        isinstance(request, ConsumerGroupHeartbeatRequest)
        and isinstance(response, ConsumerGroupHeartbeatResponse)
        and request.member_epoch > 0
        and request.subscribed_topic_names is None
        and response.assignment is not None
    )


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
