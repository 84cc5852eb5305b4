"""The usual requests of groups and transactions, with placeholders for what a broker has issued."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any
from uuid import UUID

from builders import requests

from koordinator.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    describe_groups,
    describe_producers,
    describe_transactions,
    end_txn,
    find_coordinator,
    heartbeat,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_transactions,
    offset_commit,
    offset_delete,
    offset_fetch,
    produce,
    sync_group,
    txn_offset_commit,
    write_txn_markers,
)
from koordinator.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    write_assignment,
    write_subscription,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Mapping

GROUP, OTHER_GROUP = "g", "h"
TOPIC, UNKNOWN_TOPIC = "t", "nosuch"
UNKNOWN_ID = UUID(int=7)
TRANSACTIONAL_ID, OTHER_ID = "x", "y"
OWN = (GROUP, OTHER_GROUP, TOPIC, UNKNOWN_TOPIC, TRANSACTIONAL_ID, OTHER_ID)
"""Names that are unique on a broker once they have the prefix of a sequence."""

SESSION_MS = 1_800_000
REBALANCE_MS = 600_000
"""Longer than any sequence: a request that is parked stays so until another one ends the wait."""

TRANSACTION_MS = 900_000


class Known(Enum):
    """What a side knows from earlier responses, or makes itself."""

    def __repr__(self) -> str:
        return self.name

    MEMBER = auto()
    FIRST_MEMBER = auto()
    GENERATION = auto()
    PRODUCER_ID = auto()
    PRODUCER_EPOCH = auto()
    TOPIC_ID = auto()
    PLAIN_BATCH = auto()
    IDEMPOTENT_BATCH = auto()
    TRANSACTIONAL_BATCH = auto()
    TRANSACTIONAL_BATCH_OF_NOBODY = auto()
    LONG_TEXT = auto()


SUBSCRIPTION = write_subscription(ConsumerProtocolSubscription(topics=("t",)))
ASSIGNMENT = write_assignment(ConsumerProtocolAssignment())
KNOWN: Any = Known
"""Placeholders, as values of any field."""


def _producer(transactional_id: str = TRANSACTIONAL_ID) -> dict[str, Any]:
    return {
        "transactional_id": transactional_id,
        "producer_id": KNOWN.PRODUCER_ID,
        "producer_epoch": KNOWN.PRODUCER_EPOCH,
    }


def join(chance: random.Random) -> join_group.JoinGroupRequest:
    names = chance.choice((("range",), ("range", "roundrobin")))
    return requests.join_group(
        GROUP,
        chance.choice(("", KNOWN.MEMBER, KNOWN.MEMBER, KNOWN.MEMBER)),
        chance.choice((None, None, "i")),
        session_ms=SESSION_MS,
        rebalance_ms=REBALANCE_MS,
        protocols=[(name, SUBSCRIPTION) for name in names],
        reason=chance.choice((None, "because")),
    )


def sync(chance: random.Random) -> sync_group.SyncGroupRequest:
    instance_id = chance.choice((None, None, None, "i"))
    plan = {KNOWN.MEMBER: ASSIGNMENT}
    return requests.sync_group(GROUP, KNOWN.GENERATION, KNOWN.MEMBER, plan, instance_id, protocol=("consumer", "range"))


def beat(chance: random.Random) -> heartbeat.HeartbeatRequest:
    return heartbeat.HeartbeatRequest(
        group_id=GROUP,
        generation_id=KNOWN.GENERATION,
        member_id=KNOWN.MEMBER,
        group_instance_id=chance.choice((None, None, "i")),
    )


def leave(chance: random.Random) -> leave_group.LeaveGroupRequest:
    who = chance.choice((KNOWN.MEMBER, KNOWN.FIRST_MEMBER, "ghost"))
    row = leave_group.MemberIdentity(
        member_id=who, group_instance_id=chance.choice((None, None, "i")), reason=chance.choice((None, "because"))
    )
    return leave_group.LeaveGroupRequest(group_id=GROUP, member_id=who, members=(row,))


def _topics(chance: random.Random) -> tuple[str, ...]:
    return chance.choice(((TOPIC,), (TOPIC,), (TOPIC,), (TOPIC, UNKNOWN_TOPIC)))


def _partitions(chance: random.Random) -> tuple[int, ...]:
    return chance.choice(((0,), (0,), (1,), (0, 1), (1, 0), (0, 9)))


IDS = {TOPIC: KNOWN.TOPIC_ID, UNKNOWN_TOPIC: UNKNOWN_ID}


def _topic(name: str) -> dict[str, Any]:
    return {"name": name, "topic_id": IDS[name]}


def _offsets(chance: random.Random) -> tuple[dict[int, int], dict[int, int], dict[int, str | None]]:
    """Draw offsets, leader epochs and metadata by partition."""
    drawn = {
        at: (chance.randrange(100), chance.choice((-1, 0)), chance.choice((None, "", "m")))
        for at in _partitions(chance)
    }
    offsets, epochs, metadata = ({at: row[column] for at, row in drawn.items()} for column in range(3))
    return offsets, epochs, metadata


def _of_each(names: Iterable[str], values: Mapping[int, Any]) -> dict[tuple[str, int], Any]:
    return {(name, at): value for name in names for at, value in values.items()}


def commit(chance: random.Random) -> offset_commit.OffsetCommitRequest:
    member = chance.choice((True, False))
    offsets, leader_epoch, metadata = _offsets(chance)
    group = chance.choice((GROUP, GROUP, OTHER_GROUP))
    retention_ms = chance.choice((-1, -1, 3_600_000))
    names = _topics(chance)
    return requests.offset_commit(
        group,
        _of_each(names, offsets),
        KNOWN.GENERATION if member else -1,
        KNOWN.MEMBER if member else "",
        metadata=_of_each(names, metadata),
        leader_epoch=_of_each(names, leader_epoch),
        retention_ms=retention_ms,
        ids=IDS,
    )


def fetch(chance: random.Random) -> offset_fetch.OffsetFetchRequest:
    group, names, partitions = chance.choice((GROUP, OTHER_GROUP)), _topics(chance), _partitions(chance)
    wants_all = chance.random() < 0.2
    old = tuple(offset_fetch.OffsetFetchRequestTopic(name=name, partition_indexes=partitions) for name in names)
    new = tuple(offset_fetch.OffsetFetchRequestTopics(**_topic(name), partition_indexes=partitions) for name in names)
    row = offset_fetch.OffsetFetchRequestGroup(
        group_id=group,
        member_id=chance.choice((None, None, KNOWN.MEMBER)),
        member_epoch=chance.choice((-1, -1, KNOWN.GENERATION)),
        topics=None if wants_all else new,
    )
    return offset_fetch.OffsetFetchRequest(
        group_id=group, topics=old, groups=(row,), require_stable=chance.random() < 0.3
    )


def forget(chance: random.Random) -> offset_delete.OffsetDeleteRequest:
    partitions = _partitions(chance)
    group = chance.choice((GROUP, OTHER_GROUP))
    return requests.offset_delete(group, [(name, at) for name in _topics(chance) for at in partitions])


def describe(chance: random.Random) -> describe_groups.DescribeGroupsRequest:
    return describe_groups.DescribeGroupsRequest(
        groups=chance.choice(((GROUP,), (GROUP, OTHER_GROUP))), include_authorized_operations=chance.random() < 0.3
    )


def listing(chance: random.Random) -> list_groups.ListGroupsRequest:
    return list_groups.ListGroupsRequest(
        states_filter=chance.choice(((), ("Stable",), ("Empty", "Dead"))),
        types_filter=chance.choice(((), ("classic",))),
    )


def delete(chance: random.Random) -> delete_groups.DeleteGroupsRequest:
    return delete_groups.DeleteGroupsRequest(groups_names=chance.choice(((GROUP,), (OTHER_GROUP,), ("nosuch",))))


def find(chance: random.Random) -> find_coordinator.FindCoordinatorRequest:
    key, key_type = chance.choice(((GROUP, 0), (TRANSACTIONAL_ID, 1)))
    return find_coordinator.FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=(key,))


def consumer_beat(chance: random.Random) -> consumer_group_heartbeat.ConsumerGroupHeartbeatRequest:
    is_new = chance.random() < 0.5
    return requests.consumer_group_heartbeat(
        chance.choice((GROUP, OTHER_GROUP, OTHER_GROUP)),
        "m" if is_new else KNOWN.MEMBER,
        0 if is_new else KNOWN.GENERATION,
        chance.choice((None, None, "i")),
        topics=(TOPIC,),
        owned={},
        rebalance_ms=SESSION_MS,
        assignor=chance.choice((None, "range")),
    )


def consumer_describe(chance: random.Random) -> consumer_group_describe.ConsumerGroupDescribeRequest:
    return consumer_group_describe.ConsumerGroupDescribeRequest(
        group_ids=chance.choice(((GROUP,), (GROUP, OTHER_GROUP))), include_authorized_operations=chance.random() < 0.3
    )


def init(chance: random.Random) -> init_producer_id.InitProducerIdRequest:
    continues = chance.random() < 0.3
    return init_producer_id.InitProducerIdRequest(
        transactional_id=chance.choice((TRANSACTIONAL_ID, TRANSACTIONAL_ID, None)),
        transaction_timeout_ms=TRANSACTION_MS,
        producer_id=KNOWN.PRODUCER_ID if continues else -1,
        producer_epoch=KNOWN.PRODUCER_EPOCH if continues else -1,
    )


def add(chance: random.Random) -> add_partitions_to_txn.AddPartitionsToTxnRequest:
    topics = tuple(
        add_partitions_to_txn.AddPartitionsToTxnTopic(name=name, partitions=_partitions(chance))
        for name in _topics(chance)
    )
    row = add_partitions_to_txn.AddPartitionsToTxnTransaction(
        **_producer(), verify_only=chance.random() < 0.5, topics=topics
    )
    return add_partitions_to_txn.AddPartitionsToTxnRequest(
        transactions=(row,),
        v3_and_below_transactional_id=TRANSACTIONAL_ID,
        v3_and_below_producer_id=KNOWN.PRODUCER_ID,
        v3_and_below_producer_epoch=KNOWN.PRODUCER_EPOCH,
        v3_and_below_topics=topics,
    )


def add_offsets(_: random.Random) -> add_offsets_to_txn.AddOffsetsToTxnRequest:
    return add_offsets_to_txn.AddOffsetsToTxnRequest(**_producer(), group_id=GROUP)


def end(chance: random.Random) -> end_txn.EndTxnRequest:
    return end_txn.EndTxnRequest(**_producer(), committed=chance.random() < 0.6)


def commit_in_transaction(chance: random.Random) -> txn_offset_commit.TxnOffsetCommitRequest:
    member = chance.random() < 0.3
    offsets, leader_epoch, metadata = _offsets(chance)
    group = chance.choice((GROUP, OTHER_GROUP))
    names = _topics(chance)
    return requests.txn_offset_commit(
        tuple(_producer().values()),
        group,
        _of_each(names, offsets),
        KNOWN.GENERATION if member else -1,
        KNOWN.MEMBER if member else "",
        metadata=_of_each(names, metadata),
        leader_epoch=_of_each(names, leader_epoch),
        ids=IDS,
    )


def write_markers(chance: random.Random) -> write_txn_markers.WriteTxnMarkersRequest:
    partitions = [(TOPIC, at) for at in _partitions(chance)]
    commit = chance.random() < 0.5
    return requests.write_txn_markers(KNOWN.PRODUCER_ID, KNOWN.PRODUCER_EPOCH, partitions, commit=commit)


def describe_transactional(chance: random.Random) -> describe_transactions.DescribeTransactionsRequest:
    ids = chance.choice(((TRANSACTIONAL_ID,), (TRANSACTIONAL_ID, OTHER_ID)))
    return describe_transactions.DescribeTransactionsRequest(transactional_ids=ids)


def list_transactional(chance: random.Random) -> list_transactions.ListTransactionsRequest:
    return list_transactions.ListTransactionsRequest(
        state_filters=chance.choice(((), ("Ongoing",), ("Empty", "Bogus"))),
        producer_id_filters=chance.choice(((), (KNOWN.PRODUCER_ID,))),
        duration_filter=chance.choice((-1, 0)),
    )


def producers(chance: random.Random) -> describe_producers.DescribeProducersRequest:
    return describe_producers.DescribeProducersRequest(
        topics=tuple(
            describe_producers.TopicRequest(name=name, partition_indexes=_partitions(chance))
            for name in _topics(chance)
        )
    )


def produced(chance: random.Random) -> produce.ProduceRequest:
    kind = chance.choice(
        (
            KNOWN.PLAIN_BATCH,
            KNOWN.IDEMPOTENT_BATCH,
            KNOWN.TRANSACTIONAL_BATCH,
            KNOWN.TRANSACTIONAL_BATCH,
            KNOWN.TRANSACTIONAL_BATCH_OF_NOBODY,
        )
    )
    rows = tuple(produce.PartitionProduceData(index=at, records=kind) for at in _partitions(chance))
    topics = tuple(produce.TopicProduceData(**_topic(name), partition_data=rows) for name in _topics(chance))
    return produce.ProduceRequest(
        transactional_id=chance.choice((TRANSACTIONAL_ID, TRANSACTIONAL_ID, None)),
        acks=chance.choice((-1, -1, -1, 1)),
        timeout_ms=30_000,
        topic_data=topics,
    )


REQUESTS: dict[str, tuple[int, int, Callable[[random.Random], Any]]] = {
    "JoinGroup": (14, 0, join),
    "SyncGroup": (10, 0, sync),
    "Heartbeat": (5, 0, beat),
    "LeaveGroup": (5, 0, leave),
    "OffsetCommit": (14, 1, commit),
    "OffsetFetch": (8, 1, fetch),
    "OffsetDelete": (5, 0, forget),
    "DescribeGroups": (4, 0, describe),
    "ListGroups": (2, 0, listing),
    "DeleteGroups": (3, 0, delete),
    "FindCoordinator": (2, 0, find),
    "ConsumerGroupHeartbeat": (10, 0, consumer_beat),
    "ConsumerGroupDescribe": (4, 0, consumer_describe),
    "InitProducerId": (6, 0, init),
    "AddPartitionsToTxn": (6, 0, add),
    "AddOffsetsToTxn": (5, 0, add_offsets),
    "EndTxn": (5, 0, end),
    "TxnOffsetCommit": (8, 0, commit_in_transaction),
    "WriteTxnMarkers": (3, 0, write_markers),
    "DescribeTransactions": (2, 0, describe_transactional),
    "ListTransactions": (2, 0, list_transactional),
    "DescribeProducers": (2, 0, producers),
    "Produce": (8, 3, produced),
}
"""By API: weight, first explored version, and builder."""
