"""A complete request of the APIs of consumer groups (KIP-848). See `full_requests`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from koordinator.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

if TYPE_CHECKING:
    from builders.full_requests import Asked


def consumer_group_heartbeat(there: Asked, _: int) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=there.name(),
        member_id=str(uuid4()),
        member_epoch=0,
        instance_id="i",
        rack_id="r",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=(there.t,),
        server_assignor="range",
        topic_partitions=(),
    )


def consumer_group_describe(there: Asked, _: int) -> ConsumerGroupDescribeRequest:
    return ConsumerGroupDescribeRequest(group_ids=(there.committed(),), include_authorized_operations=True)
