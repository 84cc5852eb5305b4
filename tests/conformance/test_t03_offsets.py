"""Offsets in transactions: the order of checks, pending offsets, deletion, and what the log holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from scenarios.consumer_members import ALL, ConsumerMembers
from scenarios.registry import scenario
from scenarios.transactional import TransactionalProducer

from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.offsets_topic import OffsetCommitValue, read_key, read_value
from koordinator.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from koordinator.wire.primitives import ZERO_UUID

if TYPE_CHECKING:
    from scenarios.player import Player


ERASED = {0: (0, -1), 1: (0, -1)}
"""The offsets of two partitions without any."""


def begun(play: Player) -> tuple[TransactionalProducer, int]:
    """Return a producer with the play's group in its transaction, and its id."""
    x = TransactionalProducer(play)
    p = x.initialized()
    assert x.add_offsets(p, 0) == 0
    return x, p


def commit(x: TransactionalProducer, p: int, *, is_commit: bool = True) -> None:
    """End a transaction, and wait until it is complete."""
    assert x.end(p, 0, commit=is_commit) == 0
    x.settle()


@scenario(kip="KIP-98")
def test_t091_the_group_and_its_partitions_are_checked_first(play: Player) -> None:
    x, p = begun(play)
    unknown = TransactionalProducer(play, "unknown")
    unknown.topic = x.topic
    verified = play.since("3.7.0")
    assert unknown.commit_offsets(p, 0, 9) == (49 if verified else 0)
    if verified:
        assert x.commit_offsets(p, 0, 9, tid="") == 42
    assert x.commit_offsets(p, 0, 9, group="") == 24
    assert x.commit_rows(p + 1_000, 0, {7: 9}) == {7: 3}
    assert x.commit_rows(p + 1_000, 0, {0: 9}, topic="nosuch") == {0: 3}
    assert x.commit_rows(p + 1_000, 0, {}) == {}
    # an unknown topic without partitions has a row, a known one none
    row = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=9, committed_metadata="")
    for names in (("nosuch", x.topic), (x.topic, "nosuch"), ("nosuch",)):
        topics = tuple(
            TxnOffsetCommitRequestTopic(name=name, partitions=(row,) if name == x.topic else ()) for name in names
        )
        request = TxnOffsetCommitRequest(
            transactional_id=x.id, group_id="", producer_id=p, producer_epoch=0, topics=topics
        )
        play.ask(request, 3).answer()


@scenario(kip="KIP-447")
def test_t092_a_group_of_pending_offsets_is_visible_and_its_offsets_are_not(play: Player) -> None:
    x, p = begun(play)
    assert x.commit_offsets(p, 0, 9) == 0
    play.describe().expect("Empty", [], protocol_type="")
    assert [each.group_id for each in play.listed()] == [play.g]
    assert x.offsets(0, 1, stable=False) == {0: (0, -1), 1: (0, -1)}
    assert x.offsets(0, 1) == {0: (88, -1), 1: (0, -1)}
    assert x.offsets() == {}
    commit(x, p)
    assert x.stable_offsets(0) == {0: (0, 9)}


@scenario(kip="base")
def test_t093_metadata_that_is_too_long_spares_the_other_partitions(play: Player) -> None:
    x, p = begun(play)
    assert x.commit_rows(p, 0, {0: 1, 1: 2}, metadata={0: "m" * 5_000, 1: None}) == {0: 12, 1: 0}
    assert x.offsets(1) == {1: (88, -1)}
    assert x.offsets(0) == {0: (0, -1) if play.since("3.0.0") else (88, -1)}
    commit(x, p, is_commit=False)
    assert x.stable_offsets(1) == {1: (0, -1)}


