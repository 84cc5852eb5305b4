"""JoinGroup: admission, and its effect on the group (the original group protocol; KIP-429, KIP-559, KIP-800)."""

from __future__ import annotations

from typing import Any

import pytest
from builders.requests import CHANGED, RANGE, subscription
from scenes.play import Play

from koordinator.emulator.core.groups.facts import StateChanged, Superseded
from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_protocol import ConsumerProtocolSubscription, write_subscription

NOTHING = {"generation_id": -1, "leader": "", "members": (), "protocol_type": None, "skip_assignment": False}


def two_protocols(first: str, second: str) -> tuple[tuple[str, bytes], ...]:
    return (first, first.encode()), (second, second.encode())


def test_an_empty_group_id_is_invalid(play: Play) -> None:
    assert play.join("", group="").error is Error.INVALID_GROUP_ID


@pytest.mark.parametrize("session", [5_999, 1_800_001])
def test_a_session_timeout_out_of_bounds_is_refused_and_changes_nothing(session: int) -> None:
    play = Play(group_min_session_timeout_ms=6_000)
    a = play.stable_member()
    refused = play.join(a, session=session).response
    assert (refused.error_code, refused.member_id) == (Error.INVALID_SESSION_TIMEOUT, a)
    assert play.heartbeat(1, a) is Error.NONE


@pytest.mark.parametrize("session", [6_000, 1_800_000])
def test_the_bounds_of_the_session_timeout_are_allowed(session: int) -> None:
    play = Play(group_min_session_timeout_ms=6_000)
    assert play.join("", session=session).error is Error.MEMBER_ID_REQUIRED


def test_a_session_timeout_out_of_bounds_does_not_create_the_group(play: Play) -> None:
    play.join("", session=1_800_001)
    assert play.state() == "Dead"


def test_an_unissued_member_id_is_unknown_and_creates_no_group(play: Play) -> None:
    refused = play.join("ghost").response
    assert (refused.error_code, refused.member_id) == (Error.UNKNOWN_MEMBER_ID, "ghost")
    assert play.state() == "Dead"


def test_a_stranger_is_unknown_to_an_existing_group(play: Play) -> None:
    play.stable_member()
    refused = play.join("ghost").response
    assert (refused.error_code, refused.member_id) == (Error.UNKNOWN_MEMBER_ID, "ghost")


@pytest.mark.parametrize(
    "sent",
    [{"protocol_type": ""}, {"protocols": ()}],
    ids=["without a protocol type", "without a protocol"],
)
def test_the_first_member_needs_a_protocol_type_and_a_protocol(play: Play, sent: dict[str, Any]) -> None:
    refused = play.join("", **sent).response
    assert (refused.error_code, refused.member_id) == (Error.INCONSISTENT_GROUP_PROTOCOL, "")
    # refused, but it has created the group
    assert play.state() == "Empty"


@pytest.mark.parametrize(
    "sent",
    [{"protocol_type": "connect"}, {"protocols": ()}, {"protocols": (("roundrobin", b""),)}],
    ids=["another type", "no protocol", "no protocol in common"],
)
def test_a_joiner_needs_the_protocol_type_and_a_common_protocol(play: Play, sent: dict[str, Any]) -> None:
    a = play.stable_member()
    refused = play.join("", **sent).response
    assert (refused.error_code, refused.member_id) == (Error.INCONSISTENT_GROUP_PROTOCOL, "")
    assert play.heartbeat(1, a) is Error.NONE


def test_even_the_only_member_cannot_switch_to_an_entirely_new_list(play: Play) -> None:
    a = play.stable_member()
    refused = play.join(a, protocols=(("roundrobin", b""),)).response
    assert (refused.error_code, refused.member_id) == (Error.INCONSISTENT_GROUP_PROTOCOL, a)
    assert play.heartbeat(1, a) is Error.NONE


def test_one_protocol_in_common_is_enough_and_the_vote_uses_the_new_list(play: Play) -> None:
    a = play.stable_member()
    joined = play.join(a, protocols=(("roundrobin", b"rr"), *RANGE)).response
    assert (joined.generation_id, joined.protocol_name) == (2, "roundrobin")


def test_a_protocol_that_one_member_lacks_is_no_candidate(play: Play) -> None:
    a = play.stable_member(protocols=two_protocols("x", "y"))
    b = play.new_id(protocols=(("y", b"y"),))
    joins = [play.join(b, protocols=(("y", b"y"),)), play.join(a, protocols=two_protocols("x", "y"))]
    assert {sent.response.protocol_name for sent in joins} == {"y"}
    refused = play.join("", protocols=(("x", b"x"),))
    assert refused.error is Error.INCONSISTENT_GROUP_PROTOCOL


