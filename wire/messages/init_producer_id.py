"""InitProducerId (api key 22), versions 0-5, flexible from 2.

v1 response before throttling | v2 flexible | v3 producer_id and producer_epoch, both or neither (42), to
continue an epoch (KIP-360) | v4 PRODUCER_FENCED | v5 TRANSACTION_ABORTABLE (KIP-890).
v6 (two-phase commit, KIP-939) is not stable in any release, and not declared.
"""

from ..schema import int16, int32, int64, message, string


@message(key=22, versions="0-5", flexible="2+")
class InitProducerIdRequest:
    """A request for a producer id; transactional_id is null for a producer that is only idempotent."""

    transactional_id: str | None = string(nullable="0+")
    transaction_timeout_ms: int = int32()
    producer_id: int = int64("3+", default=-1)
    producer_epoch: int = int16("3+", default=-1)


@message(key=22, versions="0-5", flexible="2+")
class InitProducerIdResponse:
    """The producer id (-1 with an error) and its epoch."""

    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
