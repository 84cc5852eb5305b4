"""Offsets in transactions: the order of checks, pending offsets, deletion, and what the log holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenarios.registry import scenario
from scenarios.transactional import TransactionalProducer

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
