"""The requests that scripted clients send to a coordinator, with short arguments and results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from builders import requests
from builders.requests import RANGE

from koordinator.wire.apis import APIS, ApiKey
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
    txn_offset_commit,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from koordinator.emulator.core.effects import Call

START = 1_700_000_000_000

R = TypeVar("R")


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


class CoordinatorRequests:
    """Every request of a coordinator's clients; a subclass sends them."""

    def send(self, request: object, version: int, client_id: str = "c") -> Exchange[Any]:
        """Send a request in a version, on a connection of its own."""
        raise NotImplementedError

    def newest(self, key: ApiKey) -> int:
        """Return the newest version of an API that the broker serves."""
        raise NotImplementedError

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
        request = requests.join_group(
            group,
            member_id,
            instance_id,
            session_ms=session,
            rebalance_ms=rebalance,
            protocols=protocols,
            protocol_type=protocol_type,
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
        protocol = (protocol_type, protocol_name)
        request = requests.sync_group(group, generation, member_id, assignments, instance_id, protocol=protocol)
        return self.send(request, version)

    def heartbeat(self, generation: int, member_id: str, instance_id: str | None = None, *, group: str = "g") -> Error:
        request = heartbeat.HeartbeatRequest(
            group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance_id
        )
        return self.send(request, 3).error

    def start_leave(
        self, *members: str | tuple[str, str | None], group: str = "g", reason: str | None = None
    ) -> Exchange[leave_group.LeaveGroupResponse]:
        version = self.newest(ApiKey.LEAVE_GROUP)
        return self.send(requests.leave_group(version, group, *members, reason=reason), version)

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
        request = requests.offset_commit(
            group,
            {("t", 0): 1} if offsets is None else offsets,
            generation,
            member_id,
            instance_id,
            metadata=metadata,
            leader_epoch=leader_epoch,
            retention_ms=retention,
        )
        return self.send(request, version)

    def commit_errors(self, *args: Any, **kwargs: Any) -> list[Error]:
        answer = self.commit(*args, **kwargs).response
        return [Error(row.error_code) for topic in answer.topics for row in topic.partitions]

    def txn_commit(
        self,
        offsets: Mapping[tuple[str, int], int],
        generation: int = -1,
        member_id: str = "",
        instance_id: str | None = None,
        *,
        producer_id: int = 7,
        epoch: int = 0,
        group: str = "g",
        version: int = 3,
        metadata: str | None = "",
    ) -> Exchange[txn_offset_commit.TxnOffsetCommitResponse]:
        """Send TxnOffsetCommit of transactional id `x`."""
        request = requests.txn_offset_commit(
            ("x", producer_id, epoch), group, offsets, generation, member_id, instance_id, metadata=metadata
        )
        return self.send(request, version)

    def txn_errors(self, *args: Any, **kwargs: Any) -> list[Error]:
        """Return the errors of `txn_commit`."""
        topics = self.txn_commit(*args, **kwargs).response.topics
        return [Error(row.error_code) for topic in topics for row in topic.partitions]

    def fetch(
        self, *partitions: tuple[str, int], group: str = "g", stable: bool = False
    ) -> dict[tuple[str, int], tuple[int, int, str | None, int]]:
        """Return (topic, partition) -> (offset, leader epoch, metadata, error); without arguments all committed
        offsets."""
        version = min(8, self.newest(ApiKey.OFFSET_FETCH))
        answer = self.fetch_raw(group, version=version, stable=stable, partitions=partitions or None)
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
        partitions: Iterable[tuple[str, int]] | None = None,
    ) -> Exchange[offset_fetch.OffsetFetchResponse]:
        """Send OffsetFetch in a version: one group below v8, all its offsets if `partitions` is None."""
        return self.send(requests.offset_fetch(version, groups, partitions, stable=stable), version)

    def delete_offsets(self, *partitions: tuple[str, int], group: str = "g") -> tuple[Error, list[Error]]:
        answer: offset_delete.OffsetDeleteResponse = self.send(requests.offset_delete(group, partitions), 0).response
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
