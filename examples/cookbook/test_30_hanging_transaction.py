"""A transaction that hangs stops every read_committed consumer of its partition, and the lag monitor says nothing.

Nothing above the first record of an undecided transaction is delivered, and `end_offsets` of such a consumer ends there
too (the last stable offset), so its lag is zero. Only the distance to the end of the log shows the stall.

Evidence: https://github.com/softwaremill/klag-exporter/issues/104, https://github.com/dpkp/kafka-python/issues/1707.
Reproduced by: `set_markers(topic, partition, "lost")`: the transaction completes without its marker.
"""

import pytest
from kafka import KafkaConsumer, TopicPartition

pytestmark = pytest.mark.koordinator(topics={"orders": 1})

ORDERS = TopicPartition("orders", 0)


def consumer_of(koordinator, isolation_level):
    config = koordinator.client_config("kafka-python", isolation_level=isolation_level, enable_auto_commit=False)
    consumer = KafkaConsumer(**config)
    consumer.assign([ORDERS])
    return consumer


def lag_below_stable(consumer):
    return consumer.end_offsets([ORDERS])[ORDERS] - consumer.position(ORDERS)


def lag_below_end(consumer, other):
    return other.end_offsets([ORDERS])[ORDERS] - consumer.position(ORDERS)


@pytest.fixture
def stalled(koordinator):
    """Return a consumer that has read everything below a hanging transaction."""
    koordinator.produce("orders", "before")
    koordinator.set_markers("orders", 0, "lost")
    assert koordinator.create_producer("p").init().produce("orders", "hanging").commit().error is None
    koordinator.transaction("p").wait_state("CompleteCommit")
    koordinator.produce("orders", "behind")
    consumer = consumer_of(koordinator, "read_committed")
    assert next(consumer).value == b"before"
    yield consumer
    consumer.close()


def test_the_lag_of_a_read_committed_consumer_hides_a_hanging_transaction(stalled):
    assert lag_below_stable(stalled) == 0


def test_the_distance_to_the_end_of_the_log_shows_it(koordinator, stalled):
    other = consumer_of(koordinator, "read_uncommitted")
    assert lag_below_end(stalled, other) == 2
    other.close()
    with pytest.raises(AssertionError, match=r"orders-0: producer .* has an open transaction"):
        koordinator.assert_no_open_transactions()
