"""AddPartitionsToTxn (api key 24), versions 0-5, flexible from 3.

v2 PRODUCER_FENCED | v3 flexible | v4 several transactions in one request, sent by brokers only; verify_only
(KIP-890) | v5 TRANSACTION_ABORTABLE
"""

from ..schema import array, boolean, entity, int16, int32, int64, message, string


@entity
class AddPartitionsToTxnTopic:
    """A topic, with the partitions to add."""

    name: str = string()
    partitions: tuple[int, ...] = array(int32)


@entity
class AddPartitionsToTxnTransaction:
    """One transaction (v4+); with verify_only its partitions are looked up, not added."""

    transactional_id: str = string("4+")
    producer_id: int = int64("4+")
    producer_epoch: int = int16("4+")
    verify_only: bool = boolean("4+")
    topics: tuple[AddPartitionsToTxnTopic, ...] = array(AddPartitionsToTxnTopic, "4+")


@message(key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnRequest:
    """Partitions for the transaction of one producer (v0-3), or for several (v4+)."""

    transactions: tuple[AddPartitionsToTxnTransaction, ...] = array(AddPartitionsToTxnTransaction, "4+")
    v3_and_below_transactional_id: str = string("0-3")
    v3_and_below_producer_id: int = int64("0-3")
    v3_and_below_producer_epoch: int = int16("0-3")
    v3_and_below_topics: tuple[AddPartitionsToTxnTopic, ...] = array(AddPartitionsToTxnTopic, "0-3")


@entity
class AddPartitionsToTxnPartitionResult:
    """The result of one partition."""

    partition_index: int = int32()
    partition_error_code: int = int16()


@entity
class AddPartitionsToTxnTopicResult:
    """The results of a topic's partitions."""

    name: str = string()
    results_by_partition: tuple[AddPartitionsToTxnPartitionResult, ...] = array(AddPartitionsToTxnPartitionResult)


@entity
class AddPartitionsToTxnResult:
    """The results of one transaction (v4+)."""

    transactional_id: str = string("4+")
    topic_results: tuple[AddPartitionsToTxnTopicResult, ...] = array(AddPartitionsToTxnTopicResult, "4+")


@message(key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse:
    """A row for each partition."""

    throttle_time_ms: int = int32()
    error_code: int = int16("4+", ignorable=True)
    results_by_transaction: tuple[AddPartitionsToTxnResult, ...] = array(AddPartitionsToTxnResult, "4+")
    results_by_topic_v3_and_below: tuple[AddPartitionsToTxnTopicResult, ...] = array(
        AddPartitionsToTxnTopicResult, "0-3"
    )
