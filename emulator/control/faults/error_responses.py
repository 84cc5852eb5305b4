"""The places of errors in the responses to requests that a fault rule rejects.

A client without any brokers cannot retry, so Metadata is served, and its response has the error in every topic.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.messages.metadata import MetadataResponse

from .actions import RuleError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from koordinator.wire.apis import Message
    from koordinator.wire.errors import Error

PLACES_OF: Mapping[str, tuple[str, ...]] = {
    "JoinGroup": ("top",),
    "SyncGroup": ("top",),
    "Heartbeat": ("top",),
    "LeaveGroup": ("top", "member"),
    "OffsetCommit": ("partition",),
    "OffsetFetch": ("top", "partition"),
    "OffsetDelete": ("top", "partition"),
    "FindCoordinator": ("top",),
    "DescribeGroups": ("top",),
    "ListGroups": ("top",),
    "DeleteGroups": ("top",),
    "Metadata": ("top",),
    "ListOffsets": ("partition",),
    "Produce": ("partition",),
    "Fetch": ("top",),
    "InitProducerId": ("top",),
    "AddPartitionsToTxn": ("partition",),
    "AddOffsetsToTxn": ("top",),
    "TxnOffsetCommit": ("partition",),
    "EndTxn": ("top",),
    "WriteTxnMarkers": ("partition",),
    "ApiVersions": ("top",),
    "SaslHandshake": ("top",),
    "CreateTopics": ("top",),
    "DeleteTopics": ("top",),
    "DeleteRecords": ("partition",),
    "OffsetForLeaderEpoch": ("partition",),
    "DescribeAcls": ("top",),
    "CreateAcls": ("top",),
    "DeleteAcls": ("top",),
    "DescribeConfigs": ("top",),
    "AlterConfigs": ("top",),
    "AlterReplicaLogDirs": ("partition",),
    "DescribeLogDirs": ("top",),
    "SaslAuthenticate": ("top",),
    "CreatePartitions": ("top",),
    "CreateDelegationToken": ("top",),
    "RenewDelegationToken": ("top",),
    "ExpireDelegationToken": ("top",),
    "DescribeDelegationToken": ("top",),
    "ElectLeaders": ("top", "partition"),
    "IncrementalAlterConfigs": ("top",),
    "AlterPartitionReassignments": ("top", "partition"),
    "ListPartitionReassignments": ("top",),
    "DescribeClientQuotas": ("top",),
    "AlterClientQuotas": ("top",),
    "DescribeUserScramCredentials": ("top",),
    "AlterUserScramCredentials": ("top",),
    "DescribeQuorum": ("top", "partition"),
    "UpdateFeatures": ("top",),
    "DescribeCluster": ("top",),
    "DescribeProducers": ("partition",),
    "UnregisterBroker": ("top",),
    "DescribeTransactions": ("top",),
    "ListTransactions": ("top",),
    "ConsumerGroupHeartbeat": ("top",),
    "ConsumerGroupDescribe": ("top",),
    "ShareGroupHeartbeat": ("top",),
    "ShareGroupDescribe": ("top",),
    "ShareFetch": ("top", "partition"),
    "ShareAcknowledge": ("top", "partition"),
    "InitializeShareGroupState": ("partition",),
    "ReadShareGroupState": ("partition",),
    "WriteShareGroupState": ("partition",),
    "DeleteShareGroupState": ("partition",),
    "ReadShareGroupStateSummary": ("partition",),
    "DescribeShareGroupOffsets": ("top",),
    "AlterShareGroupOffsets": ("top", "partition"),
    "DeleteShareGroupOffsets": ("top", "partition"),
    "StreamsGroupHeartbeat": ("top",),
    "StreamsGroupDescribe": ("top",),
    "StreamsGroupTopologyDescriptionUpdate": ("top",),
    "ListConfigResources": ("top",),
    "DescribeTopicPartitions": ("top",),
    "AddRaftVoter": ("top",),
    "RemoveRaftVoter": ("top",),
}
"""The places of errors in the response to each API, the default first. `top` is the whole response, or each row
that the request names: a group, a topic, a resource."""


def check_place(api: str, at: str | None) -> None:
    """Raise RuleError if the responses to an API have no errors at a place."""
    places = PLACES_OF[api]
    if at is not None and at not in places:
        raise RuleError(f"error at {at!r}: a response to {api} has errors at {' and '.join(places)}")


def is_served_first(api: str) -> bool:
    """Return whether a request is served although a rule adds an error to its response."""
    return api == "Metadata"


def add_topic_errors(response: Message, error: Error) -> Message:
    """Return a Metadata response with an error in every topic."""
    assert isinstance(response, MetadataResponse), "only Metadata is served first"
    topics = tuple(replace(topic, error_code=error, partitions=()) for topic in response.topics)
    return replace(response, topics=topics)
