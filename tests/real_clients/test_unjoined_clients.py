"""librdkafka with `group.protocol=consumer` sends a release before 4.0 nothing but lookups: reports tell the remedy."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer

from koordinator import GroupTimeout

if TYPE_CHECKING:
    from koordinator import Cluster

LIMIT_S = 60

pytestmark = pytest.mark.koordinator(topics={"orders": 1}, kafka_version="3.9")


def look_up(cluster: Cluster, protocol: str) -> Consumer:
    """Return a consumer that has the address of its coordinator."""
    options = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "svc", "client.id": "worker"}
    consumer = Consumer(options | {"group.protocol": protocol})
    consumer.subscribe(["orders"])
    end = time.monotonic() + LIMIT_S
    while not any(event.kind == "response" for event in cluster.group("svc").events()):
        assert time.monotonic() < end, "it has not asked"
        consumer.poll(0.1)
    return consumer


def test_a_wait_names_the_client_and_the_release_that_it_needs(koordinator: Cluster) -> None:
    consumer = look_up(koordinator, "consumer")
    text = r"client 'worker' found the coordinator, and sent no request .*librdkafka joins no group before Kafka 4.0"
    with pytest.raises(GroupTimeout, match=text):
        koordinator.group("svc").wait_stable(timeout=0.5)
    consumer.close()


def test_a_wait_does_not_name_a_client_that_has_joined(koordinator: Cluster) -> None:
    consumer = look_up(koordinator, "classic")
    koordinator.group("svc").wait_stable(members=1, timeout=LIMIT_S)
    with pytest.raises(GroupTimeout) as failed:
        koordinator.group("svc").wait_stable(members=2, timeout=0)
    assert "found the coordinator" not in str(failed.value)
    consumer.close()


def test_the_report_of_a_failed_test_names_the_client(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import time

        import pytest
        from confluent_kafka import Consumer

        @pytest.mark.koordinator(topics={"orders": 1}, kafka_version="3.9")
        def test_nothing_arrives(koordinator):
            options = {"bootstrap.servers": koordinator.bootstrap_servers, "group.id": "svc", "client.id": "worker"}
            consumer = Consumer(options | {"group.protocol": "consumer"})
            consumer.subscribe(["orders"])
            end = time.monotonic() + 60
            while not any(event.kind == "response" for event in koordinator.group("svc").events()):
                assert time.monotonic() < end
                consumer.poll(0.1)
            consumer.close()
            assert False
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", timeout=170)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["client 'worker' found the coordinator, and sent no request of the group*Kafka 4.0*"])
