"""The trace names topics in every version of every API, also in those with topic ids (KIP-516)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from builders import requests
from builders.requests import within
from clients.frame_clients import Wire

from koordinator.emulator.broker.releases import ACCEPTED
from koordinator.emulator.core.data import cluster_topics
from koordinator.wire.apis import APIS
from koordinator.wire.messages import delete_share_group_state as delete_wire
from koordinator.wire.messages import initialize_share_group_state as initialize_wire
from koordinator.wire.messages import read_share_group_state as read_wire
from koordinator.wire.messages import read_share_group_state_summary as summary_wire
from koordinator.wire.messages import share_acknowledge as share_acknowledge_wire
from koordinator.wire.messages import share_fetch as share_fetch_wire
from koordinator.wire.messages import write_share_group_state as write_wire
from koordinator.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from koordinator.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from koordinator.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from koordinator.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from koordinator.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from koordinator.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from koordinator.wire.messages.metadata import MetadataRequest
from koordinator.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from koordinator.wire.messages.share_fetch import ShareFetchRequest
from koordinator.wire.messages.share_group_describe import ShareGroupDescribeRequest
from koordinator.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from koordinator.wire.records import Record, write_batch
from koordinator.wire.schema import fields_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from koordinator.wire.apis import Message
    from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
    from koordinator.wire.messages.fetch import FetchRequest
    from koordinator.wire.messages.offset_commit import (
        OffsetCommitRequest,
    )
    from koordinator.wire.messages.offset_fetch import (
        OffsetFetchRequest,
    )
    from koordinator.wire.messages.produce import ProduceRequest
    from koordinator.wire.messages.txn_offset_commit import (
        TxnOffsetCommitRequest,
    )

BATCH = write_batch([Record(value=b"v")])
RELEASE = "4.4"


def commit(topic_id: UUID, version: int, partition: int = 0) -> OffsetCommitRequest:
    return within(requests.offset_commit("g", {("t", partition): 7}, ids={"t": topic_id}), version)


def transactional_commit(topic_id: UUID, version: int, partition: int = 0) -> TxnOffsetCommitRequest:
    offsets, ids = {("t", partition): 7}, {"t": topic_id}
    return within(requests.txn_offset_commit(("x", 1, 0), "g", offsets, ids=ids), version)


def offset_fetch(topic_id: UUID, version: int) -> OffsetFetchRequest:
    return within(requests.offset_fetch(version, "g", [("t", 0)], ids={"t": topic_id}), version)


def fetch(topic_id: UUID, version: int) -> FetchRequest:
    return within(requests.fetch("t", {0: 0}, max_bytes=200, topic_id=topic_id), version)


def produce(topic_id: UUID, version: int) -> ProduceRequest:
    return within(requests.produce("t", {0: BATCH}, acks=1, timeout_ms=1, topic_id=topic_id), version)


JOINS = requests.consumer_group_heartbeat("c", "m", 0, topics=("t",), owned={}, rebalance_ms=1_000)


def heartbeat(topic_id: UUID, _: int) -> ConsumerGroupHeartbeatRequest:
    return requests.consumer_group_heartbeat("c", "m", 1, owned={topic_id: (0, 1)})


def delete(topic_id: UUID, version: int) -> DeleteTopicsRequest:
    if version < 6:
        return DeleteTopicsRequest(topic_names=("t",))
    return DeleteTopicsRequest(topics=(DeleteTopicState(name=None, topic_id=topic_id),))


def share_fetch(topic_id: UUID, version: int) -> ShareFetchRequest:
    topics = (share_fetch_wire.FetchTopic(topic_id=topic_id, partitions=(share_fetch_wire.FetchPartition(),)),)
    return ShareFetchRequest(group_id="s", member_id=f"m{version}", max_records=1, topics=topics)


def share_acknowledge(topic_id: UUID, version: int) -> ShareAcknowledgeRequest:
    batch = share_acknowledge_wire.AcknowledgementBatch(acknowledge_types=(1,))
    partition = share_acknowledge_wire.AcknowledgePartition(acknowledgement_batches=(batch,))
    topics = (share_acknowledge_wire.AcknowledgeTopic(topic_id=topic_id, partitions=(partition,)),)
    return ShareAcknowledgeRequest(group_id="s", member_id=f"m{version}", share_session_epoch=1, topics=topics)


def state_request(module: ModuleType, request: type[Message], data: str) -> Callable[[UUID, int], Message]:
    """Return a request to a share coordinator about the first partition of a topic."""
    topic: Any = getattr(module, data)
    made: Any = request
    return lambda topic_id, _: made(
        group_id="s", topics=(topic(topic_id=topic_id, partitions=(module.PartitionData(),)),)
    )


REQUESTS: dict[str, Callable[[UUID, int], Message]] = {
    "OffsetCommit": commit,
    "TxnOffsetCommit": transactional_commit,
    "OffsetFetch": offset_fetch,
    "Fetch": fetch,
    "Produce": produce,
    "ConsumerGroupHeartbeat": heartbeat,
    "ConsumerGroupDescribe": lambda *_: ConsumerGroupDescribeRequest(group_ids=("c",)),
    "ShareGroupHeartbeat": lambda *_: ShareGroupHeartbeatRequest(
        group_id="s", member_id="m", subscribed_topic_names=("t",)
    ),
    "ShareGroupDescribe": lambda *_: ShareGroupDescribeRequest(group_ids=("s",)),
    "ShareFetch": share_fetch,
    "ShareAcknowledge": share_acknowledge,
    "InitializeShareGroupState": state_request(
        initialize_wire, initialize_wire.InitializeShareGroupStateRequest, "InitializeStateData"
    ),
    "ReadShareGroupState": state_request(read_wire, read_wire.ReadShareGroupStateRequest, "ReadStateData"),
    "WriteShareGroupState": state_request(write_wire, write_wire.WriteShareGroupStateRequest, "WriteStateData"),
    "DeleteShareGroupState": state_request(delete_wire, delete_wire.DeleteShareGroupStateRequest, "DeleteStateData"),
    "ReadShareGroupStateSummary": state_request(
        summary_wire, summary_wire.ReadShareGroupStateSummaryRequest, "ReadStateSummaryData"
    ),
    "DescribeShareGroupOffsets": lambda *_: DescribeShareGroupOffsetsRequest(
        groups=(DescribeShareGroupOffsetsRequestGroup(group_id="s", topics=None),)
    ),
    "AlterShareGroupOffsets": lambda *_: AlterShareGroupOffsetsRequest(group_id="s"),
    "DeleteShareGroupOffsets": lambda *_: DeleteShareGroupOffsetsRequest(group_id="s"),
    "Metadata": lambda _, version: MetadataRequest(topics=None if version else ()),
    "CreateTopics": lambda *_: CreateTopicsRequest(
        topics=(CreatableTopic(name="t", num_partitions=1, replication_factor=1),)
    ),
    "DeleteTopics": delete,
    "DescribeTopicPartitions": lambda *_: DescribeTopicPartitionsRequest(topics=(TopicRequest(name="t"),)),
}
"""A request for topic t by API, in a version of it."""


def uuids(cls: type[Message]) -> Iterator[str]:
    """Return the fields of a message and its rows that are ids."""
    for name, spec in fields_of(cls).items():
        if isinstance(spec.type, type):
            yield from uuids(spec.type)
        elif "topic_id" in name:
            yield name


def test_every_api_with_topic_ids_has_a_request_here() -> None:
    assert {api.name for api in APIS.values() if any((*uuids(api.request), *uuids(api.response)))} == REQUESTS.keys()


@pytest.fixture
def wire() -> Wire:
    wire = Wire(kafka_version=RELEASE)
    wire.node.cluster.create_topic("other", 1)
    return wire


@pytest.mark.parametrize("api", [api for api in APIS.values() if api.name in REQUESTS], ids=lambda api: api.name)
def test_no_line_has_a_topic_id(wire: Wire, api: Any) -> None:
    topic_id = wire.node.cluster.topics["t"].topic_id
    peer = wire.connect()
    assert wire.ask(peer, JOINS, 0).error_code == 0
    assert wire.ask(peer, produce(topic_id, 3), 3) is not None
    for version in ACCEPTED[RELEASE][api.key]:
        wire.ask(peer, REQUESTS[api.name](topic_id, version), version)
    lines = json.dumps(wire.trace.events())
    assert f'"api": "{api.name}"' in lines
    assert str(topic_id) not in lines


COMMITS = [
    (make, version) for key, make in ((8, commit), (28, transactional_commit)) for version in ACCEPTED[RELEASE][key]
]


@pytest.mark.parametrize(("make", "version"), COMMITS)
def test_a_commit_and_its_refusal_name_the_topic(wire: Wire, make: Callable[..., Message], version: int) -> None:
    topic_id = wire.node.cluster.topics["t"].topic_id
    wire.ask(wire.connect(), make(topic_id, version, partition=99), version)
    request, response = wire.trace.events(group="g")[-2:]
    body: Any = request["body"]
    assert (body["offsets"], response["body"]) == ([["t", 99, 7]], {"refused": [["t", 99, 3]]})


def test_a_consumer_groups_partitions_have_the_names_of_their_topics(wire: Wire) -> None:
    topic_id = wire.node.cluster.topics["t"].topic_id
    peer = wire.connect()
    wire.ask(peer, JOINS, 1)
    wire.ask(peer, heartbeat(topic_id, 1), 1)
    bodies: Any = [line["body"] for line in wire.trace.events(group="c") if "Heartbeat" in str(line.get("api"))]
    assert bodies[1]["assignment"] == {"t": [0, 1, 2, 3]}
    assert bodies[2]["owned"] == {"t": [0, 1]}


def test_a_deleted_topic_keeps_its_name_in_the_trace(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_topics, "DELETED_KEPT", 1)
    topic_id = wire.node.cluster.topics["t"].topic_id
    peer = wire.connect()
    wire.ask(peer, commit(topic_id, 10), 10)
    wire.ask(peer, delete(topic_id, 6), 6)
    wire.ask(peer, commit(topic_id, 10), 10)
    assert str(topic_id) not in json.dumps(wire.trace.events())
    wire.ask(peer, DeleteTopicsRequest(topics=(DeleteTopicState(name="other"),)), 6)
    assert list(wire.node.cluster.topics.deleted.values()) == ["other"]


def test_an_id_that_no_topic_has_had_stays(wire: Wire) -> None:
    nobody = UUID(int=5)
    wire.ask(wire.connect(), commit(nobody, 10), 10)
    request = wire.trace.events(group="g")[0]
    assert request["body"] == {"offsets": [[str(nobody), 0, 7]]}
