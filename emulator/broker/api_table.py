"""The API table of a Kafka release: which versions it serves, and the conversion of each to the shape of the core.

Requests of every version get the shape of the latest one, and responses the shape of the requested version. Differences
in fields alone need no conversion: the defaults of missing fields are right.

JoinGroup v0 has no rebalance timeout (before KIP-62). OffsetCommit and OffsetFetch v0 use ZooKeeper: every partition
gets UNSUPPORTED_VERSION, as from a broker without one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from koordinator.wire.apis import APIS, ApiKey
from koordinator.wire.codec import decode, encode_frame
from koordinator.wire.errors import Error
from koordinator.wire.frames import response_header, with_correlation_id
from koordinator.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from koordinator.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from koordinator.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from koordinator.wire.primitives import Malformed
from koordinator.wire.values import value

from ..config.settings import RELEASES
from .connections import REMEMBERED_MAX, EncodedResponse
from .releases import ACCEPTED, ADVERTISED, other_release

if TYPE_CHECKING:
    from koordinator.wire.frames import RequestHeader
    from koordinator.wire.messages.describe_configs import DescribeConfigsResponse
    from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
    from koordinator.wire.messages.heartbeat import HeartbeatResponse
    from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
    from koordinator.wire.messages.list_offsets import (
        ListOffsetsPartitionResponse,
        ListOffsetsResponse,
    )
    from koordinator.wire.messages.metadata import MetadataRequest
    from koordinator.wire.messages.offset_commit import OffsetCommitResponse
    from koordinator.wire.messages.sync_group import SyncGroupResponse
    from koordinator.wire.schema import Message

    from ..config.settings import Settings
    from ..core.data.features import Features
    from ..core.effects import Call
    from .connections import Connection

UNSUPPORTED_VERSION = ApiVersionsRequest()
"""Stands for an ApiVersions request of an unsupported version."""

SOFTWARE_SINCE = 3
ZERO_FEATURES_SINCE = 4
"""The first version that lists supported features whose lowest level is 0 (KIP-1022)."""
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")

API_VERSIONS = ApiKey.API_VERSIONS
"""Bound once: every response is compared with it."""

KEYS_SINCE = 4
"""The first version of FindCoordinator with several keys (KIP-699)."""

Numbering = Callable[[int], int]
"""From the core's error code to the code on the wire."""

# KIP-389 and KIP-345 print these codes; releases use 81 and 82 instead, and 77 and 78 for other errors
_KIP = {Error.GROUP_MAX_SIZE_REACHED: 77, Error.FENCED_INSTANCE_ID: 78}


def kafka(error_code: int) -> int:
    """Return the code of Kafka releases: 79, 81, 82."""
    return error_code


def kip(error_code: int) -> int:
    """Return the code of the KIPs: 79 (KIP-394), 77 (KIP-389), 78 (KIP-345)."""
    return _KIP.get(Error(error_code), error_code)


NUMBERINGS: dict[str, Numbering] = {"kafka": kafka, "kip": kip}
"""The numberings, by value of the setting `error.codes`."""


def renumber_error(
    response: HeartbeatResponse | SyncGroupResponse, _version: int, numbering: Numbering
) -> HeartbeatResponse | SyncGroupResponse:
    """Return the response with its top-level error code in the configured numbering."""
    return replace(response, error_code=numbering(response.error_code)) if response.error_code else response


def _metadata_request(request: MetadataRequest, version: int) -> MetadataRequest:
    """Convert the empty list of v0, which means every topic, into null."""
    return replace(request, topics=None) if version == 0 and request.topics == () else request


def _list_offsets_response(response: ListOffsetsResponse, version: int, _numbering: Numbering) -> ListOffsetsResponse:
    """Render offsets as a list in v0, and drop leader epochs before v4."""
    if version >= 4:
        return response

    def row(result: ListOffsetsPartitionResponse) -> ListOffsetsPartitionResponse:
        if version > 0:
            return replace(result, leader_epoch=-1)
        offsets = (result.offset,) if result.offset >= 0 else ()
        return replace(result, old_style_offsets=offsets, offset=-1, timestamp=-1, leader_epoch=-1)

    topics = (replace(topic, partitions=tuple(map(row, topic.partitions))) for topic in response.topics)
    return replace(response, topics=tuple(topics))


