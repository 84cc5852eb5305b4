"""KIP-211 and KIP-496: expiry and deletion of committed offsets and groups."""

from __future__ import annotations

from typing import Any

import pytest
from builders.requests import CHANGED
from scenes.play import Play

from koordinator.emulator.core.groups.facts import OffsetsExpired
from koordinator.wire.errors import Error
from koordinator.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from koordinator.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from koordinator.wire.messages.offsets_topic import GroupMetadataKey, OffsetCommitKey

A, B = ("t", 0), ("u", 0)
CHECK = 1_000
RETENTION = 60_000
LONG: dict[str, Any] = {"session": 1_800_000, "rebalance": 1_800_000}


@pytest.fixture
def play() -> Play:
    return Play(offsets_retention_check_interval_ms=CHECK, offsets_retention_minutes=1)


def tombstones(play: Play) -> list[OffsetCommitKey | GroupMetadataKey]:
    return [record.key for append in play.appended for record in append.records if record.value is None]


def test_an_empty_group_without_offsets_is_removed_by_the_next_check(play: Play) -> None:
    play.wait(300)
    play.emptied()
    play.wait(CHECK - 301)
    assert play.state() == "Empty"
    play.wait(1)
    assert play.state() == "Dead"
    assert tombstones(play) == [GroupMetadataKey(group="g")]
    joined = play.join(play.new_id())
    play.settle()
    assert joined.response.generation_id == 1


def test_a_pending_id_does_not_protect_its_group(play: Play) -> None:
    x = play.new_id()
    play.wait(CHECK)
    assert play.join(x).error is Error.UNKNOWN_MEMBER_ID


def test_an_offset_in_use_at_one_check_expires_at_a_later_one(play: Play) -> None:
    a = play.stable_member(**LONG)
    play.commit(1, a)
    play.wait(10 * CHECK)
    play.leave(a)
    play.wait(RETENTION + CHECK)
    assert play.state() == "Dead"


def test_an_offset_committed_after_a_check_expires_before_older_ones(play: Play) -> None:
    play.commit(offsets={A: 1})
    play.wait(CHECK)
    play.commit(offsets={B: 2}, version=2, retention=3 * CHECK)
    play.wait(4 * CHECK)
    assert list(play.fetch()) == [A]


def test_the_offsets_of_an_empty_group_expire_after_the_retention(play: Play) -> None:
    a = play.stable_member(**LONG)
    play.commit(1, a, offsets={A: 1, B: 2})
    play.wait(50_000)
    play.leave(a)
    play.wait(RETENTION - 1)
    assert play.offset(*A) == 1
    play.wait(CHECK)
    assert (play.fetch(), play.state()) == ({}, "Dead")
    # in the order of Kafka's hash table
    assert tombstones(play)[-3:] == [
        OffsetCommitKey(group="g", topic="u", partition=0),
        OffsetCommitKey(group="g", topic="t", partition=0),
        GroupMetadataKey(group="g"),
    ]


@pytest.mark.parametrize(("release", "order"), [("2.8", [1, 0]), ("4.4", [0, 1])])
def test_the_tombstones_of_a_deleted_group_have_the_order_of_a_hash_table(release: str, order: list[int]) -> None:
    play = Play(kafka_version=release)
    play.commit(offsets={("t", 1): 88})
    play.commit(offsets={("t", 0): 76, ("t", 1): 62})
    play.start_delete("g")
    assert [key.partition for key in tombstones(play) if isinstance(key, OffsetCommitKey)] == order


def test_each_offset_of_a_simple_group_expires_by_its_commit(play: Play) -> None:
    play.commit(offsets={A: 1, B: 2})
    play.wait(30_000)
    play.commit(offsets={B: 3})
    play.wait(RETENTION - 30_000 - 1)
    assert play.offset(*A) == 1
    play.wait(1)
    assert (play.offset(*A), play.offset(*B), play.state()) == (-1, 3, "Empty")
    assert tombstones(play) == [OffsetCommitKey(group="g", topic="t", partition=0)]
    play.wait(30_000)
    assert play.state() == "Dead"
    assert [(fact.partitions, fact.cause) for fact in play.facts_of(OffsetsExpired)] == [
        ((A,), "retention"),
        ((B,), "retention"),
    ]


def test_a_stable_group_keeps_subscribed_offsets_and_expires_the_rest(play: Play) -> None:
    a = play.stable_member(**LONG)
    play.commit(1, a, offsets={A: 1, B: 2})
    play.wait(RETENTION - 1)
    assert play.offset(*B) == 2
    play.wait(1)
    assert (play.offset(*A), play.offset(*B)) == (1, -1)


