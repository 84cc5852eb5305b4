"""Clients of Python connect through TLS and each SASL mechanism, join a group, consume and commit."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from koordinator import Cluster, Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT_S = 20.0

PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")

USERS = {"alice": "alice-secret", "bob": 'b"o\\b,='}


@pytest.fixture(scope="module", params=PROTOCOLS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    users = USERS if request.param.startswith("sasl") else {}
    with Emulator(security=request.param, users=users, topics={"t": 2, "u": 1}) as cluster:
        cluster.produce("t", *(("k", value) for value in "abc"))
        yield cluster


@pytest.fixture(scope="module")
def sasl() -> Iterator[Cluster]:
    with Emulator(security="sasl_plaintext", users=USERS, topics={"t": 1}) as cluster:
        cluster.produce("t", "a", "b", "c")
        yield cluster


def consumed_by_confluent(config: dict[str, Any]) -> list[bytes]:
    consumer = Consumer(config)
    try:
        consumer.subscribe(["t"])
        values, ends = [], time.monotonic() + LIMIT_S
        while len(values) < 3 and time.monotonic() < ends:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                values.append(message.value())
        consumer.commit(asynchronous=False)
        return values
    finally:
        consumer.close()


def consumed_by_kafka_python(config: dict[str, Any]) -> list[bytes]:
    from kafka import KafkaConsumer  # noqa: PLC0415 - it warns as it is imported

    with closing(KafkaConsumer("t", **config)) as consumer:
        # otherwise it joins before it knows the partitions, and may ignore the second join (see docs/clients.md)
        consumer.partitions_for_topic("t")
        values, ends = [], time.monotonic() + LIMIT_S
        while len(values) < 3 and time.monotonic() < ends:
            for records in consumer.poll(timeout_ms=1000).values():
                values += [record.value for record in records]
        consumer.commit()
        return values


async def consumed_by_aiokafka(config: dict[str, Any]) -> list[bytes]:
    async with AIOKafkaConsumer("t", **config) as consumer:
        values = [(await asyncio.wait_for(consumer.getone(), LIMIT_S)).value for _ in range(3)]
        await consumer.commit()
        return values


def check(cluster: Cluster, group: str, values: list[bytes]) -> None:
    assert sorted(values) == [b"a", b"b", b"c"]
    assert sum(cluster.group(group).offsets.values()) == 3


def test_confluent_kafka_joins_a_group_with_the_settings_of_client_config(cluster: Cluster) -> None:
    check(cluster, "c", consumed_by_confluent(cluster.client_config("confluent-kafka", group_id="c")))


def test_confluent_kafka_joins_a_consumer_group_too(cluster: Cluster) -> None:
    config = cluster.client_config("confluent-kafka", group_id="kip848", group_protocol="consumer")
    check(cluster, "kip848", consumed_by_confluent(config))


def test_kafka_python_joins_a_group_with_the_settings_of_client_config(cluster: Cluster) -> None:
    check(cluster, "k", consumed_by_kafka_python(cluster.client_config("kafka-python", group_id="k")))


def test_aiokafka_joins_a_group_with_the_settings_of_client_config(cluster: Cluster) -> None:
    check(cluster, "a", asyncio.run(consumed_by_aiokafka(cluster.client_config("aiokafka", group_id="a"))))


def test_confluent_kafka_produces_and_administers_with_the_settings_of_the_role(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    logger = logging.getLogger("librdkafka")
    producer = Producer(cluster.client_config("confluent-kafka", role="producer", logger=logger))
    producer.produce("u", b"c")
    assert producer.flush(LIMIT_S) == 0
    admin = AdminClient(cluster.client_config("confluent-kafka", role="admin", logger=logger))
    assert set(admin.list_topics(timeout=LIMIT_S).topics) >= {"t", "u"}
    admin.poll(0)
    assert not [record for record in caplog.records if "CONFWARN" in record.getMessage()]


def test_kafka_python_produces_and_administers_with_the_settings_of_the_role(cluster: Cluster) -> None:
    from kafka import KafkaAdminClient, KafkaProducer  # noqa: PLC0415 - it warns as it is imported

    with closing(KafkaProducer(**cluster.client_config("kafka-python", role="producer"))) as producer:
        assert producer.send("u", b"k").get(LIMIT_S).topic == "u"
    with closing(KafkaAdminClient(**cluster.client_config("kafka-python", role="admin"))) as admin:
        assert set(admin.list_topics()) >= {"t", "u"}


def test_aiokafka_produces_and_administers_with_the_settings_of_the_role(cluster: Cluster) -> None:
    async def produced_and_listed() -> set[str]:
        async with AIOKafkaProducer(**cluster.client_config("aiokafka", role="producer")) as producer:
            await asyncio.wait_for(producer.send_and_wait("u", b"a"), LIMIT_S)
        admin = AIOKafkaAdminClient(**cluster.client_config("aiokafka", role="admin"))
        await admin.start()
        try:
            return set(await asyncio.wait_for(admin.list_topics(), LIMIT_S))
        finally:
            await admin.close()

    assert asyncio.run(produced_and_listed()) >= {"t", "u"}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("user", USERS)
def test_each_user_logs_in_by_each_mechanism_of_passwords(sasl: Cluster, mechanism: str, user: str) -> None:
    group = f"{mechanism}-{user}"
    config = sasl.client_config("confluent-kafka", user=user, group_id=f"c-{group}", mechanism=mechanism)
    check(sasl, f"c-{group}", consumed_by_confluent(config))
    config = sasl.client_config("kafka-python", user=user, group_id=f"k-{group}", mechanism=mechanism)
    check(sasl, f"k-{group}", consumed_by_kafka_python(config))
    config = sasl.client_config("aiokafka", user=user, group_id=f"a-{group}", mechanism=mechanism)
    check(sasl, f"a-{group}", asyncio.run(consumed_by_aiokafka(config)))


SIGNED = {
    "sasl.oauthbearer.jwks.endpoint.url": "generated",
    "sasl.oauthbearer.expected.audience": "kafka",
    "sasl.oauthbearer.expected.issuer": "https://tokens.example",
}


@pytest.mark.parametrize("config", [{}, SIGNED], ids=["unsecured", "signed"])
def test_each_client_logs_in_with_tokens(config: dict[str, object]) -> None:
    with Emulator(security="sasl_plaintext", config=config, topics={"t": 1}) as cluster:
        cluster.produce("t", "a", "b", "c")
        own: dict[str, Any] = {"mechanism": "OAUTHBEARER", "user": "olga"}
        check(cluster, "c", consumed_by_confluent(cluster.client_config("confluent-kafka", group_id="c", **own)))
        check(cluster, "k", consumed_by_kafka_python(cluster.client_config("kafka-python", group_id="k", **own)))
        of_aiokafka = cluster.client_config("aiokafka", group_id="a", **own)
        check(cluster, "a", asyncio.run(consumed_by_aiokafka(of_aiokafka)))


def test_each_client_logs_in_with_a_certificate() -> None:
    with Emulator(security="ssl", config={"ssl.client.auth": "required"}, topics={"t": 1}) as cluster:
        cluster.produce("t", "a", "b", "c")
        assert cluster.ca_file is not None
        key = str(Path(cluster.ca_file).with_name("client.pem"))
        own: dict[str, Any] = {"ssl.certificate.location": key, "ssl.key.location": key}
        check(cluster, "c", consumed_by_confluent(cluster.client_config("confluent-kafka", group_id="c") | own))
        own = {"ssl_certfile": key, "ssl_keyfile": key}
        check(cluster, "k", consumed_by_kafka_python(cluster.client_config("kafka-python", group_id="k") | own))
        config: dict[str, Any] = cluster.client_config("aiokafka", group_id="a")
        config["ssl_context"].load_cert_chain(key)
        check(cluster, "a", asyncio.run(consumed_by_aiokafka(config)))
        principals = {event.get("principal") for event in cluster.events() if event.get("api") == "JoinGroup"}
        assert len(principals) == 1
        assert "CN=client" in str(principals)


def test_a_client_makes_unsecured_tokens_of_its_own(sasl: Cluster) -> None:
    own = {"bootstrap.servers": sasl.bootstrap_servers, "security.protocol": "SASL_PLAINTEXT", "group.id": "tokens"}
    config = {
        **own,
        "auto.offset.reset": "earliest",
        "sasl.mechanisms": "OAUTHBEARER",
        "enable.sasl.oauthbearer.unsecure.jwt": True,
        "sasl.oauthbearer.config": "principal=olga lifeSeconds=60",
    }
    check(sasl, "tokens", consumed_by_confluent(config))


def test_a_consumer_goes_on_after_its_session_has_ended() -> None:
    with Emulator(security="sasl_plaintext", config=SIGNED, topics={"t": 1}) as cluster:
        config = cluster.client_config("confluent-kafka", mechanism="OAUTHBEARER", user="olga", group_id="g")
        consumer = Consumer(config | {"error_cb": lambda _: None, "log_level": 0})
        consumer.subscribe(["t"])
        ended = 0
        for number in range(3):
            cluster.produce("t", str(number))
            ends, message = time.monotonic() + LIMIT_S, None
            while message is None and time.monotonic() < ends:
                message = consumer.poll(0.2)
            assert message is not None
            assert message.value() == str(number).encode()
            ended += cluster.expire_authentication("olga")
        consumer.close()
        assert ended >= 2


def test_a_client_authenticates_again_and_notices_nothing() -> None:
    with Emulator(security="sasl_plaintext", topics={"t": 1}, config={"connections.max.reauth.ms": 1_500}) as cluster:
        consumer = Consumer(cluster.client_config("confluent-kafka", group_id="g"))
        consumer.subscribe(["t"])
        ends, before, values = time.monotonic() + LIMIT_S, 0, []
        while time.monotonic() < ends and len(values) < 5:
            handshakes = sum(event.get("api") == "SaslHandshake" for event in cluster.events())
            if handshakes > before:
                before = handshakes
                cluster.produce("t", str(handshakes))
            message = consumer.poll(0.1)
            if message is not None:
                assert message.error() is None
                values.append(message.value())
        consumer.close()
        assert len(values) == 5


def test_a_wrong_password_is_the_clients_error() -> None:
    errors: list[Any] = []
    with Emulator(security="sasl_plaintext") as cluster:
        config = cluster.client_config("confluent-kafka", group_id="g", sasl_password="wrong", error_cb=errors.append)
        consumer = Consumer(config)
        with pytest.raises(KafkaException):
            consumer.list_topics(timeout=2)
        consumer.close()
    assert any("Invalid username or password" in str(error) for error in errors)
