"""The registry finds the messages of every API."""

from __future__ import annotations

from marks.cases import case

from koordinator.wire.apis import APIS, REQUEST_KEYS, ApiKey
from koordinator.wire.schema import declaration_of


def test_request_and_response_are_declared_with_the_key_of_their_api() -> None:
    for api in APIS.values():
        request, response = declaration_of(api.request), declaration_of(api.response)
        with case(api.name):
            assert request.key == response.key == api.key
            assert request.versions == response.versions == api.versions


def test_every_api_key_is_registered() -> None:
    assert list(APIS) == list(ApiKey)
    assert list(REQUEST_KEYS.values()) == list(ApiKey)


def test_names_are_those_of_kafkas_schemas() -> None:
    assert {"JoinGroup", "InitProducerId", "OffsetForLeaderEpoch", "ApiVersions"} <= {api.name for api in APIS.values()}
