"""A complete request of every API of share groups, each for a group of its own. See `full_requests`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from clients.strict_connection import error_codes

from koordinator.wire.messages import alter_share_group_offsets as altering
from koordinator.wire.messages import delete_share_group_offsets as forgetting
from koordinator.wire.messages import delete_share_group_state as deleting
from koordinator.wire.messages import describe_share_group_offsets as describing
from koordinator.wire.messages import initialize_share_group_state as initializing
from koordinator.wire.messages import read_share_group_state as reading
from koordinator.wire.messages import read_share_group_state_summary as summarizing
from koordinator.wire.messages import share_acknowledge as acknowledging
from koordinator.wire.messages import share_fetch as fetching
from koordinator.wire.messages import write_share_group_state as writing
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.share_group_describe import ShareGroupDescribeRequest
from koordinator.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

if TYPE_CHECKING:
    from builders.full_requests import Asked

SHARE = 2
"""FindCoordinatorRequest's key_type of a share partition."""

ACCEPT = 1


def found(there: Asked, group_id: str) -> str:
    """Return a group, once its coordinators are there."""
    for kind, key in ((0, group_id), (SHARE, f"{group_id}:AAAAAAAAAAAAAAAAAAAAAA:0")):
        asked = FindCoordinatorRequest(key_type=kind, key=key, coordinator_keys=(key,))
        there.until(asked, lambda answer: not any(error_codes(answer)))
    return group_id


def settled(there: Asked) -> tuple[str, str]:
    """Let a member have both partitions, the first from offset 1 on; return group id and member id."""
    group_id, member_id = altered(there), str(uuid4())
    answer = there.until(_heartbeat(there, group_id, member_id), lambda answer: not any(error_codes(answer)))

    def is_assigned(response: Any) -> bool:
        return response.assignment is not None and bool(response.assignment.topic_partitions)

    if not is_assigned(answer):
        there.until(_heartbeat(there, group_id, member_id, answer.member_epoch), is_assigned)
    return group_id, member_id


def stated(there: Asked) -> str:
    """Let a share coordinator have the state of partition 0; return the group id."""
    group_id = found(there, there.name())
    there.until(_initialization(there, group_id), lambda answer: not any(error_codes(answer)))
    return group_id


def altered(there: Asked) -> str:
    """Let an Empty group have a start offset; return its id."""
    group_id = found(there, there.name())
    there.until(_alteration(there, group_id), lambda answer: not any(error_codes(answer)))
    return group_id


def share_group_heartbeat(there: Asked, _: int) -> ShareGroupHeartbeatRequest:
    return _heartbeat(there, found(there, there.name()), str(uuid4()))


def share_group_describe(there: Asked, _: int) -> ShareGroupDescribeRequest:
    return ShareGroupDescribeRequest(group_ids=(settled(there)[0],), include_authorized_operations=True)


def share_fetch(there: Asked, _: int) -> fetching.ShareFetchRequest:
    group_id, member_id = settled(there)
    row = fetching.FetchPartition(partition_index=0)
    return fetching.ShareFetchRequest(
        group_id=group_id,
        member_id=member_id,
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=2_000_000,
        max_records=100,
        batch_size=100,
        share_acquire_mode=1,
        topics=(fetching.FetchTopic(topic_id=there.id, partitions=(row,)),),
        forgotten_topics_data=(fetching.ForgottenTopic(topic_id=there.id, partitions=(1,)),),
    )


def share_acknowledge(there: Asked, _: int) -> acknowledging.ShareAcknowledgeRequest:
    opening = share_fetch(there, 0)
    there.until(
        opening, lambda answer: any(row.acquired_records for each in answer.responses for row in each.partitions)
    )
    batch = acknowledging.AcknowledgementBatch(first_offset=1, last_offset=1, acknowledge_types=(ACCEPT,))
    row = acknowledging.AcknowledgePartition(partition_index=0, acknowledgement_batches=(batch,))
    return acknowledging.ShareAcknowledgeRequest(
        group_id=opening.group_id,
        member_id=opening.member_id,
        share_session_epoch=1,
        topics=(acknowledging.AcknowledgeTopic(topic_id=there.id, partitions=(row,)),),
    )


