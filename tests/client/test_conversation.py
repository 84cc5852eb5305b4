"""The bytes of the client: versions, headers, and answers that are none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from koordinator.client.conversation import ANSWER_MAX, Conversation
from koordinator.client.problems import BadAnswer, Lost, Need, Secured, VersionMissing
from koordinator.wire import headers
from koordinator.wire.apis import ApiKey
from koordinator.wire.codec import decode, encode
from koordinator.wire.errors import Error
from koordinator.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from koordinator.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

if TYPE_CHECKING:
    from koordinator.wire.apis import Message

BATCH = Need(ApiKey.LEAVE_GROUP, 3, "2.4")


def talk(**served: tuple[int, int]) -> Conversation:
    """A conversation with a broker that has these versions."""
    rows = tuple(
        ApiVersion(api_key=ApiKey[name], min_version=low, max_version=high) for name, (low, high) in served.items()
    )
    conversation = Conversation("broker:9092", "1.0")
    conversation.greeting()
    assert conversation.greeted(ApiVersionsResponse(api_keys=rows)) is None
    return conversation


def asked(data: bytes) -> tuple[headers.RequestHeader, bytes]:
    header, body = headers.read_request_header(data[4:])
    return header, data[4 + body :]


def answered(
    key: ApiKey, version: int, correlation_id: int, message: Message, body_version: int | None = None
) -> bytes:
    body = encode(message, version if body_version is None else body_version)
    return headers.frame(headers.response_header(key, version, correlation_id), body)


def refused(*rows: ApiVersion) -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=Error.UNSUPPORTED_VERSION, api_keys=rows)


def row(low: int, high: int) -> ApiVersion:
    return ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=low, max_version=high)


def test_the_greeting_is_api_versions_in_our_newest_version_and_names_the_software() -> None:
    header, body = asked(Conversation("b", "1.2").greeting())
    assert (header.api_key, header.api_version, header.client_id) == (ApiKey.API_VERSIONS, 4, "koordinator")
    request = decode(ApiVersionsRequest, 4, body, exact=True)
    assert (request.client_software_name, request.client_software_version) == ("koordinator", "1.2")


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        pytest.param(refused(row(0, 3)), 3, id="listed, since 2.4"),
        pytest.param(refused(row(0, 2)), 2, id="listed, older"),
        pytest.param(refused(), 0, id="not listed, before 2.4"),
        pytest.param(refused(row(0, 4)), 3, id="listed, but refused all the same"),
    ],
)
def test_kip_511_a_refused_api_versions_is_retried_in_an_older_version(
    refusal: ApiVersionsResponse, expected: int
) -> None:
    conversation = Conversation("b", "1")
    header, _ = asked(conversation.greeting())
    data = answered(ApiKey.API_VERSIONS, 4, header.correlation_id, refusal, body_version=0)
    answer = conversation.received(data)
    assert answer == refusal
    again = conversation.greeted(answer)
    assert again is not None
    header, _ = asked(again)
    assert header.api_version == expected


def test_a_broker_that_refuses_every_version_of_api_versions_is_not_asked_for_ever() -> None:
    conversation = Conversation("b", "1")
    conversation.greeting()
    for _ in range(4):
        assert conversation.greeted(refused(row(0, 32767))) is not None
    with pytest.raises(BadAnswer, match=r"b: ApiVersions v0 is refused: UNSUPPORTED_VERSION \(35\)"):
        conversation.greeted(refused(row(0, 32767)))


def test_a_refused_api_versions_is_reported() -> None:
    conversation = Conversation("b", "1")
    conversation.greeting()
    with pytest.raises(BadAnswer, match=r"b: ApiVersions v4 is refused: INVALID_REQUEST \(42\)"):
        conversation.greeted(ApiVersionsResponse(error_code=42))


@pytest.mark.parametrize(
    ("theirs", "newest", "expected"), [((0, 5), None, 5), ((0, 3), None, 3), ((2, 99), None, 5), ((0, 5), 4, 4)]
)
def test_the_newest_version_in_common_is_taken(theirs: tuple[int, int], newest: int | None, expected: int) -> None:
    assert talk(LEAVE_GROUP=theirs).version(BATCH, newest) == expected


@pytest.mark.parametrize(
    ("served", "text"),
    [
        (
            {"LEAVE_GROUP": (0, 2)},
            "LeaveGroup v3 is needed (Apache Kafka 2.4 or newer), broker:9092 has LeaveGroup v0-2",
        ),
        ({}, "LeaveGroup v3 is needed (Apache Kafka 2.4 or newer), broker:9092 does not have LeaveGroup"),
        ({"LEAVE_GROUP": (6, 9)}, "broker:9092 has LeaveGroup v6-9, only v3-5 can be asked here"),
        (
            {"LEAVE_GROUP": (4, 2)},
            "LeaveGroup v3 is needed (Apache Kafka 2.4 or newer), broker:9092 does not have LeaveGroup",
        ),
    ],
)
def test_no_version_in_common_says_which_is_needed_and_which_release_has_it(
    served: dict[str, tuple[int, int]], text: str
) -> None:
    with pytest.raises(VersionMissing) as raised:
        talk(**served).version(BATCH)
    assert str(raised.value) == text


def test_an_answer_may_come_in_any_pieces() -> None:
    conversation = talk(LEAVE_GROUP=(0, 5))
    header, _ = asked(conversation.ask(LeaveGroupRequest(group_id="g"), 5))
    data = answered(ApiKey.LEAVE_GROUP, 5, header.correlation_id, LeaveGroupResponse(error_code=25))
    for place in range(len(data) - 1):
        assert conversation.received(data[place : place + 1]) is None
    assert conversation.received(data[-1:]) == LeaveGroupResponse(error_code=25)


def test_tagged_fields_in_the_header_of_an_answer_are_skipped() -> None:
    conversation = talk(LEAVE_GROUP=(0, 5))
    header, _ = asked(conversation.ask(LeaveGroupRequest(group_id="g"), 5))
    tagged = header.correlation_id.to_bytes(4, "big") + bytes.fromhex("01 07 02 6162")
    data = headers.frame(tagged, encode(LeaveGroupResponse(), 5))
    assert conversation.received(data) == LeaveGroupResponse()


def test_an_answer_to_another_request_is_not_taken() -> None:
    conversation = talk(LEAVE_GROUP=(0, 5))
    header, _ = asked(conversation.ask(LeaveGroupRequest(group_id="g"), 5))
    data = answered(ApiKey.LEAVE_GROUP, 5, header.correlation_id + 7, LeaveGroupResponse())
    with pytest.raises(
        BadAnswer, match=r"^broker:9092: the answer to LeaveGroup v5 cannot be read: its correlation id"
    ):
        conversation.received(data)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", id="http"),
        pytest.param((ANSWER_MAX + 1).to_bytes(4, "big"), id="too long"),
        pytest.param(b"\xff\xff\xff\xff", id="negative length"),
        pytest.param(b"\0\0\0\2\0\0", id="shorter than a header"),
        pytest.param(b"\0\0\0\4\0\0\0\2", id="a header without tags"),
        pytest.param(b"\0\0\0\5\0\0\0\2\0", id="no body"),
        pytest.param(b"\0\0\0\x10\0\0\0\2\0" + b"\0\0\0\0\0\0\xff\xff\xff\xff\x0f", id="an absurd count"),
    ],
)
def test_bytes_that_are_no_answer_are_one_clear_line(data: bytes) -> None:
    conversation = talk(LEAVE_GROUP=(0, 5))
    header, _ = asked(conversation.ask(LeaveGroupRequest(group_id="g"), 5))
    assert header.correlation_id == 2
    with pytest.raises(BadAnswer, match=r"\Abroker:9092: the answer to LeaveGroup v5 cannot be read: .*\Z"):
        conversation.received(data)


@pytest.mark.parametrize("first", [0, 1, 3])
def test_a_tls_alert_says_that_the_listener_has_tls(first: int) -> None:
    alert = b"\x15\x03\x03\x00\x02\x02\x50"
    conversation = Conversation("broker:9092", "1")
    conversation.greeting()
    assert conversation.received(alert[:first]) is None
    with pytest.raises(Secured) as raised:
        conversation.received(alert[first:])
    assert str(raised.value) == (
        "broker:9092: answers with a TLS alert: this looks like a TLS listener, and only plaintext is supported"
    )


def test_the_end_before_an_answer_is_a_loss_and_within_it_a_truncation() -> None:
    conversation = Conversation("broker:9092", "1")
    conversation.greeting()
    error: Any = conversation.ended()
    assert isinstance(error, Lost)
    assert str(error) == "broker:9092: closed the connection without an answer to ApiVersions v4"
    conversation.received(b"\0\0\0\x20\0\0")
    error = conversation.ended()
    assert isinstance(error, BadAnswer)
    assert str(error).endswith("cannot be read: the connection was closed after 6 bytes of it")
