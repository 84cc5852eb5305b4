"""Classic members of consumer groups; groups that change their type, upwards and downwards (KIP-848)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from scenarios.consumer_members import ALL, HALF, OTHER_HALF
from scenarios.mixed_members import MixedMembers, assigned, assigned_in_rows, owning
from scenarios.registry import scenario

if TYPE_CHECKING:
    from scenarios.player import Player

consumer_scenario = partial(scenario, kip="KIP-848", consumer=True)

UNKNOWN, ILLEGAL, INCONSISTENT, REBALANCE, MISSING, FENCED = 25, 22, 23, 27, 69, 82


def upgraded(x: MixedMembers) -> tuple[str, list[int]]:
    """Share t between a classic member, at generation 2, and A, which has upgraded its group; return id and half."""
    m = x.classic()
    assert x.join("A") == (2, {})
    assert x.rejoin(m, *ALL["t"]) == (1, "range")
    half = x.sync(1, m)["t"]
    assert len(half) == 2
    assert x.classic_beat(1, m) == REBALANCE
    assert x.rejoin(m, *half) == (2, "range")
    assert x.sync(2, m) == {"t": half}
    assert x.classic_beat(2, m) == 0
    return m, half


@consumer_scenario()
def test_g119_a_classic_member_gives_its_half_up_in_two_rounds(play: Player) -> None:
    x = MixedMembers(play, same_epochs=True)
    _, half = upgraded(x)
    assert x.beat("A", 2) == (2, {"t": [each for each in ALL["t"] if each not in half]})


@consumer_scenario()
def test_g120_a_classic_join_is_answered_at_once(play: Player) -> None:
    x = MixedMembers(play)
    m = x.joined_by_classic()
    assert x.sync(3, m) == {}
    assert x.classic_beat(3, m) == 0
    assert x.beat("A", 2) == (2, HALF)
    assert x.beat("A", 2, owned=HALF) == (3, None)
    assert x.classic_beat(3, m) == REBALANCE
    assert x.rejoin(m) == (3, "range")
    assert x.sync(3, m) == OTHER_HALF


@consumer_scenario()
def test_g122_a_joiner_shares_a_protocol_with_all_classic_members(play: Player) -> None:
    x = MixedMembers(play)
    x.joined_by_classic()
    assert x.rejoin("N", protocols=owning(names=["roundrobin"])) == INCONSISTENT
    assert x.rejoin("O", protocols=owning(names=["roundrobin", "range"])) == (4, "roundrobin")


@consumer_scenario()
def test_g123_the_checks_of_classic_requests(play: Player) -> None:
    x = MixedMembers(play)
    m = x.joined_by_classic()
    assert [x.sync(2, m), x.sync(4, m)] == [ILLEGAL] * 2
    assert [x.sync(3, "nobody"), x.sync(3, "A")] == [UNKNOWN] * 2
    assert x.sync(3, m, protocol_type="connect") == INCONSISTENT
    assert x.sync(3, m, protocol_name="x") == INCONSISTENT
    assert [x.classic_beat(2, m), x.classic_beat(3, "nobody"), x.classic_beat(3, "A")] == [ILLEGAL, UNKNOWN, UNKNOWN]


@consumer_scenario()
def test_g125_a_classic_member_has_its_own_session(play: Player) -> None:
    x = MixedMembers(play)
    m = x.joined_by_classic(session=1)
    assert x.sync(3, m) == {}
    play.wait(1.6)
    assert x.classic_beat(3, m) == UNKNOWN
    assert x.members().keys() == {"A"}


@consumer_scenario()
def test_g126_a_classic_join_is_followed_by_a_sync_in_time(play: Player) -> None:
    x = MixedMembers(play)
    play.session = 30
    play.zero()
    m = x.joined_by_classic(rebalance=1)
    raw = x.raw(3)
    play.heartbeats_until(UNKNOWN, (raw, m), (0.9, 5), every=0.3)


@consumer_scenario()
def test_g128_a_leave_group_may_cause_a_downgrade(play: Player) -> None:
    x = MixedMembers(play)
    m = x.shared_with_classic()
    n = x.classic_id()
    assert x.rejoin(n) == (4, "range")
    if play.since("4.0.0"):
        play.leave(m, "nobody", "A", version=5).expect(0, UNKNOWN, 0)
        assert x.listed() == ("classic", "PreparingRebalance")
    else:
        play.leave(m, "nobody", "A", version=5).expect(0, UNKNOWN, UNKNOWN)


@consumer_scenario()
def test_g129_the_group_is_classic_again_when_only_classic_members_are_left(play: Player) -> None:
    x = MixedMembers(play, same_epochs=True)
    m, _ = upgraded(x)
    assert x.beat("A", -1) == (-1, None)
    assert x.listed() == ("classic", "PreparingRebalance")
    assert x.classic_beat(2, m) == REBALANCE
    play.join(m, version=7, protocols=owning()).expect(generation_id=3, leader=m, members=[m])
    assert x.described().error_code == MISSING
    play.sync(3, m, {m: assigned(ALL)}, version=5).expect(assignment=assigned(ALL))
    assert x.classic_beat(3, m) == 0


@consumer_scenario()
def test_g131_the_records_of_an_upgrade(play: Player) -> None:
    x = MixedMembers(play, same_epochs=True)
    x.classic()
    x.mark()
    assert x.join("A") == (2, {})
    assert x.written() == [-2, 5, 3, 7, 6, 8, 5, 3, 7, 7, 6, 8]


@consumer_scenario()
def test_g132_an_upgrade_answers_parked_joins(play: Player) -> None:
    x = MixedMembers(play, same_epochs=True)
    x.classic()
    n = play.new_id(version=7, protocols=owning())
    parked = play.join(n, version=7, protocols=owning())
    play.expect_parked(parked)
    assert x.join("A") == (2, {})
    parked.expect(REBALANCE, member_id=n)
    assert x.rejoin(n)[1] == "range"


@consumer_scenario()
def test_g134_assignments_that_cannot_be_converted(play: Player) -> None:
    x = MixedMembers(play, same_epochs=True)
    cannot = f"Cannot upgrade classic group {play.g} to consumer group because "
    m = x.classic()
    play.join(m, version=7, protocols=owning()).expect(generation_id=2, leader=m, members=[m])
    play.sync(2, m, {m: assigned(ALL, b"own")}, version=5).expect(assignment=assigned(ALL, b"own"))
    custom = (
        "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default assignor "
        "before re-attempting the upgrade."
    )
    assert x.refused_join("A") == (MISSING, cannot + custom)
    play.join(m, version=7, protocols=owning()).expect(generation_id=3, leader=m, members=[m])
    play.sync(3, m, {m: b"none"}, version=5).expect(assignment=b"none")
    assert x.refused_join("A") == (MISSING, cannot + "the embedded consumer protocol is malformed.")


@pytest.mark.slow
@consumer_scenario()
def test_g135_a_heartbeat_converts_a_classic_member(play: Player) -> None:
    x = MixedMembers(play)
    m = x.shared_with_classic()
    assert x.beat(m, 3, timeout=30, topics=["t"], owned={}) == (3, OTHER_HALF)
    if x.version:
        assert {member.member_type for member in x.described().members} == {1}
    assert x.classic_beat(3, m) == UNKNOWN


@consumer_scenario()
def test_g137_a_static_joiner_replaces_the_last_member_without_a_rebalance(play: Player) -> None:
    x = MixedMembers(play)
    x.static_one()
    asked = play.join("", "i1", version=7, protocols=owning())
    member_id = asked.unrecorded().member_id
    play.transcript.name(member_id, "#classic")
    asked.expect(generation_id=x.raw(2), member_id=member_id)
    assert x.listed() == ("classic", "Stable")
    assert x.sync(2, member_id, instance_id="i1") == ALL
    assert x.beat("P", 2, inst="i1") == MISSING


@consumer_scenario()
def test_g138_commits_of_a_classic_member(play: Player) -> None:
    x = MixedMembers(play)
    m = x.shared_with_classic()
    assert [x.commit(m, epoch) for epoch in (3, 2, 4)] == [[0], [ILLEGAL], [ILLEGAL]]
    assert x.commit(m, 3, version=7) == [0]
    assert x.fetch(m, 2) == ILLEGAL


@consumer_scenario()
def test_g140_a_leave_group_names_a_member_by_its_instance(play: Player) -> None:
    x = MixedMembers(play)
    x.static_one()
    play.leave(("X", "i1"), ("", "i9"), version=5).expect(82, UNKNOWN)
    play.leave(("", "i1"), version=5).expect(0 if play.since("4.0.0") else UNKNOWN)


@consumer_scenario(migration="disabled")
def test_g147_neither_way_is_allowed(play: Player) -> None:
    x = MixedMembers(play, same_epochs=True)
    x.classic()
    text = f"Cannot upgrade classic group {play.g} to consumer group because online upgrade is disabled."
    assert x.refused_join("A") == (MISSING, text)
    other = f"{play.g}.other"
    assert x.join("A", group=other)[1] == ALL
    play.join(version=7, protocols=owning(), group=other).expect(INCONSISTENT, member_id="")


@consumer_scenario(migration="upgrade")
def test_g149_upgrades_alone_are_allowed(play: Player) -> None:
    x = MixedMembers(play, same_epochs=True)
    m, half = upgraded(x)
    assert x.beat("A", -1) == (-1, None)
    assert x.listed() == ("consumer", "Assigning")
    assert x.classic_beat(2, m) == (0 if play.since("4.3.0") else REBALANCE)
    assert x.rejoin(m, *half) == (3, "range")


@consumer_scenario(consumer_max_size=1, initial_delay=3)
def test_g161_a_group_that_is_too_large_is_not_upgraded(play: Player) -> None:
    x = MixedMembers(play, same_epochs=True)
    ids = [play.new_id(version=7, protocols=owning()) for _ in range(2)]
    joins = [play.join(each, version=7, protocols=owning()) for each in ids]
    play.expect_parked(*joins)
    text = (
        f"Cannot upgrade classic group {play.g} to consumer group because the group size exceeds the consumer group "
        "maximum size."
    )
    assert x.refused_join("A") == (MISSING, text)
    for _ in joins:
        play.pass_initial_delay(*joins)
    play.expect_generation(1, *joins)
    assert x.refused_join("A") == (MISSING, text)


@consumer_scenario(consumer_max_size=1, initial_delay=3)
def test_g162_a_group_without_a_generation_is_not_upgraded(play: Player) -> None:
    x = MixedMembers(play, same_epochs=True)
    m = play.new_id(version=7, protocols=owning())
    parked = play.join(m, version=7, protocols=owning())
    play.expect_parked(parked)
    assert x.refused_join("A") == (-1, None)
    parked.expect(REBALANCE, member_id=m)
    assert x.listed() == ("classic", "PreparingRebalance")


@consumer_scenario(migration="downgrade")
def test_g166_downgrades_alone_are_allowed(play: Player) -> None:
    x = MixedMembers(play)
    m = x.shared_with_classic()
    other = f"{play.g}.other"
    n = play.new_id(version=7, protocols=owning(), group=other)
    joining = play.join(n, version=7, protocols=owning(), group=other)
    play.pass_initial_delay(joining)
    joining.expect(generation_id=1, leader=n, members=[n])
    play.sync(1, n, {n: assigned(ALL)}, version=5, group=other).expect(assignment=assigned(ALL))
    text = f"Cannot upgrade classic group {other} to consumer group because online upgrade is disabled."
    assert x.refused_join("A", group=other) == (MISSING, text)
    assert x.beat("A", -1) == (-1, None)
    assert x.described().error_code == MISSING
    assert x.classic_beat(3, m) == REBALANCE
    play.join(m, version=7, protocols=owning()).expect(generation_id=x.raw(4), leader=m, members=[m])


@consumer_scenario(migration="upgrade")
def test_g167_without_downgrades_a_static_joiner_stays_in_a_consumer_group(play: Player) -> None:
    x = MixedMembers(play)
    x.static_one()
    asked = play.join("", "i1", version=7, protocols=owning())
    member_id = asked.unrecorded().member_id
    play.transcript.name(member_id, "#classic")
    asked.expect(generation_id=x.raw(2), member_id=member_id)
    assert x.listed() == ("consumer", "Stable")
    assert x.sync(2, member_id, instance_id="i1") == ALL
    assert x.beat("P", 2, inst="i1") == FENCED


@consumer_scenario(migration="disabled")
def test_g168_empty_groups_change_their_type_under_every_policy(play: Player) -> None:
    x = MixedMembers(play)
    x.one()
    assert x.beat("A", -1) == (-1, None)
    m = play.new_id(version=7, protocols=owning())
    joining = play.join(m, version=7, protocols=owning())
    play.pass_initial_delay(joining)
    joining.expect(generation_id=1, leader=m, members=[m])
    play.sync(1, m, {m: assigned(ALL)}, version=5).expect(assignment=assigned(ALL))
    play.leave(m, version=5).expect(0)
    assert x.join("B") == (2, ALL)


@consumer_scenario(max_size=1)
def test_g169_a_group_that_is_too_large_is_not_downgraded(play: Player) -> None:
    x = MixedMembers(play)
    m = x.shared_with_classic()
    n = x.classic_id()
    assert x.rejoin(n) == (4, "range")
    assert x.beat("A", -1) == (-1, None)
    assert x.listed() == ("consumer", "Assigning")
    play.leave(n, version=5).expect(0)
    assert x.listed() == ("classic", "PreparingRebalance")
    assert x.classic_beat(3, m) == ILLEGAL


def stable_classic(play: Player, instance_id: str | None = None, names: tuple[str, ...] = ("range",)) -> str:
    """Form a Stable classic group of one member, with all of t at generation 1; return its id."""
    protocols = owning(names=names)
    if instance_id is None:
        joining = play.join(play.new_id(version=7, protocols=protocols), version=7, protocols=protocols)
    else:
        joining = play.join("", instance_id, version=7, protocols=protocols)
    play.pass_initial_delay(joining)
    member_id = joining.unrecorded().member_id
    play.transcript.name(member_id, "#classic")
    joining.expect(generation_id=1, leader=member_id, members=[member_id])
    play.sync(1, member_id, {member_id: assigned(ALL)}, version=5, instance_id=instance_id).expect(
        assignment=assigned(ALL)
    )
    return member_id


@consumer_scenario()
def test_g170_the_last_static_member_turns_classic_and_its_group_with_it(play: Player) -> None:
    x = MixedMembers(play)
    x.static_one()
    play.join("P", "i1", version=7, protocols=owning(*ALL["t"])).expect(generation_id=x.raw(2), member_id="P")
    assert x.listed() == ("classic", "Stable")
    assert x.sync(2, "P", instance_id="i1") == ALL


@consumer_scenario()
def test_g171_a_static_joiner_to_an_outdated_target_starts_a_rebalance(play: Player) -> None:
    x = MixedMembers(play)
    x.static_one()
    assert x.join("B") == (3, {})
    assert x.beat("B", -1) == (-1, None)
    asked = play.join("", "i1", version=7, protocols=owning())
    member_id = asked.unrecorded().member_id
    play.transcript.name(member_id, "#classic")
    if not play.since("4.3.0"):
        asked.expect(generation_id=2, member_id=member_id)
        assert x.listed() == ("classic", "Stable")
        return
    asked.expect(generation_id=0, member_id=member_id)
    assert x.listed() == ("classic", "PreparingRebalance")
    again = play.join(member_id, "i1", version=7, protocols=owning())
    again.expect(generation_id=x.raw(5), leader=member_id, members=[member_id])


@consumer_scenario()
def test_g172_an_upgrade_knows_the_topics_of_its_members(play: Player) -> None:
    stable_classic(play, "i1")
    x = MixedMembers(play, same_epochs=True)
    # before, the first heartbeat found the topics changed
    assert x.join("A", inst="i1") == (1 if play.since("4.1.0") else 2, ALL)


@consumer_scenario()
def test_g173_a_joining_member_without_the_protocol_of_the_group_hinders_the_upgrade(play: Player) -> None:
    stable_classic(play, names=("range", "roundrobin"))
    x = MixedMembers(play, same_epochs=True)
    protocols = owning(names=["roundrobin"])
    n = play.new_id(version=7, protocols=protocols)
    parked = play.join(n, version=7, protocols=protocols)
    play.expect_parked(parked)
    assert x.refused_join("A") == (-1, None)
    parked.expect(REBALANCE, member_id=n)


@consumer_scenario()
def test_g174_a_dynamic_member_that_rejoins_with_an_instance_has_no_target_yet(play: Player) -> None:
    x = MixedMembers(play)
    x.one()
    assert x.join("B") == (3, {})
    assert x.join("A", inst="i1") == (3, {})
    assert x.members()["A"] == (3, {}, HALF)


@consumer_scenario()
def test_g175_a_refused_classic_join_makes_an_empty_consumer_group_forgotten(play: Player) -> None:
    x = MixedMembers(play)
    x.one()
    assert x.beat("A", -1) == (-1, None)
    play.join("nobody", version=7, protocols=owning()).expect(UNKNOWN, member_id="nobody")
    x.await_no_group()
    assert x.described().error_code == MISSING
    assert x.join("A") == (2, ALL)


@consumer_scenario()
def test_g176_an_upgrade_puts_the_members_into_a_new_table(play: Player) -> None:
    """The first member in the order of the table leads after a downgrade; P and H share a slot."""
    x = MixedMembers(play)
    x.one()
    assert [x.rejoin("P"), x.rejoin("H")] == [(3, "range"), (4, "range")]
    assert x.beat("A", -1) == (-1, None)
    rejoin_all(play, "H", x.raw(5))
    play.sync(x.raw(5), "H", {"P": assigned(ALL), "H": assigned({})}, version=5).expect(assignment=assigned({}))
    assert x.join("B") == (6, {})
    assert x.beat("B", -1) == (-1, None)
    rejoin_all(play, "P", x.raw(7))


def rejoin_all(play: Player, leader: str, generation: int) -> None:
    """Let the classic members P and H rejoin; expect that one leads."""
    joins = [play.join(member_id, version=7, protocols=owning()) for member_id in "PH"]
    for each in joins:
        members = "HP" if each.request.member_id == leader else ""
        each.expect(generation_id=generation, leader=leader, members=members)


def forgotten(play: Player) -> MixedMembers:
    """Let a broker forget an empty consumer group with an offset, by a classic join that it refuses."""
    x = MixedMembers(play)
    x.one()
    assert x.commit("A", 2) == [0]
    assert x.beat("A", -1) == (-1, None)
    play.join("nobody", version=7, protocols=owning()).expect(UNKNOWN, member_id="nobody")
    x.await_no_group()
    return x


@consumer_scenario()
def test_g177_a_forgotten_group_has_no_offsets(play: Player) -> None:
    x = forgotten(play)
    if x.version:
        row = play.describe(version=6).expect("Dead", [], error=MISSING)
        assert row.error_message == f"Group {play.g} not found."
    assert x.fetch(None, -1) == (0, -1)


@consumer_scenario()
def test_g186_a_forgotten_group_is_seen_until_the_next_write_to_its_partition(play: Player) -> None:
    x = MixedMembers(play)
    x.one()
    assert x.commit("A", 2) == [0]
    assert x.beat("A", -1) == (-1, None)
    play.join("nobody", version=7, protocols=owning()).expect(UNKNOWN, member_id="nobody")
    row = x.described()
    assert (row.error_code, row.group_state, len(row.members)) == (0, "Empty", 0)
    assert x.listed() == ("consumer", "Empty")
    assert x.fetch(None, -1) == (0, 5)
    assert x.commit("A", 2) == [MISSING]
    x.await_no_group()
    assert x.fetch(None, -1) == (0, -1)


@consumer_scenario()
def test_g178_the_offsets_of_a_forgotten_group_return_with_its_next_member(play: Player) -> None:
    x = forgotten(play)
    assert x.commit("A", 2) == [MISSING]
    assert x.beat("A", 2) == MISSING
    assert x.fetch(None, -1) == (0, -1)
    x.join("B")
    assert x.fetch("B", 2) == (0, 5)


@consumer_scenario(initial_delay=3)
def test_g184_a_group_with_a_partition_of_two_members_is_not_upgraded(play: Player) -> None:
    x = MixedMembers(play, same_epochs=True)
    ids = [play.new_id(version=7, protocols=owning()) for _ in range(2)]
    joins = [play.join(each, version=7, protocols=owning()) for each in ids]
    for _ in joins:
        play.pass_initial_delay(*joins)
    play.expect_generation(1, *joins)
    leader = joins[0].answer().leader
    follower = ids[1 - ids.index(leader)]
    play.sync(1, leader, dict.fromkeys(ids, assigned(ALL)), version=5).expect(assignment=assigned(ALL))
    play.sync(1, follower, version=5).expect(assignment=assigned(ALL))
    assert x.refused_join("A") == (-1, None)
    assert x.listed() == ("classic", "Stable")
    assert [x.classic_beat(1, each) for each in ids] == [0, 0]


@consumer_scenario()
def test_g185_in_an_upgrade_the_last_row_of_a_topic_counts(play: Player) -> None:
    x = MixedMembers(play, same_epochs=True)
    m = x.classic()
    rows = assigned_in_rows(*ALL["t"])
    play.join(m, version=7, protocols=owning()).expect(generation_id=2, leader=m, members=[m])
    play.sync(2, m, {m: rows}, version=5).expect(assignment=rows)
    x.join("A")
    assert x.members()[m][1] == {"t": [3]}