def _describe_configs_response(
    response: DescribeConfigsResponse, version: int, _numbering: Numbering
) -> DescribeConfigsResponse:
    """Drop the marks of defaults since v1, which has the sources of values instead (KIP-226)."""
    if version == 0:
        return response
    results = (
        replace(
            result, configs=tuple(replace(row, is_default=False) if row.is_default else row for row in result.configs)
        )
        for result in response.results
    )
    return replace(response, results=tuple(results))


def _delete_topics_request(request: DeleteTopicsRequest, version: int) -> DeleteTopicsRequest:
    """Convert the names of v0-5 into topics without an id."""
    if version >= 6:
        return request
    return replace(request, topics=tuple(DeleteTopicState(name=name) for name in request.topic_names), topic_names=())


def _delete_topics_response(
    response: DeleteTopicsResponse, version: int, _numbering: Numbering
) -> DeleteTopicsResponse:
    """Replace TOPIC_DELETION_DISABLED, which clients before v3 do not know, by INVALID_REQUEST."""
    if version >= 3:
        return response
    rows = (
        replace(row, error_code=Error.INVALID_REQUEST) if row.error_code == Error.TOPIC_DELETION_DISABLED else row
        for row in response.responses
    )
    return replace(response, responses=tuple(rows))


def _find_coordinator_request(request: FindCoordinatorRequest, version: int) -> FindCoordinatorRequest:
    """Convert the single key of v0-3 into a list."""
    return request if version >= KEYS_SINCE else replace(request, coordinator_keys=(request.key,))


def _find_coordinator_response(
    response: FindCoordinatorResponse, version: int, _numbering: Numbering
) -> FindCoordinatorResponse:
    """Before v4 move the single coordinator to the top level, where success has the message "NONE"."""
    if version >= KEYS_SINCE:
        return response
    (row,) = response.coordinators
    return replace(
        response,
        coordinators=(),
        error_code=row.error_code,
        error_message=row.error_message or "NONE",
        node_id=row.node_id,
        host=row.host,
        port=row.port,
    )


def _join_group_request(request: JoinGroupRequest, version: int) -> JoinGroupRequest:
    """Use the session timeout as rebalance timeout in v0."""
    return replace(request, rebalance_timeout_ms=request.session_timeout_ms) if version == 0 else request


def _join_group_response(response: JoinGroupResponse, version: int, numbering: Numbering) -> JoinGroupResponse:
    """Render a missing protocol as null from v7 on, and as "" before."""
    name, error_code = response.protocol_name or ("" if version < 7 else None), numbering(response.error_code)
    if name == response.protocol_name and error_code == response.error_code:
        return response
    return replace(response, error_code=error_code, protocol_name=name)


def _leave_group_request(request: LeaveGroupRequest, version: int) -> LeaveGroupRequest:
    """Convert the single member of v0-2 into a list (KIP-345)."""
    return request if version >= 3 else replace(request, members=(MemberIdentity(member_id=request.member_id),))


def _leave_group_response(response: LeaveGroupResponse, version: int, numbering: Numbering) -> LeaveGroupResponse:
    """Before v3 move the error of the single member to the top level."""
    members = tuple(replace(row, error_code=numbering(row.error_code)) for row in response.members)
    if version >= 3:
        return replace(response, members=members)
    error_code = response.error_code or next((row.error_code for row in members), 0)
    return replace(response, error_code=error_code, members=())


def _offset_commit_response(
    response: OffsetCommitResponse, _version: int, numbering: Numbering
) -> OffsetCommitResponse:
    """Return the response with its error codes in the configured numbering."""
    topics = (
        replace(topic, partitions=tuple(replace(row, error_code=numbering(row.error_code)) for row in topic.partitions))
        for topic in response.topics
    )
    return replace(response, topics=tuple(topics))


def _offset_fetch_request(request: OffsetFetchRequest, version: int) -> OffsetFetchRequest:
    """Convert the single group of v0-7 into a list (KIP-709)."""
    if version >= 8:
        return request
    topics = None
    if request.topics is not None:
        topics = tuple(
            OffsetFetchRequestTopics(name=row.name, partition_indexes=row.partition_indexes) for row in request.topics
        )
    return replace(request, groups=(OffsetFetchRequestGroup(group_id=request.group_id, topics=topics),))


def _offset_fetch_response(response: OffsetFetchResponse, version: int, _numbering: Numbering) -> OffsetFetchResponse:
    """Before v8 move the single group to the top level; before v2 there is no error for the whole response."""
    if version >= 8:
        return response
    (group,) = response.groups
    topics = tuple(
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=tuple(
                OffsetFetchResponsePartition(
                    partition_index=row.partition_index,
                    committed_offset=row.committed_offset,
                    committed_leader_epoch=row.committed_leader_epoch,
                    metadata=row.metadata,
                    error_code=row.error_code,
                )
                for row in topic.partitions
            ),
        )
        for topic in group.topics
    )
    return replace(response, groups=(), topics=topics, error_code=group.error_code if version >= 2 else 0)


