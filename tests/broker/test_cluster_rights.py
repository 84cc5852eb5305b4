"""What a client may see and do of the cluster: users and brokers, by its rights."""

from __future__ import annotations

import pytest
from brokers.guarded_wire import THE_CLUSTER, GuardedWire, right
from builders.acl_requests import OPERATIONS

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error

REFUSED = Error.CLUSTER_AUTHORIZATION_FAILED


def test_users_are_described_to_clients_that_may_describe_the_cluster() -> None:
    wire = GuardedWire()
    users = [{"name": "nobody"}, {"name": "nobody else"}]
    answer = wire.asked(0, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, users=users)
    assert (answer.error_code, answer.error_message) == (REFUSED, None)
    assert [(row.user, row.error_code) for row in answer.results] == [("", REFUSED)] * 2
    wire.allow(right(THE_CLUSTER, OPERATIONS["Describe"]))
    answer = wire.asked(0, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, users=users)
    assert (answer.error_code, answer.error_message) == (Error.NONE, "")
    assert {row.user: row.error_code for row in answer.results} == {
        "nobody": Error.RESOURCE_NOT_FOUND,
        "nobody else": Error.RESOURCE_NOT_FOUND,
    }


@pytest.mark.parametrize(
    ("release", "text"), [("3.9", ""), ("4.4", "Request UnregisterBroker needs ALTER permission.")]
)
def test_the_refusal_to_unregister_a_broker_has_a_text_since_4_0(release: str, text: str) -> None:
    wire = GuardedWire(kafka_version=release)
    answer = wire.asked(0, ApiKey.UNREGISTER_BROKER, broker_id=77)
    assert (answer.error_code, answer.error_message) == (REFUSED, text)
    wire.allow(right(THE_CLUSTER, OPERATIONS["Alter"]))
    assert wire.asked(0, ApiKey.UNREGISTER_BROKER, broker_id=77).error_code == Error.BROKER_ID_NOT_REGISTERED
