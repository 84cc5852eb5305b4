"""Groups files: defaults, exact output, round trips, and errors with their place."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordinator.emulator.broker.offsets_log import batch_of, records_of
from koordinator.emulator.core.groups.records import CoordinatorRecord
from koordinator.emulator.formats.groups_file import parse_groups, to_json, to_lines
from koordinator.emulator.formats.json_lines import LineError
from koordinator.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    write_assignment,
    write_subscription,
)
from koordinator.wire.messages.offsets_topic import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from koordinator.wire.messages.share_group_records import ShareGroupMetadataKey, ShareGroupMetadataValue
from koordinator.wire.primitives import ZERO_UUID
from koordinator.wire.records import read_records

if TYPE_CHECKING:
    from collections.abc import Iterable

NOW = 1_700_000_000_000


def no_topics(_: str) -> None:
    """No topic has an id: only lines of consumer groups need one."""


def no_names(_: object) -> None:
    """No topic id has a name."""


def parsed(*lines: str) -> list[CoordinatorRecord]:
    return parse_groups(lines, "groups.jsonl", NOW, no_topics)


def there_and_back(records: Iterable[CoordinatorRecord]) -> list[CoordinatorRecord]:
    return parsed(*map(to_json, to_lines(records, no_names)))


# -- defaults ----------------------------------------------------------------------------------------


def test_two_short_lines_make_a_stable_group_of_two_static_members() -> None:
    group, offset = parsed(
        '{"group_id": "svc", "members": [{"instance_id": "a", "assignment": {"orders": [0]}}, {"instance_id": "b"}]}',
        '{"group_id": "svc", "topic": "orders", "partition": 0, "offset": 5}',
    )
    a, b = "a-00000000-0000-0000-0000-000000000001", "b-00000000-0000-0000-0000-000000000002"
    subscription = write_subscription(ConsumerProtocolSubscription(topics=("orders",)))
    row = TopicPartition(topic="orders", partitions=(0,))

    def member(member_id: str, instance_id: str, *rows: TopicPartition) -> MemberMetadata:
        return MemberMetadata(
            member_id=member_id,
            group_instance_id=instance_id,
            client_id="consumer",
            client_host="/127.0.0.1",
            rebalance_timeout=300_000,
            session_timeout=45_000,
            subscription=subscription,
            assignment=write_assignment(ConsumerProtocolAssignment(assigned_partitions=rows)),
        )

    assert group == CoordinatorRecord(
        GroupMetadataKey(group="svc"),
        GroupMetadataValue(
            protocol_type="consumer",
            generation=1,
            protocol="range",
            leader=a,
            current_state_timestamp=NOW,
            members=(member(a, "a", row), member(b, "b")),
        ),
    )
    assert offset == CoordinatorRecord(
        OffsetCommitKey(group="svc", topic="orders", partition=0),
        OffsetCommitValue(offset=5, leader_epoch=-1, metadata="", commit_timestamp=NOW, expire_timestamp=-1),
    )


def test_a_group_without_members_is_empty_and_at_generation_0() -> None:
    (group,) = parsed('{"group_id": "svc"}')
    assert group.value == GroupMetadataValue(
        protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=NOW
    )


def test_a_dynamic_member_has_an_id_made_of_its_client_id() -> None:
    (group,) = parsed('{"group_id": "svc", "members": [{"client_id": "java"}]}')
    assert isinstance(group.value, GroupMetadataValue)
    (member,) = group.value.members
    assert (member.member_id, member.group_instance_id) == ("java-00000000-0000-0000-0000-000000000001", None)


# -- output -----------------------------------------------------------------------------------------


def member_line(subscription: bytes = b"", assignment: bytes = b"") -> dict[str, object]:
    member = MemberMetadata(
        member_id="m",
        client_id="c",
        client_host="/h",
        session_timeout=1,
        subscription=subscription,
        assignment=assignment,
    )
    value = GroupMetadataValue(protocol_type="consumer", generation=7, protocol="p", leader="m", members=(member,))
    (line,) = to_lines([CoordinatorRecord(GroupMetadataKey(group="g"), value)], no_names)
    (row,) = line["members"]  # type: ignore[misc]
    assert isinstance(row, dict)
    return row


def test_written_values_are_readable() -> None:
    line = member_line(
        write_subscription(ConsumerProtocolSubscription(topics=("a", "b"))),
        write_assignment(
            ConsumerProtocolAssignment(assigned_partitions=(TopicPartition(topic="a", partitions=(0, 1)),))
        ),
    )
    assert (line["subscription"], line["assignment"]) == ({"topics": ["a", "b"]}, {"a": [0, 1]})


def test_versions_and_all_else_that_consumers_say_are_readable_too() -> None:
    owned = (TopicPartition(topic="a", partitions=(2,)),)
    subscription = ConsumerProtocolSubscription(
        topics=("a",), user_data=b"\1", owned_partitions=owned, generation_id=4, rack_id="r"
    )
    line = member_line(
        write_subscription(subscription),
        write_assignment(ConsumerProtocolAssignment(assigned_partitions=owned, user_data=b""), 1),
    )
    assert line["subscription"] == {
        "topics": ["a"],
        "owned": {"a": [2]},
        "generation": 4,
        "rack": "r",
        "user_data": {"base64": "AQ=="},
    }
    assert line["assignment"] == {"partitions": {"a": [2]}, "user_data": {"base64": ""}, "version": 1}


TWICE = (TopicPartition(topic="a", partitions=(0,)), TopicPartition(topic="a", partitions=(1,)))


@pytest.mark.parametrize(
    "assignment",
    [
        b"\0",
        b"nonsense",
        write_assignment(ConsumerProtocolAssignment()) + b"more",
        b"\0\x09" + write_assignment(ConsumerProtocolAssignment())[2:],
        write_assignment(ConsumerProtocolAssignment(assigned_partitions=TWICE)),
    ],
)
def test_values_that_do_not_round_trip_are_base64(assignment: bytes) -> None:
    line = member_line(assignment=assignment)["assignment"]
    assert isinstance(line, dict)
    assert set(line) == {"base64"}


def test_no_bytes_are_null() -> None:
    line = member_line()
    assert (line["subscription"], line["assignment"]) == (None, None)


def test_the_last_record_counts_and_a_tombstone_removes() -> None:
    def offset(partition: int, offset: int | None) -> CoordinatorRecord:
        value = None if offset is None else OffsetCommitValue(offset=offset, metadata="", commit_timestamp=1)
        return CoordinatorRecord(OffsetCommitKey(group="g", topic="t", partition=partition), value)

    group = parsed('{"group_id": "g"}')
    lines = to_lines([offset(1, 5), offset(0, 1), *group, offset(0, 2), offset(1, None), offset(2, None)], no_names)
    assert [(line.get("partition"), line.get("offset")) for line in lines] == [(None, None), (0, 2)]


def test_the_id_of_a_topic_is_left_out_because_it_is_another_one_elsewhere() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=0)
    value = OffsetCommitValue(offset=5, metadata="", commit_timestamp=1, topic_id=UUID(int=7))
    assert there_and_back([CoordinatorRecord(key, value)]) == [
        CoordinatorRecord(key, replace(value, topic_id=ZERO_UUID))
    ]


def test_share_groups_are_left_out_because_their_offsets_are_in_another_topic() -> None:
    share = CoordinatorRecord(ShareGroupMetadataKey(group="share"), ShareGroupMetadataValue(epoch=1))
    (line,) = to_lines([share, *parsed('{"group_id": "g"}')], no_names)
    assert line["group_id"] == "g"


# -- round trips ------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAME = st.from_regex(r"[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,20}", fullmatch=True)
INT32, INT64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
ROWS = st.lists(
    st.builds(TopicPartition, topic=NAME, partitions=st.lists(INT32, max_size=3).map(tuple)), max_size=3
).map(tuple)
USER_DATA = st.none() | st.binary(max_size=5)
SUBSCRIPTION = st.binary(max_size=20) | st.builds(
    write_subscription,
    st.builds(
        ConsumerProtocolSubscription,
        topics=st.lists(NAME, max_size=3).map(tuple),
        user_data=USER_DATA,
        owned_partitions=ROWS,
        generation_id=INT32,
        rack_id=st.none() | TEXT,
    ),
    st.integers(0, 3),
)
ASSIGNMENT = st.binary(max_size=20) | st.builds(
    write_assignment,
    st.builds(ConsumerProtocolAssignment, assigned_partitions=ROWS, user_data=USER_DATA),
    st.integers(0, 3),
)
MEMBER = st.builds(
    MemberMetadata,
    member_id=TEXT,
    group_instance_id=st.none() | TEXT,
    client_id=TEXT,
    client_host=TEXT,
    rebalance_timeout=INT32,
    session_timeout=INT32,
    subscription=SUBSCRIPTION,
    assignment=ASSIGNMENT,
)


def instance(member: MemberMetadata) -> str | int:
    """Strategy for ids that are unique among members."""
    return id(member) if member.group_instance_id is None else member.group_instance_id


@st.composite
def groups(draw: st.DrawFn) -> CoordinatorRecord:
    """Strategy for a group that Kafka may have written: unique member ids, and a leader among them."""
    members = draw(st.lists(MEMBER, max_size=3, unique_by=(lambda one: one.member_id, instance)))
    value = GroupMetadataValue(
        protocol_type=draw(TEXT),
        generation=draw(INT32),
        protocol=draw(TEXT if members else st.none() | TEXT),
        leader=draw(st.sampled_from([one.member_id for one in members]) if members else st.none() | TEXT),
        current_state_timestamp=draw(INT64),
        members=tuple(members),
    )
    return CoordinatorRecord(GroupMetadataKey(group=draw(TEXT)), value)


OFFSET = st.builds(
    CoordinatorRecord,
    st.builds(OffsetCommitKey, group=TEXT, topic=NAME.filter(lambda name: name not in {".", ".."}), partition=INT32),
    st.builds(OffsetCommitValue, offset=INT64, leader_epoch=INT32, metadata=TEXT, commit_timestamp=INT64)
    | st.builds(OffsetCommitValue, offset=INT64, metadata=TEXT, commit_timestamp=INT64, expire_timestamp=INT64),
)


@pytest.mark.slow
@given(st.lists(groups() | OFFSET, min_size=1, max_size=6, unique_by=lambda record: record.key))
def test_every_record_comes_back_as_it_was(records: list[CoordinatorRecord]) -> None:
    found = there_and_back(records)
    assert {record.key: record for record in found} == {record.key: record for record in records}
    assert list(records_of(read_records(batch_of(found, 1)))) == found


# -- errors -----------------------------------------------------------------------------------------

GROUP = '{"group_id": "g", "members": [{"instance_id": "a"}, %s]}'


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "not JSON: "),
        ("[]", "expected a JSON object, not an array"),
        ("{}", "group_id is missing"),
        ('{"group_id": 1}', "group_id: expected a string, not 1"),
        ('{"group_id": "\\ud800"}', "group_id: a lone surrogate"),
        (json.dumps({"group_id": "ä" * 16_384}), "group_id: 32768 bytes; 32767 are"),
        ('{"group_id": "first"}', "group 'first' is on line 1 already"),
        ('{"group_id": "g", "member": []}', "unknown field 'member'; known: generation, group_id, leader, members"),
        (
            '{"group_id": "g", "generation": "7"}',
            "generation: expected an integer from -2147483648 to 2147483647, not a",
        ),
        ('{"group_id": "g", "generation": 2147483648}', "generation: expected an integer .*, not 2147483648"),
        ('{"group_id": "g", "state_changed_at": true}', "state_changed_at: expected an integer .*, not true"),
        ('{"group_id": "g", "members": {}}', "members: expected an array, not an object"),
        ('{"group_id": "g", "protocol_type": null}', "protocol_type: expected a string, not null"),
        (GROUP % "1", r"members\[1\]: expected an object, not 1"),
        (GROUP % '{"instance": "b"}', r"members\[1\]: unknown field 'instance'; known: assignment, client_host,"),
        (GROUP % '{"instance_id": "a"}', "members: two of them have the instance_id 'a'"),
        (
            GROUP % '{"member_id": "a-00000000-0000-0000-0000-000000000001"}',
            "members: two of them have the member_id 'a-0",
        ),
        (GROUP % '{"session_timeout_ms": 1.5}', r"members\[1\].session_timeout_ms: expected an integer .*, not 1.5"),
        (GROUP % '{"subscription": "t"}', r"members\[1\].subscription: expected an object, not a string"),
        (GROUP % '{"subscription": {}}', r"members\[1\].subscription: expected {\"topics\": "),
        (
            GROUP % '{"subscription": {"topics": "t"}}',
            r"members\[1\].subscription.topics: expected an array, not a st",
        ),
        (GROUP % '{"subscription": {"topics": [1]}}', r"members\[1\].subscription.topics: expected a string, not 1"),
        (GROUP % '{"subscription": {"topics": [], "topic": 1}}', r"members\[1\].subscription: unknown field 'topic'"),
        (
            GROUP % '{"subscription": {"topics": [], "rack": "r", "version": 2}}',
            r"members\[1\].subscription: version 2 has no room for all of rack, topics, version",
        ),
        (GROUP % '{"assignment": []}', r"members\[1\].assignment: expected an object, not an array"),
        (GROUP % '{"assignment": {"t": 0}}', r"members\[1\].assignment.t: expected an array, not 0"),
        (GROUP % '{"assignment": {"t": ["0"]}}', r"members\[1\].assignment.t: expected an integer .*, not a string"),
        (GROUP % '{"assignment": {"base64": "!"}}', r"members\[1\].assignment: not base64"),
        (GROUP % '{"assignment": {"partitions": {}, "more": 1}}', r"members\[1\].assignment: unknown field 'more'"),
        (
            GROUP % '{"assignment": {"partitions": {}, "version": 4}}',
            r"members\[1\].assignment.version: expected an integer from 0 to 3",
        ),
        (
            GROUP % '{"assignment": {"partitions": {}, "user_data": "x"}}',
            r"members\[1\].assignment.user_data: expected {\"base64\": \"...\"} or null, not a string",
        ),
        ('{"group_id": "g", "leader": "a", "members": [{"member_id": "b"}]}', "leader: expected one of 'b', not 'a'"),
        ('{"group_id": "g", "protocol": null, "members": [{}]}', "protocol: a group with members has one"),
        ('{"group_id": "g", "offset": 5}', "topic is missing"),
        ('{"group_id": "g", "topic": "t"}', "partition is missing"),
        ('{"group_id": "g", "topic": "t", "partition": 0}', "offset is missing"),
        ('{"topic": "t", "partition": 0, "offset": 1}', "group_id is missing"),
        ('{"group_id": "g", "topic": "a b", "partition": 0, "offset": 5}', "topic: Topic name is invalid"),
        (
            '{"group_id": "g", "topic": "t", "partition": 0, "ofset": 5}',
            "unknown field 'ofset'; known: commit_timestamp",
        ),
        ('{"group_id": "g", "topic": "t", "partition": 0, "offset": "5"}', "offset: expected an integer .*, not a"),
        ('{"group_id": "g", "topic": "t", "partition": 0, "offset": 5, "metadata": 1}', "metadata: expected a string"),
        (
            '{"group_id": "first", "topic": "t", "partition": 0, "offset": 6}',
            "the offset of group 'first' in t-0 is on line 2 already",
        ),
        (
            '{"group_id": "g", "topic": "t", "partition": 0, "offset": 6, "leader_epoch": 1, "expire_timestamp": 1}',
            "expire_timestamp, leader_epoch: a record has room for only one",
        ),
    ],
)
def test_a_bad_line_is_reported_with_file_and_reason(line: str, problem: str) -> None:
    good = ['{"group_id": "first"}', '{"group_id": "first", "topic": "t", "partition": 0, "offset": 5}', ""]
    with pytest.raises(LineError, match=rf"^groups\.jsonl:4: {problem}") as raised:
        parsed(*good, line)
    assert (raised.value.file, raised.value.line) == ("groups.jsonl", 4)
    assert "\n" not in str(raised.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
FIELD = st.sampled_from(
    ["group_id", "generation", "leader", "protocol", "state_changed_at", "members", "topic", "offset"]
)
IN_MEMBER = st.sampled_from(
    ["member_id", "instance_id", "session_timeout_ms", "subscription", "assignment", "client_id"]
)


@pytest.mark.slow
@given(
    line=st.dictionaries(FIELD, JSON, max_size=4),
    member=st.none() | st.dictionaries(IN_MEMBER, JSON, max_size=3),
    group_id=st.none() | TEXT,
)
def test_any_other_json_is_read_exactly_or_refused_with_its_place(
    line: dict[str, object], member: dict[str, object] | None, group_id: str | None
) -> None:
    line |= {} if member is None else {"members": [member]}
    line |= {} if group_id is None else {"group_id": group_id}
    try:
        records = parse_groups(["", json.dumps(line)], "f", NOW, no_topics)
    except LineError as error:
        assert str(error).startswith("f:2: ")  # noqa: PT017
        return
    assert there_and_back(records) == records


def test_bytes_that_are_not_utf_8_are_refused() -> None:
    with pytest.raises(LineError, match=r"^f:1: not UTF-8$"):
        parse_groups([b'{"group_id": "\xff"}'], "f", NOW, no_topics)
