"""A password is changed, and the consumers that are connected work on; the first that has to log in again is lost.

SASL asks for the password at each login alone, which may be hours later. librdkafka goes on trying with the old one.
`set_sasl_credentials` gives it the new one, without a restart.

Evidence: https://github.com/confluentinc/confluent-kafka-dotnet/issues/2102,
https://github.com/confluentinc/librdkafka/pull/4033.
Reproduced by: the administrator's own `alter_user_scram_credentials`; `expire_authentication` for the next login.
"""

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

pytestmark = pytest.mark.koordinator(security="sasl_plaintext", users={"svc": "old"}, topics={"orders": 1})

LIMIT_S = 10

SILENT_S = 1

SCRAM = ScramMechanism.SCRAM_SHA_512


def read_one(consumer, password):
    del password
    message = consumer.poll(SILENT_S)
    return message and message.value()


def read_one_with_the_present_password(consumer, password):
    consumer.set_sasl_credentials("svc", password())
    message = consumer.poll(LIMIT_S)
    return message and message.value()


def change_password(koordinator, new):
    config = koordinator.client_config("confluent-kafka", role="admin", mechanism="SCRAM-SHA-512", log_level=0)
    admin = AdminClient(config)
    change = UserScramCredentialUpsertion("svc", ScramCredentialInfo(SCRAM, 4096), new.encode())
    admin.alter_user_scram_credentials([change])["svc"].result(LIMIT_S)


@pytest.fixture
def consumer(koordinator):
    more = {"mechanism": "SCRAM-SHA-512", "group_id": "svc", "log_level": 0, "fetch_wait_max_ms": 50}
    consumer = Consumer(koordinator.client_config("confluent-kafka", **more))
    consumer.subscribe(["orders"])
    koordinator.produce("orders", "first")
    assert consumer.poll(LIMIT_S) is not None
    yield consumer
    consumer.set_sasl_credentials("svc", "new")  # to leave the group
    consumer.close()


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        pytest.param(read_one, None, id="wrong: the order stays unread"),
        pytest.param(read_one_with_the_present_password, b"third", id="right"),
    ],
)
def test_a_worker_reads_on_after_a_change_of_its_password(koordinator, consumer, read, expected):
    change_password(koordinator, "new")
    koordinator.produce("orders", "second")
    assert consumer.poll(LIMIT_S).value() == b"second"
    koordinator.expire_authentication("svc")
    assert consumer.poll(SILENT_S) is None  # the last Fetch of the old login returns
    koordinator.produce("orders", "third")
    assert read(consumer, lambda: "new") == expected
