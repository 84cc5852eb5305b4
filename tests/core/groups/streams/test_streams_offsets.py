"""Offsets of streams groups: member epochs, assignment epochs, topics of the topology, expiry (KIP-1071)."""

from __future__ import annotations

from scenes.streams_play import StreamsPlay, internal, subtopology, topology

from koordinator.wire.errors import Error

NONE, STALE, UNKNOWN = Error.NONE, Error.STALE_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID


def committed(play: StreamsPlay, epoch: int, member_id: str = "A", partition: int = 0, version: int = 9) -> Error:
    """Commit an offset of t, and return the error."""
    (error,) = play.commit_errors(epoch, member_id, offsets={("t", partition): 1}, version=version)
    return error


def test_a_member_commits_in_its_epoch(play: StreamsPlay) -> None:
    play.come("A")
    assert committed(play, 2) == NONE
    assert committed(play, 3) == STALE
    assert committed(play, 2, "B") == UNKNOWN
    assert committed(play, -1, "") == UNKNOWN
    assert committed(play, 2, version=8) == Error.UNSUPPORTED_VERSION


def test_a_commit_in_a_transaction_may_leave_the_member_out(play: StreamsPlay) -> None:
    play.come("A")
    errors = [
        row.error_code
        for epoch in (-1, -2)
        for topic in play.txn_commit({("t", 0): 5}, epoch, "").response.topics
        for row in topic.partitions
    ]
    assert errors == [NONE, UNKNOWN]


def test_an_older_epoch_commits_what_the_member_got_in_it_or_earlier(play: StreamsPlay) -> None:
    play.come("A")
    for epoch in (2, 3, 4):
        play.beat("A", epoch, rack_id=str(epoch))
    assert committed(play, 4) == committed(play, 2) == NONE
    assert committed(play, 1) == STALE
    play.enter("B")
    play.beat("A", 5)
    # they are to be revoked, and still the member's
    assert committed(play, 2, partition=3) == NONE
    play.beat("A", 5, owned={"0": [0, 1]})
    assert committed(play, 2, partition=3) == STALE
    assert committed(play, 6, partition=3) == NONE


def test_an_older_epoch_commits_no_topic_that_the_topology_does_not_read(play: StreamsPlay) -> None:
    play.come("A")
    play.beat("A", 2, rack_id="r")
    assert play.commit_errors(2, "A", offsets={("u", 0): 1}, version=9) == [STALE]
    assert play.commit_errors(3, "A", offsets={("u", 0): 1}, version=9) == [NONE]


def test_a_producer_need_not_name_a_member(play: StreamsPlay) -> None:
    play.come("A")
    assert play.txn_errors({("t", 0): 1}) == [NONE]
    assert play.txn_errors({("t", 0): 1}, 2, "A") == [NONE]
    assert play.txn_errors({("t", 0): 1}, 3, "A") == [Error.ILLEGAL_GENERATION]
    assert play.txn_errors({("t", 0): 1}, 2, "B") == [UNKNOWN]


def test_anyone_commits_to_an_empty_group(play: StreamsPlay) -> None:
    play.come("A")
    play.beat("A", -1)
    assert committed(play, -1, "") == NONE
    assert committed(play, 2) == UNKNOWN


def test_offsets_of_the_topology_are_not_deleted_while_there_are_members(play: StreamsPlay) -> None:
    play.come("A", topology(subtopology(repartition_source_topics=(internal("u", 2),))))
    for topic in ("t", "u"):
        assert play.commit_errors(2, "A", offsets={(topic, 0): 1}, version=9) == [NONE]
    refused = Error.GROUP_SUBSCRIBED_TO_TOPIC
    assert play.delete_offsets(("t", 0), ("u", 0)) == (NONE, [refused, refused])
    play.beat("A", -1)
    assert play.delete_offsets(("t", 0), ("u", 0)) == (NONE, [NONE, NONE])


def test_offsets_of_other_topics_are_deleted_beside_members(play: StreamsPlay) -> None:
    play.come("A")
    assert play.commit_errors(2, "A", offsets={("u", 0): 1}, version=9) == [NONE]
    assert play.delete_offsets(("u", 0)) == (NONE, [NONE])
    assert not play.streams_group().offsets


def test_offsets_of_a_streams_group_expire_once_it_is_empty(play: StreamsPlay) -> None:
    play = StreamsPlay(offsets_retention_minutes=1, offsets_retention_check_interval_ms=1_000)
    play.come("A")
    committed(play, 2)
    for _ in range(70):
        play.wait(1_000)
        play.beat("A", 2)
    assert play.streams_group().offsets
    play.beat("A", -1)
    play.wait(2_000)
    assert "g" not in play.coordinator.store.groups
