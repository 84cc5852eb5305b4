"""E.18: requests of careless clients: unreadable metadata, records that are too large, rows given twice."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from builders.requests import subscription
from scenarios.registry import scenario
from scenarios.targets import request_header

from koordinator.wire import frames
from koordinator.wire.apis import ApiKey
from koordinator.wire.codec import encode
from koordinator.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from koordinator.wire.messages.offset_commit import OffsetCommitRequestPartition
from koordinator.wire.messages.offset_commit import OffsetCommitRequestTopic as TopicOffsets
from koordinator.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from koordinator.wire.messages.offset_fetch import OffsetFetchRequestTopics
from koordinator.wire.messages.sync_group import SyncGroupRequest
from koordinator.wire.primitives import ZERO_UUID

if TYPE_CHECKING:
    from scenarios.player import Player

    from koordinator.wire.apis import Message

TOPIC_T = b"\x00\x01t"
NULL = b"\xff\xff\xff\xff"

SUBSCRIBED_TO_T = {
    "newest": subscription("t"),
    **{f"v{version}": struct.pack(">hi", version, 1) + TOPIC_T + NULL for version in (1, 2, 3, 4, 9, 32767, -1, -2)},
    "v1 with damaged owned partitions": struct.pack(">hi", 1, 1) + TOPIC_T + NULL + b"\xff\xff\xff\xffjunk",
    "user data of length -2": struct.pack(">hi", 0, 1) + TOPIC_T + b"\xff\xff\xff\xfe",
}
"""Metadata in which brokers read a subscription to `t`."""

SUBSCRIBED_TO_ALL = {
    "empty": b"",
    "half a version": b"\x00",
    "no topic count": struct.pack(">h", 0),
    "a topic less than counted": struct.pack(">hi", 0, 2) + TOPIC_T,
    "no user data": struct.pack(">hi", 0, 1) + TOPIC_T,
    "half a length of user data": struct.pack(">hi", 0, 1) + TOPIC_T + b"\xff\xff",
}
"""Metadata that end within a number."""

NOT_UTF_8 = struct.pack(">hih", 0, 1, 1) + b"\xff" + NULL

INVALID_LENGTHS = {
    "-1 topics": struct.pack(">hi", 0, -1) + NULL,
    "-2 topics": struct.pack(">hi", 0, -2) + NULL,
    "a million topics": struct.pack(">hi", 0, 1_000_000) + NULL,
    "a null topic": struct.pack(">hih", 0, 1, -1) + NULL,
    "a topic of length -2": struct.pack(">hih", 0, 1, -2) + NULL,
    "a topic longer than the rest": struct.pack(">hih", 0, 1, 9) + TOPIC_T + NULL,
    "user data longer than the rest": struct.pack(">hi", 0, 1) + TOPIC_T + struct.pack(">i", 1),
}
"""Metadata on which the coordinator fails with an exception that it does not expect."""

INVALID = (("range", INVALID_LENGTHS["-1 topics"]),)


def _fails(play: Player) -> bool:
    """Whether the coordinator fails on invalid lengths; 2.4, 4.2.2 and 4.4 read subscriptions to every topic."""
    return play.since("2.8.0") and not play.since("4.2.2", "4.4.0")


@scenario(kip="KIP-496")
def test_e601_of_a_subscription_the_fields_of_version_0_are_read(play: Player) -> None:
    subscribed = (
        *((metadata, (86, 0)) for metadata in SUBSCRIBED_TO_T.values()),
        *((metadata, (86, 86)) for metadata in SUBSCRIBED_TO_ALL.values()),
        (NOT_UTF_8, (0, 0)),
    )
    for number, (metadata, (of_t, of_u)) in enumerate(subscribed):
        group, offered = f"{play.g}.{number}", (("range", metadata),)
        a = play.new_id(group=group, protocols=offered)
        assert play.join(a, group=group, protocols=offered).answer().generation_id == 1
        play.sync(1, a, group=group).answer()
        play.delete_offsets(("t", 0), ("u", 0), group=group).expect({("t", 0): of_t, ("u", 0): of_u})


@scenario(kip="base")
def test_e602_a_join_with_invalid_lengths_is_never_answered_and_changes_no_topics(play: Player) -> None:
    offered_before = (("range", subscription("t")),)
    for number, metadata in enumerate(INVALID_LENGTHS.values()):
        group, offered = f"{play.g}.{number}", (("range", metadata),)
        a = play.new_id(group=group, protocols=offered)
        joining = play.join(a, group=group, protocols=offered)
        if not _fails(play):
            assert joining.answer().generation_id == 1
            play.delete_offsets(("u", 0), group=group).expect({("u", 0): 86})
            continue
        play.expect_never(joining)
        play.heartbeat(0, a, group=group).expect(22)
        play.heartbeat(1, a, group=group).expect(27)
        play.sync(1, a, group=group).expect(27)
        play.describe(group).expect("PreparingRebalance", [a])

        # in a group that has a generation, its topics stay in use
        group = f"{group}.again"
        a = play.new_id(group=group, protocols=offered_before)
        assert play.join(a, group=group, protocols=offered_before).answer().generation_id == 1
        play.join(a, group=group, protocols=offered).expect(-1)
        play.delete_offsets(("t", 0), ("u", 0), group=group).expect({("t", 0): 86, ("u", 0): 0})


@scenario(kip="base")
def test_e603_after_invalid_lengths_a_group_goes_on_with_the_next_member(play: Player) -> None:
    a = play.new_id(protocols=INVALID, session=1)
    joining = play.join(a, protocols=INVALID, session=1)
    if not _fails(play):
        assert joining.answer().generation_id == 1
        return
    play.heartbeat(1, a).expect(27)
    # OLD: a join phase that failed never ends
    play.wait_described("PreparingRebalance" if play.old else "Empty", [])
    b = play.new_id()
    joining = play.join(b)
    if play.old:
        play.expect_never(joining)
    else:
        play.expect_generation(3, joining, leader=b)


@scenario(kip="base")
def test_e604_a_leader_that_rejoins_with_invalid_lengths_gets_an_unknown_error(play: Player) -> None:
    a = play.stable_one()
    joining = play.join(a, protocols=INVALID)
    if not _fails(play):
        assert joining.answer().generation_id == 2
        return
    joining.expect(-1, member_id="")
    play.heartbeat(1, a).expect(22)
    play.heartbeat(2, a).expect(27)
    play.describe().expect("PreparingRebalance", [a])
    again = play.join(a)
    if play.old:
        play.expect_never(again)
    else:
        play.expect_generation(3, again, leader=a)
        play.describe().expect("CompletingRebalance", [a])


@scenario(kip="base")
def test_e605_the_last_join_beside_invalid_lengths_gets_an_unknown_error(play: Player) -> None:
    a, b = play.stable_two()
    joining = play.join(b, protocols=INVALID)
    play.expect_parked(joining)
    last = play.join(a)
    if not _fails(play):
        assert {last.answer().generation_id, joining.answer().generation_id} == {3}
        return
    last.expect(-1, member_id="")
    play.expect_parked(joining)
    play.heartbeat(3, a).expect(27)
    play.leave(b).expect(0)
    joining.expect(25, member_id="")
    # the join of a counts, though it was answered
    play.describe().expect("PreparingRebalance" if play.old else "CompletingRebalance", [a])
    play.heartbeat(3 if play.old else 4, a).expect(27 if play.old else 0)


@scenario(kip="base")
def test_e606_an_assignment_that_is_too_large_starts_the_join_phase_again(play: Player) -> None:
    a, b = play.unsynced_two()
    parked = play.sync(2, b)
    play.expect_parked(parked)
    play.sync(2, a, {a: b"x" * 1_100_000}).expect(-1)
    parked.expect(-1)
    # 3.9 NEW fails while it flushes the batch once more
    play.wait_until("heartbeats are served", lambda: play.heartbeat(2, a).unrecorded().error_code == 27)
    play.wait_described("PreparingRebalance", [a, b])
    play.heartbeat(2, a).expect(27)
    play.expect_parked(play.join(b))
    assert play.join(a).answer().generation_id == 3


@scenario(kip="base")
def test_e607_offsets_that_are_too_large_for_a_batch_are_not_stored(play: Player) -> None:
    topic = play.new_topic(300)
    play.commit(-1, "", {(topic, 0): 1}).expect(0)
    offsets = {(topic, partition): 7 for partition in range(300)}
    error = 28 if play.old else -1

    def refused(group: str) -> None:
        committing = play.commit(-1, "", offsets, metadata="m" * 4000, group=group)
        play.target.pass_time(lambda: committing.is_over, play.limit)
        committing.expect(error)

    refused(play.g)
    play.fetch((topic, 0), (topic, 1)).expect({(topic, 0): 1, (topic, 1): -1})
    other = f"{play.g}.other"
    refused(other)
    play.fetch((topic, 0), group=other).expect({(topic, 0): -1})
    # NEW shows an empty group if the partition had a batch in hand, of which the refused commit is no part
    if play.old:
        play.describe(other).answer()


@scenario(kip="KIP-848")
def test_e608_a_zero_topic_id_is_unknown(play: Player) -> None:
    play.needs(ApiKey.OFFSET_COMMIT, 10)
    play.commit_topics((TopicOffsets(topic_id=ZERO_UUID, partitions=(at(0),)),), version=10).expect({("", 0): 100})
    asked = OffsetFetchRequestTopics(topic_id=ZERO_UUID, partition_indexes=(0,))
    play.fetch_topics((asked,), version=10).expect({("", 0): (-1, -1, "", 100)})
    play.describe().expect("Dead", [])


@scenario(kip="KIP-518")
def test_e609_states_are_listed_with_white_space_around_them(play: Player) -> None:
    play.needs(ApiKey.LIST_GROUPS, 4)
    play.commit(-1, "").expect(0)
    for state in (" Empty", "Empty ", "\tEmpty\n"):
        assert len(play.listed(states=(state,))) == int(play.new)
    for state in ("", " "):
        assert play.listed(states=(state,)) == []


@scenario(kip="base")
def test_e610_a_partition_that_is_committed_twice(play: Player) -> None:
    topics = (
        TopicOffsets(name="t", partitions=(at(0, 1), at(0, 2), at(9, 1))),
        TopicOffsets(name="t", partitions=(at(0, 5), at(1, 6), at(9, 1))),
        TopicOffsets(name="unknown", partitions=(at(0), at(0))),
        TopicOffsets(name="u", partitions=()),
        TopicOffsets(name="empty", partitions=()),
    )
    play.commit_topics(topics).answer()
    play.fetch(("t", 0), ("t", 1)).expect({("t", 0): 5, ("t", 1): 6})
    long = at(0, 2, "m" * 5000)
    play.commit_topics((TopicOffsets(name="t", partitions=(at(0, 8), long)),)).answer()
    play.fetch(("t", 0)).expect({("t", 0): 8 if play.new else 5})
    play.commit_topics((TopicOffsets(name="t", partitions=(long, at(0, 9))),)).answer()
    play.fetch(("t", 0)).expect({("t", 0): 9})


@scenario(kip="base")
def test_e615_a_topic_that_is_committed_twice(play: Player) -> None:
    t, u = "t", "u"
    for names in ((t, t), (t, u, t), (t, u, u)):
        topics = tuple(TopicOffsets(name=name, partitions=(at(0, row),)) for row, name in enumerate(names))
        answered = [topic.name for topic in play.commit_topics(topics).answer().topics]
        assert answered == (list(names) if play.new else list(dict.fromkeys(names)))
    again = (TopicOffsets(name=t, partitions=(at(0, 5), at(0, 6))), TopicOffsets(name=t, partitions=(at(0, 7),)))
    play.commit_topics(again).answer()
    play.commit_topics((*again, TopicOffsets(name=u, partitions=()))).answer()
    play.fetch((t, 0)).expect({(t, 0): 7})
    # with a row that the coordinator does not answer
    play.commit_topics((*again, TopicOffsets(name=u, partitions=(at(9),)))).answer()


@scenario(kip="base")
def test_e611_a_partition_that_is_fetched_twice(play: Player) -> None:
    play.commit(-1, "", {("t", 0): 5, ("t", 1): 6}).expect(0)
    topics = tuple(
        OffsetFetchRequestTopics(name=name, partition_indexes=partitions)
        for name, partitions in (("t", (0, 0, 1)), ("u", ()), ("t", (0, 9)), ("unknown", (0, 0)), ("empty", ()))
    )
    for version in (5, 8):
        if play.serves(ApiKey.OFFSET_FETCH, version):
            play.fetch_topics(topics, version=version).answer()


@scenario(kip="KIP-516")
def test_e616_a_topic_id_that_is_given_twice(play: Player) -> None:
    play.needs(ApiKey.OFFSET_COMMIT, 10)
    t, u = play.topic_id(play.t), play.topic_id(play.u)
    for ids in ((t, t), (t, u, t), (t, ZERO_UUID, t), (ZERO_UUID, t, ZERO_UUID)):
        rows = tuple(TopicOffsets(topic_id=each, partitions=(at(0, row), at(0, 7))) for row, each in enumerate(ids))
        play.commit_topics(rows, version=10).answer()
        asked = tuple(OffsetFetchRequestTopics(topic_id=each, partition_indexes=(0, 0, 9)) for each in ids)
        play.fetch_topics(asked, version=10).answer()


@scenario(kip="KIP-709")
def test_e612_offsets_of_no_group_are_fetched(play: Player) -> None:
    play.needs(ApiKey.OFFSET_FETCH, 8)
    asked = play.fetch(groups=(), version=8)
    if play.since("4.0.0"):
        assert asked.answer().groups == ()
    else:
        play.expect_never(asked)


@scenario(kip="KIP-496")
def test_e613_a_partition_that_is_deleted_twice(play: Player) -> None:
    play.commit(-1, "", {("t", 0): 5, ("t", 1): 6}).expect(0)
    twice = (("t", (0, 0, 9, 9)), ("u", ()), ("t", (0, 1)), ("unknown", (0, 0)), ("empty", ()))
    topics = tuple(
        OffsetDeleteRequestTopic(
            name=name, partitions=tuple(OffsetDeleteRequestPartition(partition_index=each) for each in partitions)
        )
        for name, partitions in twice
    )
    play.ask(OffsetDeleteRequest(group_id=play.g, topics=topics), 0).answer()


def at(partition: int, offset: int = 1, metadata: str = "") -> OffsetCommitRequestPartition:
    """Return a partition of an OffsetCommit."""
    return OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset, committed_metadata=metadata)


@scenario(kip="base")
def test_e614_a_request_behind_a_parked_one_is_served_though_the_client_has_gone(play: Player) -> None:
    a, b = play.unsynced_two()
    syncing = SyncGroupRequest(group_id=play.g, generation_id=2, member_id=b)
    leaving = LeaveGroupRequest(group_id=play.g, members=(MemberIdentity(member_id=b),))
    play.send(framed(syncing) + framed(leaving), on="one")
    play.close("one")
    play.wait(0.5)
    play.describe().expect("CompletingRebalance", [a, b])
    play.sync(2, a, {a: b"a2", b: b"b2"}).expect(assignment=b"a2")
    play.wait_described("PreparingRebalance", [a])
    play.heartbeat(2, a).expect(27)


def framed(request: Message, version: int = 3) -> bytes:
    """Return the frame of a request."""
    return frames.frame(request_header(type(request), version, 1, "c"), encode(request, version))


@scenario(kip="KIP-848")
def test_e617_a_join_does_not_write_the_group_that_a_refused_commit_has_made(play: Player) -> None:
    topic = play.new_topic(1)
    play.commit(-1, "", {(topic, 0): 1}, metadata="m" * 5000).expect(12)
    joining = play.join("", "i1")
    a = joining.answer().member_id
    if play.old:
        play.describe().expect("CompletingRebalance", [a])
    else:
        play.describe().expect("Dead", [])
    play.sync(1, a, {a: b"a"}).expect(assignment=b"a")
    play.wait_described("Stable", [a])
