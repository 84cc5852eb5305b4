"""Every version of every message: encoded messages decode to themselves, other bytes are malformed."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BytesIO
from typing import Any
from uuid import UUID

import pytest
from builders.kafka_schemas import RECORDS
from hypothesis import settings
from hypothesis import strategies as st
from marks.cases import case

from koordinator.wire import codec
from koordinator.wire.apis import APIS, Message
from koordinator.wire.codec import compiled_for, construct_for, decode, encode, encode_frame
from koordinator.wire.frames import frame
from koordinator.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from koordinator.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from koordinator.wire.messages.fetch import FetchResponse
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from koordinator.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from koordinator.wire.messages.metadata import MetadataResponse
from koordinator.wire.messages.offsets_topic import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from koordinator.wire.primitives import ARRAY_COUNT_MAX, TAG_COUNT_MAX, Malformed, uvarint
from koordinator.wire.schema import FieldSpec, Kind, declaration_of, fields_of

Messages = Callable[..., st.SearchStrategy[Any]]
ForExamples = Callable[..., None]

WITHOUT_KEY: Sequence[type[Message]] = (
    ConsumerProtocolSubscription,
    ConsumerProtocolAssignment,
    OffsetCommitKey,
    OffsetCommitValue,
    GroupMetadataKey,
    GroupMetadataValue,
    *RECORDS.values(),
)
VERSIONS = [
    (cls, version)
    for cls in [*(cls for api in APIS.values() for cls in (api.request, api.response)), *WITHOUT_KEY]
    for version in declaration_of(cls).versions
]
FLEXIBLE = [(cls, version) for cls, version in VERSIONS if version in declaration_of(cls).flexible]

EXAMPLES = max(4, settings.default.max_examples // 20 if settings.default else 0)
"""Few examples per version: there are hundreds of versions."""

FILLED = {
    Kind.BOOLEAN: True,
    Kind.INT8: 0x11,
    Kind.INT16: 0x1122,
    Kind.INT32: 0x11223344,
    Kind.INT64: 0x1122334455667788,
    Kind.UINT16: 0xFFEE,
    Kind.UINT32: 0xFFEEDDCC,
    Kind.FLOAT64: 0.1,
    Kind.STRING: "nü",
    Kind.BYTES: b"by",
    Kind.RECORDS: b"rec",
    Kind.UUID: UUID(int=0x11223344556677889900AABBCCDDEEFF),
}


def filled(cls: type[Any], version: int) -> Any:
    """Return a message in which no field of the version is empty or its default."""

    def value(spec: FieldSpec) -> Any:
        single = FILLED[spec.type] if isinstance(spec.type, Kind) else filled(spec.type, version)
        if single == spec.default:  # of a boolean
            return False
        return (single, single) if spec.is_array else single

    return cls(**{name: value(spec) for name, spec in fields_of(cls).items() if version in spec.versions})


def interpreted_bytes(message: Message, version: int) -> bytes:
    io = BytesIO()
    construct_for(type(message), version)._build(message, io, None, "")
    return io.getvalue()


def interpreted(cls: type[Any], version: int, data: bytes) -> Any:
    return construct_for(cls, version)._parse(BytesIO(data), None, "")


def comes_back(message: Message, version: int) -> None:
    written = encode(message, version)
    assert decode(type(message), version, written, exact=True) == message
    assert interpreted_bytes(message, version) == written
    assert interpreted(type(message), version, written) == message


@pytest.mark.slow
def test_written_values_are_read_compiled_and_interpreted(messages: Messages, for_examples: ForExamples) -> None:
    for cls, version in VERSIONS:
        for_examples(cls, version, messages(cls, version), comes_back, EXAMPLES)


@pytest.mark.slow
def test_a_filled_message_and_an_empty_one_come_back() -> None:
    for cls, version in VERSIONS:
        for message in (filled(cls, version), cls()):
            with case(cls.__name__, version):
                comes_back(message, version)


@pytest.mark.slow
def test_every_truncation_is_malformed() -> None:
    for cls, version in VERSIONS:
        for message in (filled(cls, version), cls()):
            written = encode(message, version)
            for end in range(len(written)):
                with case(cls.__name__, version, "without its end from byte", end), pytest.raises(Malformed):
                    decode(cls, version, written[:end])


@pytest.mark.slow
def test_random_bytes_are_a_message_or_malformed(for_examples: ForExamples) -> None:
    instead = st.binary(max_size=12) | st.sampled_from([b"\xff" * 4, b"\xff" * 10, b"\x7f\xff\xff\xff"])
    for cls, version in VERSIONS:
        written = encode(filled(cls, version), version)

        def either(drawn: tuple[int, bytes], version: int, cls: type[Any] = cls, written: bytes = written) -> None:
            at, instead = drawn
            for attempt in (instead, written[:at] + instead + written[at + len(instead) :], written[:at] + instead):
                try:
                    decode(cls, version, attempt)
                except Malformed:
                    with pytest.raises(Malformed):
                        interpreted(cls, version, attempt)
                else:
                    interpreted(cls, version, attempt)

        for_examples(cls, version, st.tuples(st.integers(0, len(written)), instead), either, EXAMPLES)


@pytest.mark.parametrize("header", [b"", b"head"])
def test_a_frame_is_the_header_and_the_message_behind_their_length(header: bytes) -> None:
    message = LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id="m"),))
    assert encode_frame(header, message, 4) == frame(header, encode(message, 4))
    with pytest.raises(ValueError, match=r"LeaveGroupRequest\.group_id"):
        encode_frame(header, replace(message, group_id=None), 4)


@pytest.mark.slow
def test_kip_482_unknown_tagged_fields_are_skipped() -> None:
    for cls, version in FLEXIBLE:
        with case(cls.__name__, version):
            written = encode(cls(), version)
            assert written[-1] == 0  # all that is tagged has its default
            tagged = written[:-1] + bytes.fromhex("02 83 01 02 FF FF FF FF FF FF 0F 00")
            assert decode(cls, version, tagged, exact=True) == cls()
            for end in range(len(written), len(tagged)):
                with pytest.raises(Malformed):
                    decode(cls, version, tagged[:end])


@pytest.mark.slow
def test_trailing_bytes_are_tolerated_unless_exact() -> None:
    for cls, version in VERSIONS:
        with case(cls.__name__, version):
            message = filled(cls, version)
            written = encode(message, version) + b"more"
            assert decode(cls, version, written) == message
            with pytest.raises(Malformed, match="4 bytes follow"):
                decode(cls, version, written, exact=True)


def test_a_version_that_is_not_declared_is_the_callers_mistake() -> None:
    for cls, version in VERSIONS:
        outside = declaration_of(cls).versions.max + 1 + version
        with case(cls.__name__, outside):
            with pytest.raises(ValueError, match="has the versions") as read:
                decode(cls, outside, b"")
            with pytest.raises(ValueError, match="has the versions") as written:
                encode(cls(), outside)
            assert not {type(read.value), type(written.value)} & {Malformed}


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_are_read_from_any_buffer(kind: Callable[[bytes], Any]) -> None:
    message = JoinGroupRequest(group_id="g")
    assert decode(JoinGroupRequest, 9, kind(encode(message, 9))) == message


def test_a_list_is_written_as_a_tuple_is_and_read_as_a_tuple() -> None:
    protocols: Any = [JoinGroupRequestProtocol(name="range")]
    data = encode(JoinGroupRequest(protocols=protocols), 9)
    assert decode(JoinGroupRequest, 9, data).protocols == tuple(protocols)


def test_the_malformed_field_is_named() -> None:
    message = JoinGroupRequest(protocols=(JoinGroupRequestProtocol(name="a"), JoinGroupRequestProtocol(name="b")))
    data = encode(message, 9)
    with pytest.raises(Malformed, match=r"JoinGroupRequest\.protocols\[1\]\.name: null"):
        decode(JoinGroupRequest, 9, data.replace(b"\2b", b"\0"))
    with pytest.raises(Malformed, match=r"JoinGroupRequest\.reason: bytes are missing"):
        decode(JoinGroupRequest, 9, data[:-2])
    with pytest.raises(Malformed, match="JoinGroupRequest, tagged fields: bytes are missing"):
        decode(JoinGroupRequest, 9, data[:-1])


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"group_id": None}, "group_id"),
        ({"group_id": 3}, "group_id"),
        ({"group_id": "\ud800"}, "group_id"),
        ({"session_timeout_ms": 2**31}, "session_timeout_ms"),
        ({"session_timeout_ms": "1"}, "session_timeout_ms"),
        ({"rebalance_timeout_ms": None}, "rebalance_timeout_ms"),
        ({"protocols": None}, "protocols"),
        ({"protocols": 3}, "protocols"),
        ({"protocols": (JoinGroupRequestProtocol(), MemberIdentity())}, r"protocols\[1\]"),
        ({"protocols": (JoinGroupRequestProtocol(metadata="text"),)}, r"protocols\[0\]\.metadata"),  # type: ignore[arg-type]
    ],
)
@pytest.mark.parametrize("version", [5, 9])
def test_a_value_that_cannot_be_sent_is_refused_with_the_name_of_the_field(
    wrong: dict[str, Any], field: str, version: int
) -> None:
    with pytest.raises(ValueError, match=rf"^JoinGroupRequest\.{field}: "):
        encode(JoinGroupRequest(**wrong), version)


@pytest.mark.parametrize("version", [5, 9])
def test_a_string_has_at_most_32767_bytes_in_flexible_versions_too(version: int) -> None:
    longest = JoinGroupRequest(group_id="x" * 32767, reason="y" * 32767 if version == 9 else None)
    assert decode(JoinGroupRequest, version, encode(longest, version)) == longest
    with pytest.raises(ValueError, match=r"JoinGroupRequest\.group_id"):
        encode(JoinGroupRequest(group_id="x" * 32768), version)


@pytest.mark.parametrize("field", ["group_id", "group_instance_id"])
def test_a_compact_string_announced_as_longer_is_malformed(field: str) -> None:
    data = encode(JoinGroupRequest(**{field: "x" * 32767}), 9)
    longer = data.replace(b"\x80\x80\x02", b"\x81\x80\x02").replace(b"x" * 32767, b"x" * 32768)
    with pytest.raises(Malformed, match=rf"JoinGroupRequest\.{field}: a string of 32768 bytes"):
        decode(JoinGroupRequest, 9, longer)


@pytest.mark.slow
def test_a_large_malformed_message_is_not_read_twice_to_be_explained() -> None:
    data = encode(JoinGroupRequest(member_id="m" * 32767, protocol_type="p" * 32767), 5)
    protocols = b"\0\x10\0\0" + b"\0\0" * 2**20
    with pytest.raises(Malformed, match=r"^JoinGroupRequest v5, in \d+ bytes: "):
        decode(JoinGroupRequest, 5, data[:-4] + protocols)


def test_fields_absent_in_a_version_must_be_default_or_ignorable() -> None:
    static = JoinGroupRequest(group_instance_id="i", rebalance_timeout_ms=7, reason="r")
    assert decode(JoinGroupRequest, 5, encode(static, 5)) == replace(static, reason=None)
    for version in range(5):
        with pytest.raises(ValueError, match=r"JoinGroupRequest\.group_instance_id: .* would be lost"):
            encode(static, version)


def test_an_array_that_a_version_lacks_must_be_empty() -> None:
    empty: Any = []
    assert encode(LeaveGroupRequest(group_id="g"), 0) == encode(LeaveGroupRequest(group_id="g", members=empty), 0)
    with pytest.raises(ValueError, match=r"LeaveGroupRequest\.members"):
        encode(LeaveGroupRequest(members=(MemberIdentity(),)), 2)
    with pytest.raises(ValueError, match=r"LeaveGroupRequest\.member_id"):
        encode(LeaveGroupRequest(member_id="m"), 3)


@pytest.mark.parametrize("count", ["ff ff ff ff 0f", "80 80 80 80 08", "82 02"])
def test_a_count_is_not_believed_before_the_bytes_are_there(count: str) -> None:
    start = encode(MetadataResponse(), 9)[:4]
    with pytest.raises(Malformed, match=r"MetadataResponse\.brokers: \d+ elements expected, 2 bytes left"):
        decode(MetadataResponse, 9, start + bytes.fromhex(count) + b"\0\0")


@pytest.mark.parametrize(
    ("count", "is_of_tags", "problem"),
    [
        (ARRAY_COUNT_MAX, False, None),
        (ARRAY_COUNT_MAX + 1, False, "an array of 1000001 elements; 1000000 are allowed"),
        (TAG_COUNT_MAX, True, None),
        (TAG_COUNT_MAX + 1, True, "10001 tagged fields; 10000 are allowed"),
    ],
)
def test_a_bounded_message_has_limits_that_others_do_not_have(
    count: int,
    is_of_tags: bool,  # noqa: FBT001 - a parameter
    problem: str | None,
) -> None:
    numbers = () if is_of_tags else (7,) * count
    data = encode(DescribeLogDirsRequest(topics=(DescribableLogDirTopic(topic="t", partitions=numbers),)), 2)
    if is_of_tags:
        data = data[:-1] + uvarint(count) + b"".join(uvarint(tag) + b"\0" for tag in range(count))
    assert decode(DescribeLogDirsRequest, 2, data).topics
    if problem is None:
        assert decode(DescribeLogDirsRequest, 2, data, bounded=True).topics
    else:
        with pytest.raises(Malformed, match=problem):
            decode(DescribeLogDirsRequest, 2, data, bounded=True)


def test_the_generated_source_is_as_one_would_write_it() -> None:
    source = compiled_for(JoinGroupRequest, 9).source
    assert (
        """
