"""E.4: rebalances and their timeouts (KIP-62)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from builders.requests import CHANGED, protocols, subscription
from scenarios.registry import scenario

from koordinator.wire.messages.consumer_protocol import TopicPartition

if TYPE_CHECKING:
    from scenarios.player import Player


@scenario(kip="base")
def test_e047_a_follower_that_comes_back_unchanged_is_answered_at_once(play: Player) -> None:
    a, b = play.stable_two()
    play.join(b).expect(generation_id=2, protocol_name="range", leader=a, member_id=b, members=[])
    play.heartbeat(2, a).expect(0)


@scenario(kip="base")
def test_e048_a_follower_with_other_metadata_rebalances_the_group(play: Player) -> None:
    a, b = play.stable_two()
    changed = play.join(b, protocols=CHANGED)
    play.expect_parked(changed)
    play.heartbeat(2, a).expect(27)
    leading = play.join(a)
    play.expect_generation(3, leading, changed, leader=a)
    assert leading.metadata[b] == CHANGED[0][1]


@scenario(kip="base")
def test_e050_a_leader_that_comes_back_unchanged_rebalances_the_group(play: Player) -> None:
    a, b = play.stable_two()
    leading = play.join(a)
    play.expect_parked(leading)
    play.heartbeat(2, b).expect(27)
    play.expect_generation(3, leading, play.join(b), leader=a)


@scenario(kip="base")
def test_e051_the_only_member_has_a_new_generation_at_once(play: Player) -> None:
    a = play.stable_one()
    play.expect_generation(2, play.join(a), leader=a)


@scenario(kip="base")
def test_e053_other_metadata_while_the_leader_is_awaited(play: Player) -> None:
    a, b = play.unsynced_two()
    syncing = play.sync(2, b)
    play.expect_parked(syncing)
    leading = play.join(a, protocols=CHANGED)
    syncing.expect(27)
    play.expect_parked(leading)
    play.expect_generation(3, leading, play.join(b), leader=a)


@scenario(kip="base")
def test_e054_a_new_member_while_the_leader_is_awaited(play: Player) -> None:
    a, b = play.unsynced_two()
    syncing = play.sync(2, b)
    play.expect_parked(syncing)
    joining = play.join(version=3)
    syncing.expect(27)
    play.expect_parked(joining)
    play.heartbeat(2, a).expect(27)
    leading = play.join(a)
    play.expect_parked(joining, leading)
    play.expect_generation(3, leading, play.join(b), joining, leader=a)


@scenario(kip="KIP-62")
def test_e056_a_member_that_does_not_rejoin_in_time_is_removed(play: Player) -> None:
    play.session, play.rebalance = 60, 5
    a, b = play.stable_two()
    c = play.new_id()
    play.zero()
    joins = [play.join(c), play.join(b)]
    play.heartbeat(2, a).expect(27)
    play.answers_at(5, *joins)
    # Kafka is free to choose the leader
    assert play.expect_generation(3, *joins, chosen=False) in {b, c}
    play.heartbeat(2, a).expect(25)


@scenario(kip="KIP-62")
def test_e057_a_join_phase_lasts_as_long_as_the_longest_rebalance_timeout(play: Player) -> None:
    play.session = 60
    a = play.stable_one(rebalance=4)
    b = play.new_id(rebalance=8)
    joining = play.join(b, rebalance=8)
    play.expect_parked(joining)
    play.expect_generation(2, play.join(a, rebalance=4), joining, leader=a)
    play.sync_all(2, {a: b"a2", b: b"b2"})
    c = play.new_id(rebalance=2)
    play.zero()
    alone = play.join(c, rebalance=2)
    play.heartbeats(7, (2, a), (2, b), error=27)
    play.answers_at(8, alone)
    play.expect_generation(3, alone, leader=c)


@scenario(kip="KIP-62")
def test_e059_a_parked_join_needs_no_heartbeats(play: Player) -> None:
    play.session, play.rebalance = 6, 60
    a, b = play.stable_two()
    play.zero()
    leading = play.join(a)
    play.heartbeats(20, (2, b), error=27)
    play.expect_parked(leading)
    play.expect_generation(3, leading, play.join(b), leader=a)


@scenario(kip="KIP-62")
def test_e060_a_parked_sync_needs_no_heartbeats(play: Player) -> None:
    play.session, play.rebalance = 6, 60
    a, b = play.unsynced_two()
    play.zero()
    syncing = play.sync(2, b)
    if not play.since("2.7.0"):
        # KAFKA-10134: heartbeats do not count in this state, so the leader is removed
        play.heartbeats(4, (2, a), error=27)
        play.answers_at(6, syncing)
        syncing.expect(27)
        return
    play.heartbeats(20, (2, a))
    play.expect_parked(syncing)
    play.sync(2, a, {a: b"a2", b: b"b2"}).expect(assignment=b"a2")
    syncing.expect(assignment=b"b2")
    play.heartbeat(2, b).expect(0)


@scenario(kip="base")
def test_e062_a_silent_member_is_removed_after_its_session_timeout(play: Player) -> None:
    play.session = 6
    a, b = play.stable_two()
    play.zero()
    play.heartbeats_until(27, (2, a), within=(6, 9), every=2)
    play.expect_generation(3, play.join(a), leader=a)
    play.heartbeat(2, b).expect(25)


@scenario(kip="base")
def test_e063_a_join_that_is_answered_at_once_does_not_refresh_the_session(play: Player) -> None:
    a, b = play.stable_two()
    play.zero()
    play.heartbeat(2, b).expect(0)
    play.heartbeats(8, (2, a))
    play.join(b).expect(generation_id=2, leader=a, member_id=b)
    play.heartbeats_until(27, (2, a), within=(10, 12))


@scenario(kip="base", slow=True)
def test_e065_a_new_member_waits_no_longer_than_five_minutes(play: Player) -> None:
    a = play.stable_one(rebalance=900)
    play.zero()
    joining = play.join(version=3)
    play.expect_parked(joining)
    play.heartbeats(299, (1, a), error=27, every=3)
    play.answers_at(300, joining)
    joining.expect(25)
    play.describe().expect("PreparingRebalance", [a])


@scenario(kip="base")
def test_e066_the_protocol_with_the_most_votes_is_selected(play: Player) -> None:
    ones, others = protocols("range", "roundrobin"), protocols("roundrobin", "range", topics=("t", "u"))
    a = play.stable_one(protocols=ones)
    b, c = play.new_id(protocols=others), play.new_id(protocols=others)
    joins = [play.join(b, protocols=others), play.join(c, protocols=others)]
    play.expect_parked(*joins)
    leading = play.join(a, protocols=ones)
    play.expect_generation(2, leading, *joins, leader=a, protocol="roundrobin")
    assert leading.metadata == {a: ones[1][1], b: others[0][1], c: others[0][1]}


@scenario(kip="base")
def test_e068_a_tie_is_decided_for_all_alike(play: Player) -> None:
    ones, others = protocols("x", "y"), protocols("y", "x", topics=("t", "u"))
    a = play.stable_one(protocols=ones)
    b = play.new_id(protocols=others)
    joining = play.join(b, protocols=others)
    play.expect_parked(joining)
    leading = play.join(a, protocols=ones)
    answer = leading.unrecorded()
    selected = answer.protocol_name
    assert selected in {"x", "y"}
    play.expect_generation(2, leading, joining, leader=a, protocol=selected, chosen=False)
    error = {row.member_id: row.metadata for row in answer.members}
    assert error == {a: dict(ones)[selected], b: dict(others)[selected]}


@scenario(kip="base")
def test_e069_a_join_that_is_asked_again_is_answered_once(play: Player) -> None:
    a = play.stable_one()
    b = play.new_id()
    first = play.join(b)
    play.expect_parked(first)
    second = play.join(b)
    play.expect_parked(second)
    play.expect_generation(2, second, play.join(a), leader=a)
    play.expect_never(first)


@scenario(kip="base")
def test_e071_becoming_empty_takes_a_generation(play: Player) -> None:
    play.emptied()
    x = play.new_id()
    play.expect_generation(3, play.join(x), leader=x)


@scenario(kip="base")
def test_e072_a_deleted_group_begins_again(play: Player) -> None:
    play.emptied()
    play.delete().expect({play.g: 0})
    x = play.new_id()
    play.expect_generation(1, play.join(x), leader=x)


@scenario(kip="KIP-429")
def test_e074_owned_partitions_are_metadata_like_any_other(play: Player) -> None:
    def owning(*partitions: int) -> tuple[tuple[str, bytes], ...]:
        owned = (TopicPartition(topic="t", partitions=partitions),)
        return (("range", subscription("t", version=1, owned_partitions=owned)),)

    a, b = play.stable_two(protocols=owning(0, 1))
    changed = play.join(b, protocols=owning(2))
    play.expect_parked(changed)
    play.heartbeat(2, a).expect(27)
    leading = play.join(a, protocols=owning(0, 1))
    play.expect_generation(3, leading, changed, leader=a)
    assert leading.metadata == {a: owning(0, 1)[0][1], b: owning(2)[0][1]}


@scenario(kip="KIP-800")
def test_e075_reasons_change_nothing_and_are_not_shown(play: Player) -> None:
    for number, reason in enumerate(("because", None, "")):
        group = f"{play.g}.{number}"
        x = play.new_id(version=8, reason=reason, group=group)
        joining = play.join(x, version=8, reason=reason, group=group)
        play.expect_generation(1, joining, leader=x)
        play.sync(1, x, {x: b"x1"}, group=group).expect(assignment=b"x1")
        leaving = play.leave(x, version=5, reason=reason, group=group)
        leaving.expect(0)
        for asked in (joining, leaving):
            assert b"because" not in (asked.pending.frame or b"")