@value
class VersionAdapter:
    """The conversions of one API: a request to the core's shape, a response to the requested version.

    None leaves the message as it is.
    """

    normalize_request: Callable[[Any, int], Message] | None = None
    render_response: Callable[[Any, int, Numbering], Message] | None = None

    def normalized(self, request: Message, version: int) -> Message:
        """Return the core's shape of a request."""
        return request if self.normalize_request is None else self.normalize_request(request, version)

    def rendered(self, response: Message, version: int, numbering: Numbering) -> Message:
        """Return the shape of a response in a version."""
        return response if self.render_response is None else self.render_response(response, version, numbering)


_ADAPTED = {
    ApiKey.METADATA: VersionAdapter(_metadata_request),
    ApiKey.LIST_OFFSETS: VersionAdapter(render_response=_list_offsets_response),
    ApiKey.DESCRIBE_CONFIGS: VersionAdapter(render_response=_describe_configs_response),
    ApiKey.DELETE_TOPICS: VersionAdapter(_delete_topics_request, _delete_topics_response),
    ApiKey.FIND_COORDINATOR: VersionAdapter(_find_coordinator_request, _find_coordinator_response),
    ApiKey.JOIN_GROUP: VersionAdapter(_join_group_request, _join_group_response),
    ApiKey.SYNC_GROUP: VersionAdapter(render_response=renumber_error),
    ApiKey.HEARTBEAT: VersionAdapter(render_response=renumber_error),
    ApiKey.LEAVE_GROUP: VersionAdapter(_leave_group_request, _leave_group_response),
    ApiKey.OFFSET_COMMIT: VersionAdapter(render_response=_offset_commit_response),
    ApiKey.TXN_OFFSET_COMMIT: VersionAdapter(render_response=_offset_commit_response),
    ApiKey.OFFSET_FETCH: VersionAdapter(_offset_fetch_request, _offset_fetch_response),
}

ADAPTERS: dict[int, VersionAdapter] = {key: _ADAPTED.get(ApiKey(key), VersionAdapter()) for key in APIS}
"""The adapter of each API, by API key."""


_ACL_ROWS: dict[int, Callable[[Any], Iterable[Any]]] = {
    ApiKey.DESCRIBE_ACLS: lambda request: (request,),
    ApiKey.CREATE_ACLS: lambda request: request.creations,
    ApiKey.DELETE_ACLS: lambda request: request.filters,
}
"""The ACLs and filters of a request, by API key."""

_ACL_ELEMENTS = (
    "resource_type",
    "resource_type_filter",
    "resource_pattern_type",
    "pattern_type_filter",
    "operation",
    "permission_type",
)


def _check_acls(rows: Iterable[Any]) -> None:
    """Raise Malformed for an element 0, UNKNOWN, which no broker since 2.8 reads."""
    for row in rows:
        if any(getattr(row, name, None) == 0 for name in _ACL_ELEMENTS):
            raise Malformed(f"an ACL has an unknown element: {row}")


class NotServed(Malformed):
    """A version of an API that the release does not serve; a client repeats it on each connection."""