def test_kafka_13636_nothing_expires_while_a_group_rebalances(play: Play) -> None:
    a, b = play.stable_pair(**LONG)
    play.commit(2, a, offsets={B: 1})
    play.join(b, protocols=CHANGED, **LONG)
    play.wait(RETENTION * 2)
    assert play.state() == "PreparingRebalance"
    assert play.offset(*B) == 1


def test_a_group_of_another_protocol_type_keeps_everything_while_it_has_members(play: Play) -> None:
    sent: dict[str, Any] = {"protocol_type": "connect", "protocols": (("v0", b""),), **LONG}
    x = play.new_id(**sent)
    play.join(x, **sent)
    play.settle()
    play.sync(1, x)
    play.commit(1, x, offsets={B: 1})
    play.wait(RETENTION * 2)
    assert play.offset(*B) == 1


def test_subscriptions_that_cannot_be_read_protect_everything(play: Play) -> None:
    sent = {"protocols": (("range", b"gar"),), **LONG}
    x = play.stable_member(**sent)
    play.commit(1, x, offsets={B: 1})
    play.wait(RETENTION * 2)
    assert play.offset(*B) == 1


def test_a_retention_of_the_commit_overrides_the_setting(play: Play) -> None:
    play.commit(offsets={A: 1}, version=2, retention=5_000)
    play.commit(offsets={B: 1}, version=2, retention=120_000)
    play.wait(4_999)
    assert play.offset(*A) == 1
    play.wait(1)
    assert play.offset(*A) == -1
    play.wait(RETENTION)
    assert play.offset(*B) == 1
    play.wait(RETENTION)
    assert play.state() == "Dead"


def test_a_commit_retention_does_not_expire_subscribed_offsets(play: Play) -> None:
    a = play.stable_member(**LONG)
    play.commit(1, a, offsets={A: 1, B: 1}, version=2, retention=5_000)
    play.wait(RETENTION * 2)
    assert (play.offset(*A), play.offset(*B)) == (1, -1)


def test_a_commit_in_flight_keeps_offset_and_group(play: Play) -> None:
    play.commit(offsets={A: 1})
    play.writes = None
    play.wait(RETENTION - 500)
    committing = play.commit(offsets={A: 2})
    play.wait(CHECK)
    assert play.offset(*A) == 1
    play.complete_writes()
    assert (committing.parked, play.offset(*A)) == (False, 2)


def test_the_first_commit_in_flight_keeps_its_group(play: Play) -> None:
    play.writes = None
    play.commit(offsets={A: 1})
    play.wait(CHECK)
    play.complete_writes()
    assert (play.state(), play.offset(*A)) == ("Empty", 1)


def test_a_check_whose_tombstones_cannot_be_written_deletes_nothing(play: Play) -> None:
    play.commit(offsets={A: 1})
    play.writes = Error.NOT_ENOUGH_REPLICAS
    play.wait(RETENTION)
    assert (play.state(), play.offset(*A)) == ("Empty", 1)
    play.writes = Error.NONE
    play.wait(CHECK)
    assert play.state() == "Dead"


@pytest.mark.parametrize(("group", "expected"), [("unknown", Error.GROUP_ID_NOT_FOUND), ("", Error.INVALID_GROUP_ID)])
def test_nothing_is_deleted_from_a_group_that_does_not_exist(play: Play, group: str, expected: Error) -> None:
    assert play.delete_offsets(A, group=group) == (expected, [])
    assert play.delete_offsets(("nosuch", 0), group=group) == (expected, [])


def test_any_offset_of_an_empty_group_may_be_deleted_committed_or_not(play: Play) -> None:
    a = play.stable_member()
    play.commit(1, a, offsets={A: 1})
    play.leave(a)
    assert play.delete_offsets(A, ("t", 1)) == (Error.NONE, [Error.NONE, Error.NONE])
    assert play.offset(*A) == -1
    assert tombstones(play) == [OffsetCommitKey(group="g", topic="t", partition=0)]


