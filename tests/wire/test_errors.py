"""The error codes are those of Kafka 4.4, and of the clients that know them."""

from __future__ import annotations

import pytest

from koordinator.wire.errors import Error

kafka_errors = pytest.importorskip("kafka.errors", reason="kafka-python is not installed").kafka_errors

RENAMED = {
    "UNKNOWN": Error.UNKNOWN_SERVER_ERROR,
    "NO_ERROR": Error.NONE,
    "NOT_LEADER_FOR_PARTITION": Error.NOT_LEADER_OR_FOLLOWER,
    "MESSAGE_SIZE_TOO_LARGE": Error.MESSAGE_TOO_LARGE,
    "INVALID_TOPIC": Error.INVALID_TOPIC_EXCEPTION,
    "INVALID_REPLICATION_ASSIGNMENT": Error.INVALID_REPLICA_ASSIGNMENT,
}
"""Errors that kafka-python names differently."""

OF_CLIENT = {code: error.message for code, error in kafka_errors.items() if code is not None}


def test_every_code_from_minus_1_to_136_has_a_name() -> None:
    assert [error.value for error in Error] == list(range(-1, 137))


def test_names_are_those_of_kafka_python() -> None:
    for code, name in OF_CLIENT.items():
        assert RENAMED.get(name, Error(code)) == code
        assert name in (Error(code).name, *RENAMED)


def test_codes_that_follow_those_of_kafka_python_are_those_of_kafka_4_4() -> None:
    # org.apache.kafka.common.protocol.Errors of kafka-clients 4.4.0
    assert {error.name: error.value for error in Error if error > max(OF_CLIENT)} == {
        "INVALID_REGULAR_EXPRESSION": 128,
        "REBOOTSTRAP_REQUIRED": 129,
        "STREAMS_INVALID_TOPOLOGY": 130,
        "STREAMS_INVALID_TOPOLOGY_EPOCH": 131,
        "STREAMS_TOPOLOGY_FENCED": 132,
        "SHARE_SESSION_LIMIT_REACHED": 133,
        "GROUP_DELETION_FAILED": 134,
        "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED": 135,
        "CONTROLLER_ID_NOT_REGISTERED": 136,
    }


def test_the_errors_of_groups_have_the_numbers_of_released_kafka() -> None:
    assert (Error.MEMBER_ID_REQUIRED, Error.GROUP_MAX_SIZE_REACHED, Error.FENCED_INSTANCE_ID) == (79, 81, 82)
