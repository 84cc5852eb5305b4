"""OffsetCommit and OffsetFetch (KIP-320, KIP-447, KIP-709)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from builders.requests import CHANGED
from scenes.play import START, Play

from koordinator.wire.errors import Error
from koordinator.wire.messages import offset_commit as messages
from koordinator.wire.messages.offsets_topic import OffsetCommitKey, OffsetCommitValue

A, B = ("t", 0), ("u", 1)
NONE = (-1, -1, "", 0)


def test_a_commit_without_a_group_creates_a_simple_group(play: Play) -> None:
    assert play.commit_errors(offsets={A: 42}) == [Error.NONE]
    described = play.describe()
    assert (described.group_state, described.protocol_type, described.members) == ("Empty", "", ())
    assert play.fetch(A) == {A: (42, -1, "", 0)}


def test_an_empty_group_id_is_valid_for_offsets(play: Play) -> None:
    assert play.commit_errors(offsets={A: 1}, group="") == [Error.NONE]
    assert play.offset(*A, group="") == 1
    assert play.state("") == "Empty"
    assert play.delete("") == {"": Error.NONE}


def test_kip_320_a_commit_keeps_leader_epoch_and_metadata(play: Play) -> None:
    a = play.stable_member()
    assert play.commit_errors(1, a, offsets={A: 5}, leader_epoch=3, metadata="m") == [Error.NONE]
    assert play.fetch(A) == {A: (5, 3, "m", 0)}
    row = play.fetch_raw("g", version=4).topics[0].partitions[0]
    assert (row.committed_offset, row.committed_leader_epoch, row.metadata) == (5, -1, "m")


@pytest.mark.parametrize(
    ("generation", "member", "expected"),
    [
        (2, "a", Error.ILLEGAL_GENERATION),
        (1, "ghost", Error.UNKNOWN_MEMBER_ID),
        (9, "ghost", Error.UNKNOWN_MEMBER_ID),
        (-1, "", Error.UNKNOWN_MEMBER_ID),
        (-1, "a", Error.ILLEGAL_GENERATION),
        (0, "", Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_only_members_of_this_generation_commit_to_a_group_that_has_any(
    play: Play, generation: int, member: str, expected: Error
) -> None:
    a = play.stable_member()
    assert play.commit_errors(generation, a if member == "a" else member) == [expected]
    assert play.fetch(A) == {A: NONE}


def test_a_commit_before_the_assignment_gets_rebalance_in_progress(play: Play) -> None:
    a, _ = play.unsynced_pair()
    assert play.commit_errors(2, a) == [Error.REBALANCE_IN_PROGRESS]
    assert play.commit_errors(1, a) == [Error.ILLEGAL_GENERATION]
    assert play.commit_errors(2, "ghost") == [Error.UNKNOWN_MEMBER_ID]
    assert play.fetch(A) == {A: NONE}


def test_a_commit_in_a_join_phase_is_stored(play: Play) -> None:
    a, b = play.stable_pair()
    play.join(b, protocols=CHANGED)
    assert play.commit_errors(2, a, offsets={A: 7}) == [Error.NONE]
    assert play.offset(*A) == 7


@pytest.mark.parametrize("state", ["Stable", "PreparingRebalance"])
def test_a_members_commit_restarts_its_session(play: Play, state: str) -> None:
    a, b = play.stable_pair()
    if state == "PreparingRebalance":
        play.join(b, protocols=CHANGED)
    play.wait(5_000)
    play.commit(2, a)
    assert play.group().timers[play.group().members[a].session] == play.now + 10_000


def test_a_refused_commit_does_not_restart_the_session(play: Play) -> None:
    a, b = play.unsynced_pair()
    play.wait(5_000)
    assert play.commit_errors(2, a) == [Error.REBALANCE_IN_PROGRESS]
    assert play.commit_errors(1, b) == [Error.ILLEGAL_GENERATION]
    members = play.group().members
    assert {play.group().timers[members[each].session] for each in (a, b)} == {play.now + 5_000}


@pytest.mark.parametrize(
    ("generation", "member_id", "instance_id", "expected"),
    [
        (-1, "", None, Error.NONE),
        (-1, "anybody", None, Error.NONE),
        (-1, "anybody", "i9", Error.NONE),
        (2, "anybody", None, Error.UNKNOWN_MEMBER_ID),
        (0, "", None, Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_kafka_14201_an_empty_group_accepts_commits_without_a_generation(
    play: Play, generation: int, member_id: str, instance_id: str | None, expected: Error
) -> None:
    play.emptied()
    assert play.commit_errors(generation, member_id, instance_id) == [expected]


@pytest.mark.parametrize(("version", "expected"), [(8, Error.ILLEGAL_GENERATION), (9, Error.GROUP_ID_NOT_FOUND)])
def test_kip_848_an_unknown_group_has_its_own_error_from_v9_on(play: Play, version: int, expected: Error) -> None:
    assert play.commit_errors(1, "x", version=version) == [expected]
    assert play.state() == "Dead"


def test_v0_is_refused_without_zookeeper() -> None:
    play = Play(kafka_version="3.9")
    assert play.commit_errors(version=0) == [Error.UNSUPPORTED_VERSION]
    assert play.commit_errors(version=0, offsets={("nosuch", 0): 1}) == [Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert play.state() == "Dead"
    play.commit()
    (topic,) = play.fetch_raw("g", version=0, partitions=[("t", 0)]).topics
    assert [(row.committed_offset, row.error_code) for row in topic.partitions] == [(-1, Error.UNSUPPORTED_VERSION)]


def test_no_metadata_is_empty_metadata(play: Play) -> None:
    a = play.stable_member()
    assert play.commit_errors(1, a, metadata=None) == [Error.NONE]
    assert play.fetch(A) == {A: (1, -1, "", 0)}


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ("x" * 4096, Error.NONE),
        ("x" * 4097, Error.OFFSET_METADATA_TOO_LARGE),
        ("é" * 4096, Error.NONE),
        ("😀" * 2048, Error.NONE),
        ("😀" * 2049, Error.OFFSET_METADATA_TOO_LARGE),
    ],
    ids=["4096", "4097", "4096 of two bytes", "2048 emoji", "2049 emoji"],
)
def test_metadata_is_measured_in_utf_16_units(play: Play, metadata: str, expected: Error) -> None:
    a = play.stable_member()
    assert play.commit_errors(1, a, metadata=metadata) == [expected]
    assert play.offset(*A) == (1 if expected is Error.NONE else -1)


def test_a_partition_with_too_much_metadata_does_not_affect_others(play: Play) -> None:
    a = play.stable_member()
    partitions = tuple(
        messages.OffsetCommitRequestPartition(partition_index=at, committed_offset=9, committed_metadata=text)
        for at, text in enumerate(["", "x" * 4097])
    )
    request = messages.OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=1,
        member_id=a,
        topics=(messages.OffsetCommitRequestTopic(name="t", partitions=partitions),),
    )
    rows = play.send(request, 7).response.topics[0].partitions
    assert [row.error_code for row in rows] == [Error.NONE, Error.OFFSET_METADATA_TOO_LARGE]
    assert play.fetch(("t", 0), ("t", 1)) == {("t", 0): (9, -1, "", 0), ("t", 1): NONE}


@pytest.mark.parametrize("nowhere", [("nosuch", 0), ("t", 4), ("t", -1)])
def test_an_unknown_partition_is_refused_before_the_group_is_looked_up(play: Play, nowhere: tuple[str, int]) -> None:
    play.stable_member()
    assert play.commit_errors(99, "ghost", offsets={nowhere: 1}) == [Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert play.commit_errors(offsets={nowhere: 1}, group="new") == [Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert play.state("new") == "Dead"


def test_other_partitions_are_stored_or_refused_on_their_own(play: Play) -> None:
    a = play.stable_member()
    offsets = {A: 3, ("nosuch", 0): 4, B: 5}
    assert play.commit_errors(1, a, offsets=offsets) == [Error.UNKNOWN_TOPIC_OR_PARTITION, Error.NONE, Error.NONE]
    assert (play.offset(*A), play.offset(*B)) == (3, 5)
    assert play.commit_errors(9, a, offsets=offsets) == [
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.ILLEGAL_GENERATION,
        Error.ILLEGAL_GENERATION,
    ]


def test_unknown_partitions_come_first_and_each_topic_once(play: Play) -> None:
    offsets = {("t", 0): 1, ("t", 9): 2, ("u", 0): 3, ("nosuch", 0): 4, ("u", 1): 5}
    topics = play.commit(offsets=offsets, metadata="x" * 4_097).response.topics
    unknown, long = Error.UNKNOWN_TOPIC_OR_PARTITION, Error.OFFSET_METADATA_TOO_LARGE
    assert [(topic.name, [(row.partition_index, row.error_code) for row in topic.partitions]) for topic in topics] == [
        ("t", [(9, unknown), (0, long)]),
        ("nosuch", [(0, unknown)]),
        ("u", [(0, long), (1, long)]),
    ]


def test_an_empty_commit_is_not_checked(play: Play) -> None:
    play.stable_member()
    assert play.commit(99, "ghost", offsets={}).response.topics == ()


def test_the_last_commit_wins_whatever_its_value(play: Play) -> None:
    a = play.stable_member()
    for offset in (100, 5, -7):
        assert play.commit_errors(1, a, offsets={A: offset}) == [Error.NONE]
        assert play.offset(*A) == offset


def test_a_commit_is_one_batch_in_the_groups_partition(play: Play) -> None:
    play.commit(offsets={A: 5, B: 6}, metadata="m", leader_epoch=2, group="grp")
    (append,) = play.appended
    assert append.partition == 29
    assert [record.key for record in append.records] == [
        OffsetCommitKey(group="grp", topic="t", partition=0),
        OffsetCommitKey(group="grp", topic="u", partition=1),
    ]
    assert append.records[0].value == OffsetCommitValue(
        offset=5,
        leader_epoch=2,
        metadata="m",
        commit_timestamp=START,
        expire_timestamp=-1,
        topic_id=play.cluster.topics["t"].topic_id,
    )


def test_from_v10_on_topics_are_named_by_their_ids(play: Play) -> None:
    known, unknown = play.cluster.topics["t"].topic_id, UUID(int=1)
    topics = tuple(
        messages.OffsetCommitRequestTopic(
            topic_id=topic_id,
            partitions=(messages.OffsetCommitRequestPartition(partition_index=0, committed_offset=5),),
        )
        for topic_id in (known, unknown)
    )
    answer = play.send(messages.OffsetCommitRequest(group_id="g", topics=topics), 10).response
    expected = [(topic.topic_id, topic.partitions[0].error_code) for topic in answer.topics]
    assert expected == [(unknown, Error.UNKNOWN_TOPIC_ID), (known, Error.NONE)]
    assert play.offset(*A) == 5
    (topic,) = play.fetch_raw("g", version=10).groups[0].topics
    assert (topic.topic_id, topic.partitions[0].committed_offset) == (known, 5)


def test_an_uncommitted_offset_is_minus_one(play: Play) -> None:
    assert play.fetch(A, ("nosuch", 3)) == {A: NONE, ("nosuch", 3): NONE}
    assert play.fetch() == {}
    assert play.state() == "Dead"


def test_kip_709_several_groups_at_once(play: Play) -> None:
    a = play.stable_member()
    play.commit(1, a, offsets={A: 1})
    play.commit(offsets={A: 2, B: 3}, group="simple")
    rows = play.fetch_raw("g", "unknown", "simple").groups
    result = {
        row.group_id: [(topic.name, each.committed_offset) for topic in row.topics for each in topic.partitions]
        for row in rows
    }
    assert result == {"g": [("t", 1)], "unknown": [], "simple": [("t", 2), ("u", 3)]}
    assert {row.error_code for row in rows} == {0}


def test_fetching_offsets_does_not_restart_the_session(play: Play) -> None:
    a = play.stable_member(session=6_000)
    for _ in range(5):
        play.wait(2_000)
        play.fetch(A)
    assert play.heartbeat(1, a) is Error.UNKNOWN_MEMBER_ID


def test_an_offset_is_visible_once_it_is_written(play: Play) -> None:
    play.commit(offsets={A: 1})
    play.writes = None
    committing = play.commit(offsets={A: 2})
    assert committing.parked
    assert play.offset(*A) == 1
    play.complete_writes()
    assert (committing.parked, play.offset(*A)) == (False, 2)


def test_kip_447_stable_offsets_wait_for_writes_under_way(play: Play) -> None:
    play.commit(offsets={A: 1, B: 1})
    play.writes = None
    play.commit(offsets={A: 2})
    play.commit(offsets={A: 3})
    one, every = play.start_fetch("g", "h", partitions=[("t", 0)]), play.start_fetch("g")
    assert one.parked
    play._perform(play.coordinator.appended(play.now, play.in_flight.pop(0).token, Error.NONE))
    assert one.parked
    play.complete_writes()
    assert [row.committed_offset for row in one.response.groups[0].topics[0].partitions] == [3]
    assert [topic.partitions[0].committed_offset for topic in every.response.groups[0].topics] == [3, 1]


def test_kip_447_stable_offsets_are_those_of_before_if_a_commit_fails(play: Play) -> None:
    play.commit(offsets={A: 1})
    play.writes = None
    play.commit(offsets={A: 2})
    waiting = play.start_fetch("g", partitions=[("t", 0)])
    play.complete_writes(Error.NOT_ENOUGH_REPLICAS)
    assert [row.committed_offset for row in waiting.response.groups[0].topics[0].partitions] == [1]


def test_kip_447_no_other_group_waits(play: Play) -> None:
    play.commit(offsets={A: 1})
    play.writes = None
    play.commit(offsets={A: 2})
    play.new_id(group="h")
    assert play.fetch(A, group="h", stable=True) == {A: (-1, -1, "", 0)}
    assert play.fetch(A) == {A: (1, -1, "", 0)}


@pytest.mark.parametrize("version", [1, 5, 8])
def test_a_group_error_uses_the_field_of_the_version(play: Play, version: int) -> None:
    play.coordinator.store.owned.clear()
    answer = play.fetch_raw("g", version=version, partitions=[("t", 0), ("t", 1)])
    expected = Error.NOT_COORDINATOR
    seen: Any
    match version:
        case 1:
            seen = [(row.committed_offset, row.metadata, row.error_code) for row in answer.topics[0].partitions]
            assert seen == [(-1, "", expected), (-1, "", expected)]
        case 5:
            assert (answer.error_code, answer.topics) == (expected, ())
        case _:
            assert [(row.error_code, row.topics) for row in answer.groups] == [(expected, ())]