def test_of_two_protocols_with_one_name_the_first_counts(play: Play) -> None:
    twice = (("range", b"first"), ("range", b"second"))
    joined = play.join(play.new_id(protocols=twice), protocols=twice)
    play.settle()
    assert [row.metadata for row in joined.response.members] == [b"first"]


def test_a_group_that_became_empty_accepts_any_protocol_type(play: Play) -> None:
    play.emptied()
    x = play.new_id(protocol_type="connect", protocols=(("v0", b""),))
    joined = play.join(x, protocol_type="connect", protocols=(("v0", b""),), version=7)
    play.settle()
    assert joined.response.protocol_type == "connect"


def test_a_refusal_has_only_the_error_and_the_id(play: Play) -> None:
    refused = play.join("ghost", version=9).response
    assert {name: getattr(refused, name) for name in NOTHING} == NOTHING


@pytest.mark.parametrize(("version", "name"), [(6, ""), (7, None)])
def test_kip_559_no_protocol_is_empty_before_v7_and_null_since(play: Play, version: int, name: str | None) -> None:
    sent = play.join("", version=version).response
    assert (sent.protocol_name, sent.protocol_type) == (name, None)


def test_kip_559_a_join_answers_protocol_type_and_name(play: Play) -> None:
    joined = play.join(play.new_id(), version=7)
    play.settle()
    assert (joined.response.protocol_type, joined.response.protocol_name) == ("consumer", "range")


def test_only_the_leader_receives_the_members(play: Play) -> None:
    a = play.stable_member()
    b = play.new_id()
    follower, leader = play.join(b, protocols=CHANGED), play.join(a)
    assert leader.response.leader == follower.response.leader == a
    assert {row.member_id: row.metadata for row in leader.response.members} == {a: RANGE[0][1], b: CHANGED[0][1]}
    assert (follower.response.members, follower.response.member_id) == ((), b)


def test_the_common_protocol_with_most_votes_wins(play: Play) -> None:
    a = play.stable_member(protocols=two_protocols("range", "rr"))
    ids = [play.new_id(protocols=two_protocols("rr", "range")) for _ in range(2)]
    joins = [play.join(each, protocols=two_protocols("rr", "range")) for each in ids]
    leader = play.join(a, protocols=two_protocols("range", "rr"))
    assert {sent.response.protocol_name for sent in [*joins, leader]} == {"rr"}
    assert {row.metadata for row in leader.response.members} == {b"rr"}


def test_a_tie_is_broken_for_all_members_alike(play: Play) -> None:
    a = play.stable_member(protocols=two_protocols("x", "y"))
    b = play.new_id(protocols=two_protocols("y", "x"))
    joins = [play.join(b, protocols=two_protocols("y", "x")), play.join(a, protocols=two_protocols("x", "y"))]
    (chosen,) = {sent.response.protocol_name for sent in joins}
    assert chosen is not None
    assert {row.metadata for row in joins[1].response.members} == {chosen.encode()}


@pytest.mark.parametrize("reason", [None, "", "need to revoke partitions"])
def test_kip_800_a_reason_changes_nothing_but_the_facts(play: Play, reason: str | None) -> None:
    a = play.stable_member()
    joined = play.join(a, version=8, reason=reason)
    assert joined.response.generation_id == 2
    started = [fact for fact in play.facts_of(StateChanged) if fact.after == "PreparingRebalance"][-1]
    assert started.client_reason == reason
    assert started.reason.endswith(f"client reason: {reason or 'not provided'}")


def test_a_member_id_is_the_client_id_and_a_uuid(play: Play) -> None:
    name, _, uuid = play.new_id(client_id="billing").partition("-")
    assert (name, len(uuid)) == ("billing", 36)


def test_the_leader_of_a_stable_group_starts_a_rebalance_when_it_rejoins(play: Play) -> None:
    a, b = play.stable_pair()
    assert play.join(a).parked
    assert play.heartbeat(2, b) is Error.REBALANCE_IN_PROGRESS


def test_a_follower_that_rejoins_unchanged_is_answered_at_once_without_a_rebalance(play: Play) -> None:
    a, b = play.stable_pair()
    again = play.join(b).response
    assert (again.generation_id, again.leader, again.members, again.member_id) == (2, a, (), b)
    assert play.heartbeat(2, a) is Error.NONE


def test_a_follower_that_rejoins_unchanged_does_not_refresh_its_session(play: Play) -> None:
    a, b = play.stable_pair()
    play.keep_alive(8_000, (2, a))
    assert play.join(b).response.generation_id == 2
    assert play.keep_alive(2_000, (2, a)) is Error.REBALANCE_IN_PROGRESS


