"""Request context: the client, groups and members of a request, matched by rules and holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.apis import APIS
from koordinator.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from koordinator.wire.messages.delete_groups import DeleteGroupsRequest
from koordinator.wire.messages.describe_groups import DescribeGroupsRequest
from koordinator.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.leave_group import LeaveGroupRequest
from koordinator.wire.messages.offset_fetch import OffsetFetchRequest
from koordinator.wire.messages.share_group_describe import ShareGroupDescribeRequest
from koordinator.wire.messages.streams_group_describe import StreamsGroupDescribeRequest
from koordinator.wire.messages.write_txn_markers import WriteTxnMarkersRequest

from ...core.groups.classic.group import ClassicGroupState
from ...core.node import TRANSACTION
from ..resolve import group_if_any, transactions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator.wire.apis import Message

    from ...broker.cluster_runtime import ClusterRuntime
    from ...core.effects import Call
    from ...core.groups.group import BaseGroup, BaseMember

KEYS_SINCE = 4
"""The first version of FindCoordinator with a list of keys."""


class RequestContext:
    """A request with its present context. Properties look up groups and members on access."""

    def __init__(self, runtime: ClusterRuntime, node_id: int, call: Call, request: Message) -> None:
        self._runtime = runtime
        self.node_id = node_id
        self.call = call
        self.request = request
        self.api = APIS[call.api_key].name
        self.version = call.api_version
        self.client_id = call.client_id
        self._named = _groups_named(request, call.api_version)
        self.generation: int | None = getattr(
            request,
            "generation_id",
            getattr(request, "generation_id_or_member_epoch", getattr(request, "member_epoch", None)),
        )

    def of_node(self, call: Call, request: Message) -> RequestContext:
        """Return the context of another request to the same node."""
        return RequestContext(self._runtime, self.node_id, call, request)

    @property
    def groups(self) -> tuple[str, ...]:
        """The group ids of the request; if it has none, the groups with a member of the same client id and host."""
        if self._named is not None:
            return self._named
        return tuple(group.id for group, _ in self._by_client())

    @property
    def group(self) -> str | None:
        """The group id of the request; None if there is none or several."""
        groups = self.groups
        return groups[0] if len(groups) == 1 else None

    @property
    def states(self) -> set[str]:
        """The states of the groups; Dead for a group that does not exist."""
        groups = map(self._group, self.groups)
        return {ClassicGroupState.DEAD.value if group is None else group.state_name for group in groups}

    @property
    def member_ids(self) -> tuple[str, ...]:
        """The member ids of the request."""
        if isinstance(self.request, LeaveGroupRequest) and self.request.members:
            return tuple(row.member_id for row in self.request.members)
        if self._named is None:
            return tuple(member.id for _, member in self._by_client())
        member_id = getattr(self.request, "member_id", None)
        return () if member_id is None else (member_id,)

    @property
    def instance_ids(self) -> tuple[str, ...]:
        """The `group.instance.id`s of the members, from the request and from the group."""
        if isinstance(self.request, LeaveGroupRequest):
            named = [row.group_instance_id for row in self.request.members]
        else:
            named = [getattr(self.request, "group_instance_id", getattr(self.request, "instance_id", None))]
        known = (
            group.members[member_id].instance_id
            for group in filter(None, map(self._group, self.groups))
            for member_id in self.member_ids
            if member_id in group.members
        )
        return tuple(dict.fromkeys(instance for instance in (*named, *known) if instance is not None))

    @property
    def transactional_ids(self) -> tuple[str, ...]:
        """The transactional ids that the request names, itself or by producer id; empty ones are left out."""
        request = self.request
        match request:
            case WriteTxnMarkersRequest():
                producer_ids = {marker.producer_id for marker in request.markers}
                names = [
                    name
                    for name, (_, each) in transactions(self._runtime).items()
                    if each.data.producer_id in producer_ids
                ]
            case AddPartitionsToTxnRequest():
                names = [each.transactional_id for each in request.transactions]
                names.append(request.v3_and_below_transactional_id)
            case FindCoordinatorRequest() if request.key_type == TRANSACTION:
                names = [*request.coordinator_keys, request.key]
            case _:
                names = [getattr(request, "transactional_id", None) or ""]
        return tuple(filter(None, names))

    def find_group(self) -> BaseGroup | None:
        """Return the request's group from its coordinator; None if there is none or several."""
        return None if self.group is None else self._group(self.group)

    def _group(self, group_id: str) -> BaseGroup | None:
        return group_if_any(self._runtime, group_id)

    def _by_client(self) -> Iterator[tuple[BaseGroup, BaseMember]]:
        for broker in self._runtime:
            for group in broker.node.coordinator.groups.values():
                for member in group.members.values():
                    if member.client_id == self.client_id and member.client_host == self.call.client_host:
                        yield group, member


def _groups_named(request: Message, version: int) -> tuple[str, ...] | None:
    match request:
        case OffsetFetchRequest() if request.groups:
            return tuple(row.group_id for row in request.groups)
        case DescribeGroupsRequest():
            return request.groups
        case DeleteGroupsRequest():
            return request.groups_names
        case ShareGroupDescribeRequest() | StreamsGroupDescribeRequest():
            return request.group_ids
        case DescribeShareGroupOffsetsRequest():
            return tuple(row.group_id for row in request.groups)
        case FindCoordinatorRequest():
            if request.key_type != 0:
                return ()
            return request.coordinator_keys if version >= KEYS_SINCE else (request.key,)
        case _:
            group_id = getattr(request, "group_id", None)
            return None if group_id is None else (group_id,)
