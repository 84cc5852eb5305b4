"""Refused topic patterns and codecs: clients seldom show the reason, so each node logs it once for each host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from koordinator.wire.messages.produce import ProduceResponse

if TYPE_CHECKING:
    from koordinator.wire.apis import Message


def refusal_of(response: Message) -> str | None:
    """Return why a response refuses a pattern or a codec, with the remedy; None if it refuses none."""
    if isinstance(response, ConsumerGroupHeartbeatResponse):
        return response.error_message if response.error_code == Error.INVALID_REGULAR_EXPRESSION else None
    if isinstance(response, ProduceResponse):
        rows = (row for topic in response.responses for row in topic.partition_responses)
        return next((row.error_message for row in rows if row.error_code == Error.UNSUPPORTED_COMPRESSION_TYPE), None)
    return None