def parse_JoinGroupRequestProtocol(io):
    name = read_compact_string(io)
    metadata = read_compact_bytes(io)
    skip_tags(io)
    return JoinGroupRequestProtocol(name=name, metadata=metadata)
"""
        in source
    )
    assert "    session_timeout_ms, rebalance_timeout_ms = unpack_ii(io.read(8))\n" in source
    assert "linked" not in source.split("abs_ = abs")[1]


def test_a_version_is_compiled_once() -> None:
    assert compiled_for(FetchResponse, 16) is compiled_for(FetchResponse, 16)
    assert compiled_for(FetchResponse, 16) is not compiled_for(FetchResponse, 17)


def test_a_difference_between_compiled_and_interpreted_is_a_bug_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    other = construct_for(LeaveGroupRequest, 0)
    monkeypatch.setattr(codec, "construct_for", lambda _cls, _version: other)
    data = encode(LeaveGroupRequest(group_id="g"), 0)
    with pytest.raises(AssertionError, match="JoinGroupRequest v9 parses interpreted, but not compiled"):
        decode(JoinGroupRequest, 9, data)
    monkeypatch.setattr(other, "cls", JoinGroupRequest)
    monkeypatch.setattr(other, "must_be_default", ())
    with pytest.raises(AssertionError, match="JoinGroupRequest v9 builds interpreted, but not compiled"):
        encode(JoinGroupRequest(session_timeout_ms=2**40), 9)
