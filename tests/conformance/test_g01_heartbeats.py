"""Heartbeats of consumer groups: their shape, joins, epochs, the revocation handshake, changes of topics (KIP-848)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from scenarios.consumer_members import ALL, HALF, OTHER_HALF, ConsumerMembers
from scenarios.registry import scenario

if TYPE_CHECKING:
    from scenarios.modern_members import Given
    from scenarios.player import Player

consumer_scenario = partial(scenario, kip="KIP-848", consumer=True)

NO_MEMBER_ID = 42, "MemberId can't be empty."
FENCED = 110
UNKNOWN = 25
MISSING = 69
SECOND = (0, 1.5)
"""Kafka resolves patterns and notices topics within a second."""


@consumer_scenario()
def test_g002_a_group_needs_an_id(play: Player) -> None:
    x = ConsumerMembers(play)
    assert x.refused_join("A", group="") == (42, "GroupId can't be empty.")


@consumer_scenario(kip="KIP-1082")
def test_g003_since_v1_clients_make_the_member_ids(play: Player) -> None:
    x = ConsumerMembers(play)
    assert x.refused_join("", version=1) == NO_MEMBER_ID
    assert x.refusal("", 3, version=1) == NO_MEMBER_ID
    assert x.described().error_code == MISSING


@consumer_scenario()
def test_g005_in_v0_only_a_joining_member_may_lack_an_id(play: Player) -> None:
    x = ConsumerMembers(play)
    assert [x.refusal("", epoch, version=0) for epoch in (5, -1)] == [NO_MEMBER_ID] * 2
    static = x.refusal("", -2, inst="i1", version=0)
    assert static == (NO_MEMBER_ID if play.target.release.line == "3.9" else (MISSING, f"Group {play.g} not found."))


@consumer_scenario()
def test_g006_a_join_has_a_rebalance_timeout(play: Player) -> None:
    x = ConsumerMembers(play)
    text = "RebalanceTimeoutMs must be provided in first request."
    assert x.refused_join("A", timeout=None) == (42, text)
    assert x.described().error_code == MISSING


@consumer_scenario()
def test_g008_a_join_has_a_subscription(play: Player) -> None:
    x = ConsumerMembers(play)
    text = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    if not play.since("4.0.0"):
        text = "SubscribedTopicNames must be set in first request."
    assert x.refused_join("A", topics=None) == (42, text)


@consumer_scenario()
def test_g009_an_empty_subscription_is_a_member_and_raises_no_epoch(play: Player) -> None:
    x = ConsumerMembers(play)
    if not play.since("4.0.0"):
        assert x.refused_join("A", topics=[]) == (42, "SubscribedTopicNames must be set in first request.")
        return
    # with an epoch of 0 in 4.2, which the first member raises
    epoch = 2 if play.since("4.2.0") and not play.since("4.3.0") else 1
    assert x.join("A", []) == (epoch, {})
    assert x.shape() == ("Stable", epoch, epoch)
    if play.since("4.3.0"):
        assert x.written() == [5, 8]
    assert x.join("B", []) == (epoch, {})


@consumer_scenario()
def test_g011_blank_texts_count_as_empty(play: Player) -> None:
    x = ConsumerMembers(play)
    assert x.refused_join("A", inst=" ") == (42, "InstanceId can't be empty.")
    assert x.refused_join("A", rack="") == (42, "RackId can't be empty.")
    if x.version:
        assert x.refused_join(" ") == NO_MEMBER_ID


@consumer_scenario()
def test_g012_an_unknown_assignor_is_refused_and_the_member_stays(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    for code, text in (x.refused_join("A", assignor="sticky"), x.refusal("A", 2, assignor="sticky")):
        beginning, _, names = (text or "").partition(" Supported assignors: ")
        assert (code, beginning) == (112, "ServerAssignor sticky is not supported.")
        assert sorted(names.removesuffix(".").split(", ")) == ["range", "uniform"]
    assert x.beat("A", 2) == (2, None)


@consumer_scenario()
def test_g014_only_a_join_creates_a_group(play: Player) -> None:
    x = ConsumerMembers(play)
    missing = MISSING, f"Group {play.g} not found."
    assert x.refusal("A", 2) == (MISSING, f"Consumer group {play.g} not found.")
    assert [x.refusal("A", -1), x.refusal("A", -2, inst="i1")] == [missing] * 2
    assert x.described().error_code == MISSING


@consumer_scenario()
def test_g015_an_unknown_member_is_refused(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    stranger = UNKNOWN, f"Member X is not a member of group {play.g}."
    assert [x.refusal("X", 2), x.refusal("X", -1)] == [stranger] * 2
    unknown = UNKNOWN, "Instance id ix is unknown."
    assert [x.refusal("X", epoch, inst="ix") for epoch in (2, -2)] == [unknown] * 2


@consumer_scenario()
def test_g017_the_first_member_gets_everything_at_once(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    assert x.shape() == ("Stable", 2, 2)
    row = x.described()
    (member,) = row.members
    assert row.assignor_name == "uniform"
    assert member.client_host == "/127.0.0.1"
    assert x.members() == {"A": (2, ALL, ALL)}
    if x.version:
        assert (member.subscribed_topic_regex, member.member_type) == ("", 1)


@consumer_scenario()
def test_g018_a_stable_member_is_told_its_assignment_once(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    assert [x.beat("A", 2, owned=owned) for owned in (None, ALL, {})] == [(2, None)] * 3


@consumer_scenario()
def test_g020_the_second_member_waits_for_the_revocation(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    assert x.join("B") == (3, {})
    assert x.shape() == ("Reconciling", 3, 3)
    assert x.members() == {"A": (2, ALL, HALF), "B": (3, {}, OTHER_HALF)}


@consumer_scenario()
def test_g021_partitions_move_when_their_revocation_is_acknowledged(play: Player) -> None:
    x = ConsumerMembers(play)
    x.revoking()
    assert x.beat("B", 3) == (3, None)
    assert x.beat("A", 2, owned=HALF) == (3, None)
    assert x.beat("B", 3) == (3, OTHER_HALF)
    assert x.beat("B", 3) == (3, None)
    assert x.shape() == ("Stable", 3, 3)


def skips_the_revocation(play: Player, owned: Given) -> None:
    x = ConsumerMembers(play)
    x.one()
    assert x.join("B") == (3, {})
    assert x.beat("A", 2, owned=owned) == (3, HALF)
    assert x.beat("B", 3) == (3, OTHER_HALF)


@consumer_scenario()
def test_g023_a_member_that_owns_nothing_skips_the_revocation(play: Player) -> None:
    skips_the_revocation(play, {})


@consumer_scenario()
def test_g024_a_member_that_owns_nothing_of_it_skips_the_revocation(play: Player) -> None:
    skips_the_revocation(play, {"t": [0]})


def fenced(x: ConsumerMembers, epoch: int, owned: Given | None = None) -> None:
    code, text = x.refusal("A", epoch, owned=owned)
    relation = "smaller" if epoch < 3 else "greater"
    assert code == FENCED
    assert (text or "").startswith(
        f"The consumer group member has a {relation} member epoch ({x.raw(epoch)}) than the one known by the group "
        f"coordinator ({x.raw(3)})."
    )


@consumer_scenario()
def test_g026_a_smaller_epoch_is_fenced(play: Player) -> None:
    x = ConsumerMembers(play)
    x.pair()
    for owned in (None, {"t": [0, 1, 2]}, {"u": [0]}):
        fenced(x, 2, owned)
    assert x.beat("A", 3) == (3, None)


@consumer_scenario()
def test_g027_the_epoch_before_the_previous_one_and_a_greater_one_are_fenced(play: Player) -> None:
    x = ConsumerMembers(play)
    x.pair()
    if play.since("4.3.0"):
        # before, the same epoch is a join
        fenced(x, 1, HALF)
    fenced(x, 4)
    fenced(x, 99, {})


@consumer_scenario()
def test_g029_a_rejoin_acknowledges_the_revocation(play: Player) -> None:
    x = ConsumerMembers(play)
    x.revoking()
    assert x.join("A") == ((3, HALF) if play.since("4.2.0") else FENCED)


@consumer_scenario()
def test_g030_a_third_member_takes_from_the_one_with_more(play: Player) -> None:
    x = ConsumerMembers(play)
    x.pair()
    assert x.join("C") == (4, {})
    settled = x.converge({"A": (3, HALF), "B": (3, OTHER_HALF), "C": (4, {})})
    assert settled == {"A": (4, HALF), "B": (4, {"t": [2]}), "C": (4, {"t": [3]})}
    assert x.shape() == ("Stable", 4, 4)


@consumer_scenario()
def test_g032_the_next_heartbeat_of_any_member_computes_the_target(play: Player) -> None:
    x = ConsumerMembers(play)
    x.pair()
    assert x.beat("B", -1) == (-1, None)
    assert x.shape() == ("Assigning", 4, 3)
    assert x.beat("A", 3) == (4, ALL)
    assert x.beat("B", 3) == UNKNOWN


def emptied_target(play: Player) -> int:
    """Return the epoch of the target that the only member leaves at epoch 2: since 4.4 that of the group."""
    return 3 if play.since("4.4.0") else 2


@consumer_scenario()
def test_g033_an_empty_group_keeps_its_epochs(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    assert x.beat("A", -1) == (-1, None)
    assert x.shape() == ("Empty", 3, emptied_target(play))
    assert x.join("B") == (4, ALL)


@consumer_scenario()
def test_g035_partitions_pending_revocation_are_free_when_the_member_leaves(play: Player) -> None:
    x = ConsumerMembers(play)
    x.revoking()
    assert x.beat("A", -1) == (-1, None)
    assert x.beat("B", 3) == (4, ALL)


@consumer_scenario()
def test_g036_a_changed_subscription_converges(play: Player) -> None:
    x = ConsumerMembers(play)
    x.pair()
    epoch, given = x.beat("A", 3, topics=["t", "u"])
    assert epoch in {3, 4}
    settled = x.converge({"A": (epoch, HALF if given is None else given), "B": (3, OTHER_HALF)})
    assert {member_id: epoch for member_id, (epoch, _) in settled.items()} == {"A": 4, "B": 4}
    assert settled["A"][1]["u"] == [0, 1]
    if play.since("4.0.0"):
        assert settled == {"A": (4, {"t": [0], "u": [0, 1]}), "B": (4, {"t": [1, 2, 3]})}


@consumer_scenario()
def test_g038_a_member_may_unsubscribe(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    assert x.beat("A", 2, topics=[], owned={}) == (3, {})
    assert x.shape() == ("Stable", 3, 3)
    assert [member.subscribed_topic_names for member in x.described().members] == [()]


@consumer_scenario()
def test_g039_names_are_a_set(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    assert [x.beat("A", 2, topics=topics) for topics in (["t"], ["t", "t"])] == [(2, None)] * 2
    assert x.shape() == ("Stable", 2, 2)


@consumer_scenario()
def test_g041_an_unknown_topic_stays_in_the_subscription(play: Player) -> None:
    x = ConsumerMembers(play)
    assert x.join("A", ["missing"]) == (2, {})
    assert x.join("B", ["t", "missing"]) == (3, ALL)
    names = {member.member_id: sorted(member.subscribed_topic_names) for member in x.described().members}
    assert names == {"A": ["missing"], "B": ["missing", "t"]}


@consumer_scenario()
def test_g042_a_topic_that_is_created_later_is_assigned_by_the_next_heartbeat(play: Player) -> None:
    x = ConsumerMembers(play)
    x.planned_topic("n", ".later")
    assert x.join("A", ["n"]) == (2, {})
    x.new_topic("n", 3, suffix=".later")
    x.beats_until((3, {"n": [0, 1, 2]}), "A", 2)


@consumer_scenario()
def test_g044_partitions_of_a_deleted_topic_are_revoked(play: Player) -> None:
    x = ConsumerMembers(play)
    x.new_topic("n", 2)
    both = {**ALL, "n": [0, 1]}
    assert x.join("A", ["t", "n"]) == (2, both)
    x.delete_topic("n")
    x.beats_until((2, ALL), "A", 2, owned=both)
    assert x.beat("A", 2, owned=ALL) == (3, None)
    assert x.members() == {"A": (3, ALL, ALL)}


@consumer_scenario()
def test_g158_a_changed_subscription_adds_to_what_is_pending(play: Player) -> None:
    x = ConsumerMembers(play)
    x.revoking()
    if play.since("4.2.0"):
        assert x.beat("A", 2, topics=["u"], owned=ALL) == (2, {})
        assert x.beat("A", 2, owned={"t": [0]}) == (2, None)
        assert x.beat("A", 2, owned={}) == (4, {"u": [0, 1]})
    else:
        assert x.beat("A", 2, topics=["u"], owned=ALL) == (2, None)
        assert x.beat("A", 2, owned=HALF) == (3, {})
        assert x.beat("A", 3, owned={}) == (4, {"u": [0, 1]})
    assert x.beat("B", 3) == (4, ALL)


@consumer_scenario(kip="KIP-1263")
def test_g045_a_join_within_the_interval_is_taken_to_the_old_target(play: Player) -> None:
    x = ConsumerMembers(play)
    has_interval = play.since("4.3.0")
    assert x.configure(consumer_assignment_interval_ms=play.ms(3)) == (0 if has_interval else 40)
    if not has_interval:
        return
    play.zero()
    assert x.join("A") == (2, ALL)
    assert x.join("B") == (2, {})
    assert x.shape() == ("Assigning", 3, 2)
    assert x.beat("A", 2) == (2, None)
    play.at(3.2)
    assert x.beat("A", 2) == (2, HALF)
    assert x.shape() == ("Reconciling", 3, 3)
