"""Scripted clients of a coordinator, in process and on virtual time.

`play.wait(45_000)` takes no time. A request that parks is answered later, on the same `Exchange`. Writes to
`__consumer_offsets` succeed at once unless `play.writes` says otherwise. Every response is encoded and decoded in the
version of its request, so that a test sees what a client would see.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from uuid import UUID

from koordinator.emulator.broker.versions.adapters import ADAPTERS
from koordinator.emulator.broker.versions.error_numbering import kafka
from koordinator.emulator.broker.versions.releases import ACCEPTED
from koordinator.emulator.config.settings import Settings
from koordinator.emulator.core.cluster import ClusterState
from koordinator.emulator.core.effects import Append, Call, Effect, Reply
from koordinator.emulator.core.groups.coordinator import Coordinator
from koordinator.wire.apis import APIS, ApiKey
from koordinator.wire.codec import decode, encode
from koordinator.wire.errors import Error
from koordinator.wire.messages import (
    delete_groups,
    describe_groups,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from koordinator.wire.messages.consumer_protocol import ConsumerProtocolSubscription, write_subscription

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from koordinator.emulator.core.groups.classic.group import ClassicGroup
    from koordinator.wire.apis import Message

SUBSCRIBED_TO_T = write_subscription(ConsumerProtocolSubscription(topics=("t",)))
RANGE = (("range", SUBSCRIBED_TO_T),)
CHANGED = (("range", write_subscription(ConsumerProtocolSubscription(topics=("t", "u")))),)
START = 1_700_000_000_000

R = TypeVar("R")
F = TypeVar("F")


@dataclass
class Exchange(Generic[R]):
    """A request and its response, once there is one."""

    call: Call
    responses: list[R] = field(default_factory=list)

    @property
    def parked(self) -> bool:
        return not self.responses

    @property
    def response(self) -> R:
        assert self.responses, f"{APIS[self.call.api_key].name} has not been answered"
        assert len(self.responses) == 1, f"{APIS[self.call.api_key].name} has been answered {len(self.responses)} times"
        return self.responses[0]

    @property
    def error(self) -> Error:
        return Error(cast("Any", self.response).error_code)


class Play:
    """A coordinator and its clients; topics are t (4 partitions) and u (2)."""

    def __init__(self, **settings: object) -> None:
        self.now = START
        ids = random.Random(7)

        def new_uuid() -> UUID:
            return UUID(int=ids.getrandbits(128), version=4)

        named = {name.replace("_", "."): value for name, value in settings.items()}
        self.settings, _ = Settings.of("fast", named)
        self.cluster = ClusterState("play", self.settings, new_uuid)
        self.cluster.register(1, "127.0.0.1", 9092)
        self.cluster.create_topic("t", 4)
        self.cluster.create_topic("u", 2)
        self.coordinator = Coordinator(self.now, self.cluster, self.settings, new_uuid)
        self.writes: Error | None = Error.NONE
        """The result of writes; None keeps them in flight until `complete_writes`."""
        self.in_flight: list[Append] = []
        self.appended: list[Append] = []
        self.facts: list[Effect] = []
        self._exchanges: dict[Call, Exchange[Any]] = {}
        self._correlation = 0

    def wait(self, ms: int) -> None:
        """Advance the time."""
        self.now += ms
        self._perform(self.coordinator.tick(self.now))

    def keep_alive(self, ms: int, *alive: tuple[Any, ...], group: str = "g") -> Error:
        """Advance the time while members send a heartbeat every second: (generation, member id[, instance id]).

        Returns the error of the first member's last heartbeat.
        """
        told = Error.NONE
        for passed in range(0, ms, 1_000):
            self.wait(min(1_000, ms - passed))
            answers = [self.heartbeat(*member, group=group) for member in alive]
            told = answers[0]
        return told

    def settle(self) -> None:
        """Fire what is due now."""
        self.wait(0)

    def complete_writes(self, error: Error = Error.NONE) -> None:
        """Complete the writes in flight, successfully or not."""
        while self.in_flight:
            self._perform(self.coordinator.appended(self.now, self.in_flight.pop(0).token, error))

    def _perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Reply(call, response):
                    assert response is not None
                    self._exchanges[call].responses.append(self._seen(call, response))
                case Append():
                    self.appended.append(effect)
                    self.in_flight.append(effect)
                case _:
                    self.facts.append(effect)
        if self.writes is not None and self.in_flight:
            self.complete_writes(self.writes)

    def _seen(self, call: Call, response: Message) -> Message:
        rendered = ADAPTERS[call.api_key].render_response(response, call.api_version, kafka)
        return decode(type(rendered), call.api_version, encode(rendered, call.api_version), exact=True)

    def newest(self, key: ApiKey) -> int:
        """Return the newest version of an API that a broker of this release serves."""
        return ACCEPTED[self.settings.kafka_version][key].max

    def send(self, request: object, version: int, client_id: str = "c") -> Exchange[Any]:
        """Send a request in a version, on a connection of its own."""
        self._correlation += 1
        key = next(key for key, api in APIS.items() if api.request is type(request))
        release = self.settings.kafka_version
        assert version in ACCEPTED[release][key], f"a broker of {release} does not serve {APIS[key].name} v{version}"
        call = Call(self._correlation, self._correlation, key, version, client_id, "/127.0.0.1")
        asked: Exchange[Any] = Exchange(call)
        self._exchanges[call] = asked
        self._perform(
            self.coordinator.handle(self.now, call, ADAPTERS[key].normalize_request(cast("Any", request), version))
        )
        return asked

    def join(
        self,
        member_id: str = "",
        instance_id: str | None = None,
        *,
        group: str = "g",
        version: int = 5,
        session: int = 10_000,
        rebalance: int = 30_000,
        protocol_type: str = "consumer",
        protocols: Iterable[tuple[str, bytes]] = RANGE,
        client_id: str = "c",
        reason: str | None = None,
    ) -> Exchange[join_group.JoinGroupResponse]:
        request = join_group.JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session,
            rebalance_timeout_ms=rebalance,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=tuple(
                join_group.JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols
            ),
            reason=reason,
        )
        return self.send(request, version, client_id)

    def new_id(self, **join: Any) -> str:
        """Return a member id handed out with MEMBER_ID_REQUIRED."""
        asked = self.join("", **join)
        assert asked.error is Error.MEMBER_ID_REQUIRED
        return asked.response.member_id

    def sync(
        self,
        generation: int,
        member_id: str,
        assignments: Mapping[str, bytes] | None = None,
        *,
        instance_id: str | None = None,
        group: str = "g",
        version: int = 3,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> Exchange[sync_group.SyncGroupResponse]:
        request = sync_group.SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=tuple(
                sync_group.SyncGroupRequestAssignment(member_id=each, assignment=assignment)
                for each, assignment in (assignments or {}).items()
            ),
        )
        return self.send(request, version)

    def heartbeat(self, generation: int, member_id: str, instance_id: str | None = None, *, group: str = "g") -> Error:
        request = heartbeat.HeartbeatRequest(
            group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance_id
        )
        return self.send(request, 3).error

    def start_leave(
        self, *members: str | tuple[str, str | None], group: str = "g", reason: str | None = None
    ) -> Exchange[leave_group.LeaveGroupResponse]:
        identities = [(member, None) if isinstance(member, str) else member for member in members]
        request = leave_group.LeaveGroupRequest(
            group_id=group,
            members=tuple(
                leave_group.MemberIdentity(member_id=member_id, group_instance_id=instance_id, reason=reason)
                for member_id, instance_id in identities
            ),
        )
        return self.send(request, self.newest(ApiKey.LEAVE_GROUP))

    def leave(
        self, *members: str | tuple[str, str | None], group: str = "g", reason: str | None = None
    ) -> leave_group.LeaveGroupResponse:
        return self.start_leave(*members, group=group, reason=reason).response

    def leave_errors(self, *members: str | tuple[str, str | None], group: str = "g") -> list[int]:
        return [row.error_code for row in self.leave(*members, group=group).members]

    def commit(
        self,
        generation: int = -1,
        member_id: str = "",
        instance_id: str | None = None,
        offsets: Mapping[tuple[str, int], int] | None = None,
        *,
        metadata: str | None = "",
        leader_epoch: int = -1,
        group: str = "g",
        version: int = 7,
        retention: int = -1,
    ) -> Exchange[offset_commit.OffsetCommitResponse]:
        rows: dict[str, list[offset_commit.OffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in ({("t", 0): 1} if offsets is None else offsets).items():
            rows.setdefault(topic, []).append(
                offset_commit.OffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=offset,
                    committed_leader_epoch=leader_epoch,
                    committed_metadata=metadata,
                )
            )
        request = offset_commit.OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            retention_time_ms=retention,
            topics=tuple(
                offset_commit.OffsetCommitRequestTopic(name=topic, partitions=tuple(partitions))
                for topic, partitions in rows.items()
            ),
        )
        return self.send(request, version)

    def commit_errors(self, *args: Any, **kwargs: Any) -> list[Error]:
        answer = self.commit(*args, **kwargs).response
        return [Error(row.error_code) for topic in answer.topics for row in topic.partitions]

    def fetch(
        self, *partitions: tuple[str, int], group: str = "g", stable: bool = False
    ) -> dict[tuple[str, int], tuple[int, int, str | None, int]]:
        """Return (topic, partition) -> (offset, leader epoch, metadata, error); without arguments all committed
        offsets."""
        names: dict[str, list[int]] = {}
        for topic, partition in partitions:
            names.setdefault(topic, []).append(partition)
        topics = {name: tuple(indexes) for name, indexes in names.items()} if partitions else None
        version = min(8, self.newest(ApiKey.OFFSET_FETCH))
        answer = self.fetch_raw(group, version=version, stable=stable, topics=topics)
        row = answer.groups[0] if answer.groups else answer
        assert row.error_code == 0
        return {
            (topic.name, each.partition_index): (
                each.committed_offset,
                each.committed_leader_epoch,
                each.metadata,
                each.error_code,
            )
            for topic in row.topics
            for each in topic.partitions
        }

    def offset(self, topic: str, partition: int, group: str = "g") -> int:
        return self.fetch((topic, partition), group=group)[topic, partition][0]

    def fetch_raw(self, *groups: str, **asked: Any) -> offset_fetch.OffsetFetchResponse:
        """Return the response of `start_fetch`."""
        return self.start_fetch(*groups, **{"stable": False, **asked}).response

    def start_fetch(
        self,
        *groups: str,
        version: int = 8,
        stable: bool = True,
        topics: Mapping[str, tuple[int, ...]] | None = None,
    ) -> Exchange[offset_fetch.OffsetFetchResponse]:
        """Send OffsetFetch in a version: one group below v8, all its offsets if `topics` is None."""
        rows = None if topics is None else tuple(topics.items())
        request = offset_fetch.OffsetFetchRequest(
            group_id=groups[0],
            topics=None
            if rows is None
            else tuple(offset_fetch.OffsetFetchRequestTopic(name=name, partition_indexes=at) for name, at in rows),
            groups=tuple(
                offset_fetch.OffsetFetchRequestGroup(
                    group_id=group,
                    topics=None
                    if rows is None
                    else tuple(
                        offset_fetch.OffsetFetchRequestTopics(name=name, partition_indexes=at) for name, at in rows
                    ),
                )
                for group in groups
            ),
            require_stable=stable,
        )
        return self.send(request, version)

    def delete_offsets(self, *partitions: tuple[str, int], group: str = "g") -> tuple[Error, list[Error]]:
        request = offset_delete.OffsetDeleteRequest(
            group_id=group,
            topics=tuple(
                offset_delete.OffsetDeleteRequestTopic(
                    name=topic, partitions=(offset_delete.OffsetDeleteRequestPartition(partition_index=partition),)
                )
                for topic, partition in partitions
            ),
        )
        answer: offset_delete.OffsetDeleteResponse = self.send(request, 0).response
        return Error(answer.error_code), [Error(row.error_code) for each in answer.topics for row in each.partitions]

    def describe(
        self, group: str = "g", version: int = 5, *, operations: bool = False
    ) -> describe_groups.DescribedGroup:
        request = describe_groups.DescribeGroupsRequest(groups=(group,), include_authorized_operations=operations)
        answer: describe_groups.DescribeGroupsResponse = self.send(request, version).response
        return answer.groups[0]

    def state(self, group: str = "g") -> str:
        return self.describe(group).group_state

    def listed(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[str]:
        request = list_groups.ListGroupsRequest(states_filter=tuple(states), types_filter=tuple(types))
        answer: list_groups.ListGroupsResponse = self.send(request, self.newest(ApiKey.LIST_GROUPS)).response
        return [group.group_id for group in answer.groups]

    def list_groups(self, version: int = 5) -> list_groups.ListGroupsResponse:
        return cast("list_groups.ListGroupsResponse", self.send(list_groups.ListGroupsRequest(), version).response)

    def start_delete(self, *groups: str) -> Exchange[delete_groups.DeleteGroupsResponse]:
        return self.send(delete_groups.DeleteGroupsRequest(groups_names=groups), 2)

    def delete(self, *groups: str) -> dict[str, Error]:
        return {row.group_id: Error(row.error_code) for row in self.start_delete(*groups).response.results}

    def advance(self, ms: int, group: str = "g") -> None:
        """Advance a group's clock."""
        self._perform(self.coordinator.move_clock(self.now, group, self.group_now(group) + ms))

    def set_clock(self, mode: str, group: str = "g") -> None:
        """Set the mode of a group's clock: real, manual or auto."""
        self._perform(self.coordinator.set_clock(self.now, group, mode))

    def group_now(self, group: str = "g") -> int:
        """Return the time of a group's clock."""
        return self.cluster.clock_of(group, self.now).read(self.now)

    def facts_of(self, kind: type[F]) -> list[F]:
        """Return the facts of one kind, in order."""
        return [fact for fact in self.facts if isinstance(fact, kind)]

    def group(self, group: str = "g") -> ClassicGroup:
        return self.coordinator.groups[group]

    def stable_member(self, **join: Any) -> str:
        """Form a Stable group of one member at generation 1; return its id."""
        a = self.new_id(**join)
        joined = self.join(a, **join)
        self.settle()
        assert joined.response.generation_id == 1
        self.sync(1, a, {a: b"a1"}, group=join.get("group", "g"))
        return a

    def joined_by(self, *members: str, **join: Any) -> tuple[str, int]:
        """Add a dynamic member to a Stable group, without syncing; return its id and the generation."""
        b = self.new_id(**join)
        asks = [self.join(b, **join), *(self.join(member, **join) for member in members)]
        generation = asks[0].response.generation_id
        assert all(asked.response.generation_id == generation for asked in asks)
        return b, generation

    def unsynced_pair(self, **join: Any) -> tuple[str, str]:
        """Form a group of two members at generation 2, without syncing; return their ids, leader first."""
        a = self.stable_member(**join)
        b, _ = self.joined_by(a, **join)
        return a, b

    def stable_pair(self, **join: Any) -> tuple[str, str]:
        """Form a Stable group of two members at generation 2; return their ids, leader first."""
        a, b = self.unsynced_pair(**join)
        self.sync(2, b)
        self.sync(2, a, {a: b"a2", b: b"b2"})
        return a, b

    def stable_trio(self) -> tuple[str, str, str]:
        """Form a Stable group of three members at generation 3; return their ids, leader first."""
        a, b = self.stable_pair()
        c, generation = self.joined_by(a, b)
        self.sync(generation, a, {a: b"a3", b: b"b3", c: b"c3"})
        self.sync(generation, b)
        self.sync(generation, c)
        return a, b, c

    def static_member(self, **join: Any) -> str:
        """Form a Stable group of one static member, i1, at generation 1; return its id."""
        asked = self.join("", "i1", **join)
        self.settle()
        p = asked.response.member_id
        self.sync(1, p, {p: b"p1"}, instance_id="i1")
        return p

    def static_pair(self, *, synced: bool = True, **join: Any) -> tuple[str, str]:
        """Form a group of two static members, i1 and i2, at generation 2; return their ids, leader (i1) first."""
        p = self.static_member(**join)
        second = self.join("", "i2", **join)
        self.join(p, "i1", **join)
        q = second.response.member_id
        if synced:
            self.sync(2, p, {p: b"p2", q: b"q2"}, instance_id="i1")
            self.sync(2, q, instance_id="i2")
        return p, q

    def emptied(self) -> str:
        """Form a group that its only member has left, at generation 2; return the member's old id."""
        a = self.stable_member()
        self.leave(a)
        return a
