"""EndTxn (api key 26), versions 0-5, flexible from 3.

v2 PRODUCER_FENCED | v3 flexible | v4 TRANSACTION_ABORTABLE | v5 raises the epoch and answers it (KIP-890)
"""

from ..schema import boolean, int16, int32, int64, message, string


@message(key=26, versions="0-5", flexible="3+")
class EndTxnRequest:
    """A request to commit or abort a transaction."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


@message(key=26, versions="0-5", flexible="3+")
class EndTxnResponse:
    """The result; from v5 on with the identity of the next transaction (-1 with an error)."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64("5+", default=-1, ignorable=True)
    producer_epoch: int = int16("5+", default=-1, ignorable=True)