class ApiTable:
    """The APIs of the configured release (`kafka.version`) and error numbering (`error.codes`)."""

    def __init__(self, settings: Settings, features: Features) -> None:
        self._release = settings.kafka_version
        self._bounds_requests = features.dialect.bounds_requests
        # shared by all responses, because the trace retains them
        self._rows = {
            key: ApiVersion(api_key=key, min_version=versions.min, max_version=versions.max)
            for key, versions in ADVERTISED[settings.kafka_version].items()
        }
        self._api_keys = tuple(self._rows.values())
        self._features = features
        self._versions: dict[int, ApiVersionsResponse] = {}
        """The successful responses to ApiVersions, by the lowest level of the features that they list."""
        self._encoded_versions: dict[int, EncodedResponse] = {}
        """The latest responses to ApiVersions, by version: it is the first request of every connection."""
        self.numbering = NUMBERINGS[settings.error_codes]
        """Maps the core's errors to the codes on the wire."""
        self.adapters = {
            (key, version): ADAPTERS[key]
            for key, versions in ACCEPTED[settings.kafka_version].items()
            for version in versions
        }
        """The adapters by API key and version. The broker reads this table directly: calls are expensive here."""

    def read(self, header: RequestHeader, frame: bytes, body: int) -> tuple[int, Message]:
        """Return the version of the response, and the request at offset `body`; Malformed if that fails."""
        key, version = header.api_key, header.api_version
        if (key, version) not in self.adapters:
            if key == API_VERSIONS:
                return version, UNSUPPORTED_VERSION
            self.check(key, version)
        try:
            request = decode(APIS[key].request, version, frame, begin=body, bounded=self._bounds_requests)
            if key in _ACL_ROWS and self._release != RELEASES[0]:
                _check_acls(_ACL_ROWS[key](request))
        except Malformed as error:
            raise Malformed(f"{APIS[key].name} v{version}: {error}") from error
        return version, request

    def check(self, key: int, version: int) -> None:
        """Raise NotServed if the release does not serve this version of an API."""
        if (key, version) not in self.adapters:
            other = other_release(self._release, key, version)
            raise NotServed(f"{APIS[key].name} v{version}: not served by Kafka {self._release}{other}")

    def versions(self, call: Call, request: ApiVersionsRequest, identity: tuple[str, int]) -> ApiVersionsResponse:
        """Return a row for each advertised API; INVALID_REQUEST if the client's name or version is malformed.

        REBOOTSTRAP_REQUIRED if the client expects another `identity`, cluster id and node id: it names both or neither
        (KIP-1242).
        """
        if request is UNSUPPORTED_VERSION:
            row = self._rows[ApiKey.API_VERSIONS]
            return ApiVersionsResponse(error_code=Error.UNSUPPORTED_VERSION, api_keys=(row,))
        software = (request.client_software_name, request.client_software_version)
        is_half_named = (request.cluster_id is None) != (request.node_id == -1)
        if is_half_named or (call.api_version >= SOFTWARE_SINCE and not all(map(_SOFTWARE.fullmatch, software))):
            return ApiVersionsResponse(error_code=Error.INVALID_REQUEST)
        if request.cluster_id is not None and (request.cluster_id, request.node_id) != identity:
            return ApiVersionsResponse(error_code=Error.REBOOTSTRAP_REQUIRED)
        lowest = 0 if call.api_version >= ZERO_FEATURES_SINCE else 1
        response = self._versions.get(lowest)
        if response is None or response.finalized_features_epoch != self._features.epoch:
            response = self._versions[lowest] = self._versions_from(lowest)
        return response

    def _versions_from(self, lowest: int) -> ApiVersionsResponse:
        return ApiVersionsResponse(
            api_keys=self._api_keys,
            supported_features=tuple(
                SupportedFeatureKey(name=name, min_version=levels.min, max_version=levels.max)
                for name, levels in self._features.supported.items()
                if levels.min >= lowest
            ),
            finalized_features_epoch=self._features.epoch,
            finalized_features=tuple(
                FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
                for name, level in self._features.levels.items()
                if level
            ),
        )

    def encoded(self, peer: Connection, call: Call, response: Message) -> bytes:
        """Return the frame of a rendered response. Raises ValueError if it cannot be encoded.

        A connection that repeats requests does not encode an equal one again, and ApiVersions is encoded once for all.
        """
        key, version = call.api_key, call.api_version
        answered = self._encoded_versions.get(version) if key == API_VERSIONS else peer.answered
        frame = None
        if answered is not None and (answered.key, answered.version) == (key, version):
            if answered.message is response:
                return with_correlation_id(answered.frame, call.correlation_id)
            if answered.message == response:
                frame = with_correlation_id(answered.frame, call.correlation_id)
        if frame is None:
            frame = frame_of(call, response)
        if key == API_VERSIONS:
            self._encoded_versions[version] = EncodedResponse(key, version, response, frame)
        else:
            is_kept = peer.latest is not None and len(frame) <= REMEMBERED_MAX
            peer.answered = EncodedResponse(key, version, response, frame) if is_kept else None
        return frame


def frame_of(call: Call, response: Message) -> bytes:
    """Return the frame of a rendered response. Raises ValueError if it cannot be encoded."""
    header = response_header(call.api_key, call.api_version, call.correlation_id)
    return encode_frame(header, response, call.api_version)


def body_size(call: Call, response: Message) -> int:
    """Return the size of a rendered response in bytes, with its length and without its header.

    So `FetchResponse.sizeOf` counts it. Raises ValueError as `frame_of`.
    """
    return len(frame_of(call, response)) - len(response_header(call.api_key, call.api_version, call.correlation_id))
