"""One group on two sides: a running broker, and the core as its release."""

from __future__ import annotations

import base64
from collections import deque
from dataclasses import dataclass, fields, is_dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any
from uuid import UUID

from clients.raw_member import Rival
from scenes.streams_play import StreamsPlay

from exploring.comparison import UNORDERED
from exploring.releases import settings_here
from exploring.steps import short
from koordinator.emulator.core.groups.classic.group import ClassicGroup
from koordinator.emulator.core.java.hash_tables import HashTable
from koordinator.wire.codec import decode, encode
from koordinator.wire.messages import (
    consumer_group_describe,
    consumer_group_heartbeat,
    streams_group_describe,
    streams_group_heartbeat,
)
from koordinator.wire.messages.consumer_protocol import read_assignment
from koordinator.wire.messages.describe_groups import DescribeGroupsRequest
from koordinator.wire.messages.join_group import JoinGroupRequest
from koordinator.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from koordinator.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from koordinator.wire.messages.offset_fetch import OffsetFetchRequest
from koordinator.wire.primitives import Malformed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scenes.play import Exchange

    from exploring.releases import Release
    from koordinator.wire.apis import Message

ANSWER_S = 30
"""The limit of a wait for a response that the core has given."""

PARKED_S = 0.5
"""The wait after which a JoinGroup of a static member counts as parked, so that its new id is looked up."""

STEP_MS = 2
"""The time of the core between two requests: no timer fires but those that are due at once."""

LOOKS = 60
LOOK_S = 0.05
"""Reads are repeated while they differ: a broker shows what is in its log, which may be later than a response."""

ELSEWHERE = OffsetCommitRequest(
    group_id="elsewhere",
    topics=(
        OffsetCommitRequestTopic(
            name="t", partitions=(OffsetCommitRequestPartition(partition_index=0, committed_offset=0),)
        ),
    ),
)
"""A write that brings the broker's reads up to date: it may have forgotten a group without a record."""

DESCRIBE_VERSION = 5
COMMIT_VERSION = 8

CLIENT_ID = "rival"
"""The client id of the connections."""

SHOWN = 40
"""The lines of a transcript in a difference."""

READS = (
    consumer_group_describe.ConsumerGroupDescribeRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
    OffsetFetchRequest,
    streams_group_describe.StreamsGroupDescribeRequest,
)

ROWS: Mapping[type, tuple[str, ...]] = {
    **UNORDERED,
    consumer_group_describe.DescribedConsumerGroup: ("members",),
    consumer_group_describe.Member: ("subscribed_topic_names",),
    consumer_group_describe.Assignment: ("topic_partitions",),
    consumer_group_describe.TopicPartitions: ("partitions",),
    consumer_group_heartbeat.Assignment: ("topic_partitions",),
    consumer_group_heartbeat.TopicPartitions: ("partitions",),
    streams_group_describe.DescribedGroup: ("members",),
    streams_group_describe.Assignment: ("active_tasks", "standby_tasks"),
    streams_group_heartbeat.EndpointToPartitions: ("active_partitions", "standby_partitions"),
    streams_group_heartbeat.StreamsGroupHeartbeatResponse: ("active_tasks", "standby_tasks"),
    streams_group_heartbeat.TaskIds: ("partitions",),
    streams_group_heartbeat.TopicPartition: ("partitions",),
}
"""Rows in hash order."""


class DifferenceError(AssertionError):
    """The two sides gave different answers."""


class Core(StreamsPlay):
    """The core as a release, with the topics of a broker. Several threads share it, each with its own group."""

    def __init__(self, release: Release, settings: Mapping[str, str], topics: Mapping[str, tuple[int, UUID]]) -> None:
        self.uuids = deque(topics[name][1] for name in ("t", "u"))
        self.lock = Lock()
        named = {name.replace(".", "_"): value for name, value in (settings_here(release) | settings).items()}
        super().__init__(**named)
        for name, (count, topic_id) in topics.items():
            if name not in self.cluster.topics:
                self.create_topic(name, count, topic_id)

    def new_uuid(self) -> UUID:
        """Return an id that the broker has made, if there is one."""
        return self.uuids.popleft() if self.uuids else super().new_uuid()

    def create_topic(self, name: str, count: int, topic_id: UUID) -> None:
        """Create a topic with the id that the broker has given it."""
        self.uuids.append(topic_id)
        self.cluster.create_topic(name, count)

    def order_members(self, group: str) -> None:
        """Put the members of a classic group in the order in which a broker looks for the next leader."""
        known = self.coordinator.groups.get(group)
        if isinstance(known, ClassicGroup):
            members = dict(known.members)
            known.members.clear()
            known.members.update((member_id, members[member_id]) for member_id in HashTable(members))


@dataclass
class Waiting:
    """A request that the core has parked."""

    request: Message
    exchange: Exchange[Any]
    line: Rival
    hears: Callable[[Any], None]


