"""The bytes of the client: versions, headers and invalid responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from koordinator.client.errors import (
    ConnectionLost,
    InvalidResponse,
    NoCommonVersion,
    RequiredVersion,
    SecuredListener,
)
from koordinator.client.protocol import RESPONSE_BYTES_MAX, ClientProtocol
from koordinator.wire import frames
from koordinator.wire.apis import ApiKey
from koordinator.wire.codec import decode, encode
from koordinator.wire.errors import Error
from koordinator.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from koordinator.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

if TYPE_CHECKING:
    from koordinator.wire.apis import Message

BATCH = RequiredVersion(ApiKey.LEAVE_GROUP, 3, "2.4")


def negotiated(**served: tuple[int, int]) -> ClientProtocol:
    """Return the protocol after negotiation with a broker of these versions."""
    rows = tuple(
        ApiVersion(api_key=ApiKey[name], min_version=low, max_version=high) for name, (low, high) in served.items()
    )
    protocol = ClientProtocol("broker:9092", "1.0")
    protocol.start()
    assert protocol.negotiate(ApiVersionsResponse(api_keys=rows)) is None
    return protocol


def request_of(data: bytes) -> tuple[frames.RequestHeader, bytes]:
    header, body = frames.read_request_header(data[4:])
    return header, data[4 + body :]


def response_frame(
    key: ApiKey, version: int, correlation_id: int, message: Message, body_version: int | None = None
) -> bytes:
    body = encode(message, version if body_version is None else body_version)
    return frames.frame(frames.response_header(key, version, correlation_id), body)


def refusal_of(*rows: ApiVersion) -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=Error.UNSUPPORTED_VERSION, api_keys=rows)


def row(low: int, high: int) -> ApiVersion:
    return ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=low, max_version=high)


def test_the_first_request_is_api_versions_in_the_newest_version_with_the_software_name() -> None:
    header, body = request_of(ClientProtocol("b", "1.2").start())
    assert (header.api_key, header.api_version, header.client_id) == (ApiKey.API_VERSIONS, 5, "koordinator")
    request = decode(ApiVersionsRequest, 5, body, exact=True)
    assert (request.client_software_name, request.client_software_version) == ("koordinator", "1.2")


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        pytest.param(refusal_of(row(0, 3)), 3, id="listed, since 2.4"),
        pytest.param(refusal_of(row(0, 2)), 2, id="listed, older"),
        pytest.param(refusal_of(), 0, id="not listed, before 2.4"),
        pytest.param(refusal_of(row(0, 5)), 4, id="listed, but refused"),
    ],
)
def test_kip_511_a_refused_version_of_api_versions_is_read_as_v0_and_an_older_one_is_sent(
    refusal: ApiVersionsResponse, expected: int
) -> None:
    protocol = ClientProtocol("b", "1")
    header, _ = request_of(protocol.start())
    data = response_frame(ApiKey.API_VERSIONS, 5, header.correlation_id, refusal, body_version=0)
    response = protocol.receive_data(data)
    assert response == refusal
    second = protocol.negotiate(response)
    assert second is not None
    header, _ = request_of(second)
    assert header.api_version == expected


def test_negotiation_ends_with_a_broker_that_refuses_every_version_of_api_versions() -> None:
    protocol = ClientProtocol("b", "1")
    protocol.start()
    for _ in range(5):
        assert protocol.negotiate(refusal_of(row(0, 32767))) is not None
    with pytest.raises(InvalidResponse, match=r"b: ApiVersions v0 is refused: UNSUPPORTED_VERSION \(35\)"):
        protocol.negotiate(refusal_of(row(0, 32767)))


def test_another_error_of_api_versions_is_reported() -> None:
    protocol = ClientProtocol("b", "1")
    protocol.start()
    with pytest.raises(InvalidResponse, match=r"b: ApiVersions v5 is refused: INVALID_REQUEST \(42\)"):
        protocol.negotiate(ApiVersionsResponse(error_code=42))


@pytest.mark.parametrize(
    ("theirs", "newest", "expected"), [((0, 5), None, 5), ((0, 3), None, 3), ((2, 99), None, 5), ((0, 5), 4, 4)]
)
def test_the_newest_common_version_is_chosen(theirs: tuple[int, int], newest: int | None, expected: int) -> None:
    assert negotiated(LEAVE_GROUP=theirs).version(BATCH, newest) == expected


@pytest.mark.parametrize(
    ("served", "text"),
    [
        (
            {"LEAVE_GROUP": (0, 2)},
            "LeaveGroup v3 is needed (Apache Kafka 2.4 or newer), broker:9092 has LeaveGroup v0-2",
        ),
        ({}, "LeaveGroup v3 is needed (Apache Kafka 2.4 or newer), broker:9092 does not have LeaveGroup"),
        ({"LEAVE_GROUP": (6, 9)}, "broker:9092 has LeaveGroup v6-9, this client only v3-5"),
        (
            {"LEAVE_GROUP": (4, 2)},
            "LeaveGroup v3 is needed (Apache Kafka 2.4 or newer), broker:9092 does not have LeaveGroup",
        ),
    ],
)
def test_without_a_common_version_the_error_names_the_required_one_and_its_release(
    served: dict[str, tuple[int, int]], text: str
) -> None:
    with pytest.raises(NoCommonVersion) as raised:
        negotiated(**served).version(BATCH)
    assert str(raised.value) == text


def test_a_response_may_arrive_in_any_fragments() -> None:
    protocol = negotiated(LEAVE_GROUP=(0, 5))
    header, _ = request_of(protocol.encode_request(LeaveGroupRequest(group_id="g"), 5))
    data = response_frame(ApiKey.LEAVE_GROUP, 5, header.correlation_id, LeaveGroupResponse(error_code=25))
    for place in range(len(data) - 1):
        assert protocol.receive_data(data[place : place + 1]) is None
    assert protocol.receive_data(data[-1:]) == LeaveGroupResponse(error_code=25)


def test_tagged_fields_in_a_response_header_are_skipped() -> None:
    protocol = negotiated(LEAVE_GROUP=(0, 5))
    header, _ = request_of(protocol.encode_request(LeaveGroupRequest(group_id="g"), 5))
    tagged = header.correlation_id.to_bytes(4, "big") + bytes.fromhex("01 07 02 6162")
    data = frames.frame(tagged, encode(LeaveGroupResponse(), 5))
    assert protocol.receive_data(data) == LeaveGroupResponse()


def test_a_response_to_another_request_is_refused() -> None:
    protocol = negotiated(LEAVE_GROUP=(0, 5))
    header, _ = request_of(protocol.encode_request(LeaveGroupRequest(group_id="g"), 5))
    data = response_frame(ApiKey.LEAVE_GROUP, 5, header.correlation_id + 7, LeaveGroupResponse())
    with pytest.raises(
        InvalidResponse, match=r"^broker:9092: the response to LeaveGroup v5 cannot be read: its correlation id"
    ):
        protocol.receive_data(data)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param((RESPONSE_BYTES_MAX + 1).to_bytes(4, "big"), id="too long"),
        pytest.param(b"\xff\xff\xff\xff", id="negative length"),
        pytest.param(b"\0\0\0\2\0\0", id="shorter than a header"),
        pytest.param(b"\0\0\0\4\0\0\0\2", id="a header without tags"),
        pytest.param(b"\0\0\0\5\0\0\0\2\0", id="no body"),
        pytest.param(b"\0\0\0\x10\0\0\0\2\0" + b"\0\0\0\0\0\0\xff\xff\xff\xff\x0f", id="an absurd count"),
    ],
)
def test_an_invalid_response_is_an_error_of_one_line(data: bytes) -> None:
    protocol = negotiated(LEAVE_GROUP=(0, 5))
    header, _ = request_of(protocol.encode_request(LeaveGroupRequest(group_id="g"), 5))
    assert header.correlation_id == 2
    with pytest.raises(InvalidResponse, match=r"\Abroker:9092: the response to LeaveGroup v5 cannot be read: .*\Z"):
        protocol.receive_data(data)


@pytest.mark.parametrize("first", [0, 1, 3])
def test_a_tls_alert_is_reported_as_a_tls_listener(first: int) -> None:
    alert = b"\x15\x03\x03\x00\x02\x02\x50"
    protocol = ClientProtocol("broker:9092", "1")
    protocol.start()
    assert protocol.receive_data(alert[:first]) is None
    with pytest.raises(SecuredListener) as raised:
        protocol.receive_data(alert[first:])
    assert str(raised.value) == (
        "broker:9092: answers with a TLS alert: this looks like a TLS listener; give its settings by --command-config"
    )


@pytest.mark.parametrize("first", [0, 3, 4])
def test_a_server_of_http_is_named(first: int) -> None:
    data = b"HTTP/1.1 400 Bad Request\r\n\r\n"
    protocol = ClientProtocol("broker:9092", "1")
    protocol.start()
    if first < 4:
        assert protocol.receive_data(data[:first]) is None
        data = data[first:]
    with pytest.raises(InvalidResponse) as raised:
        protocol.receive_data(data)
    assert str(raised.value) == "broker:9092: answers in HTTP: this is no port for Kafka clients"


def test_a_close_before_the_response_is_a_lost_connection_and_within_it_a_truncation() -> None:
    protocol = ClientProtocol("broker:9092", "1")
    protocol.start()
    error: Any = protocol.connection_closed()
    assert isinstance(error, ConnectionLost)
    assert str(error) == "broker:9092: closed the connection without a response to ApiVersions v5"
    protocol.receive_data(b"\0\0\0\x20\0\0")
    error = protocol.connection_closed()
    assert isinstance(error, InvalidResponse)
    assert str(error).endswith("cannot be read: the connection was closed after 6 bytes of it")
