"""E.6: SyncGroup and its timeout (KAFKA-12890)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenarios.registry import scenario

if TYPE_CHECKING:
    from scenarios.player import Player


@scenario(kip="base")
def test_e089_a_member_without_an_assignment_gets_empty_bytes(play: Player) -> None:
    a, b = play.unsynced_two()
    play.sync(2, a, {a: b"a"}).expect(assignment=b"a")
    play.sync(2, b).expect(assignment=b"")


@scenario(kip="base")
def test_e090_an_assignment_to_an_unknown_member_is_ignored(play: Player) -> None:
    a, b = play.unsynced_two()
    play.sync(2, a, {a: b"a", b: b"b", "ghost": b"z"}).expect(assignment=b"a")
    described = play.describe().expect("Stable", [a, b])
    assert {row.member_id: row.member_assignment for row in described.members} == {a: b"a", b: b"b"}


@scenario(kip="base")
def test_e092_another_generation_an_unknown_member_an_unknown_group(play: Player) -> None:
    _, b = play.unsynced_two()
    play.sync(1, b).expect(22)
    play.sync(3, b).expect(22)
    play.sync(2, "ghost").expect(25)
    play.sync(2, b, group=f"{play.g}.x").expect(25)


@scenario(kip="KIP-559")
def test_e093_protocol_type_and_name_must_be_the_groups(play: Player) -> None:
    a, b = play.unsynced_two()
    play.sync(2, b, version=5, protocol_name="other").expect(23)
    play.sync(2, b, version=5, protocol_type="other").expect(23)
    following = play.sync(2, b, version=5)
    play.expect_parked(following)
    leading = play.sync(2, a, {a: b"a", b: b"b"}, version=5)
    leading.expect(assignment=b"a", protocol_type="consumer", protocol_name="range")
    following.expect(assignment=b"b", protocol_type="consumer", protocol_name="range")


@scenario(kip="KIP-559")
def test_e095_up_to_version_4_there_is_no_protocol_type_and_name(play: Player) -> None:
    a, b = play.unsynced_two()
    following = play.sync(2, b, version=3)
    play.expect_parked(following)
    play.sync(2, a, {a: b"a", b: b"b"}, version=4).expect(assignment=b"a")
    following.expect(assignment=b"b")


@scenario(kip="base")
def test_e096_a_sync_during_the_next_join_phase_is_refused(play: Player) -> None:
    a, b = play.stable_two()
    play.expect_parked(play.join(a))
    play.sync(2, b).expect(27)


@scenario(kip="base")
def test_e098_an_empty_group_knows_no_member(play: Player) -> None:
    a = play.emptied()
    play.sync(2, a).expect(25)
    play.sync(1, a).expect(25)


@scenario(kip="base")
def test_e099_a_sync_after_the_leaders_is_answered_at_once(play: Player) -> None:
    a, b = play.unsynced_two()
    play.sync(2, a, {a: b"a", b: b"b"}).expect(assignment=b"a")
    play.wait(1)
    play.sync(2, b).expect(assignment=b"b")


@scenario(kip="KAFKA-12890")
def test_e101_a_follower_that_does_not_sync_within_the_rebalance_timeout_is_removed(play: Player) -> None:
    play.session, play.rebalance = 60, 5
    a, b = play.unsynced_two()
    play.zero()
    play.sync(2, a, {a: b"a", b: b"b"}).expect(assignment=b"a")
    if play.since("2.8.1", "3.0.0"):
        # heartbeats do not extend it
        play.heartbeats_until(25, (2, b), within=(4.5, 6.5))
        play.heartbeat(2, a).expect(27)
        play.heartbeat(2, b).expect(25)
        play.expect_generation(3, play.join(a), leader=a)
    else:
        play.heartbeats(8, (2, a), (2, b))


@scenario(kip="KAFKA-12890")
def test_e102_a_leader_that_does_not_sync_within_the_rebalance_timeout_is_removed(play: Player) -> None:
    play.session, play.rebalance = 60, 5
    a, b = play.unsynced_two()
    play.zero()
    syncing = play.sync(2, b)
    play.expect_parked(syncing)
    if play.since("2.8.1", "3.0.0"):
        play.heartbeats_until(25, (2, a), within=(4.5, 6.5))
        syncing.expect(27)
        play.heartbeat(2, a).expect(25)
        play.expect_generation(3, play.join(b), leader=b)
    else:
        # KAFKA-10134, released in 2.7
        play.heartbeats(8, (2, a), error=0 if play.since("2.7.0") else 27)
        play.expect_parked(syncing)


@scenario(kip="KAFKA-12890")
def test_e104_no_member_is_removed_after_all_have_synced(play: Player) -> None:
    play.rebalance = 5
    a, b = play.stable_two()
    play.zero()
    play.heartbeats(20, (2, a), (2, b))
    play.describe().expect("Stable", [a, b])


@scenario(kip="base")
def test_e105_the_sync_of_a_member_that_has_left_is_never_answered(play: Player) -> None:
    a, b = play.unsynced_two()
    syncing = play.sync(2, b)
    play.expect_parked(syncing)
    play.leave(b).expect(0)
    play.heartbeat(2, a).expect(27)
    play.expect_never(syncing)