@pytest.mark.parametrize(("version", "rows"), [("2.8", [2]), ("3.9", [2]), ("4.4", [1, 1])])
def test_the_new_coordinator_repeats_the_rows_of_a_topic_unless_one_is_unknown(version: str, rows: list[int]) -> None:
    play = Play(kafka_version=version)
    play.commit(offsets={A: 1, B: 1})
    topics = tuple(
        OffsetDeleteRequestTopic(name="t", partitions=(OffsetDeleteRequestPartition(partition_index=at),))
        for at in (0, 1)
    )
    unknown = OffsetDeleteRequestTopic(name="nosuch", partitions=topics[0].partitions)
    answer = play.send(OffsetDeleteRequest(group_id="g", topics=topics), 0).response
    assert [len(topic.partitions) for topic in answer.topics] == rows
    answer = play.send(OffsetDeleteRequest(group_id="g", topics=(*topics, unknown)), 0).response
    assert [(topic.name, len(topic.partitions)) for topic in answer.topics] == [("nosuch", 1), ("t", 2)]


@pytest.mark.parametrize("retention_ms", [-5, 0])
def test_an_offset_that_is_committed_as_expired_is_deleted_by_the_next_check(retention_ms: int) -> None:
    play = Play()
    row = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    topics = (OffsetCommitRequestTopic(name="t", partitions=(row,)),)
    play.send(OffsetCommitRequest(group_id="g", retention_time_ms=retention_ms, topics=topics), 4)
    assert play.offset(*A) == 1
    play.wait(600_000)
    assert play.offset(*A) == -1


@pytest.mark.parametrize(("version", "written"), [("2.8", 1), ("4.4", 2)])
def test_the_new_coordinator_writes_a_tombstone_as_often_as_an_offset_is_named(version: str, written: int) -> None:
    play = Play(kafka_version=version)
    play.commit(offsets={A: 1, B: 1})
    assert play.delete_offsets(A, A) == (Error.NONE, [Error.NONE] * written)
    assert play.offset(*A) == -1
    assert tombstones(play) == [OffsetCommitKey(group="g", topic="t", partition=0)] * written


def test_only_unsubscribed_offsets_can_be_deleted(play: Play) -> None:
    a = play.stable_member()
    play.commit(1, a, offsets={A: 1, B: 2})
    rows = [Error.UNKNOWN_TOPIC_OR_PARTITION, Error.GROUP_SUBSCRIBED_TO_TOPIC, Error.NONE]
    assert play.delete_offsets(A, B, ("nosuch", 0)) == (Error.NONE, rows)
    assert (play.offset(*A), play.offset(*B)) == (1, -1)


def test_subscriptions_are_those_of_all_members_of_the_last_generation_formed(play: Play) -> None:
    a = play.stable_member()
    b = play.new_id()
    play.join(b, protocols=CHANGED)
    assert play.delete_offsets(B) == (Error.NONE, [Error.NONE])
    play.join(a)
    assert play.delete_offsets(B) == (Error.NONE, [Error.GROUP_SUBSCRIBED_TO_TOPIC])


def test_before_the_first_generation_everything_counts_as_subscribed() -> None:
    play = Play(group_initial_rebalance_delay_ms=1_000)
    play.join("", version=3)
    assert play.delete_offsets(B) == (Error.NONE, [Error.GROUP_SUBSCRIBED_TO_TOPIC])


def test_subscriptions_that_cannot_be_read_count_as_all_topics(play: Play) -> None:
    play.stable_member(protocols=(("range", b"gar"),))
    assert play.delete_offsets(B) == (Error.NONE, [Error.GROUP_SUBSCRIBED_TO_TOPIC])
    assert play.delete_offsets(A, B)[1] == [Error.GROUP_SUBSCRIBED_TO_TOPIC] * 2


def test_nothing_is_deleted_from_a_group_of_another_protocol_type_while_it_has_members(play: Play) -> None:
    x = play.join("", version=3, protocol_type="connect", protocols=(("v0", b""),))
    play.settle()
    assert play.delete_offsets(A) == (Error.NON_EMPTY_GROUP, [])
    play.leave(x.response.member_id)
    assert play.delete_offsets(A) == (Error.NONE, [Error.NONE])


def test_deleting_a_topic_deletes_its_offsets_in_every_group(play: Play) -> None:
    play.commit(offsets={A: 1, B: 2})
    play.commit(offsets={A: 3}, group="other")
    play._perform(play.coordinator.topics_deleted(play.now, ["t"]))
    assert (play.offset(*A), play.offset(*B), play.offset(*A, group="other")) == (-1, 2, -1)
    assert {fact.cause for fact in play.facts_of(OffsetsExpired)} == {"topic_deleted"}
    assert {key.group for key in tombstones(play)} == {"g", "other"}
