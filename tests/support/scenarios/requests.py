"""The requests of the scenarios, written J(id), S(gen, id, {…}), HB(gen, id), OC(gen, id, t-0=5), OF(t-0) there."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from builders import requests
from builders.requests import RANGE

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from koordinator.wire.messages.delete_groups import DeleteGroupsRequest
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest
from koordinator.wire.messages.describe_groups import DescribeGroupsRequest
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.list_groups import ListedGroup, ListGroupsRequest
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from koordinator.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
)
from koordinator.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from koordinator.wire.schema import declaration_of
from scenarios.answers import (
    PendingCommit,
    PendingDelete,
    PendingDescribe,
    PendingFetch,
    PendingHeartbeat,
    PendingJoin,
    PendingLeave,
    PendingOffsetDelete,
    PendingRequest,
    PendingSync,
    PendingWithError,
)
from scenarios.transcripts import Transcript

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from brokers.kafka_releases import Release

    from koordinator.wire.apis import Message
    from scenarios.answers import Partition
    from scenarios.targets import PendingFrame, Target

A = TypeVar("A", bound=PendingRequest[Any])

LIMIT_S = 60
"""Time limit in real seconds for effects without a deadline of their own, such as a group becoming visible."""


class Absent(Exception):
    """The release does not serve the API version that a scenario needs."""

    def __init__(self, api: str, version: int, release: Release) -> None:
        super().__init__(f"API absent in release: {api} v{version} in {release.version}")


class Requests:
    """Sends requests about group `g` and topics `t` (4 partitions) and `u` (2); returns when answered or parked.

    `session` and `rebalance` are the default timeouts of JoinGroups, in seconds. Names of automatic connections begin
    with `prefix`.
    """

    t = "t"
    u = "u"

    def __init__(self, target: Target, group: str) -> None:
        self.target = target
        self.g = group
        self.session: float = 10
        self.rebalance: float = 30
        self.transcript = Transcript({group: "g"})
        self.prefix = ""
        self._connections = count(1)
        self._topics = count(1)

    @property
    def limit(self) -> float:
        """The time at which a wait that begins now has failed."""
        return self.target.seconds + LIMIT_S / self.target.scale

    def serves(self, api: ApiKey, version: int) -> bool:
        """Whether the broker serves this API version."""
        return self.target.serves(api, version)

    def needs(self, api: ApiKey, version: int) -> None:
        """Raise Absent unless the broker serves this API version."""
        if not self.serves(api, version):
            raise Absent(api.name, version, self.target.release)

    def ms(self, seconds: float) -> int:
        """Return a duration in scaled milliseconds."""
        return round(seconds * self.target.scale * 1000)

    def ask(
        self, request: Message, version: int, *, on: str | None = None, client_id: str = "c"
    ) -> PendingWithError[Any]:
        """Send a request, on the named connection or on an idle one."""
        return self.begin(PendingWithError[Any], request, version, on, client_id)

    def send(self, frame: bytes, on: str | None = None) -> PendingFrame:
        """Send raw bytes."""
        return self.target.send_raw(on or self._connection(), frame)

    def answered(self, pending: PendingFrame) -> bytes:
        """Return the response frame of raw bytes, without its length."""
        assert pending.frame is not None, "nothing came back"
        self.transcript.add("frame", 0, pending.frame.hex())
        return pending.frame

    def expect_closed(self, pending: PendingFrame) -> None:
        """Expect the connection to be closed without a response."""
        if not pending.over:
            self.target.pass_time(lambda: pending.over, self.target.seconds + self.target.slack)
        assert pending.frame is None, f"answered with {pending.frame!r}"
        assert pending.closed, "not closed"
        self.transcript.add("frame", 0, "closed")

    def close(self, on: str) -> None:
        """Close a connection."""
        self.target.close(on)

    def begin(self, kind: type[A], request: Message, version: int, on: str | None = None, client_id: str = "c") -> A:
        """Send a request and wrap it in `kind`. Raises Absent for a version that the broker does not serve."""
        key = declaration_of(type(request)).key
        assert key is not None
        if not self.target.serves(key, version):
            raise Absent(type(request).__name__.removesuffix("Request"), version, self.target.release)
        asked = self.target.begin(kind, on or self._connection(), request, version, client_id)
        asked.on_look = self._looked
        return asked

    def _looked(self, asked: PendingRequest[Any], answer: object) -> None:
        self.transcript.add(type(asked.request).__name__.removesuffix("Request"), asked.version, answer)

    def _connection(self) -> str:
        """Return an idle automatic connection, or a new one."""
        for name, line in self.target.lines.items():
            if name.startswith(self.prefix) and name.removeprefix(self.prefix).isdigit() and line.idle:
                return name
        return f"{self.prefix}{next(self._connections)}"

    def join(
        self,
        member_id: str = "",
        instance_id: str | None = None,
        *,
        version: int = 5,
        session: float | None = None,
        rebalance: float | None = None,
        protocol_type: str = "consumer",
        protocols: Iterable[tuple[str, bytes]] = RANGE,
        group: str | None = None,
        client_id: str = "c",
        reason: str | None = None,
        on: str | None = None,
    ) -> PendingJoin:
        """JoinGroup: J(id), J("", i1)."""
        request = requests.join_group(
            self.g if group is None else group,
            member_id,
            instance_id,
            session_ms=self.ms(self.session if session is None else session),
            rebalance_ms=self.ms(self.rebalance if rebalance is None else rebalance),
            protocols=protocols,
            protocol_type=protocol_type,
            reason=reason,
        )
        return self.begin(PendingJoin, request, version, on, client_id)

    def new_id(self, *, client_id: str = "c", **join: Any) -> str:
        """Return the id that J("") receives with error 79 (KIP-394)."""
        asked = self.join(client_id=client_id, **join)
        member_id = asked.answer().member_id
        asked.expect(79, member_id=member_id)
        assert member_id.startswith(f"{client_id}-"), member_id
        return member_id

    def sync(
        self,
        generation: int,
        member_id: str,
        assignments: Mapping[str, bytes] | None = None,
        *,
        instance_id: str | None = None,
        version: int = 3,
        protocol_type: str | None = "consumer",
        protocol_name: str | None = "range",
        group: str | None = None,
        on: str | None = None,
    ) -> PendingSync:
        """SyncGroup: S(gen, id, {…}). Protocol type and name are sent from version 5 on."""
        name, protocol = self.g if group is None else group, (protocol_type, protocol_name)
        request = requests.sync_group(name, generation, member_id, assignments, instance_id, protocol=protocol)
        return self.begin(PendingSync, request, version, on)

    def heartbeat(
        self,
        generation: int,
        member_id: str,
        instance_id: str | None = None,
        *,
        version: int = 3,
        group: str | None = None,
        on: str | None = None,
    ) -> PendingHeartbeat:
        """Heartbeat: HB(gen, id)."""
        request = HeartbeatRequest(
            group_id=self.g if group is None else group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
        )
        return self.begin(PendingHeartbeat, request, version, on)

    def leave(
        self,
        *members: str | tuple[str, str | None],
        version: int = 3,
        group: str | None = None,
        reason: str | None = None,
        on: str | None = None,
    ) -> PendingLeave:
        """LeaveGroup: L(id), L([(id, instance), …]). Versions up to 2 name one member, without its instance."""
        request = requests.leave_group(version, self.g if group is None else group, *members, reason=reason)
        return self.begin(PendingLeave, request, version, on)

    def commit(
        self,
        generation: int,
        member_id: str,
        offsets: Mapping[Partition, int] | None = None,
        instance_id: str | None = None,
        *,
        metadata: str | Mapping[Partition, str | None] | None = "",
        leader_epoch: int = -1,
        retention: float | None = None,
        version: int = 7,
        group: str | None = None,
        on: str | None = None,
    ) -> PendingCommit:
        """OffsetCommit: OC(gen, id, {(topic, partition): offset}), t-0=1 by default. Versions 2 to 4 have retention."""
        request = requests.offset_commit(
            self.g if group is None else group,
            {(self.t, 0): 1} if offsets is None else offsets,
            generation,
            member_id,
            instance_id,
            metadata=metadata,
            leader_epoch=leader_epoch,
            retention_ms=-1 if retention is None else self.ms(retention),
        )
        return self.begin(PendingCommit, request, version, on)

    def commit_topics(self, topics: tuple[OffsetCommitRequestTopic, ...], version: int = 7) -> PendingCommit:
        """OffsetCommit of a simple consumer, with rows that may repeat."""
        request = OffsetCommitRequest(group_id=self.g, generation_id_or_member_epoch=-1, member_id="", topics=topics)
        return self.begin(PendingCommit, request, version)

    def fetch_topics(self, topics: tuple[OffsetFetchRequestTopics, ...], version: int) -> PendingFetch:
        """OffsetFetch of the group, with rows that may repeat."""
        if version < 8:
            old = (OffsetFetchRequestTopic(name=row.name, partition_indexes=row.partition_indexes) for row in topics)
            request = OffsetFetchRequest(group_id=self.g, topics=tuple(old))
        else:
            request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=self.g, topics=topics),))
        return self.begin(PendingFetch, request, version)

    def fetch(
        self,
        *partitions: Partition,
        everything: bool = False,
        stable: bool = False,
        version: int | None = None,
        group: str | None = None,
        groups: Iterable[str] | None = None,
        on: str | None = None,
    ) -> PendingFetch:
        """OffsetFetch: OF(t-0). `everything` sends null topics, for all committed offsets. `groups` from version 8 on.

        The default is version 7, or 6 where that is the newest (before 2.5).
        """
        if version is None:
            version = 7 if self.serves(ApiKey.OFFSET_FETCH, 7) else 6
        names = (self.g if group is None else group,) if groups is None else groups
        wanted = None if everything else partitions
        request = requests.offset_fetch(version, names, wanted, stable=stable)
        return self.begin(PendingFetch, request, version, on)

    def delete_offsets(
        self, *partitions: Partition, group: str | None = None, on: str | None = None
    ) -> PendingOffsetDelete:
        """OffsetDelete (KIP-496)."""
        request = requests.offset_delete(self.g if group is None else group, partitions)
        return self.begin(PendingOffsetDelete, request, 0, on)

    def describe(
        self, group: str | None = None, *, version: int = 5, operations: bool = False, on: str | None = None
    ) -> PendingDescribe:
        """DescribeGroups of one group. An unknown one is error 69 from version 6 on (KIP-1043), "Dead" before."""
        name = self.g if group is None else group
        request = DescribeGroupsRequest(groups=(name,), include_authorized_operations=operations)
        return self.begin(PendingDescribe, request, version, on)

    def listed(self, *, version: int = 4, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[ListedGroup]:
        """Return this play's rows of ListGroups, sorted by name; other plays may share the broker."""
        request = ListGroupsRequest(states_filter=tuple(states), types_filter=tuple(types))
        answer = self.begin(PendingWithError[Any], request, version).unrecorded()
        assert answer.error_code == Error.NONE
        ours = sorted((row for row in answer.groups if row.group_id.startswith(self.g)), key=lambda row: row.group_id)
        self.transcript.add("ListGroups", version, type(answer)(error_code=0, groups=tuple(ours)))
        return ours

    def delete(self, *groups: str, version: int = 1, on: str | None = None) -> PendingDelete:
        """DeleteGroups; the play's own group by default."""
        return self.begin(PendingDelete, DeleteGroupsRequest(groups_names=groups or (self.g,)), version, on)

    def new_topic(
        self,
        partitions: int = 4,
        configs: Mapping[str, str] | None = None,
        *,
        suffix: str | None = None,
        prefix: str = "",
    ) -> str:
        """Create a topic of this play, which may be deleted; its name is that of the group between two texts."""
        name = f"{prefix}{self.g}{suffix or f'.topic{next(self._topics)}'}"
        settings = tuple(CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items())
        row = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=settings)
        answer = self.slowly(CreateTopicsRequest(topics=(row,), timeout_ms=LIMIT_S * 1000), 4)
        assert [each.error_code for each in answer.topics] == [Error.NONE], answer
        # the node that answers may not know it yet
        look = MetadataRequest(topics=(MetadataRequestTopic(name=name),), allow_auto_topic_creation=False)
        limit = self.limit
        while len((found := self.slowly(look, 4).topics[0]).partitions) < partitions:
            assert self.target.seconds < limit, f"nobody knows the topic {found}"
            self.target.wait(0.1)
        # the leader may not know that it leads
        lead = requests.list_offsets(name, dict.fromkeys(range(partitions), -1))
        while any(row.error_code for row in self.slowly(lead, 4).topics[0].partitions):
            assert self.target.seconds < limit, f"nobody leads the topic {name}"
            self.target.wait(0.1)
        return name

    def delete_topic(self, name: str) -> None:
        """Delete a topic of this play."""
        answer = self.slowly(DeleteTopicsRequest(topic_names=(name,), timeout_ms=LIMIT_S * 1000), 4)
        assert [each.error_code for each in answer.responses] == [Error.NONE], answer

    def slowly(self, request: Message, version: int, *, recorded: bool = False) -> Any:
        """Return the answer of a controller or a disk, which takes longer than that of a group."""
        asked = self.begin(PendingWithError[Any], request, version)
        self.target.pass_time(lambda: asked.is_over, self.limit)
        return asked.answer() if recorded else asked.unrecorded()
