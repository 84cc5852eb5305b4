"""Kafka understands every request that our codec writes, and we every response byte, in all common versions.

tests/wire/test_bytes_like_kafka_python.py compares the request bytes with kafka-python's encoder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from brokers.kafka_releases import RELEASES
from builders.full_requests import REQUESTS, Asked
from builders.requests import within
from clients.strict_connection import error_codes, is_closed_upon

from koordinator.wire.apis import APIS, ApiKey
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from brokers.real_kafka import RealKafka

LISTED_ONLY = {(release, ApiKey.PRODUCE, version) for release in ("4.3", "4.4") for version in range(3)}
"""Advertised in ApiVersions for librdkafka's sake, but not served (KAFKA-18659)."""


@pytest.fixture(scope="module", params=RELEASES)
def there(request: pytest.FixtureRequest, release: Callable[[str], RealKafka]) -> Iterator[Asked]:
    kafka = release(request.param)
    with Asked(kafka.address, f"accepted.{request.param}", kafka.release) as asked:
        yield asked


REFUSED: dict[ApiKey, set[int]] = {
    ApiKey.SASL_HANDSHAKE: {Error.ILLEGAL_SASL_STATE},
    ApiKey.SASL_AUTHENTICATE: {Error.ILLEGAL_SASL_STATE},
    ApiKey.ELECT_LEADERS: {Error.ELECTION_NOT_NEEDED},
    ApiKey.ALTER_REPLICA_LOG_DIRS: {Error.LOG_DIR_NOT_FOUND},
    ApiKey.UNREGISTER_BROKER: {Error.BROKER_ID_NOT_REGISTERED},
    ApiKey.DESCRIBE_ACLS: {Error.SECURITY_DISABLED},
    ApiKey.CREATE_ACLS: {Error.SECURITY_DISABLED},
    ApiKey.DELETE_ACLS: {Error.SECURITY_DISABLED},
    ApiKey.CREATE_DELEGATION_TOKEN: {Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED},
    ApiKey.RENEW_DELEGATION_TOKEN: {Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED},
    ApiKey.EXPIRE_DELEGATION_TOKEN: {Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED},
    ApiKey.DESCRIBE_DELEGATION_TOKEN: {Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED},
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: {Error.RESOURCE_NOT_FOUND},
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: {Error.RESOURCE_NOT_FOUND, Error.UNACCEPTABLE_CREDENTIAL},
    ApiKey.ADD_RAFT_VOTER: {Error.UNSUPPORTED_VERSION},
    ApiKey.REMOVE_RAFT_VOTER: {Error.UNSUPPORTED_VERSION},
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: {Error.UNSUPPORTED_VERSION},
}
"""The errors that every version of an API is answered with."""


def expected(there: Asked, key: ApiKey, version: int) -> set[int]:
    """Return the error codes expected in the response, besides NONE."""
    match key, version:
        # v5 and up join as a static member
        case ApiKey.JOIN_GROUP, 4:
            return {Error.MEMBER_ID_REQUIRED}
        # v0 reads offsets from ZooKeeper: there are none, or there is no ZooKeeper
        case ApiKey.OFFSET_FETCH, 0 if there.release.has_kraft:
            return {Error.UNSUPPORTED_VERSION}
        case ApiKey.OFFSET_FETCH, 0:
            return {Error.UNKNOWN_TOPIC_OR_PARTITION}
        case ApiKey.OFFSET_COMMIT, 0 if there.release.has_kraft:
            return {Error.UNSUPPORTED_VERSION}
        # transaction.version is unknown before 4.0
        case ApiKey.UPDATE_FEATURES, _ if there.release.name == "2.8":
            return {Error.INVALID_REQUEST}
        case ApiKey.UPDATE_FEATURES, _ if there.release.name.startswith("3.9"):
            return {Error.INVALID_UPDATE_VERSION}
        # a preview, which has to be enabled
        case ApiKey.CONSUMER_GROUP_HEARTBEAT | ApiKey.CONSUMER_GROUP_DESCRIBE, _ if there.release.name in (
            "2.4",
            "2.8",
            "3.9-old",
            "3.9-new",
        ):
            return {Error.UNSUPPORTED_VERSION}
        case ApiKey.CONSUMER_GROUP_DESCRIBE, _:
            return {Error.GROUP_ID_NOT_FOUND}
        case _:
            return REFUSED.get(key, set())


@pytest.mark.parametrize("key", REQUESTS, ids=lambda key: APIS[key].name)
def test_every_version_is_understood_both_ways(there: Asked, key: ApiKey) -> None:
    for version in there.versions(key):
        request = within(REQUESTS[key](there, version), version)
        if (there.release.name, key, version) in LISTED_ONLY:
            assert is_closed_upon(there.address, request, version)
            continue
        answer = there.ask(request, version)
        assert set(error_codes(answer)) - {Error.NONE} == expected(there, key, version), (version, answer)


def test_there_is_a_request_for_every_api() -> None:
    assert set(REQUESTS) == set(APIS)