class Pair:
    """A group, played to both sides."""

    def __init__(self, bootstrap_servers: str, core: Core, group: str) -> None:
        self.group = group
        self.requests = 0
        self.transcript: list[str] = []
        self._bootstrap_servers = bootstrap_servers
        self._core = core
        self._lines: list[Rival] = []
        self._free: list[Rival] = []
        self._waiting: list[Waiting] = []

    def close(self) -> None:
        """Close the connections."""
        for line in self._lines:
            with line:
                pass

    def ask(self, request: Message, version: int, hears: Callable[[Any], None] = lambda _: None) -> Any:
        """Send a request to both; return the response, or None if both park it. `hears` gets the response once.

        Raises DifferenceError.
        """
        self.requests += 1
        line = self._send(request, version)
        early, member_id = None, ""
        if isinstance(request, JoinGroupRequest) and not request.member_id:
            early, member_id = self._await_id(request, line)
        with self._core.lock:
            self._core.uuids.clear()
            if member_id:
                self._core.uuids.append(_uuid_of(member_id))
            self._core.order_members(self.group)
            # without the fields that the version lacks
            sent = decode(type(request), version, encode(request, version))
            exchange = self._core.send(sent, version, CLIENT_ID)
            self._core.wait(STEP_MS)
        self.transcript.append(f"v{version} {short(request)}")
        self._waiting.append(Waiting(request, exchange, line, hears))
        if exchange.responses and isinstance(request, READS):
            self._read(request, version, line.receive())
        self._collect({id(exchange): early})
        if exchange.parked:
            # the next request goes another way, and has to come later
            look = DescribeGroupsRequest(groups=(self.group,))
            self._read(look, DESCRIBE_VERSION, self._ask_broker(look, DESCRIBE_VERSION))
        return exchange.response if exchange.responses else None

    def finish(self) -> None:
        """Check that the broker has parked the requests that the core has."""
        for each in self._waiting:
            if each.line.is_answered(LOOK_S):
                raise self._difference(each.request, None, each.line.receive())

    def _send(self, request: Message, version: int) -> Rival:
        if not self._free:
            self._lines.append(Rival(self._bootstrap_servers))
            self._free.append(self._lines[-1])
        line = self._free.pop()
        line.send(request, version)
        return line

    def _ask_broker(self, request: Message, version: int) -> Any:
        line = self._send(request, version)
        answer = line.receive()
        self._free.append(line)
        return answer

    def _await_id(self, request: JoinGroupRequest, line: Rival) -> tuple[Any, str]:
        """Return the broker's response to a joiner, None if it is parked, and the id that the broker has made."""
        instance_id = request.group_instance_id
        group = self._core.coordinator.groups.get(self.group)
        owner_id = group.static_members.get(instance_id) if isinstance(group, ClassicGroup) and instance_id else None
        for _ in range(round(ANSWER_S / PARKED_S)):
            if line.is_answered(PARKED_S):
                early = line.receive()
                return early, str(early.member_id)
            answer = self._ask_broker(DescribeGroupsRequest(groups=(self.group,)), DESCRIBE_VERSION)
            for row in answer.groups[0].members:
                if row.group_instance_id == instance_id is not None and row.member_id != owner_id:
                    return None, str(row.member_id)
        return None, ""

    def _collect(self, early: Mapping[int, Any]) -> None:
        """Compare the responses that the core has given meanwhile."""
        for each in list(self._waiting):
            if each.exchange.parked:
                answer = early.get(id(each.exchange))
                if answer is not None or each.line.is_answered(0):
                    raise self._difference(each.request, None, answer or each.line.receive())
                continue
            self._waiting.remove(each)
            ours = each.exchange.response
            if not isinstance(each.request, READS):
                theirs = early.get(id(each.exchange))
                if theirs is None:
                    if not each.line.is_answered(ANSWER_S):
                        raise self._difference(each.request, ours, None)
                    theirs = each.line.receive()
                if self._plain(ours) != self._plain(theirs):
                    raise self._difference(each.request, ours, theirs)
            self._free.append(each.line)
            self.transcript.append(f"    {short(ours)}")
            each.hears(ours)

    def _read(self, request: Message, version: int, theirs: Any) -> None:
        """Compare the response to a read; the core repeats its own."""
        with self._core.lock:
            ours = self._core.send(request, version, CLIENT_ID).response
        for _ in range(LOOKS):
            if self._plain(ours) == self._plain(theirs):
                return
            with Rival(self._bootstrap_servers) as line:
                line.ask(ELSEWHERE, COMMIT_VERSION)
                line.send(request, version)
                line.is_answered(LOOK_S)
                theirs = line.receive()
        raise self._difference(request, ours, theirs)

    def _difference(self, request: Message, ours: Any, theirs: Any) -> DifferenceError:
        lines = [*self.transcript[-SHOWN:], short(request), f"core:   {short(ours)}", f"broker: {short(theirs)}"]
        return DifferenceError(f"{self.group}\n" + "\n".join(lines))

    def _plain(self, value: object) -> Any:
        if isinstance(value, tuple):
            return [self._plain(each) for each in value]
        if not is_dataclass(value):
            return value
        rows = {each.name: self._plain(getattr(value, each.name)) for each in fields(value)}
        if isinstance(value, ListGroupsResponse):
            rows["groups"] = [row for row in rows["groups"] if row["group_id"] == self.group]
        for name in ROWS.get(type(value), ()):
            if rows[name]:
                rows[name] = sorted(rows[name], key=repr)
        for name in ("assignment", "member_assignment"):
            if isinstance(rows.get(name), bytes):
                rows[name] = _sorted(rows[name])
        return rows


def _sorted(assignment: bytes) -> object:
    """Return an assignment of the classic protocol with its topics in order: that of a broker varies by its start."""
    try:
        read = read_assignment(assignment)
    except Malformed:
        return assignment
    return assignment[:2], read.user_data, sorted((row.topic, row.partitions) for row in read.assigned_partitions)


def _uuid_of(member_id: str) -> UUID:
    """Return the UUID in a member id: of a consumer group the whole id, else what follows the client's name."""
    try:
        return UUID(member_id[-36:])
    except ValueError:
        return UUID(bytes=base64.urlsafe_b64decode(f"{member_id}=="))
