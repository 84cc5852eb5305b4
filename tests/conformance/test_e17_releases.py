"""E.17: differences between releases that no scenario of the reference shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from builders.requests import CHANGED, protocols
from scenarios.registry import scenario

from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.api_versions import ApiVersionsRequest
from koordinator.wire.messages.describe_cluster import DescribeClusterRequest

if TYPE_CHECKING:
    from scenarios.player import Player


@scenario(kip="KAFKA-9752")
def test_e501_the_session_of_a_new_member_begins_with_its_first_generation(play: Player) -> None:
    play.session = 2
    a = play.new_id()
    joining = play.join(a)
    play.pass_initial_delay(joining)
    assert joining.answer().generation_id == 1
    play.wait(4)
    # 2.4 ignores the member until its first request
    state, members = ("Empty", []) if play.since("2.5.0") else ("CompletingRebalance", [a])
    play.describe().expect(state, members)


@scenario(kip="KIP-345")
def test_e502_a_batch_of_leaves_is_looked_at_after_each_member_or_once(play: Player) -> None:
    a, b, c = play.stable_three()
    leader, follower = play.join(a), play.join(c)
    play.expect_parked(leader, follower)
    play.leave(b, c).expect(0, 0)
    assert leader.answer().generation_id == 4
    if play.old:
        # b left and completed the join phase, then c left
        follower.expect(generation_id=4, leader=a)
        play.heartbeat(4, a).expect(27)
    else:
        follower.expect(25, member_id="")
        play.heartbeat(4, a).expect(0)


@scenario(kip="base")
def test_e503_a_tie_of_the_vote(play: Player) -> None:
    pairs = {
        ("range", "roundrobin"): ("roundrobin", "range"),
        ("range", "sticky"): ("range", "sticky"),
        ("range", "cooperative-sticky"): ("cooperative-sticky", "range"),
        ("roundrobin", "sticky"): ("roundrobin", "sticky"),
        ("roundrobin", "cooperative-sticky"): ("cooperative-sticky", "roundrobin"),
        ("sticky", "cooperative-sticky"): ("cooperative-sticky", "sticky"),
    }
    for number, (names, (old, new)) in enumerate(pairs.items()):
        group = f"{play.g}.{number}"
        one, other = protocols(*names), protocols(*reversed(names))
        first = play.join("", "i1", protocols=one, group=group)
        play.pass_initial_delay(first)
        p = first.answer().member_id
        second = play.join("", "i2", protocols=other, group=group)
        play.expect_parked(second)
        again = play.join(p, "i1", protocols=one, group=group)
        assert again.answer().protocol_name == second.answer().protocol_name == (old if play.old else new)


@scenario(kip="KIP-345")
def test_e504_a_returned_member_has_its_predecessors_session_until_its_first_request(play: Player) -> None:
    play.session = 4
    play.static_one()
    p2 = play.join("", "i1", session=1).expect(generation_id=1).member_id
    play.wait(2.5)
    play.heartbeat(1, p2, "i1").expect(0)
    play.wait(2.5)
    # since these releases it can trigger another rebalance by itself (KAFKA-14009)
    play.describe().expect(*(("Empty", []) if play.since("3.3.2", "3.4.0") else ("Stable", [p2])))


@scenario(kip="KAFKA-14009")
def test_e505_a_rejoin_changes_the_session_timeout(play: Player) -> None:
    a = play.stable_one(session=4)
    assert play.join(a, session=1).answer().generation_id == 2
    play.sync(2, a, {a: b"a"}).answer()
    play.wait(2.5)
    play.describe().expect(*(("Empty", []) if play.since("3.3.2", "3.4.0") else ("Stable", [a])))


@scenario(kip="KAFKA-9885", max_size=2)
def test_e506_parked_joins_count_during_a_join_phase(play: Player) -> None:
    a, _ = play.stable_two()
    joining = play.join(a)
    play.expect_parked(joining)
    asked = play.join("")
    assert asked.answer().error_code == (79 if play.since("2.6.0") else 81)


@scenario(kip="base")
def test_e507_a_sync_to_a_stable_group_is_a_sign_of_life(play: Player) -> None:
    a = play.stable_one(session=3)
    play.wait(2)
    play.sync(1, a).answer()
    play.wait(2)
    play.describe().expect(*(("Stable", [a]) if play.old else ("Empty", [])))


@scenario(kip="KIP-559", initial_delay=1)
def test_e508_a_sync_that_names_a_protocol_before_the_group_has_one(play: Player) -> None:
    play.needs(ApiKey.SYNC_GROUP, 5)
    x = play.new_id()
    play.join(x)
    play.sync(0, x, version=5).expect(error=23 if play.old else 27)
    play.sync(0, x, version=4).expect(error=27)


@scenario(kip="KIP-134", initial_delay=3)
def test_e509_the_initial_delay_and_the_last_id_that_is_waited_for(play: Player) -> None:
    play.new_id(session=1)
    play.zero()
    play.answers_at(3 if play.old else 1, play.join("", version=3))


@scenario(kip="base")
def test_e510_the_assignments_of_a_group_that_rebalances(play: Player) -> None:
    a, b = play.stable_two()
    joining = play.join(b, protocols=CHANGED)
    play.expect_parked(joining)
    row = play.describe().expect("PreparingRebalance", [a, b])
    shown = {each.member_id: each.member_assignment for each in row.members}
    assert shown == ({a: b"", b: b""} if play.old else {a: b"a2", b: b"b2"})


@scenario(kip="base")
def test_e511_an_empty_group_goes_with_its_last_offset(play: Player) -> None:
    play.emptied()
    play.commit(-1, "", {("t", 0): 1}).expect(0)
    play.delete_offsets(("t", 0)).expect({("t", 0): 0})
    play.describe().expect("Dead" if play.old else "Empty", [])


@scenario(kip="KIP-848")
def test_e512_a_members_commit_to_a_group_that_is_not_there(play: Player) -> None:
    play.commit(1, "ghost", {("t", 0): 1}, version=8).expect(22)
    play.needs(ApiKey.OFFSET_COMMIT, 9)
    play.commit(1, "ghost", {("t", 0): 1}, version=9).expect(22 if play.old else 69)


@scenario(kip="KIP-394")
def test_e513_a_pending_id_leaves_before_any_sync(play: Player) -> None:
    a, b = play.unsynced_two()
    syncing = play.sync(2, b)
    play.expect_parked(syncing)
    play.leave(play.new_id()).expect(0)
    if play.old:
        play.expect_parked(syncing)
        play.describe().expect("CompletingRebalance", [a, b])
    else:
        syncing.expect(error=27)
        play.describe().expect("PreparingRebalance", [a, b])


@scenario(kip="KIP-345")
def test_e514_a_member_leaves_with_an_unknown_instance_id(play: Player) -> None:
    a = play.stable_one()
    play.leave((a, "i9")).expect(25 if play.since("3.0.0") else 0)
    play.describe().expect(*(("Stable", [a]) if play.since("3.0.0") else ("Empty", [])))


@scenario(kip="KIP-345")
def test_e515_a_static_member_is_replaced_before_it_ever_joined(play: Player) -> None:
    play.stable_one()
    first = play.join("", "i4", session=2)
    play.expect_parked(first)
    play.zero()
    second = play.join("", "i4", session=2)
    first.expect(82, member_id=first.answer().member_id)
    # 2.4 does not watch its session (KAFKA-9752)
    if play.old and play.since("2.5.0"):
        play.answers_at(2, second)
        second.expect(25, member_id="")
    else:
        play.wait(4)
        play.expect_parked(second)


@scenario(kip="KIP-345")
def test_e516_a_static_member_replaced_before_it_ever_joined_goes_on_as_any_other(play: Player) -> None:
    a = play.stable_one()
    play.join("", "i4", session=2)
    second = play.join("", "i4", session=2)
    play.expect_parked(second)
    assert play.join(a).answer().generation_id == second.answer().generation_id == 2
    play.wait(4)
    members = [row.member_id for row in play.describe().row.members]
    assert (second.answer().member_id in members) is not play.since("2.5.0")


@scenario(kip="KIP-345")
def test_e517_a_pending_id_leaves_with_an_instance_id(play: Player) -> None:
    a = play.stable_one()
    pending = play.new_id()
    answer = play.leave(a, (pending, "i4"), (pending, None)).answer()
    # without members the rebalance is over at once, whatever id is pending
    play.wait(0.1)
    assert play.describe().row.group_state == "Empty"
    if play.since("3.0.0"):
        assert [row.error_code for row in answer.members] == [0, 0, 25]
        assert play.join(pending).answer().error_code == 25
    else:
        assert (answer.error_code, answer.members) == (-1, ())
        assert play.join(pending).answer().error_code == 0


@scenario(kip="KIP-1242")
def test_e998_a_client_may_name_the_broker_that_it_expects(play: Player) -> None:
    play.needs(ApiKey.API_VERSIONS, 5)
    cluster = play.ask(DescribeClusterRequest(), 0).unrecorded()
    own, node = cluster.cluster_id, cluster.brokers[0].broker_id
    for cluster_id, node_id, name, error in (
        (None, -1, "c", 0),
        (None, 99, "c", 42),
        (own, node, "c", 0),
        (own, 99, "c", 129),
        (own, -1, "c", 42),
        ("other", node, "c", 129),
        ("other", node, "", 42),
    ):
        request = ApiVersionsRequest(
            client_software_name=name, client_software_version="1", cluster_id=cluster_id, node_id=node_id
        )
        answer = play.ask(request, 5).unrecorded()
        assert (answer.error_code, bool(answer.api_keys)) == (error, not error), request
        assert play.ask(request, 4).unrecorded().error_code == (0 if name else 42)
        play.transcript.add("ApiVersions", 5, str(answer.error_code))
