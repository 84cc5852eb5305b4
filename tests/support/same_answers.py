"""Asking a cluster about one group, and writing down what it says so that two clusters can be compared."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from groups_command import WAIT_S, link
from transcripts import Transcript

from koordinator.wire.apis import APIS
from koordinator.wire.errors import Error
from koordinator.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from koordinator.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from koordinator.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from koordinator.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from koordinator.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from koordinator.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from koordinator.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

if TYPE_CHECKING:
    from koordinator.client.link import Link

PROTOCOLS = (("range", b"r"), ("roundrobin", b"rr"))


class Table:
    """Asks a cluster about group `g` and topic `t`, of four partitions, and records what it says."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self.g = name
        self.t = name
        self.bootstrap = bootstrap
        self._transcript = Transcript()
        self._links: dict[str, Link] = {}
        self._stack = ExitStack()
        self._threads = self._stack.enter_context(ThreadPoolExecutor(8))

    @property
    def answers(self) -> list[str]:
        """What was said, a line for each answer."""
        return [f"{each['request']}: {each['answer']}" for each in self._transcript.entries]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._links.values():
            each.close()
        self._stack.close()

    # -- asking ----------------------------------------------------------------------------------------------

    def ask(self, request: Any, version: int, who: str = "") -> Any:
        """The answer, which is also recorded."""
        answer = self.unrecorded(request, version, who)
        self._transcript.add(type(request).__name__, version, answer)
        return answer

    def begin(self, request: Any, version: int, who: str) -> Future[Any]:
        """Ask what is answered later."""
        return self._threads.submit(self.unrecorded, request, version, who)

    def end(self, asked: Future[Any]) -> Any:
        """The answer of that."""
        answer = asked.result(WAIT_S)
        self._transcript.add("later", 0, answer)
        return answer

    def until(self, request: HeartbeatRequest, error: Error) -> None:
        """Heartbeats are answered so; not recorded, as nobody knows how many it takes."""
        there = self._link("until")
        while there.ask(request, 4, HeartbeatResponse).error_code != error:
            assert there.deadline.left(), f"no {error.name}"

    def until_visible(self) -> None:
        """The group is described. Kafka answers JoinGroup a moment before those who only read see a new group."""
        there = self._link("until")
        while there.ask(self.describe(), 5, DescribeGroupsResponse).groups[0].group_state == "Dead":
            assert there.deadline.left(), "nobody sees the group"

    def _link(self, who: str) -> Link:
        if who not in self._links:
            self._links[who] = link(self.bootstrap)
        return self._links[who]

    def unrecorded(self, request: Any, version: int, who: str = "") -> Any:
        """The answer, which is not recorded."""
        key = next(key for key, api in APIS.items() if api.request is type(request))
        return self._link(who).ask(request, version, APIS[key].response)

    def note(self, text: str) -> None:
        """Record anything."""
        self._transcript.add("note", 0, text)

    # -- what is asked ---------------------------------------------------------------------------------------

    def join(self, member_id: str = "", instance_id: str | None = None, **other: Any) -> JoinGroupRequest:
        protocols = other.pop("protocols", PROTOCOLS)
        settings = {
            "group_id": self.g,
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 10_000,
            "protocol_type": "consumer",
            **other,
        }
        return JoinGroupRequest(
            member_id=member_id,
            group_instance_id=instance_id,
            protocols=tuple(JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols),
            **settings,
        )

    def sync(
        self,
        generation: int,
        member_id: str,
        instance_id: str | None = None,
        plan: dict[str, bytes] | None = None,
        **other: Any,
    ) -> SyncGroupRequest:
        settings = {"group_id": self.g, "protocol_type": "consumer", "protocol_name": "range", **other}
        return SyncGroupRequest(
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=each, assignment=data) for each, data in (plan or {}).items()
            ),
            **settings,
        )

    def beat(self, generation: int, member_id: str, instance_id: str | None = None, **other: Any) -> HeartbeatRequest:
        settings = {"group_id": self.g, **other}
        return HeartbeatRequest(
            generation_id=generation, member_id=member_id, group_instance_id=instance_id, **settings
        )

    def leave(self, *rows: tuple[str, str | None], **other: Any) -> LeaveGroupRequest:
        settings = {"group_id": self.g, **other}
        return LeaveGroupRequest(
            members=tuple(MemberIdentity(member_id=member, group_instance_id=instance) for member, instance in rows),
            **settings,
        )

    def commit(
        self, generation: int = -1, member_id: str = "", instance_id: str | None = None, **other: Any
    ) -> OffsetCommitRequest:
        offsets, metadata = other.pop("offsets", {0: 5}), other.pop("metadata", "")
        topic = other.pop("topic", self.t)
        partitions = tuple(
            OffsetCommitRequestPartition(partition_index=number, committed_offset=offset, committed_metadata=metadata)
            for number, offset in offsets.items()
        )
        return OffsetCommitRequest(
            **{"group_id": self.g, **other},
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=(OffsetCommitRequestTopic(name=topic, partitions=partitions),),
        )

    def fetch(self, *partitions: int, topic: str | None = None, **other: Any) -> OffsetFetchRequest:
        rows = (OffsetFetchRequestTopics(name=topic or self.t, partition_indexes=partitions),) if partitions else None
        return OffsetFetchRequest(groups=(OffsetFetchRequestGroup(**{"group_id": self.g, **other}, topics=rows),))

    def fetch_old(self, *partitions: int, **other: Any) -> OffsetFetchRequest:
        rows = (OffsetFetchRequestTopic(name=self.t, partition_indexes=partitions),) if partitions else None
        return OffsetFetchRequest(**{"group_id": self.g, **other}, topics=rows)

    def forget(self, *partitions: int, **other: Any) -> OffsetDeleteRequest:
        rows = tuple(OffsetDeleteRequestPartition(partition_index=each) for each in partitions)
        topic = OffsetDeleteRequestTopic(name=other.pop("topic", self.t), partitions=rows)
        return OffsetDeleteRequest(**{"group_id": self.g, **other}, topics=(topic,))

    def describe(self, **other: Any) -> DescribeGroupsRequest:
        return DescribeGroupsRequest(**{"groups": (self.g,), **other})

    def formed(self, instance_id: str | None = None) -> tuple[int, str]:
        """A group of one member, Stable, with an assignment: its generation and member id. Recorded."""
        member = self.ask(self.join("", instance_id), 9)
        if member.error_code == Error.MEMBER_ID_REQUIRED:
            member = self.ask(self.join(member.member_id), 9)
        self.ask(self.sync(member.generation_id, member.member_id, instance_id, {member.member_id: b"plan"}), 5)
        return member.generation_id, member.member_id