def initialize_share_group_state(there: Asked, _: int) -> initializing.InitializeShareGroupStateRequest:
    return _initialization(there, found(there, there.name()))


def read_share_group_state(there: Asked, _: int) -> reading.ReadShareGroupStateRequest:
    group_id = stated(there)
    there.succeed(_change(there, group_id))
    rows = (reading.PartitionData(partition=0, leader_epoch=3),)
    topics = (reading.ReadStateData(topic_id=there.id, partitions=rows),)
    return reading.ReadShareGroupStateRequest(group_id=group_id, topics=topics)


def write_share_group_state(there: Asked, _: int) -> writing.WriteShareGroupStateRequest:
    return _change(there, stated(there))


def delete_share_group_state(there: Asked, _: int) -> deleting.DeleteShareGroupStateRequest:
    topics = (deleting.DeleteStateData(topic_id=there.id, partitions=(deleting.PartitionData(partition=0),)),)
    return deleting.DeleteShareGroupStateRequest(group_id=stated(there), topics=topics)


def read_share_group_state_summary(there: Asked, _: int) -> summarizing.ReadShareGroupStateSummaryRequest:
    rows = (summarizing.PartitionData(partition=0, leader_epoch=3),)
    topics = (summarizing.ReadStateSummaryData(topic_id=there.id, partitions=rows),)
    return summarizing.ReadShareGroupStateSummaryRequest(group_id=stated(there), topics=topics)


def describe_share_group_offsets(there: Asked, _: int) -> describing.DescribeShareGroupOffsetsRequest:
    topics = (describing.DescribeShareGroupOffsetsRequestTopic(topic_name=there.t, partitions=(0, 1)),)
    row = describing.DescribeShareGroupOffsetsRequestGroup(group_id=altered(there), topics=topics)
    return describing.DescribeShareGroupOffsetsRequest(groups=(row,))


def alter_share_group_offsets(there: Asked, _: int) -> altering.AlterShareGroupOffsetsRequest:
    return _alteration(there, found(there, there.name()))


def delete_share_group_offsets(there: Asked, _: int) -> forgetting.DeleteShareGroupOffsetsRequest:
    topics = (forgetting.DeleteShareGroupOffsetsRequestTopic(topic_name=there.t),)
    return forgetting.DeleteShareGroupOffsetsRequest(group_id=altered(there), topics=topics)


def _heartbeat(there: Asked, group_id: str, member_id: str, epoch: int = 0) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(
        group_id=group_id, member_id=member_id, member_epoch=epoch, rack_id="r", subscribed_topic_names=(there.t,)
    )


def _initialization(there: Asked, group_id: str) -> initializing.InitializeShareGroupStateRequest:
    rows = (initializing.PartitionData(partition=0, state_epoch=2, start_offset=1),)
    topics = (initializing.InitializeStateData(topic_id=there.id, partitions=rows),)
    return initializing.InitializeShareGroupStateRequest(group_id=group_id, topics=topics)


def _change(there: Asked, group_id: str) -> writing.WriteShareGroupStateRequest:
    batch = writing.StateBatch(first_offset=1, last_offset=2, delivery_state=2, delivery_count=1)
    row = writing.PartitionData(
        partition=0,
        state_epoch=2,
        leader_epoch=1,
        start_offset=1,
        delivery_complete_count=2,
        state_batches=(batch,),
    )
    topics = (writing.WriteStateData(topic_id=there.id, partitions=(row,)),)
    return writing.WriteShareGroupStateRequest(group_id=group_id, topics=topics)


def _alteration(there: Asked, group_id: str) -> altering.AlterShareGroupOffsetsRequest:
    rows = (altering.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=1),)
    topics = (altering.AlterShareGroupOffsetsRequestTopic(topic_name=there.t, partitions=rows),)
    return altering.AlterShareGroupOffsetsRequest(group_id=group_id, topics=topics)


REQUESTS = (
    share_group_heartbeat,
    share_group_describe,
    share_fetch,
    share_acknowledge,
    initialize_share_group_state,
    read_share_group_state,
    write_share_group_state,
    delete_share_group_state,
    read_share_group_state_summary,
    describe_share_group_offsets,
    alter_share_group_offsets,
    delete_share_group_offsets,
)
