"""ListTransactions (api key 66), versions 0-2, flexible (KIP-664).

v1 duration_filter (KIP-994) | v2 transactional_id_pattern (KIP-1152)
"""

from ..schema import array, entity, int16, int32, int64, message, string


@message(key=66, versions="0-2", flexible="0+")
class ListTransactionsRequest:
    """A request for the transactional ids of one coordinator that all filters match; an empty filter matches all."""

    state_filters: tuple[str, ...] = array(string)
    producer_id_filters: tuple[int, ...] = array(int64)
    duration_filter: int = int64("1+", default=-1)
    transactional_id_pattern: str | None = string("2+", nullable="2+", default=None)


@entity
class TransactionState:
    """A transactional id with its state."""

    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


@message(key=66, versions="0-2", flexible="0+")
class ListTransactionsResponse:
    """A row for each transactional id; unknown_state_filters are the requested states that do not exist."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: tuple[str, ...] = array(string)
    transaction_states: tuple[TransactionState, ...] = array(TransactionState)