@scenario(kip="base")
def test_t134_a_refused_offset_and_those_that_a_commit_loses_with_it(play: Player) -> None:
    x, p = begun(play)
    is_lost = not play.since("3.0.0")
    assert x.commit_rows(p, 0, {0: 1, 1: 2}, metadata={0: "m" * 5_000}) == {0: 12, 1: 0}
    commit(x, p)
    assert x.stable_offsets(0, 1) == {0: (0, -1), 1: (0, 2)}
    assert x.add_offsets(p, 0) == 0
    assert x.commit_rows(p, 0, {0: 3, 1: 4}, metadata={1: "m" * 5_000}) == {0: 0, 1: 12}
    commit(x, p)
    # in 2.8 the commit ends at the refused offset, which comes first in a map
    assert x.stable_offsets(0, 1) == {0: (0, -1 if is_lost else 3), 1: (0, 2)}
    metadata = {(x.topic, 0): "m" * 5_000, (x.topic, 1): ""}
    play.commit(-1, "", {(x.topic, 0): 5, (x.topic, 1): 6}, metadata=metadata).unrecorded()
    assert x.offsets(0, 1) == {0: (88, -1) if is_lost else (0, 3), 1: (0, 6)}
    play.commit(-1, "", {(x.topic, 0): 7}).expect(0)
    assert x.offsets(0) == {0: (0, 7)}


@scenario(kip="KIP-447")
def test_t095_the_transaction_is_checked_before_the_member(play: Player) -> None:
    play.stable_one()
    x, p = begun(play)
    y = TransactionalProducer(play, "y")
    q = y.initialized()
    y.topic = x.topic
    verified = play.since("3.7.0")
    assert x.commit_offsets(p + 1_000, 0, 9, 1, "ghost") == (49 if verified else 25)
    assert y.commit_offsets(q, 0, 9, 1, "ghost") == (48 if verified else 25)


@scenario(kip="KIP-447")
def test_t096_a_static_member_that_was_replaced_is_fenced(play: Player) -> None:
    old = play.static_one()
    new = play.join("", "i1").expect(generation_id=1).member_id
    x, p = begun(play)
    assert x.commit_offsets(p, 0, 9, 1, old, "i1") == 82
    assert x.commit_offsets(p, 0, 9, 1, new, "i1") == 0
    commit(x, p)
    assert x.stable_offsets(0) == {0: (0, 9)}


