"""A test suite on a running Kafka: `--koordinator-backend=kafka`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator import Cluster
from koordinator.handles.kafka_port import KafkaPort

if TYPE_CHECKING:
    import pytest
    from brokers.real_kafka import RealKafka

TESTS = """
import warnings

import pytest
from kafka import KafkaConsumer

@pytest.mark.filterwarnings("ignore")
@pytest.mark.koordinator(topics={"orders": 4})
def test_a_consumer_reads_commits_and_owns_everything(koordinator):
    koordinator.produce("orders", *[(str(number), str(number)) for number in range(10)])
    consumer = KafkaConsumer("orders", **koordinator.client_config("kafka-python", group_id="svc"))
    consumer.partitions_for_topic("orders")
    seen = set()
    while len(seen) < 10:
        for records in consumer.poll(timeout_ms=500).values():
            seen |= {record.value for record in records}
    consumer.commit()
    group = koordinator.group("svc").wait_stable(members=1)
    group.assert_owned_exactly_once(["orders"])
    ends = {("orders", each.partition): each.offset + 1 for each in koordinator.records("orders")}
    group.assert_committed(ends)
    consumer.close()
    group.wait_state("Empty")

@pytest.mark.koordinator(topics={"orders": 1})
def test_the_next_test_begins_with_nothing(koordinator):
    assert koordinator.records("orders") == []
    assert koordinator.group("svc").offsets == {}

@pytest.mark.koordinator_emulator_only
def test_levers(koordinator):
    koordinator.group("svc").events()
"""


def test_the_same_tests_pass_on_the_emulator_and_on_apache_kafka(pytester: pytest.Pytester, kafka: RealKafka) -> None:
    pytester.makepyfile(test_it=TESTS)
    pytester.runpytest_subprocess("-p", "no:cacheprovider", timeout=120).assert_outcomes(passed=3)
    here = ("--koordinator-backend=kafka", f"--koordinator-bootstrap={kafka.bootstrap_servers}")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *here, timeout=120)
    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(["*; skipped as only on the emulator: 1"])
    left = Cluster(KafkaPort(kafka.bootstrap_servers))
    assert left.topic("orders") not in left.topics()
    assert "svc" not in {group.id for group in left.groups()}
