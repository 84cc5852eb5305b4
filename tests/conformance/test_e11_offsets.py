"""E.11: committed offsets: who may commit, and the results of fetching them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenarios.registry import scenario

from koordinator.wire.apis import ApiKey

if TYPE_CHECKING:
    from scenarios.player import Player

T0, T1, T2, T3 = (("t", partition) for partition in range(4))
NOWHERE = ("nosuch", 0)

METADATA_MAX_CHARACTERS = 4096
"""Kafka's offset.metadata.max.bytes, which counts UTF-16 units rather than bytes or characters."""


@scenario(kip="base")
def test_e174_a_group_may_have_offsets_and_no_member_ever(play: Player) -> None:
    play.offsets_only()
    play.describe().expect("Empty", [], protocol_type="", protocol_data="")
    # KIP-518: states are listed since version 4
    has_states = play.serves(ApiKey.LIST_GROUPS, 4)
    (row,) = play.listed(version=4 if has_states else 3)
    assert (row.group_id, row.protocol_type) == (play.g, "")
    assert row.group_state == ("Empty" if has_states else "")
    play.fetch(T0).expect({T0: (42, -1, "", 0)})


@scenario(kip="base")
def test_e176_leader_epoch_and_metadata_come_back(play: Player) -> None:
    a = play.stable_one()
    play.commit(1, a, {T0: 5}, leader_epoch=3, metadata="m").expect(0)
    play.fetch(T0).expect({T0: (5, 3, "m", 0)})
    play.fetch(T0, version=4).expect({T0: (5, -1, "m", 0)})


@scenario(kip="base")
def test_e177_a_commit_needs_a_member_and_its_generation(play: Player) -> None:
    a = play.stable_one()
    play.commit(2, a).expect(22)
    play.commit(1, "ghost").expect(25)
    play.commit(-1, "").expect(25)
    play.commit(-1, a).expect(22)
    play.commit(0, "").expect(25)
    play.fetch(T0).expect({T0: -1})


@scenario(kip="base")
def test_e179_no_commit_before_the_assignment(play: Player) -> None:
    a = play.stable_one()
    play.commit(1, a, {T0: 5}).expect(0)
    play.join_stable(2, a)
    play.commit(2, a, {T0: 7}).expect(27)
    play.fetch(T0).expect({T0: 5})


@scenario(kip="base")
def test_e180_member_and_generation_are_checked_before_the_state(play: Player) -> None:
    a, _ = play.unsynced_two()
    play.commit(1, a).expect(22)
    play.commit(2, "ghost").expect(25)


@scenario(kip="base")
def test_e182_metadata_that_is_null_comes_back_empty(play: Player) -> None:
    a = play.stable_one()
    play.commit(1, a, {T0: 5}, metadata=None).expect(0)
    play.fetch(T0).expect({T0: (5, -1, "", 0)})