@scenario(kip="KIP-890")
def test_t098_version_5_begins_the_transaction_even_if_the_member_is_refused(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    assert x.commit_offsets(p, 0, 9, 1, "ghost", version=5) == 22
    x.expect("Ongoing", 0)
    assert [topic for topic, _ in x.topics] == ["__consumer_offsets"]


@scenario(kip="base")
def test_t102_a_later_commit_of_the_transaction_replaces_an_earlier_one(play: Player) -> None:
    x, p = begun(play)
    assert x.commit_rows(p, 0, {0: 40}) == {0: 0}
    assert x.commit_rows(p, 0, {0: 41, 1: 1}) == {0: 0, 1: 0}
    commit(x, p)
    assert x.stable_offsets(0, 1) == {0: (0, 41), 1: (0, 1)}


@scenario(kip="KIP-229")
def test_t104_a_deleted_group_does_not_get_its_pending_offsets_back(play: Player) -> None:
    x, p = begun(play)
    play.commit(-1, "", {(x.topic, 0): 5}).expect(0)
    assert x.commit_offsets(p, 0, 9) == 0
    play.delete().expect({play.g: 0})
    play.describe().expect("Dead", [])
    assert x.offsets(0) == {0: (0, -1)}
    commit(x, p)
    assert x.stable_offsets(0) == {0: (0, -1)}
    play.describe().expect("Dead", [])


@scenario(kip="KIP-229")
def test_t106_a_group_of_pending_offsets_alone_can_be_deleted(play: Player) -> None:
    x, p = begun(play)
    assert x.commit_offsets(p, 0, 9) == 0
    play.delete().expect({play.g: 0})
    play.describe().expect("Dead", [])
    commit(x, p)
    assert x.stable_offsets(0) == {0: (0, -1)}


@scenario(kip="KIP-496")
def test_t103_deleted_offsets_do_not_come_back(play: Player) -> None:
    x, p = begun(play)
    play.commit(-1, "", {(x.topic, 0): 5, (x.topic, 1): 6}).expect(0)
    assert x.commit_rows(p, 0, {0: 9, 1: 9}) == {0: 0, 1: 0}
    play.delete_offsets((x.topic, 0)).expect({(x.topic, 0): 0})
    assert x.offsets(0, 1) == {0: (0, -1), 1: (88, -1)}
    commit(x, p)
    assert x.stable_offsets(0, 1) == {0: (0, -1), 1: (0, 9)}


@scenario(kip="KIP-496")
def test_t144_a_group_stays_while_the_transaction_of_its_deleted_offset_is_open(play: Player) -> None:
    x, p = begun(play)
    assert x.commit_offsets(p, 0, 9) == 0
    play.delete_offsets((x.topic, 0)).expect({(x.topic, 0): 0})
    play.describe().expect("Empty", [])
    commit(x, p)
    assert x.stable_offsets(0) == {0: (0, -1)}
    if play.new:
        # the old coordinator forgets such groups whenever a topic is deleted
        play.describe().expect("Empty", [])


@scenario(kip="KIP-496", restarted=True)
def test_t138_a_restart_after_offsets_were_deleted(play: Player) -> None:
    x, p = begun(play)
    play.commit(-1, "", {(x.topic, 0): 5}).expect(0)
    assert x.commit_rows(p, 0, {0: 9, 1: 9}) == {0: 0, 1: 0}
    play.delete_offsets((x.topic, 0), (x.topic, 1)).expect({(x.topic, 0): 0, (x.topic, 1): 0})
    assert x.offsets(0, 1) == {0: (0, -1), 1: (0, -1)}
    play.reload()
    x.wait_loaded()
    before = x.offsets(0, 1)
    commit(x, p)
    after = x.stable_offsets(0, 1)
    # the old coordinator loads pending offsets whatever became of them
    assert (before, after) == (ERASED, ERASED) if play.new else ({0: (88, -1), 1: (88, -1)}, {0: (0, 9), 1: (0, 9)})


@scenario(kip="KIP-229", restarted=True)
def test_t139_a_restart_after_the_group_was_deleted(play: Player) -> None:
    x, p = begun(play)
    play.commit(-1, "", {(x.topic, 0): 5}).expect(0)
    assert x.commit_rows(p, 0, {0: 9, 1: 9}) == {0: 0, 1: 0}
    play.delete().expect({play.g: 0})
    play.reload()
    x.wait_loaded()
    before = x.offsets(0, 1)
    commit(x, p)
    after = x.stable_offsets(0, 1)
    # the old coordinator loads pending offsets whatever became of them
    assert (before, after) == (ERASED, ERASED) if play.new else ({0: (88, -1), 1: (88, -1)}, {0: (0, 9), 1: (0, 9)})


@scenario(kip="KIP-98")
def test_t105_an_abort_leaves_an_empty_group(play: Player) -> None:
    x, p = begun(play)
    assert x.commit_offsets(p, 0, 60) == 0
    commit(x, p, is_commit=False)
    play.describe().expect("Empty", [])
    assert x.stable_offsets(0) == {0: (0, -1)}


@scenario(kip="KIP-211", check_interval=2)
def test_t135_an_expiry_check_finds_a_group_of_pending_offsets(play: Player) -> None:
    x, p = begun(play)
    assert x.commit_offsets(p, 0, 9) == 0
    play.wait_expiry_check()
    play.wait(3)
    is_expired = play.new and not play.since("4.0.0")
    play.describe().expect("Dead" if is_expired else "Empty", [])
    assert x.offsets(0) == {0: (88, -1)}
    commit(x, p)
    assert x.stable_offsets(0) == {0: (0, -1 if is_expired else 9)}
    play.commit(-1, "", {(x.topic, 1): 7}).expect(0)
    assert x.stable_offsets(0, 1) == {0: (0, 9), 1: (0, 7)}


@scenario(kip="KIP-447")
def test_t100_an_ordinary_commit_made_after_a_pending_one_wins(play: Player) -> None:
    x, p = begun(play)
    assert x.commit_offsets(p, 0, 9) == 0
    play.commit(-1, "", {(x.topic, 0): 5}).expect(0)
    assert x.offsets(0) == {0: (88, -1)}
    commit(x, p)
    assert x.stable_offsets(0) == {0: (0, 5)}


@scenario(kip="KIP-890")
def test_t131_a_commit_outside_the_transaction(play: Player) -> None:
    x = TransactionalProducer(play)
    p = x.initialized()
    if play.since("3.7.0"):
        assert x.commit_offsets(p, 0, 9) == 48
        assert x.offset(stable=True) == (0, -1)
    else:
        assert [x.commit_offsets(p, 0, 9), x.commit_offsets(p + 5_000, 0, 9), x.commit_offsets(p, 1, 9)] == [0, 0, 0]
        assert x.offset(stable=True) == (88, -1)


@scenario(kip="KIP-447")
def test_t132_members_of_an_unknown_and_of_a_stable_group(play: Player) -> None:
    x, p = begun(play)
    is_new = play.new
    assert x.commit_offsets(p, 0, 9, 0, "m") == (22 if is_new else 25)
    assert x.commit_offsets(p, 0, 9, -1, "m") == (0 if play.since("3.7.0") else 25)
    a = play.stable_one()
    assert x.commit_offsets(p, 0, 9, -1, a) == (22 if play.since("3.7.0") else 0)
    assert x.commit_offsets(p, 0, 9, 0, a) == 22
    assert x.commit_offsets(p, 0, 9, 1, "ghost") == 25
    assert x.commit_offsets(p, 0, 9, 1, a) == 0
    assert x.commit_offsets(p, 0, 9) == 0


@scenario(kip="KIP-447")
def test_t141_generations_without_a_member(play: Player) -> None:
    x, p = begun(play)
    modern = play.since("3.7.0")
    assert x.commit_offsets(p, 0, 9, 1, "") == (25 if modern and play.old else 22)
    assert x.commit_offsets(p, 0, 9, 0, "") == (0 if not modern else 25 if play.old else 22)
    play.stable_one()
    assert x.commit_offsets(p, 0, 9, 2, "") == (25 if modern else 22)
    assert x.commit_offsets(p, 0, 9, 1, "") == (25 if modern else 0)


BY_TOPIC_ID = 6
"""The first version of TxnOffsetCommit that names topics by id."""

UNKNOWN_ID = UUID(int=7)


def commit_by_id(
    play: Player, x: TransactionalProducer, p: int, *places: tuple[UUID, int], epoch: int = -1, member_id: str = ""
) -> list[tuple[UUID, int, int]]:
    """TxnOffsetCommit v6 of offset 9 for places, a topic each: the rows of the response."""
    rows = (
        TxnOffsetCommitRequestTopic(
            topic_id=topic_id,
            partitions=(
                TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=9, committed_metadata=""),
            ),
        )
        for topic_id, partition in places
    )
    request = TxnOffsetCommitRequest(
        transactional_id=x.id,
        group_id=play.g,
        producer_id=p,
        producer_epoch=0,
        generation_id_or_member_epoch=epoch,
        member_id=member_id,
        topics=tuple(rows),
    )
    answer: Any = play.slowly(request, BY_TOPIC_ID, recorded=True)
    return [
        (topic.topic_id, row.partition_index, row.error_code) for topic in answer.topics for row in topic.partitions
    ]


