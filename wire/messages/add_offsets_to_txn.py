"""AddOffsetsToTxn (api key 25), versions 0-4, flexible from 3.

v2 PRODUCER_FENCED | v3 flexible | v4 TRANSACTION_ABORTABLE (KIP-890)
"""

from ..schema import int16, int32, int64, message, string


@message(key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest:
    """A request to add a group's partition of `__consumer_offsets` to a transaction."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


@message(key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse:
    """The result."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
