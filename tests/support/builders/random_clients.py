"""Random requests of clients that learn their ids from responses: members of both protocols, producers, administrators.

Each request is one that a client may send: its fields are mostly those of the sender's state, and sometimes those of
another member, of an earlier epoch, or of nothing.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from builders.valid_frames import SUBSCRIPTION
from koordinator.wire.errors import Error
from koordinator.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_partitions,
    create_topics,
    delete_groups,
    delete_topics,
    end_txn,
    fetch,
    heartbeat,
    init_producer_id,
    join_group,
    leave_group,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    produce,
    sync_group,
    txn_offset_commit,
)
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    import random
    from uuid import UUID

    from koordinator.wire.apis import Message

GROUPS = ("g", "g", "g", "h")
TOPICS = ("t", "t", "u", "v")
INSTANCES = ("x", "y")
PATTERNS = ("t.*", "u|v", ".*")
KNOWN_MAX = 6
"""Members and producers of each group or id that are remembered."""


@dataclass
class Known:
    """What a client knows of a member: its epoch or generation, its instance id, and its partitions by topic id."""

    member_id: str
    epoch: int = 0
    instance_id: str | None = None
    partitions: tuple[consumer_group_heartbeat.TopicPartitions, ...] = ()


@dataclass
class Producer:
    """What a client knows of a transactional producer."""

    transactional_id: str
    producer_id: int = -1
    epoch: int = -1
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)


class RandomClients:
    """Requests from a random source, and the knowledge gained from their responses."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._members: dict[tuple[str, str], deque[Known]] = {}
        self._producers: deque[Producer] = deque(maxlen=KNOWN_MAX)
        self.topic_ids: deque[UUID] = deque(maxlen=KNOWN_MAX)
        self._ways = [
            *[self._consumer_heartbeat] * 12, *[self._join] * 6, *[self._sync] * 5, *[self._heartbeat] * 3,
            *[self._leave] * 2, *[self._commit] * 3, self._fetch_offsets, self._delete_offsets, self._delete_groups,
            self._describe, *[self._init_producer] * 2, *[self._add_partitions] * 2, self._add_offsets,
            *[self._commit_in_transaction] * 2, *[self._end_transaction] * 2, *[self._produce] * 3, self._fetch,
            self._metadata, self._create_topic, self._delete_topic, self._create_partitions,
        ]  # fmt: skip

    def next(self) -> tuple[Message, int, str | None, int]:
        """Return a request, its version, and the key and type of its coordinator; None without one."""
        made: tuple[Message, int, str | None, int] = self._chance.choice(self._ways)()
        return made

    def learn(self, request: Any, answer: Any) -> None:
        """Learn ids from a response."""
        match request, answer:
            case (
                consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(),
                consumer_group_heartbeat.ConsumerGroupHeartbeatResponse(error_code=0),
            ):
                known = self._known("consumer", request.group_id, answer.member_id or request.member_id)
                known.epoch = answer.member_epoch
                known.instance_id = request.instance_id or known.instance_id
                if answer.assignment is not None:
                    known.partitions = answer.assignment.topic_partitions
                    self.topic_ids.extend(row.topic_id for row in known.partitions)
            case join_group.JoinGroupRequest(), join_group.JoinGroupResponse() if answer.member_id:
                known = self._known("classic", request.group_id, answer.member_id)
                known.epoch, known.instance_id = answer.generation_id, request.group_instance_id
            case init_producer_id.InitProducerIdRequest(), init_producer_id.InitProducerIdResponse(error_code=0):
                if request.transactional_id is not None:
                    self._producers.append(
                        Producer(request.transactional_id, answer.producer_id, answer.producer_epoch)
                    )
            case end_txn.EndTxnRequest(), end_txn.EndTxnResponse(error_code=0) if answer.producer_id >= 0:
                self._producers.append(Producer(request.transactional_id, answer.producer_id, answer.producer_epoch))
            case metadata.MetadataRequest(), metadata.MetadataResponse():
                self.topic_ids.extend(row.topic_id for row in answer.topics if row.error_code == Error.NONE)
            case _:
                pass

    def _known(self, protocol: str, group: str, member_id: str) -> Known:
        members = self._members.setdefault((protocol, group), deque(maxlen=KNOWN_MAX))
        for known in members:
            if known.member_id == member_id:
                return known
        members.append(Known(member_id))
        return members[-1]

    def _member(self, protocol: str, group: str) -> Known | None:
        members = self._members.get((protocol, group))
        return self._chance.choice(members) if members and self._chance.random() < 0.85 else None

    def _epoch(self, epoch: int) -> int:
        return epoch if self._chance.random() < 0.9 else self._chance.choice((epoch - 1, epoch + 1, 0, -1))

    def _instance(self, known: Known | None) -> str | None:
        if known is not None and self._chance.random() < 0.85:
            return known.instance_id
        return self._chance.choice((None, None, *INSTANCES))

    # -- members ---------------------------------------------------------------------------------------------

    def _consumer_heartbeat(self) -> tuple[Message, int, str | None, int]:
        chance, group = self._chance, self._chance.choice(GROUPS)
        known = self._member("consumer", group)
        request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest
        if known is None or chance.random() < 0.15:
            member_id = known.member_id if known is not None and chance.random() < 0.7 else chance.choice("mno")
            joins = request(
                group_id=group, member_id=member_id, member_epoch=0, instance_id=self._instance(known),
                rebalance_timeout_ms=chance.choice((1_000, 30_000)), topic_partitions=(),
                subscribed_topic_names=chance.choice((("t",), ("t", "u"), ("v",), ("missing",), ())),
                subscribed_topic_regex=chance.choice((None, None, None, *PATTERNS)),
                server_assignor=chance.choice((None, "uniform", "range")),
            )  # fmt: skip
            return joins, 1, group, 0
        epoch = self._epoch(known.epoch) if chance.random() < 0.93 else chance.choice((-1, -2))
        names = None if chance.random() < 0.9 else chance.choice((("t",), ("u", "v"), ("t", "v")))
        owned = known.partitions if chance.random() < 0.6 else chance.choice((None, ()))
        return (
            request(
                group_id=group, member_id=known.member_id, member_epoch=epoch, instance_id=self._instance(known),
                subscribed_topic_names=names, topic_partitions=owned,
            ),
            1, group, 0,
        )  # fmt: skip

    def _join(self) -> tuple[Message, int, str | None, int]:
        chance, group = self._chance, self._chance.choice(GROUPS)
        known = self._member("classic", group)
        if known is None and chance.random() < 0.2:
            known = self._member("consumer", group)
        protocols = tuple(
            join_group.JoinGroupRequestProtocol(name=name, metadata=SUBSCRIPTION)
            for name in chance.choice((("range",), ("range",), ("range", "rr")))
        )
        request = join_group.JoinGroupRequest(
            group_id=group, session_timeout_ms=chance.choice((6_000, 10_000, 45_000)),
            rebalance_timeout_ms=chance.choice((1_000, 5_000, 30_000)), protocol_type="consumer",
            member_id="" if known is None else known.member_id, group_instance_id=self._instance(known),
            protocols=protocols,
        )  # fmt: skip
        return request, 9, group, 0

    def _sync(self) -> tuple[Message, int, str | None, int]:
        group = self._chance.choice(GROUPS)
        known = self._member("classic", group) or Known("ghost")
        request = sync_group.SyncGroupRequest(
            group_id=group, generation_id=self._epoch(known.epoch), member_id=known.member_id,
            group_instance_id=self._instance(known), protocol_type="consumer", protocol_name="range",
            assignments=(sync_group.SyncGroupRequestAssignment(member_id=known.member_id, assignment=b"a"),),
        )  # fmt: skip
        return request, 5, group, 0

    def _heartbeat(self) -> tuple[Message, int, str | None, int]:
        group = self._chance.choice(GROUPS)
        known = self._member("classic", group) or Known("ghost")
        request = heartbeat.HeartbeatRequest(
            group_id=group, generation_id=self._epoch(known.epoch), member_id=known.member_id,
            group_instance_id=self._instance(known),
        )  # fmt: skip
        return request, 4, group, 0

    def _leave(self) -> tuple[Message, int, str | None, int]:
        group, protocol = self._chance.choice(GROUPS), self._chance.choice(("classic", "consumer"))
        members = [
            self._member(protocol, group) or Known("", instance_id="x") for _ in range(self._chance.choice((1, 1, 2)))
        ]
        rows = tuple(
            leave_group.MemberIdentity(member_id=each.member_id, group_instance_id=self._instance(each))
            for each in members
        )
        return leave_group.LeaveGroupRequest(group_id=group, members=rows), 5, group, 0

    # -- offsets ---------------------------------------------------------------------------------------------

    def _commit(self) -> tuple[Message, int, str | None, int]:
        chance, group = self._chance, self._chance.choice(GROUPS)
        known = self._member(chance.choice(("classic", "consumer")), group)
        rows = tuple(
            offset_commit.OffsetCommitRequestPartition(
                partition_index=chance.choice((0, 1, 9)), committed_offset=chance.randrange(9), committed_metadata=""
            )
            for _ in range(chance.choice((1, 2)))
        )
        request = offset_commit.OffsetCommitRequest(
            group_id=group, member_id="" if known is None else known.member_id,
            generation_id_or_member_epoch=-1 if known is None else self._epoch(known.epoch),
            group_instance_id=self._instance(known),
            topics=(offset_commit.OffsetCommitRequestTopic(name=chance.choice(TOPICS), partitions=rows),),
        )  # fmt: skip
        return request, 9, group, 0

    def _fetch_offsets(self) -> tuple[Message, int, str | None, int]:
        group = self._chance.choice(GROUPS)
        rows = (offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=None),)
        return offset_fetch.OffsetFetchRequest(groups=rows, require_stable=self._chance.random() < 0.5), 8, group, 0

    def _delete_offsets(self) -> tuple[Message, int, str | None, int]:
        group = self._chance.choice(GROUPS)
        rows = tuple(
            offset_delete.OffsetDeleteRequestPartition(partition_index=at)
            for at in self._chance.choice(((0,), (0, 1), (0, 0)))
        )
        topics = (offset_delete.OffsetDeleteRequestTopic(name=self._chance.choice(TOPICS), partitions=rows),)
        return offset_delete.OffsetDeleteRequest(group_id=group, topics=topics), 0, group, 0

    def _delete_groups(self) -> tuple[Message, int, str | None, int]:
        group = self._chance.choice(GROUPS)
        return delete_groups.DeleteGroupsRequest(groups_names=(group,)), 2, group, 0

    def _describe(self) -> tuple[Message, int, str | None, int]:
        group = self._chance.choice(GROUPS)
        return consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=(group,)), 1, group, 0

    # -- producers -------------------------------------------------------------------------------------------

    def _producer(self) -> Producer:
        if self._producers and self._chance.random() < 0.95:
            return self._producers[-1] if self._chance.random() < 0.6 else self._chance.choice(self._producers)
        return Producer("p", 0, 0)

    def _init_producer(self) -> tuple[Message, int, str | None, int]:
        name, keeps = self._chance.choice(("p", "q", None)), self._chance.random() < 0.2
        known = self._producer() if keeps and name is not None else Producer("")
        request = init_producer_id.InitProducerIdRequest(
            transactional_id=known.transactional_id or name,
            transaction_timeout_ms=self._chance.choice((1_000, 60_000)),
            producer_id=known.producer_id, producer_epoch=known.epoch,
        )  # fmt: skip
        return request, 5, request.transactional_id, 1

    def _add_partitions(self) -> tuple[Message, int, str | None, int]:
        known = self._producer()
        topics = (add_partitions_to_txn.AddPartitionsToTxnTopic(name=self._chance.choice(TOPICS), partitions=(0, 1)),)
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=known.transactional_id, v3_and_below_producer_id=known.producer_id,
            v3_and_below_producer_epoch=known.epoch, v3_and_below_topics=topics,
        )  # fmt: skip
        return request, 3, known.transactional_id, 1

    def _add_offsets(self) -> tuple[Message, int, str | None, int]:
        known = self._producer()
        request = add_offsets_to_txn.AddOffsetsToTxnRequest(
            transactional_id=known.transactional_id, producer_id=known.producer_id, producer_epoch=known.epoch,
            group_id=self._chance.choice(GROUPS),
        )  # fmt: skip
        return request, 4, known.transactional_id, 1

    def _commit_in_transaction(self) -> tuple[Message, int, str | None, int]:
        known, group = self._producer(), self._chance.choice(GROUPS)
        member = self._member(self._chance.choice(("classic", "consumer")), group)
        row = txn_offset_commit.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=self._chance.randrange(9), committed_metadata=""
        )
        topics = (txn_offset_commit.TxnOffsetCommitRequestTopic(name=self._chance.choice(TOPICS), partitions=(row,)),)
        request = txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=known.transactional_id, group_id=group, producer_id=known.producer_id,
            producer_epoch=known.epoch, generation_id_or_member_epoch=-1 if member is None else member.epoch,
            member_id="" if member is None else member.member_id,
            topics=topics,
        )  # fmt: skip
        return request, self._chance.choice((3, 5)), group, 0

    def _end_transaction(self) -> tuple[Message, int, str | None, int]:
        known = self._producer()
        request = end_txn.EndTxnRequest(
            transactional_id=known.transactional_id, producer_id=known.producer_id, producer_epoch=known.epoch,
            committed=self._chance.random() < 0.5,
        )  # fmt: skip
        return request, self._chance.choice((3, 5)), known.transactional_id, 1

    # -- topics and records ----------------------------------------------------------------------------------

    def _produce(self) -> tuple[Message, int, str | None, int]:
        chance, at = self._chance, (self._chance.choice(TOPICS), self._chance.randrange(2))
        known = self._producer() if chance.random() < 0.5 else None
        arguments: dict[str, Any] = {}
        if known is not None and known.producer_id >= 0:
            sequence = known.sequences.get(at, 0)
            known.sequences[at] = sequence + 1
            arguments = {
                "producer_id": known.producer_id, "producer_epoch": known.epoch, "base_sequence": sequence,
                "is_transactional": True,
            }  # fmt: skip
        records = write_batch([Record(timestamp=1_700_000_000_000, value=b"v")], **arguments)
        row = produce.PartitionProduceData(index=at[1], records=records)
        request = produce.ProduceRequest(
            transactional_id=known.transactional_id if arguments and known is not None else None, acks=-1,
            timeout_ms=1_000, topic_data=(produce.TopicProduceData(name=at[0], partition_data=(row,)),),
        )  # fmt: skip
        return request, chance.choice((9, 12)), None, 0

    def _fetch(self) -> tuple[Message, int, str | None, int]:
        chance = self._chance
        row = fetch.FetchPartition(
            partition=chance.randrange(2), fetch_offset=chance.randrange(4), partition_max_bytes=999
        )
        request = fetch.FetchRequest(
            max_wait_ms=chance.choice((0, 500)), min_bytes=1, max_bytes=9_999, isolation_level=chance.randrange(2),
            topics=(fetch.FetchTopic(topic=chance.choice(TOPICS), partitions=(row,)),),
        )  # fmt: skip
        return request, 11, None, 0

    def _metadata(self) -> tuple[Message, int, str | None, int]:
        return metadata.MetadataRequest(topics=None, allow_auto_topic_creation=False), 12, None, 0

    def _create_topic(self) -> tuple[Message, int, str | None, int]:
        row = create_topics.CreatableTopic(name=self._chance.choice(TOPICS), num_partitions=2, replication_factor=1)
        return create_topics.CreateTopicsRequest(topics=(row,)), 7, None, 0

    def _delete_topic(self) -> tuple[Message, int, str | None, int]:
        row = delete_topics.DeleteTopicState(name=self._chance.choice(("u", "v", "v")))
        return delete_topics.DeleteTopicsRequest(topics=(row,), timeout_ms=1_000), 6, None, 0

    def _create_partitions(self) -> tuple[Message, int, str | None, int]:
        row = create_partitions.CreatePartitionsTopic(
            name=self._chance.choice(("t", "u")), count=self._chance.randint(3, 9), assignments=None
        )
        return create_partitions.CreatePartitionsRequest(topics=(row,), timeout_ms=1_000), 3, None, 0
