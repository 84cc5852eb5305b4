"""The usual requests of share groups, with placeholders for what a broker has issued."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from exploring.fields.requests import GROUP, IDS, KNOWN, OTHER_GROUP, TOPIC
from koordinator.wire.messages import (
    alter_share_group_offsets,
    describe_share_group_offsets,
    produce,
    read_share_group_state,
    read_share_group_state_summary,
    share_acknowledge,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
    write_share_group_state,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

MEMBERS = ("A", "B")

WAIT_MS = 300
"""The wait of a fetch that gets no record: the one before may still hold the share partition."""


class Next(Enum):
    """The next epoch of a member, or of its share session."""

    def __repr__(self) -> str:
        return self.name

    MEMBER_A = auto()
    MEMBER_B = auto()
    SESSION_A = auto()
    SESSION_B = auto()


MEMBER_EPOCHS: dict[str, Any] = {"A": Next.MEMBER_A, "B": Next.MEMBER_B}
SESSION_EPOCHS: dict[str, Any] = {"A": Next.SESSION_A, "B": Next.SESSION_B}


def beat(chance: random.Random) -> Any:
    member = chance.choice(MEMBERS)
    epoch = chance.choice((MEMBER_EPOCHS[member],) * 4 + (0, -1, 99))
    topics = chance.choice((None, None, (TOPIC,))) if epoch != 0 else (TOPIC,)
    return share_group_heartbeat.ShareGroupHeartbeatRequest(
        group_id=GROUP,
        member_id=member,
        member_epoch=epoch,
        rack_id=chance.choice((None, None, "r")),
        subscribed_topic_names=topics,
    )


def describe(chance: random.Random) -> Any:
    groups = chance.choice(((GROUP,), (GROUP, OTHER_GROUP)))
    return share_group_describe.ShareGroupDescribeRequest(group_ids=groups)


def _batches(chance: random.Random, batch: Any) -> tuple[Any, ...]:
    """Return up to two batches of acknowledgements."""
    found, first = [], chance.choice((0, 0, 0, 1, 2, 4, 7))
    for _ in range(chance.choice((1, 1, 2))):
        last = first + chance.choice((0, 0, 1, 2, 4, 9))
        kinds = (1, 1, 2, 2, 3, 0, 4)
        several = tuple(chance.choice(kinds) for _ in range(first, last + 1))
        types = chance.choice((several, (chance.choice(kinds),)))
        found.append(batch(first_offset=first, last_offset=last, acknowledge_types=types))
        first = last + 1
    return tuple(found)


def fetch(chance: random.Random) -> Any:
    member = chance.choice(MEMBERS)
    epoch = chance.choice((SESSION_EPOCHS[member],) * 6 + (0, -1, 5))
    acknowledges = chance.random() < 0.3
    batches = _batches(chance, share_fetch.AcknowledgementBatch) if acknowledges else ()
    part = share_fetch.FetchPartition(partition_index=0, acknowledgement_batches=batches)
    forgets = chance.random() < 0.05
    gone = share_fetch.ForgottenTopic(topic_id=KNOWN.TOPIC_ID, partitions=(0,))
    return share_fetch.ShareFetchRequest(
        group_id=GROUP,
        member_id=member,
        share_session_epoch=epoch,
        max_wait_ms=WAIT_MS,
        min_bytes=1,
        max_bytes=1 << 20,
        max_records=chance.choice((500, 500, 1, 3)),
        batch_size=chance.choice((500, 4)),
        share_acquire_mode=chance.choice((0, 0, 1)),
        topics=(share_fetch.FetchTopic(topic_id=KNOWN.TOPIC_ID, partitions=(part,)),),
        forgotten_topics_data=(gone,) if forgets else (),
    )


def acknowledge(chance: random.Random) -> Any:
    member = chance.choice(MEMBERS)
    epoch = chance.choice((SESSION_EPOCHS[member],) * 6 + (0, -1))
    batches = _batches(chance, share_acknowledge.AcknowledgementBatch)
    part = share_acknowledge.AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
    return share_acknowledge.ShareAcknowledgeRequest(
        group_id=GROUP,
        member_id=member,
        share_session_epoch=epoch,
        is_renew_ack=chance.random() < 0.3,
        topics=(share_acknowledge.AcknowledgeTopic(topic_id=KNOWN.TOPIC_ID, partitions=(part,)),),
    )


def offsets(chance: random.Random) -> Any:
    topic = describe_share_group_offsets.DescribeShareGroupOffsetsRequestTopic(topic_name=TOPIC, partitions=(0, 1))
    asked = describe_share_group_offsets.DescribeShareGroupOffsetsRequestGroup(
        group_id=chance.choice((GROUP, GROUP, OTHER_GROUP)), topics=chance.choice((None, (topic,)))
    )
    return describe_share_group_offsets.DescribeShareGroupOffsetsRequest(groups=(asked,))


def alter(chance: random.Random) -> Any:
    row = alter_share_group_offsets.AlterShareGroupOffsetsRequestPartition(
        partition_index=0, start_offset=chance.choice((0, 3, 100))
    )
    topic = alter_share_group_offsets.AlterShareGroupOffsetsRequestTopic(topic_name=TOPIC, partitions=(row,))
    return alter_share_group_offsets.AlterShareGroupOffsetsRequest(group_id=GROUP, topics=(topic,))


def read(chance: random.Random) -> Any:
    row = read_share_group_state.PartitionData(partition=0, leader_epoch=chance.choice((0, -1)))
    topic = read_share_group_state.ReadStateData(topic_id=KNOWN.TOPIC_ID, partitions=(row,))
    return read_share_group_state.ReadShareGroupStateRequest(group_id=GROUP, topics=(topic,))


def summary(chance: random.Random) -> Any:
    row = read_share_group_state_summary.PartitionData(partition=chance.choice((0, 1)), leader_epoch=0)
    topic = read_share_group_state_summary.ReadStateSummaryData(topic_id=KNOWN.TOPIC_ID, partitions=(row,))
    return read_share_group_state_summary.ReadShareGroupStateSummaryRequest(group_id=GROUP, topics=(topic,))


def write(chance: random.Random) -> Any:
    """Write the state of partition 1, which no member reads."""
    batch = write_share_group_state.StateBatch(
        first_offset=chance.choice((0, 3)), last_offset=5, delivery_state=chance.choice((0, 2, 4)), delivery_count=1
    )
    row = write_share_group_state.PartitionData(
        partition=1,
        state_epoch=chance.choice((-1, 2, 1 << 20)),
        leader_epoch=0,
        start_offset=chance.choice((-1, 0, 3)),
        delivery_complete_count=chance.choice((-1, 0, 2)),
        state_batches=(batch,),
    )
    topic = write_share_group_state.WriteStateData(topic_id=KNOWN.TOPIC_ID, partitions=(row,))
    return write_share_group_state.WriteShareGroupStateRequest(group_id=GROUP, topics=(topic,))


def produced(_chance: random.Random) -> Any:
    row = produce.PartitionProduceData(index=0, records=KNOWN.PLAIN_BATCH)
    topic = produce.TopicProduceData(name=TOPIC, topic_id=IDS[TOPIC], partition_data=(row,))
    return produce.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=(topic,))


REQUESTS: dict[str, tuple[int, int, Callable[[random.Random], Any]]] = {
    "ShareGroupHeartbeat": (8, 1, beat),
    "ShareGroupDescribe": (2, 1, describe),
    "ShareFetch": (16, 1, fetch),
    "ShareAcknowledge": (16, 1, acknowledge),
    "DescribeShareGroupOffsets": (3, 0, offsets),
    "AlterShareGroupOffsets": (2, 0, alter),
    "ReadShareGroupState": (3, 0, read),
    "ReadShareGroupStateSummary": (3, 0, summary),
    "WriteShareGroupState": (3, 0, write),
    "Produce": (7, 3, produced),
}
"""By API: weight, first explored version, and builder."""

PLAIN = ("Produce", "DescribeShareGroupOffsets")
"""Requests without unusual values: a partition that does not exist takes half a minute to describe."""
