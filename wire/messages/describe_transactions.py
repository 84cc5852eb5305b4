"""DescribeTransactions (api key 65), version 0, flexible (KIP-664)."""

from ..schema import array, entity, int16, int32, int64, message, string


@message(key=65, versions="0", flexible="0+")
class DescribeTransactionsRequest:
    """A request for the state of these transactional ids."""

    transactional_ids: tuple[str, ...] = array(string)


@entity
class TopicData:
    """A topic, with the partitions in the transaction."""

    topic: str = string()
    partitions: tuple[int, ...] = array(int32)


@entity
class TransactionState:
    """A transactional id; transaction_start_time_ms is -1 before its first transaction."""

    error_code: int = int16()
    transactional_id: str = string()
    transaction_state: str = string()
    transaction_timeout_ms: int = int32()
    transaction_start_time_ms: int = int64()
    producer_id: int = int64()
    producer_epoch: int = int16()
    topics: tuple[TopicData, ...] = array(TopicData)


@message(key=65, versions="0", flexible="0+")
class DescribeTransactionsResponse:
    """A row for each transactional id."""

    throttle_time_ms: int = int32()
    transaction_states: tuple[TransactionState, ...] = array(TransactionState)