@scenario(kip="KIP-1319")
def test_t146_topics_go_by_id_from_version_6_on(play: Player) -> None:
    play.needs(ApiKey.TXN_OFFSET_COMMIT, BY_TOPIC_ID)
    x, p = begun(play)
    known = play.topic_id(x.topic)
    nowhere = [(known, 9, 3), (UNKNOWN_ID, 0, 100), (UNKNOWN_ID, 1, 100), (ZERO_UUID, 0, 100)]
    assert commit_by_id(play, x, p, (known, 9), (UNKNOWN_ID, 0), (UNKNOWN_ID, 1), (ZERO_UUID, 0)) == nowhere
    found = [(known, 9, 3), (known, 0, 0), (known, 1, 0)]
    assert commit_by_id(play, x, p, (known, 0), (known, 9), (known, 1)) == found
    assert commit_by_id(play, x, p, (known, 0), (known, 0)) == [(known, 0, 0), (known, 0, 0)]
    commit(x, p)
    assert x.stable_offsets(0, 1) == {0: (0, 9), 1: (0, 9)}


@scenario(kip="KIP-1319", consumer=True)
def test_t147_version_6_names_the_error_of_a_member(play: Player) -> None:
    play.needs(ApiKey.TXN_OFFSET_COMMIT, BY_TOPIC_ID)
    x, p = begun(play)
    known = play.topic_id(x.topic)
    assert commit_by_id(play, x, p, (known, 0), epoch=1, member_id="A") == [(known, 0, 69)]
    assert x.commit_offsets(p, 0, 9, 1, "A", version=5) == 22
    members = ConsumerMembers(play)
    assert members.join("A") == (2, ALL)
    for epoch, new, old in ((1, 113, 22), (3, 113, 22)):
        assert commit_by_id(play, x, p, (known, 0), epoch=epoch, member_id="A") == [(known, 0, new)]
        assert x.commit_offsets(p, 0, 9, epoch, "A", version=5) == old
    assert commit_by_id(play, x, p, (known, 0), epoch=2, member_id="B") == [(known, 0, 25)]
    assert commit_by_id(play, x, p, (known, 0), epoch=2, member_id="A") == [(known, 0, 0)]
    # only -1 stands for no generation
    for epoch, error in ((-1, 0), (-2, 25)):
        assert commit_by_id(play, x, p, (known, 0), epoch=epoch) == [(known, 0, error)]
        assert x.commit_offsets(p, 0, 9, epoch, "", version=5) == error