@scenario(kip="base")
def test_e183_metadata_is_measured_in_utf_16_units(play: Player) -> None:
    notes: dict[tuple[str, int], str | None] = {
        T0: "a" * METADATA_MAX_CHARACTERS,
        T1: "a" * (METADATA_MAX_CHARACTERS + 1),
        # two bytes each, and one unit
        T2: "ä" * METADATA_MAX_CHARACTERS,
        # two units each
        T3: "😀" * (METADATA_MAX_CHARACTERS // 2 + 1),
    }
    a = play.stable_one()
    play.commit(1, a, dict.fromkeys(notes, 5), metadata=notes).expect({T0: 0, T1: 12, T2: 0, T3: 12})
    play.fetch(T1, T3).expect({T1: -1, T3: -1})
    # kilobytes that would only bloat the transcript
    (topic,) = play.fetch(T0, T2).unrecorded().topics
    assert {(topic.name, row.partition_index): row.metadata for row in topic.partitions} == {
        T0: notes[T0],
        T2: notes[T2],
    }


@scenario(kip="base")
def test_e185_a_commit_of_unknown_partitions_alone_reaches_no_group(play: Player) -> None:
    play.stable_one()
    play.commit(99, "ghost", {NOWHERE: 1}).expect({NOWHERE: 3})
    unknown = f"{play.g}.unknown"
    play.commit(-1, "", {NOWHERE: 1}, group=unknown).expect({NOWHERE: 3})
    play.describe(unknown).expect("Dead", [])
    play.delete(unknown).expect({unknown: 69})


@scenario(kip="base")
def test_e186_a_commit_of_nothing_reaches_no_group(play: Player) -> None:
    play.stable_one()
    assert play.commit(99, "ghost", {}).expect({}).topics == ()
    unknown = f"{play.g}.unknown"
    assert play.commit(-1, "", {}, group=unknown).expect({}).topics == ()
    play.delete(unknown).expect({unknown: 69})


@scenario(kip="base")
def test_e188_any_offset_may_follow_any_other(play: Player) -> None:
    a = play.stable_one()
    for offset in (100, 5, -7):
        play.commit(1, a, {T0: offset}).expect(0)
        play.fetch(T0).expect({T0: offset})


@scenario(kip="base")
def test_e189_nothing_is_committed_in_an_unknown_group(play: Player) -> None:
    nowhere = ("nosuch", 3)
    play.fetch(T0, nowhere).expect({T0: (-1, -1, "", 0), nowhere: (-1, -1, "", 0)})
    play.fetch(everything=True).expect({})
    play.describe().expect("Dead", [])


@scenario(kip="KIP-709")
def test_e191_the_offsets_of_several_groups_are_fetched_at_once(play: Player) -> None:
    a = play.stable_one()
    play.commit(1, a, {T0: 5, ("u", 1): 6}).expect(0)
    simple, unknown = f"{play.g}.simple", f"{play.g}.unknown"
    play.commit(-1, "", {T0: 42}, group=simple).expect(0)
    asked = play.fetch(groups=[play.g, unknown, simple], everything=True, version=8)
    assert sorted(row.group_id for row in asked.answer().groups) == sorted([play.g, unknown, simple])
    asked.expect({T0: 5, ("u", 1): 6}, group=play.g)
    asked.expect({}, group=unknown)
    asked.expect({T0: 42}, group=simple)


@scenario(kip="base", nodes=2)
def test_e192_another_node_knows_no_offsets(play: Player) -> None:
    play.offsets_only()
    other = play.other_node()
    other.fetch(T0, version=1).expect({T0: (-1, -1, "", 16)})
    other.fetch(T0, version=5).expect({}, error=16)
    if play.serves(ApiKey.OFFSET_FETCH, 8):
        other.fetch(T0, version=8).expect({}, error=16, group=play.g)


@scenario(kip="base")
def test_e194_to_fetch_offsets_is_no_sign_of_life(play: Player) -> None:
    play.session = 6
    a = play.stable_one()
    play.zero()
    for seconds in (2, 4, 6, 8, 10):
        play.at(seconds)
        play.fetch(T0).expect({T0: -1})
    play.heartbeat(1, a).expect(25)


@scenario(kip="KIP-447")
def test_e195_an_offset_of_an_open_transaction_is_not_stable(play: Player) -> None:
    play.commit(-1, "", {T0: 5}).expect(0)
    transaction = play.transaction()
    transaction.commit(-1, "", {T0: 9}).expect(0)
    play.fetch(T0, stable=True, version=7).expect({T0: (-1, -1, "", 88)})
    play.fetch(T0, stable=False, version=7).expect({T0: 5})
    transaction.end()


@scenario(kip="KIP-447")
def test_e197_a_transactional_commit_of_a_member_needs_its_generation(play: Player) -> None:
    a = play.stable_one()
    transaction = play.transaction()
    transaction.commit(-1, "", version=2).expect(0)
    transaction.commit(1, a).expect(0)
    transaction.commit(0, a).expect(22)
    transaction.commit(1, "ghost").expect(25)
    transaction.commit(-1, "").expect(0)
    transaction.end()


@scenario(kip="KIP-447")
def test_e198_a_transactional_commit_does_not_wait_for_the_leader(play: Player) -> None:
    a, _ = play.unsynced_two()
    transaction = play.transaction()
    transaction.commit(2, a).expect(0)
    transaction.end()


@scenario(kip="KIP-447")
def test_e200_a_static_member_that_was_replaced_commits_in_no_transaction(play: Player) -> None:
    p = play.static_one()
    play.join("", "i1").expect(generation_id=1)
    transaction = play.transaction()
    transaction.commit(1, p, instance_id="i1").expect(82)
    transaction.end()


@scenario(kip="KIP-211", check_interval=2)
def test_e201_an_offset_may_have_a_retention_of_its_own(play: Player) -> None:
    play.wait_expiry_check()
    play.zero()
    play.commit(-1, "", {T0: 5}, retention=1, version=2).expect(0)
    play.commit(-1, "", {T1: 6}).expect(0)
    play.fetch(T0, T1).expect({T0: 5, T1: 6})
    play.at(4)
    play.fetch(T0, T1).expect({T0: -1, T1: 6})
