"""A consumer that subscribes to a topic that does not exist is seen to do so."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer

from koordinator import GroupTimeout
from koordinator.emulator.pages.timeline import refused_topics

if TYPE_CHECKING:
    from koordinator import Cluster

LIMIT_S = 60

pytestmark = pytest.mark.koordinator(topics={"orders": 1}, config={"auto.create.topics.enable": False})


def ask_for(cluster: Cluster, topic: str) -> Consumer:
    """Return a consumer that has been told that its topic does not exist."""
    consumer = Consumer(cluster.client_config("confluent-kafka", group_id="svc") | {"client.id": "worker"})
    consumer.subscribe([topic])
    end = time.monotonic() + LIMIT_S
    while not refused_topics(cluster.events()):
        assert time.monotonic() < end, "it has not asked"
        consumer.poll(0.1)
    return consumer


def test_a_wait_for_its_group_names_the_topic_and_the_nearest_one(koordinator: Cluster) -> None:
    consumer = ask_for(koordinator, "order")
    with pytest.raises(GroupTimeout, match="client 'worker' asked for topic 'order', which does not exist; there is"):
        koordinator.group("svc").wait_stable(timeout=0)
    consumer.close()
    (*_, answer) = [each for each in koordinator.events() if each.kind == "response" and each.api == "Metadata"]
    assert (answer.error, answer.body) == (
        "UNKNOWN_TOPIC_OR_PARTITION",
        {"errors": [["order", "UNKNOWN_TOPIC_OR_PARTITION"]]},
    )


def test_a_wait_does_not_name_a_topic_that_has_been_created_since(koordinator: Cluster) -> None:
    consumer = ask_for(koordinator, "late")
    koordinator.create_topic("late")
    with pytest.raises(GroupTimeout) as failed:
        koordinator.group("other").wait_stable(timeout=0)
    assert "which does not exist" not in str(failed.value)
    consumer.close()


def test_the_report_of_a_failed_test_names_the_topic(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import time

        import pytest
        from confluent_kafka import Consumer


        @pytest.mark.koordinator(topics={"orders": 1}, config={"auto.create.topics.enable": False})
        def test_it(koordinator):
            consumer = Consumer(koordinator.client_config("confluent-kafka", group_id="svc") | {"client.id": "worker"})
            consumer.subscribe(["order"])
            end = time.monotonic() + 60
            while time.monotonic() < end and not any("errors" in (each.body or {}) for each in koordinator.events()):
                consumer.poll(0.1)
            consumer.close()
            assert False
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", timeout=170)
    result.stdout.fnmatch_lines(["client 'worker' asked for topic 'order': UNKNOWN_TOPIC_OR_PARTITION"])


def test_metadata_without_an_error_ends_what_a_client_was_told_before() -> None:
    def answer(client: str, *errors: tuple[str, str]) -> dict[str, object]:
        body = {"body": {"errors": [list(each) for each in errors]}} if errors else {}
        return {"kind": "response", "api": "Metadata", "client_id": client, **body}

    unknown = "UNKNOWN_TOPIC_OR_PARTITION"
    told = [answer("a", ("t", unknown)), answer("b", ("u", unknown)), answer("a"), {"kind": "state"}]
    assert refused_topics(told) == [("b", "u", unknown)]