@scenario(kip="KIP-1319")
def test_t148_since_4_4_an_offset_of_a_transaction_has_the_id_of_its_topic(play: Player) -> None:
    x, p = begun(play)
    known = play.topic_id(x.topic)
    assert x.commit_offsets(p, 0, 9) == 0
    commit(x, p)
    assert x.stable_offsets(0) == {0: (0, 9)}
    ids = [value.topic_id for value in committed(play)]
    assert ids == [known if play.since("4.4.0") else ZERO_UUID]


@scenario(kip="KIP-890")
def test_t153_an_earlier_epoch_is_refused_before_the_transaction_coordinator_is_asked(play: Player) -> None:
    play.needs(ApiKey.END_TXN, 5)
    x = TransactionalProducer(play)
    p = x.initialized()
    # the first offset has the offsets topic created
    play.commit(-1, "").expect(0)
    assert x.add_offsets(p, 0, version=4) == 0
    assert x.end5(p, 0, commit=True) == (0, p, 1)
    x.settle()
    errors = [x.commit_offsets(p, epoch, 5, version=3, tid="nosuch") for epoch in (0, 1, 2)]
    assert errors == [47, 49, 49]


def committed(play: Player) -> list[OffsetCommitValue]:
    """Return the values of the records of offsets."""
    found = []
    for key, value in play.records():
        read = read_key(key)
        each = None if read is None or value is None else read_value(read, value)
        if isinstance(each, OffsetCommitValue):
            found.append(each)
    return found
