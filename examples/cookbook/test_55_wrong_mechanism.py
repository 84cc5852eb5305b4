"""A worker whose mechanism the cluster does not have takes it for an outage, and waits for an end that never comes.

The broker names its mechanisms (error 33) and closes the connection. aiokafka logs that, and raises the same error as
without a broker. Whether the port is open tells one from the other.

Evidence: https://github.com/birdayz/kaf/issues/105, https://github.com/lectra-tech/kapoeira/issues/13.
Reproduced by: the setting `sasl.enabled.mechanisms`.
"""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaConnectionError

ONE = {"sasl.enabled.mechanisms": "SCRAM-SHA-512"}

pytestmark = pytest.mark.koordinator(security="sasl_plaintext", config=ONE, topics={"orders": 1})


async def take_it_for_an_outage(config):
    consumer = AIOKafkaConsumer("orders", **config)
    try:
        await consumer.start()
    except KafkaConnectionError:
        return "outage"
    finally:
        await consumer.stop()
    return "ready"


async def look_at_the_port(config):
    state = await take_it_for_an_outage(config)
    if state == "outage":
        host, _, port = config["bootstrap_servers"].rpartition(":")
        try:
            _, writer = await asyncio.open_connection(host, int(port))
        except OSError:
            return "outage"
        writer.close()
        return "wrong settings"
    return state


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        pytest.param(take_it_for_an_outage, "outage", id="wrong: the settings stay as they are"),
        pytest.param(look_at_the_port, "wrong settings", id="right"),
    ],
)
def test_a_worker_tells_a_refused_mechanism_from_an_outage(koordinator, start, expected):
    config = koordinator.client_config("aiokafka", group_id="svc", mechanism="PLAIN")
    assert asyncio.run(start(config)) == expected
    offered = koordinator.client_config("aiokafka", group_id="svc", mechanism="SCRAM-SHA-512")
    assert asyncio.run(start(offered)) == "ready"
