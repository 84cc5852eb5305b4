"""A worker that keeps its first token works until its session ends, which may be in the middle of a rebalance.

A client asks its provider for a token at each login, and the provider must not return one that has expired. The other
members wait for the worker until its session times out.

Evidence: https://github.com/confluentinc/confluent-kafka-python/issues/1485,
https://github.com/dpkp/kafka-python/issues/2205, https://github.com/spring-projects/spring-kafka/issues/2612.
Reproduced by: `hold` on the JoinGroup of a rebalance, `expire_authentication`, and a `token` that has expired.
"""

import time

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.abc import AbstractTokenProvider

pytestmark = pytest.mark.koordinator(security="sasl_plaintext", topics={"orders": 2})

HOUR_S = 3600


class KeepsFirst(AbstractTokenProvider):
    def __init__(self, service):
        self._service = service
        self.remember(service(), time.time() + HOUR_S)

    def remember(self, token, expires):
        self._token, self._expires = token, expires

    async def token(self):
        return self._token


class Renews(KeepsFirst):
    async def token(self):
        if time.time() >= self._expires:
            self.remember(self._service(), time.time() + HOUR_S)
        return self._token


async def work(config):
    consumer = AIOKafkaConsumer("orders", **config)
    try:
        await consumer.start()
        while True:
            await consumer.getmany(timeout_ms=100)
    finally:
        await consumer.stop()


@pytest.fixture
def interrupted(koordinator, start):
    """Return the group of a worker whose token and session expire while it joins again."""
    providers = []

    def interrupted(kind):
        provider = kind(lambda: koordinator.token("olga"))
        providers.append(provider)
        settings = {"group_id": "svc", "client_id": "svc-1", "enable_auto_commit": False}
        access = {"user": "olga", "mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": provider}
        config = koordinator.client_config("aiokafka", **settings, **access)
        start(work, config)
        group = koordinator.group("svc").wait_stable(members=1, all_owned=True)
        with group.hold("JoinGroup", client_id="svc-1") as held:
            group.create_puppet("peer").join()
            held.wait_entered()
            provider.remember(koordinator.token("olga", lifetime=-1), time.time() - 1)
            koordinator.expire_authentication("olga")
        return group

    yield interrupted
    # so that the worker can end
    providers[0].remember(koordinator.token("olga"), time.time() + HOUR_S)


def test_wrong_the_group_loses_the_worker(interrupted):
    group = interrupted(KeepsFirst).wait_state("CompletingRebalance")
    group.expire_session("svc-1")
    group.wait_stable(members=1, all_owned=True).assert_assignment({"peer": {"orders": [0, 1]}})


def test_right_the_worker_completes_the_rebalance(interrupted):
    interrupted(Renews).wait_stable(members=2, all_owned=True).assert_owned_exactly_once()
