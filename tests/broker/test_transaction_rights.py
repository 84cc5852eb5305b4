"""What a client may do with transactions: to write, to add partitions and to see them, by its rights."""

from __future__ import annotations

from typing import Any

import pytest
from brokers.guarded_wire import THE_CLUSTER, GuardedNodes, GuardedWire, T, right
from builders.acl_requests import (
    ALL,
    DENY,
    LITERAL,
    OPERATIONS,
    PREFIXED,
    TOPIC,
    TRANSACTION,
    TRANSACTIONAL_RECORDS,
)

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error

WRITE, DESCRIBE = OPERATIONS["Write"], OPERATIONS["Describe"]

X = (TRANSACTION, "x", LITERAL)


@pytest.fixture
def nodes() -> GuardedNodes:
    nodes = GuardedNodes()
    assert nodes.coordinator(1, "x", 1)[0] in {Error.NONE, Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
    return nodes


def begun(nodes: GuardedNodes) -> dict[str, Any]:
    """Begin a transaction of x; return its producer."""
    answer = nodes.set_up(4, ApiKey.INIT_PRODUCER_ID, transactional_id="x", transaction_timeout_ms=60_000)
    assert answer.error_code == Error.NONE
    return {"transactional_id": "x", "producer_id": answer.producer_id, "producer_epoch": answer.producer_epoch}


def added(nodes: GuardedNodes, **partitions: list[int]) -> dict[str, list[int]]:
    """Add partitions to a transaction of x; return the errors by topic."""
    producer = {f"v3_and_below_{name}": value for name, value in begun(nodes).items()}
    rows = [{"name": name, "partitions": numbers} for name, numbers in partitions.items()]
    answer = nodes.asked(3, ApiKey.ADD_PARTITIONS_TO_TXN, **producer, v3_and_below_topics=rows)
    return {
        row.name: [each.partition_error_code for each in row.results_by_partition]
        for row in answer.results_by_topic_v3_and_below
    }


def test_partitions_are_added_where_the_client_may_write_the_transactional_id_and_the_topics(
    nodes: GuardedNodes,
) -> None:
    nodes.allow(right(T, WRITE))
    assert added(nodes, t=[0]) == {"t": [Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]}
    nodes.allow(right(X, WRITE))
    assert added(nodes, t=[0, 1]) == {"t": [Error.NONE, Error.NONE]}


def test_beside_a_refused_topic_no_partition_is_added(nodes: GuardedNodes) -> None:
    nodes.allow(right(X, WRITE), right(T, WRITE), right((TOPIC, "nosuch", LITERAL), WRITE))
    assert added(nodes, t=[0, 9], u=[0, 9], nosuch=[0]) == {
        "t": [Error.OPERATION_NOT_ATTEMPTED, Error.UNKNOWN_TOPIC_OR_PARTITION],
        "u": [Error.TOPIC_AUTHORIZATION_FAILED, Error.TOPIC_AUTHORIZATION_FAILED],
        "nosuch": [Error.UNKNOWN_TOPIC_OR_PARTITION],
    }
    assert not nodes.runtime.broker(1).node.transactions.store.transactions["x"].data.partitions


def test_no_client_may_add_a_partition_of_an_internal_topic(nodes: GuardedNodes) -> None:
    nodes.allow(right(X, WRITE), right((TOPIC, "*", LITERAL), WRITE))
    assert added(nodes, __consumer_offsets=[0]) == {"__consumer_offsets": [Error.TOPIC_AUTHORIZATION_FAILED]}


def test_transactional_records_need_the_right_to_write_the_transactional_id(nodes: GuardedNodes) -> None:
    nodes.allow(right(T, WRITE))

    def produced() -> int:
        rows = [{"name": "t", "partition_data": [{"index": 0, "records": TRANSACTIONAL_RECORDS}]}]
        answer = nodes.asked(9, ApiKey.PRODUCE, transactional_id="x", acks=1, timeout_ms=1_000, topic_data=rows)
        return int(answer.responses[0].partition_responses[0].error_code)

    assert produced() == Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    nodes.allow(right(X, WRITE))
    assert produced() not in {Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, Error.TOPIC_AUTHORIZATION_FAILED}


def test_markers_are_for_brokers_and_for_administrators_of_the_cluster(nodes: GuardedNodes) -> None:
    def errors() -> list[int]:
        marker = {"producer_id": 1, "topics": [{"name": "nosuch", "partition_indexes": [0]}]}
        (row,) = nodes.asked(1, ApiKey.WRITE_TXN_MARKERS, markers=[marker]).markers
        return [each.error_code for topic in row.topics for each in topic.partitions]

    nodes.allow(right(THE_CLUSTER, DESCRIBE))
    assert errors() == [Error.CLUSTER_AUTHORIZATION_FAILED]
    nodes.allow(right(THE_CLUSTER, OPERATIONS["Alter"]))
    assert errors() == [Error.UNKNOWN_TOPIC_OR_PARTITION]


# -- idempotent producers ------------------------------------------------------------------------------------


def test_a_right_to_write_all_topics_is_not_covered_by_prefixes() -> None:
    """A prefix `*` is the character, and the other prefix is that of the name that Kafka tries first."""
    wire = GuardedWire()
    denied = (right((TOPIC, prefix, PREFIXED), ALL, DENY) for prefix in ("*", "h"))
    wire.allow(right((TOPIC, "*", LITERAL), WRITE), *denied)
    answer = wire.asked(4, ApiKey.INIT_PRODUCER_ID, transactional_id=None, transaction_timeout_ms=1_000)
    assert answer.error_code == Error.NONE


def test_where_topics_without_acls_are_open_every_producer_may_be_idempotent() -> None:
    wire = GuardedWire(allow_everyone_if_no_acl_found=True)
    wire.allow(right(THE_CLUSTER, WRITE, principal="User:bob"))
    ask = {"transactional_id": None, "transaction_timeout_ms": 1_000}
    assert wire.asked(4, ApiKey.INIT_PRODUCER_ID, **ask).error_code == Error.NONE
    wire.allow(right((TOPIC, "*", LITERAL), WRITE, principal="User:bob"))
    assert wire.asked(4, ApiKey.INIT_PRODUCER_ID, **ask).error_code == Error.CLUSTER_AUTHORIZATION_FAILED
