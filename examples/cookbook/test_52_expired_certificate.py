"""A consumer with open connections works on after the brokers' certificate expires; the next start fails.

TLS checks the certificate at the handshake alone. The first new connection fails, perhaps hours later. A health check
needs a connection of its own.

Evidence: https://cwiki.apache.org/confluence/display/KAFKA/KIP-226+-+Dynamic+Broker+Configuration.
Reproduced by: `koordinator.rotate_certificate("expired")`; `rotate_certificate()` ends it.
"""

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient

pytestmark = pytest.mark.koordinator(security="ssl", topics={"orders": 1})

LIMIT_S = 10


def works(koordinator, consumer):
    """Tell whether the consumer that runs still reads."""
    koordinator.produce("orders", "probe")
    return consumer.poll(LIMIT_S) is not None


def connects(koordinator, consumer):
    """Tell whether a new client can connect."""
    del consumer
    admin = AdminClient(koordinator.client_config("confluent-kafka", role="admin", log_level=0))
    try:
        return bool(admin.list_topics(timeout=2).brokers)
    except KafkaException:
        return False


@pytest.fixture
def consumer(koordinator):
    consumer = Consumer(koordinator.client_config("confluent-kafka", group_id="svc", log_level=0))
    consumer.subscribe(["orders"])
    koordinator.produce("orders", "first")
    assert consumer.poll(LIMIT_S) is not None
    yield consumer
    consumer.close()


@pytest.mark.parametrize(
    ("is_healthy", "expected"),
    [
        pytest.param(works, True, id="wrong: the open connection says nothing about the next one"),
        pytest.param(connects, False, id="right"),
    ],
)
def test_a_health_check_notices_an_expired_certificate(koordinator, consumer, is_healthy, expected):
    koordinator.rotate_certificate("expired")
    assert is_healthy(koordinator, consumer) is expected
    koordinator.rotate_certificate()
    assert is_healthy(koordinator, consumer)
