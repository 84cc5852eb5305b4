"""E.12: describing, listing and deleting groups; deleting and expiring offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from builders.requests import RANGE
from scenarios.registry import DELETES_TOPICS, scenario

from koordinator.wire.apis import ApiKey

if TYPE_CHECKING:
    from scenarios.player import Player

T0, T1, T2 = (("t", partition) for partition in range(3))
U0 = ("u", 0)
NOWHERE = ("nosuch", 0)

NOT_ASKED_FOR = -(1 << 31)
"""The value for authorized operations that were not requested."""


def stable(play: Player, group: str) -> str:
    """Form a stable group of one member at generation 1; return its id."""
    member = play.join(version=3, group=group).answer().member_id
    play.sync(1, member, {member: b"m1"}, group=group).expect(assignment=b"m1")
    return member


@scenario(kip="base")
def test_e203_an_unknown_group_is_described_as_dead(play: Player) -> None:
    play.describe().expect("Dead", [], error=0, protocol_type="", protocol_data="")
    if play.serves(ApiKey.DESCRIBE_GROUPS, 6):
        # KIP-1043
        play.describe(version=6).expect("Dead", [], error=69, protocol_type="", protocol_data="")


@scenario(kip="base")
def test_e204_a_stable_group_is_described_with_its_members(play: Player) -> None:
    a, b = play.stable_two()
    row = play.describe(version=1).expect("Stable", [a, b], protocol_type="consumer", protocol_data="range")
    assert {each.member_id: each.member_assignment for each in row.members} == {a: b"a2", b: b"b2"}
    for member in row.members:
        assert member.client_id == "c"
        assert member.client_host.startswith("/")
        assert member.member_metadata == RANGE[0][1]


@scenario(kip="base")
def test_e206_a_group_whose_leader_has_not_assigned_is_described_without_metadata(play: Player) -> None:
    a, b = play.unsynced_two()
    row = play.describe().expect("CompletingRebalance", [a, b], protocol_type="consumer", protocol_data="")
    assert {each.member_id: each.member_metadata for each in row.members} == {a: b"", b: b""}
    # NEW shows the assignment of the previous generation
    before = b"a1" if play.new else b""
    assert {each.member_id: each.member_assignment for each in row.members} == {a: before, b: b""}


@scenario(kip="KIP-430")
def test_e207_authorized_operations_are_described_if_asked_for(play: Player) -> None:
    a = play.stable_one()
    # 2.4 reports that there are none
    unasked = NOT_ASKED_FOR if play.since("2.8.0") else 0
    play.describe(version=3).expect("Stable", [a], authorized_operations=unasked)
    # groups have configs since 4.0
    every = 3400 if play.since("4.0.0") else 328
    play.describe(version=3, operations=True).expect("Stable", [a], authorized_operations=every)
    # this version lacks the field
    play.describe(version=2).expect("Stable", [a], authorized_operations=NOT_ASKED_FOR)


@scenario(kip="KIP-518")
def test_e209_groups_are_listed_by_state(play: Player) -> None:
    a = play.stable_one()
    joining = play.join(play.new_id())
    play.expect_parked(joining)
    empty, other = f"{play.g}.empty", f"{play.g}.stable"
    play.commit(-1, "", group=empty).expect(0)
    stable(play, other)

    def states(*names: str) -> dict[str, str]:
        return {row.group_id: row.group_state for row in play.listed(version=4, states=names)}

    every = {play.g: "PreparingRebalance", empty: "Empty", other: "Stable"}
    found = states()
    assert found == every, found
    assert states("Stable") == {other: "Stable"}
    assert states("Stable", "Empty") == {other: "Stable", empty: "Empty"}
    assert states("Bogus") == {}
    play.expect_generation(2, play.join(a), joining, leader=a)


@scenario(kip="KIP-518")
def test_e210_states_are_listed_whatever_their_case_since_3_8(play: Player) -> None:
    play.stable_one()
    found = [row.group_id for row in play.listed(version=4, states=["stable"])]
    assert found == ([play.g] if play.since("3.8.0") else [])


@scenario(kip="base")
def test_e212_before_version_4_groups_are_listed_with_their_protocol_type_alone(play: Player) -> None:
    play.stable_one()
    simple = f"{play.g}.simple"
    play.commit(-1, "", group=simple).expect(0)
    for version in range(4):
        rows = play.listed(version=version)
        assert [(row.group_id, row.protocol_type) for row in rows] == [(play.g, "consumer"), (simple, "")]
        # this version lacks these fields
        assert {(row.group_state, row.group_type) for row in rows} == {("", "")}


@scenario(kip="KIP-229")
def test_e213_only_a_group_without_members_is_deleted(play: Player) -> None:
    a = play.stable_one()
    empty, unknown = f"{play.g}.empty", f"{play.g}.unknown"
    play.leave(stable(play, empty), group=empty).expect(0)
    play.delete(play.g, empty, unknown).expect({play.g: 68, empty: 0, unknown: 69})
    play.heartbeat(1, a).expect(0)
    play.describe().expect("Stable", [a])
    play.describe(empty).expect("Dead", [])


@scenario(kip="KIP-229")
def test_e215_a_group_that_is_named_twice_is_deleted_once(play: Player) -> None:
    play.emptied()
    play.delete(play.g, play.g).expect({play.g: 0})


@scenario(kip="KIP-229")
def test_e216_an_id_that_was_given_does_not_keep_a_group(play: Player) -> None:
    x = play.new_id()
    play.delete().expect({play.g: 0})
    play.join(x).expect(25, member_id=x)


@scenario(kip="KIP-496")
def test_e218_any_offset_of_an_empty_group_is_deleted(play: Player) -> None:
    play.delete_offsets(T0, group=f"{play.g}.unknown").expect({}, error=69)
    a = play.stable_one()
    play.commit(1, a, {T0: 5, T2: 7}).expect(0)
    play.leave(a).expect(0)
    play.delete_offsets(T0).expect({T0: 0})
    play.fetch(T0, T2).expect({T0: -1, T2: 7})
    # never committed
    play.delete_offsets(T1).expect({T1: 0})
    play.delete_offsets(T2).expect({T2: 0})
    # OLD removes the group with its last offset
    play.describe().expect("Dead" if play.old else "Empty", [])


@scenario(kip="KIP-496")
def test_e219_offsets_of_subscribed_topics_are_not_deleted(play: Player) -> None:
    a = play.stable_one()
    play.commit(1, a, {T0: 5, U0: 6}).expect(0)
    play.delete_offsets(T0, U0, NOWHERE).expect({T0: 86, U0: 0, NOWHERE: 3})
    play.fetch(T0, U0).expect({T0: 5, U0: -1})


@scenario(kip="KIP-496")
def test_e221_a_subscription_that_cannot_be_read_is_one_to_every_topic(play: Player) -> None:
    a = play.stable_one(protocols=(("range", b"?"),))
    play.commit(1, a, {U0: 6}).expect(0)
    play.delete_offsets(U0).expect({U0: 86})
    play.fetch(U0).expect({U0: 6})


@scenario(kip="KIP-496")
def test_e222_the_group_is_looked_for_though_no_partition_is_known(play: Player) -> None:
    play.delete_offsets(NOWHERE).expect({}, error=69)


@scenario(kip="KIP-211", check_interval=2)
def test_e224_an_empty_group_without_offsets_is_removed_at_the_next_check(play: Player) -> None:
    play.wait_expiry_check()
    play.emptied()
    play.describe().expect("Empty", [])
    play.wait(3)
    play.describe().expect("Dead", [])
    joining = play.join(version=3)
    play.expect_generation(1, joining)


@scenario(kip="KIP-211", check_interval=2)
def test_e225_an_empty_group_is_removed_with_the_ids_it_has_handed_out(play: Player) -> None:
    play.session = 60
    play.wait_expiry_check()
    x = play.new_id()
    play.wait(3)
    play.join(x).expect(25, member_id=x)


@scenario(kip="KAFKA-13636", retention=60, check_interval=2, slow=True)
def test_e227_nothing_expires_while_a_group_rebalances(play: Player) -> None:
    play.rebalance = 90
    a, b = play.stable_two()
    play.zero()
    play.commit(2, a, {T0: 5, U0: 6}).expect(0)
    joining = play.join(a)
    play.expect_parked(joining)
    play.heartbeats(65, (2, b), error=27)
    # before 2.8.2, offsets of unsubscribed topics expire even in a stable group
    play.fetch(T0, U0).expect({T0: 5, U0: 6 if play.since("2.8.2", "3.0.1") else -1})
    play.expect_generation(3, joining, play.join(b), leader=a)


@scenario(kip="KIP-211", retention=60, check_interval=2, slow=True)
def test_e228_an_offset_expires_some_time_after_its_own_commit(play: Player) -> None:
    play.zero()
    play.offsets_only()
    play.commit(-1, "", {T1: 43}).expect(0)
    play.at(30)
    play.commit(-1, "", {T0: 44}).expect(0)
    play.at(58)
    play.fetch(T0, T1).expect({T0: 44, T1: 43})
    play.at(65)
    play.fetch(T0, T1).expect({T0: 44, T1: -1})
    play.at(88)
    play.fetch(T0).expect({T0: 44})
    play.at(95)
    play.fetch(T0).expect({T0: -1})
    play.describe().expect("Dead", [])


@scenario(kip="base", **DELETES_TOPICS)
def test_e230_the_offsets_of_a_topic_go_with_it(play: Player) -> None:
    topic = play.new_topic()
    play.commit(-1, "", {(topic, 0): 42, U0: 6}).expect(0)
    play.delete_topic(topic)
    play.wait_uncommitted((topic, 0))
    play.fetch((topic, 0), U0).expect({(topic, 0): -1, U0: 6})
