import mmap

import pytest
from marks.cases import case

from koordinator.wire.apis import APIS, ApiKey
from koordinator.wire.frames import (
    RequestHeader,
    frame,
    read_request_header,
    request_header,
    response_header,
)
from koordinator.wire.primitives import Malformed
from koordinator.wire.schema import declaration_of

VERSIONS = [(api, version) for api in APIS.values() for version in api.versions]
HEARTBEAT_3 = bytes.fromhex("000c 0003 00000007 0001 74")
HEARTBEAT_4 = bytes.fromhex("000c 0004 00000007 0001 74 00")


@pytest.mark.parametrize("client_id", [None, "", "consumer-ü"])
def test_every_request_header_is_read_as_it_was_written(client_id: str | None) -> None:
    for api, version in VERSIONS:
        with case(api.name, version):
            data = request_header(api.key, version, -5, client_id)
            assert read_request_header(data + b"body") == (RequestHeader(api.key, version, -5, client_id), len(data))


def test_every_truncation_of_a_request_header_is_malformed() -> None:
    for api, version in VERSIONS:
        data = request_header(api.key, version, 1, "client")
        for end in range(len(data)):
            with case(api.name, version, "without its end from byte", end), pytest.raises(Malformed):
                read_request_header(data[:end])


def test_request_header_v1_ends_with_the_client_id() -> None:
    assert request_header(ApiKey.HEARTBEAT, 3, 7, "t") == HEARTBEAT_3
    assert read_request_header(HEARTBEAT_3 + b"\0") == (RequestHeader(12, 3, 7, "t"), len(HEARTBEAT_3))


def test_request_header_v2_keeps_the_int16_length_of_the_client_id_and_has_tagged_fields() -> None:
    assert request_header(ApiKey.HEARTBEAT, 4, 7, "t") == HEARTBEAT_4
    assert read_request_header(HEARTBEAT_4 + b"\0") == (RequestHeader(12, 4, 7, "t"), len(HEARTBEAT_4))


def test_unknown_tagged_fields_of_a_request_header_are_skipped() -> None:
    tagged = HEARTBEAT_4[:-1] + bytes.fromhex("02 00 01 61 81 01 02 62 63")
    assert read_request_header(tagged + b"body") == (RequestHeader(12, 4, 7, "t"), len(tagged))


def test_of_a_client_id_that_is_no_utf_8_bytes_are_replaced() -> None:
    header, _ = read_request_header(HEARTBEAT_3[:-1] + b"\xff")
    assert header.client_id is not None
    assert header.client_id.endswith("\N{REPLACEMENT CHARACTER}")


@pytest.mark.parametrize("key", [-1, 4, 9999])
def test_an_unknown_api_closes_the_connection(key: int) -> None:
    data = key.to_bytes(2, signed=True) + HEARTBEAT_3[2:]
    with pytest.raises(Malformed, match=rf"^there is no api {key}$"):
        read_request_header(data)


@pytest.mark.parametrize("version", [-1, 5, 32767])
def test_an_unserved_version_closes_the_connection(version: int) -> None:
    data = HEARTBEAT_3[:2] + version.to_bytes(2, signed=True) + HEARTBEAT_3[4:]
    with pytest.raises(Malformed, match=rf"^Heartbeat is served in the versions 0-4, not {version}$"):
        read_request_header(data)


@pytest.mark.parametrize("version", [-32768, -1, 5, 32767])
def test_kip_511_the_header_of_an_api_versions_that_is_not_served_is_that_of_the_nearest_version(version: int) -> None:
    tags = b"\0" if version > 0 else b""
    data = b"\0\x12" + version.to_bytes(2, signed=True) + HEARTBEAT_3[4:] + tags
    assert read_request_header(data + b"\x05 whatever") == (RequestHeader(18, version, 7, "t"), len(data))
    if tags:
        with pytest.raises(Malformed, match=r"^the header of a ApiVersionsRequest"):
            read_request_header(data[:-1])


@pytest.mark.parametrize("version", range(5))
def test_kip_511_the_answer_to_api_versions_has_header_v0_in_every_version(version: int) -> None:
    assert response_header(ApiKey.API_VERSIONS, version, 7) == b"\0\0\0\7"


@pytest.mark.parametrize("version", [5, 99])
def test_kip_511_an_api_versions_that_is_not_served_can_be_answered(version: int) -> None:
    assert response_header(ApiKey.API_VERSIONS, version, 7) == b"\0\0\0\7"


def test_the_answer_in_a_flexible_version_has_tagged_fields() -> None:
    for api, version in VERSIONS:
        flexible = version in declaration_of(api.response).flexible and api.key != ApiKey.API_VERSIONS
        with case(api.name, version):
            assert response_header(api.key, version, 258) == b"\0\0\1\2" + b"\0" * flexible


def test_request_and_answer_have_the_same_versions() -> None:
    for key, api in APIS.items():
        request, response = declaration_of(api.request), declaration_of(api.response)
        assert request == response
        assert request.key == key == api.key
        assert api.response.__name__ == f"{api.name}Response"
    assert set(APIS) == set(ApiKey)


def test_no_frame_has_2_gib() -> None:
    with mmap.mmap(-1, 2**31) as huge, pytest.raises(ValueError, match="more than a frame can have"):
        frame(b"", huge)  # type: ignore[arg-type]
