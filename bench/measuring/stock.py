"""The sample messages in stock Construct, as its manual suggests.

They parse into Containers and build from them, which is less work than dataclasses. Interpreted, which is Construct's
default; its compiler neither compiles prefixed strings nor checks lengths.
"""

from __future__ import annotations

from typing import Any

from construct import (
    Bytes,
    ExprAdapter,
    FixedSized,
    Flag,
    FocusedSeq,
    GreedyBytes,
    GreedyString,
    If,
    Int16sb,
    Int32sb,
    Int64sb,
    PascalString,
    Prefixed,
    PrefixedArray,
    Rebuild,
    Struct,
    VarInt,
    this,
)

from koordinator.wire.messages.fetch import FetchResponse
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from koordinator.wire.messages.metadata import MetadataRequest, MetadataResponse
from koordinator.wire.messages.offset_commit import OffsetCommitRequest
from koordinator.wire.messages.sync_group import SyncGroupRequest

Length = ExprAdapter(VarInt, lambda number, _: number - 1, lambda number, _: number + 1)
"""KIP-482: a length or count plus one, as a varint."""

String = PascalString(Length, "utf8")
Binary = Prefixed(Length, GreedyBytes)
Uuid = Bytes(16)


def _nullable(prefixed: Any, size: Any) -> Any:
    """Return a nullable value behind a varint of its size plus one; 0 is None."""
    return FocusedSeq(
        "value",
        "size" / Rebuild(VarInt, lambda context: 0 if context.value is None else size(context.value) + 1),
        "value" / If(this.size > 0, prefixed(this.size - 1)),
    )


NullableString = _nullable(lambda size: FixedSized(size, GreedyString("utf8")), lambda text: len(text.encode()))
NullableBinary = _nullable(Bytes, len)


def _array(of: Any) -> Any:
    return PrefixedArray(Length, of)


def _nullable_array(of: Any) -> Any:
    return _nullable(lambda size: of[size], len)


Tags = PrefixedArray(VarInt, Struct("tag" / VarInt, "data" / Prefixed(VarInt, GreedyBytes)))

_JOIN_GROUP_REQUEST = Struct(
    "group_id" / String,
    "session_timeout_ms" / Int32sb,
    "rebalance_timeout_ms" / Int32sb,
    "member_id" / String,
    "group_instance_id" / NullableString,
    "protocol_type" / String,
    "protocols" / _array(Struct("name" / String, "metadata" / Binary, "tags" / Tags)),
    "reason" / NullableString,
    "tags" / Tags,
)

_JOIN_GROUP_RESPONSE = Struct(
    "throttle_time_ms" / Int32sb,
    "error_code" / Int16sb,
    "generation_id" / Int32sb,
    "protocol_type" / NullableString,
    "protocol_name" / NullableString,
    "leader" / String,
    "skip_assignment" / Flag,
    "member_id" / String,
    "members"
    / _array(
        Struct("member_id" / String, "group_instance_id" / NullableString, "metadata" / Binary, "tags" / Tags),
    ),
    "tags" / Tags,
)

_METADATA_REQUEST = Struct(
    "topics" / _nullable_array(Struct("topic_id" / Uuid, "name" / NullableString, "tags" / Tags)),
    "allow_auto_topic_creation" / Flag,
    "include_topic_authorized_operations" / Flag,
    "tags" / Tags,
)

_METADATA_RESPONSE = Struct(
    "throttle_time_ms" / Int32sb,
    "brokers"
    / _array(
        Struct("node_id" / Int32sb, "host" / String, "port" / Int32sb, "rack" / NullableString, "tags" / Tags),
    ),
    "cluster_id" / NullableString,
    "controller_id" / Int32sb,
    "topics"
    / _array(
        Struct(
            "error_code" / Int16sb,
            "name" / NullableString,
            "topic_id" / Uuid,
            "is_internal" / Flag,
            "partitions"
            / _array(
                Struct(
                    "error_code" / Int16sb,
                    "partition_index" / Int32sb,
                    "leader_id" / Int32sb,
                    "leader_epoch" / Int32sb,
                    "replica_nodes" / _array(Int32sb),
                    "isr_nodes" / _array(Int32sb),
                    "offline_replicas" / _array(Int32sb),
                    "tags" / Tags,
                )
            ),
            "topic_authorized_operations" / Int32sb,
            "tags" / Tags,
        )
    ),
    "tags" / Tags,
)

_SYNC_GROUP_REQUEST = Struct(
    "group_id" / String,
    "generation_id" / Int32sb,
    "member_id" / String,
    "group_instance_id" / NullableString,
    "protocol_type" / NullableString,
    "protocol_name" / NullableString,
    "assignments" / _array(Struct("member_id" / String, "assignment" / Binary, "tags" / Tags)),
    "tags" / Tags,
)

_HEARTBEAT_REQUEST = Struct(
    "group_id" / String,
    "generation_id" / Int32sb,
    "member_id" / String,
    "group_instance_id" / NullableString,
    "tags" / Tags,
)

_OFFSET_COMMIT_REQUEST = Struct(
    "group_id" / String,
    "generation_id_or_member_epoch" / Int32sb,
    "member_id" / String,
    "group_instance_id" / NullableString,
    "topics"
    / _array(
        Struct(
            "name" / String,
            "partitions"
            / _array(
                Struct(
                    "partition_index" / Int32sb,
                    "committed_offset" / Int64sb,
                    "committed_leader_epoch" / Int32sb,
                    "committed_metadata" / NullableString,
                    "tags" / Tags,
                )
            ),
            "tags" / Tags,
        )
    ),
    "tags" / Tags,
)

_FETCH_RESPONSE = Struct(
    "throttle_time_ms" / Int32sb,
    "error_code" / Int16sb,
    "session_id" / Int32sb,
    "responses"
    / _array(
        Struct(
            "topic" / String,
            "partitions"
            / _array(
                Struct(
                    "partition_index" / Int32sb,
                    "error_code" / Int16sb,
                    "high_watermark" / Int64sb,
                    "last_stable_offset" / Int64sb,
                    "log_start_offset" / Int64sb,
                    "aborted_transactions"
                    / _nullable_array(Struct("producer_id" / Int64sb, "first_offset" / Int64sb, "tags" / Tags)),
                    "preferred_read_replica" / Int32sb,
                    "records" / NullableBinary,
                    "tags" / Tags,
                )
            ),
            "tags" / Tags,
        )
    ),
    "tags" / Tags,
)

STOCK: dict[type, Any] = {
    JoinGroupRequest: _JOIN_GROUP_REQUEST,
    JoinGroupResponse: _JOIN_GROUP_RESPONSE,
    MetadataRequest: _METADATA_REQUEST,
    MetadataResponse: _METADATA_RESPONSE,
    SyncGroupRequest: _SYNC_GROUP_REQUEST,
    HeartbeatRequest: _HEARTBEAT_REQUEST,
    OffsetCommitRequest: _OFFSET_COMMIT_REQUEST,
    FetchResponse: _FETCH_RESPONSE,
}
"""The struct of each sample's class, in the measured version."""
