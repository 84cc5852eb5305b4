"""The records of consumer groups (KIP-848): Kafka 4.3 loads the emulator's, and the emulator loads Kafka's."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from brokers.real_kafka import RealKafka
from clients.groups_command import ask, commit, link

from koordinator import Emulator
from koordinator.client.admin import Admin
from koordinator.client.connection import Address
from koordinator.client.logs import ADMIN_CLIENT_ID, append
from koordinator.emulator.core.data.topic import OFFSETS_TOPIC
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
)
from koordinator.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from koordinator.wire.records import read_batches, read_records, write_batch

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

    from koordinator import Cluster

WAIT_S = 60

SETTINGS = {"group.consumer.assignment.interval.ms": "0", "offsets.topic.num.partitions": "1"}
PLACE = (OFFSETS_TOPIC, 0)

CONFIG = {"kafka.version": "4.4", **SETTINGS}


class Members:
    """Members of one group, which send heartbeats by hand."""

    def __init__(self, bootstrap: str, group_id: str, topic_id: UUID) -> None:
        self._there, self._group_id, self._topic_id = link(bootstrap), group_id, topic_id
        self._epochs: dict[str, int] = {}

    def join(self, member_id: str, instance_id: str | None = None) -> None:
        """Join with a subscription to topic t."""
        self._send(
            member_id,
            instance_id=instance_id,
            rebalance_timeout_ms=300_000,
            subscribed_topic_names=("t",),
            topic_partitions=(),
        )

    def beat(self, member_id: str, *owned: int) -> None:
        """Send a heartbeat, with the owned partitions if there are any."""
        rows = (TopicPartitions(topic_id=self._topic_id, partitions=owned),) if owned else None
        self._send(member_id, topic_partitions=rows)

    def leave(self, member_id: str, instance_id: str | None = None) -> None:
        """Leave; a static member leaves for a while."""
        self._epochs[member_id] = -1 if instance_id is None else -2
        self._send(member_id, instance_id=instance_id)

    def _send(self, member_id: str, **fields: Any) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id, member_id=member_id, member_epoch=self._epochs.get(member_id, 0), **fields
        )
        answer = ask(self._there, request, ApiKey.CONSUMER_GROUP_HEARTBEAT, ConsumerGroupHeartbeatResponse)
        assert answer.error_code == Error.NONE, answer
        self._epochs[member_id] = answer.member_epoch


def play(bootstrap: str, group_id: str, topic_id: UUID) -> None:
    """Leave a group with every kind of member state, and tombstones: gone, revoking, waiting, and away for a while."""
    members = Members(bootstrap, group_id, topic_id)
    members.join("gone")
    members.leave("gone")
    members.join("static", "i1")
    members.beat("static", 0, 1, 2, 3, 4, 5)
    members.join("revoking")
    members.beat("static")
    members.beat("static", *owned_of(bootstrap, group_id, "static"))
    members.beat("revoking")
    members.beat("revoking", *owned_of(bootstrap, group_id, "revoking"))
    members.leave("static", "i1")
    members.join("waiting")
    members.beat("revoking")


def owned_of(bootstrap: str, group_id: str, member_id: str) -> tuple[int, ...]:
    """Return the partitions that a member is to have."""
    (member,) = [each for each in described(bootstrap, group_id).members if each.member_id == member_id]
    return tuple(number for row in member.target_assignment.topic_partitions for number in row.partitions)


def described(bootstrap: str, group_id: str) -> DescribedConsumerGroup:
    """Return all fields of ConsumerGroupDescribe, with members by id."""
    there = link(bootstrap)
    request = ConsumerGroupDescribeRequest(group_ids=(group_id,))
    (group,) = ask(there, request, ApiKey.CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeResponse).groups
    there.close()
    assert isinstance(group, DescribedConsumerGroup)
    assert group.error_code == Error.NONE
    return group


def shown(bootstrap: str, group_id: str) -> tuple[object, ...]:
    """Return a group as values that two brokers can share."""
    group = described(bootstrap, group_id)
    members = sorted(
        (
            *(each.member_id, each.instance_id, each.member_epoch, each.client_id, each.subscribed_topic_names),
            *(_partitions(each.assignment), _partitions(each.target_assignment), each.member_type),
        )
        for each in group.members
    )
    return (group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name, members)


def _partitions(assignment: Any) -> list[tuple[str, list[int]]]:
    return [(row.topic_name, sorted(row.partitions)) for row in assignment.topic_partitions]


def batches(bootstrap: str) -> bytes:
    """Return the batches of `__consumer_offsets`."""
    there = link(bootstrap)
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(topics=(FetchTopic(topic=OFFSETS_TOPIC, partitions=(asked,)),))
    answer = ask(there, request, ApiKey.FETCH, FetchResponse)
    there.close()
    (row,) = answer.responses[0].partitions
    return bytes(row.records or b"")


def topic_id_of(admin: Admin) -> UUID:
    """Return the id of topic t."""
    (topic,) = admin.topics(["t"]).topics
    return topic.topic_id


def use_topic_id(cluster: Cluster, topic_id: UUID, records: bytes) -> None:
    """Give topic t an id, and `__consumer_offsets` its records."""
    commit(cluster.bootstrap_servers, "other", {0: 1})
    document = cluster.snapshot()
    for topic in document["topics"]:
        if topic["topic"] == "t":
            topic["topic_id"] = str(topic_id)
        elif topic["topic"] == OFFSETS_TOPIC:
            (log,) = topic["partitions"]
            last = max(header.last_offset for header, _ in read_batches(records))
            log |= {"batches": base64.b64encode(records).decode(), "start": 0, "end": last + 1}
    cluster.restore(document)


def test_a_restarted_kafka_and_the_emulator_load_each_others_consumer_groups(tmp_path: Path) -> None:
    with RealKafka(tmp_path, settings=SETTINGS) as kafka:
        at, host, port = kafka.bootstrap_servers, *kafka.bootstrap_servers.rsplit(":", 1)
        kafka.create_topic("t", 6)
        commit(at, "other", {0: 1})
        with Admin((Address(host, int(port)),), WAIT_S, "1", ADMIN_CLIENT_ID) as admin:
            topic_id = topic_id_of(admin)
            play(at, "theirs", topic_id)
            of_kafka = shown(at, "theirs")
            with Emulator(topics={"t": 6}, config=CONFIG) as cluster:
                use_topic_id(cluster, topic_id, batches(at))
                assert shown(cluster.bootstrap_servers, "theirs") == of_kafka

                play(cluster.bootstrap_servers, "ours", topic_id)
                of_emulator = shown(cluster.bootstrap_servers, "ours")
                all_records = (read_records(batch) for _, batch in read_batches(batches(cluster.bootstrap_servers)))
                of_ours = ([each for each in some if b"ours" in (each.key or b"")] for some in all_records)
                # a producer's batch begins with offset 0
                written = [write_batch(some) for some in of_ours if some]
                assert append(admin, {PLACE: written}) == {PLACE: None}
        kafka.restart()
        assert shown(at, "ours") == of_emulator
        # the groups differ in their names alone
        assert of_emulator == of_kafka