def test_a_follower_that_rejoins_unchanged_keeps_its_timeouts(play: Play) -> None:
    _, b = play.stable_pair()
    play.join(b, session=60_000, rebalance=90_000)
    member = play.group().members[b]
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (10_000, 30_000)


@pytest.mark.parametrize(
    "protocols",
    [CHANGED, (*RANGE, ("rr", b""))],
    ids=["metadata", "list"],
)
def test_a_follower_with_changed_protocols_rebalances(play: Play, protocols: tuple[tuple[str, bytes], ...]) -> None:
    a, b = play.stable_pair()
    changed = play.join(b, protocols=protocols)
    assert changed.parked
    assert play.heartbeat(2, a) is Error.REBALANCE_IN_PROGRESS
    leader = play.join(a).response
    assert (leader.generation_id, changed.response.generation_id) == (3, 3)
    assert {row.member_id: row.metadata for row in leader.members}[b] == protocols[0][1]


def test_the_order_of_protocols_is_a_change(play: Play) -> None:
    a = play.stable_member(protocols=two_protocols("x", "y"))
    b, _ = play.joined_by(a, protocols=two_protocols("x", "y"))
    assert not play.join(b, protocols=two_protocols("x", "y")).parked
    assert play.join(b, protocols=two_protocols("y", "x")).parked


def test_a_leader_that_rejoins_always_rebalances(play: Play) -> None:
    a, b = play.stable_pair()
    leader = play.join(a)
    assert leader.parked
    assert play.heartbeat(2, b) is Error.REBALANCE_IN_PROGRESS
    assert play.join(b).response.generation_id == leader.response.generation_id == 3


def test_a_sole_leader_that_rejoins_gets_its_next_generation_at_once(play: Play) -> None:
    assert play.join(play.stable_member()).response.generation_id == 2


def test_before_the_assignment_an_unchanged_rejoin_gets_the_same_response(play: Play) -> None:
    a, b = play.unsynced_pair()
    leader, follower = play.join(a).response, play.join(b).response
    assert (leader.generation_id, {row.member_id for row in leader.members}) == (2, {a, b})
    assert (follower.generation_id, follower.members, follower.leader) == (2, (), a)
    assert play.state() == "CompletingRebalance"


def test_before_the_assignment_a_changed_rejoin_rebalances_and_ends_parked_syncs(play: Play) -> None:
    a, b = play.unsynced_pair()
    syncing = play.sync(2, b)
    changed = play.join(a, protocols=CHANGED)
    assert (syncing.error, syncing.response.assignment) == (Error.REBALANCE_IN_PROGRESS, b"")
    assert changed.parked
    assert play.join(b).response.generation_id == changed.response.generation_id == 3


def test_before_the_assignment_a_new_member_rebalances(play: Play) -> None:
    a, b = play.unsynced_pair()
    syncing = play.sync(2, b)
    c = play.join("", version=3)
    assert syncing.error is Error.REBALANCE_IN_PROGRESS
    assert c.parked
    assert play.heartbeat(2, a) is Error.REBALANCE_IN_PROGRESS
    leader = play.join(a)
    assert play.join(b).response.generation_id == c.response.generation_id == 3
    assert len(leader.response.members) == 3


def test_kafka_14009_a_rejoin_brings_new_timeouts(play: Play) -> None:
    a, b = play.stable_pair()
    play.join(b, session=20_000, rebalance=90_000, protocols=CHANGED)
    member = play.group().members[b]
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (20_000, 90_000)
    play.join(a)
    assert play.group().timers[member.session] == play.now + 20_000


def test_a_second_join_supersedes_the_parked_one(play: Play) -> None:
    a = play.stable_member()
    b = play.new_id()
    first, second = play.join(b), play.join(b)
    leader = play.join(a)
    assert (first.parked, second.response.generation_id) == (True, 2)
    assert [row.member_id for row in leader.response.members] == [a, b]
    assert [fact.call for fact in play.facts_of(Superseded)] == [first.call]


def test_a_rejoin_never_changes_client_id_and_host(play: Play) -> None:
    a = play.stable_member(client_id="first")
    play.join(a, client_id="second")
    assert play.describe().members[0].client_id == "first"


def test_becoming_empty_takes_a_generation(play: Play) -> None:
    play.emptied()
    joined = play.join(play.new_id())
    play.settle()
    assert joined.response.generation_id == 3


def test_kip_429_owned_partitions_are_bytes_like_any_other(play: Play) -> None:
    a, b = play.stable_pair()
    owned = write_subscription(ConsumerProtocolSubscription(topics=("t",), user_data=b"owned: t-0"))
    changed = play.join(b, protocols=(("range", owned),))
    assert changed.parked
    leader = play.join(a).response
    assert {row.member_id: row.metadata for row in leader.members} == {a: subscription("t"), b: owned}
