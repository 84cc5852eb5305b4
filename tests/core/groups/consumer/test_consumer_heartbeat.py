"""Heartbeats of consumer groups: shape, joins, epochs, the revocation handshake (KIP-848).

A test named after a scenario, such as g021, plays it as it was seen on a broker of release 4.3.1.
"""

from __future__ import annotations

from typing import Any

import pytest
from scenes.consumer_play import ConsumerPlay

from koordinator.wire.errors import Error
from koordinator.wire.messages.heartbeat import HeartbeatRequest

HALF, OTHER_HALF, ALL = {"t": [0, 1]}, {"t": [2, 3]}, {"t": [0, 1, 2, 3]}


def stable_pair(play: ConsumerPlay) -> None:
    """Let A and B share topic t at epoch 3 (scenario C2)."""
    assert play.subscribe("A") == (2, ALL)
    assert play.subscribe("B") == (3, {})
    assert play.beat("A", 2) == (2, HALF)
    assert play.beat("A", 2, owned=HALF) == (3, None)
    assert play.beat("B", 3) == (3, OTHER_HALF)
    assert play.shape() == ("Stable", 3, 3)


class TestShape:
    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"member_id": ""}, "MemberId can't be empty."),
            ({"member_id": " "}, "MemberId can't be empty."),
            ({"group": ""}, "GroupId can't be empty."),
            ({"inst": " "}, "InstanceId can't be empty."),
            ({"rack": ""}, "RackId can't be empty."),
            ({"timeout": -1}, "RebalanceTimeoutMs must be provided in first request."),
            ({"owned": None}, "TopicPartitions must be empty when (re-)joining."),
            ({"owned": HALF}, "TopicPartitions must be empty when (re-)joining."),
            (
                {"topics": None},
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
            ),
            ({"epoch": -3}, "MemberEpoch is invalid."),
            ({"epoch": -2}, "InstanceId can't be null."),
        ],
    )
    def test_g002_to_g011_an_invalid_heartbeat_is_refused_and_creates_nothing(
        self, play: ConsumerPlay, fields: dict[str, Any], message: str
    ) -> None:
        valid = {"member_id": "A", "epoch": 0, "topics": ["t"], "owned": {}, "timeout": 30_000}
        response = play.heart(**valid | fields)
        assert (response.error_code, response.error_message) == (Error.INVALID_REQUEST, message)
        assert (response.member_id, response.member_epoch, response.assignment) == (None, 0, None)
        assert play.described().error_code == Error.GROUP_ID_NOT_FOUND

    def test_g005_in_v0_the_coordinator_makes_the_id_of_a_joining_member(self, play: ConsumerPlay) -> None:
        response = play.heart("", 0, topics=["t"], owned={}, timeout=1, version=0)
        assert len(response.member_id) == 22
        for epoch in (5, -1):
            assert play.heart("", epoch, version=0).error_message == "MemberId can't be empty."
        assert play.heart("", -2, inst="i1", group="none", version=0).error_code == Error.GROUP_ID_NOT_FOUND

    def test_g012_an_unknown_assignor_is_refused_and_the_member_stays(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        for epoch in (0, 2):
            response = play.heart("A", epoch, assignor="sticky", topics=["t"], owned={}, timeout=1)
            assert response.error_code == Error.UNSUPPORTED_ASSIGNOR
            text = "ServerAssignor sticky is not supported. Supported assignors: uniform, range."
            assert response.error_message == text
        assert play.beat("A", 2) == (2, None)


class TestJoining:
    def test_g009_an_empty_subscription_is_a_member_and_raises_no_epoch(self, play: ConsumerPlay) -> None:
        assert play.subscribe("A", []) == (1, {})
        assert play.shape() == ("Stable", 1, 1)
        assert play.record_types() == [5, 8]
        assert play.subscribe("B", []) == (1, {})

    def test_g014_only_a_join_creates_a_group(self, play: ConsumerPlay) -> None:
        said = [play.heart("A", epoch, inst=inst).error_message for epoch, inst in ((1, None), (-1, None), (-2, "i"))]
        assert said == ["Consumer group g not found.", "Group g not found.", "Group g not found."]
        assert not play.coordinator.store.groups

    def test_g015_an_unknown_member_is_refused(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        answers = [play.heart("X", epoch, inst=inst) for epoch, inst in ((1, None), (-1, None), (2, "ix"), (-2, "ix"))]
        assert {answer.error_code for answer in answers} == {Error.UNKNOWN_MEMBER_ID}
        stranger, unknown = "Member X is not a member of group g.", "Instance id ix is unknown."
        assert [answer.error_message for answer in answers] == [stranger, stranger, unknown, unknown]

    def test_g017_the_first_member_gets_everything_at_once(self, play: ConsumerPlay) -> None:
        response = play.heart("A", 0, topics=["t"], owned={}, timeout=30_000)
        assert (response.error_code, response.error_message, response.member_id) == (0, None, "A")
        assert (response.member_epoch, response.heartbeat_interval_ms) == (2, 500)
        assert play.given(response) == ALL
        row = play.described()
        assert (row.group_state, row.group_epoch, row.assignment_epoch, row.assignor_name) == (
            "Stable",
            2,
            2,
            "uniform",
        )
        (member,) = row.members
        assert (member.member_epoch, member.client_host, member.subscribed_topic_regex) == (2, "/127.0.0.1", "")
        assert play.named(member.assignment.topic_partitions) == ALL == play.targets()["A"]
        assert member.member_type == 1

    def test_g039_names_are_a_set(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        assert play.beat("A", 2, topics=["t"]) == (2, None)
        assert play.beat("A", 2, topics=["t", "t"]) == (2, None)
        assert play.shape() == ("Stable", 2, 2)

    def test_g041_an_unknown_topic_stays_in_the_subscription(self, play: ConsumerPlay) -> None:
        assert play.subscribe("A", ["missing"]) == (2, {})
        assert play.subscribe("B", ["t", "missing"]) == (3, ALL)
        assert {tuple(member.subscribed_topic_names) for member in play.described().members} == {
            ("missing",),
            ("missing", "t"),
        }

    def test_g042_a_topic_that_is_created_later_is_assigned_by_the_next_heartbeat(self, play: ConsumerPlay) -> None:
        assert play.subscribe("A", ["n"]) == (2, {})
        play.names[play.cluster.create_topic("n", 3).topic_id] = "n"
        assert play.beat("A", 2) == (3, {"n": [0, 1, 2]})

    def test_g044_partitions_of_a_deleted_topic_are_revoked(self, play: ConsumerPlay) -> None:
        topic = play.cluster.create_topic("n", 2)
        play.names[topic.topic_id] = "n"
        play.subscribe("A", ["t", "n"])
        owned = {**ALL, "n": [0, 1]}
        rows = {name: play.cluster.topics[name].topic_id for name in owned}
        play.cluster.delete_topic(topic)
        assert rows["n"] == topic.topic_id
        assert play.beat("A", 2) == (2, ALL)
        assert play.beat("A", 2, owned=ALL) == (3, None)

    def test_g146_a_full_group_refuses_strangers_at_every_epoch(self) -> None:
        play = ConsumerPlay(group_consumer_max_size=1)
        play.subscribe("A")
        assert play.subscribe("B") is Error.GROUP_MAX_SIZE_REACHED
        assert play.beat("B", 7) is Error.GROUP_MAX_SIZE_REACHED
        assert play.beat("A", 2) == (2, None)


class TestRevocation:
    def test_g018_a_stable_member_is_told_its_assignment_once(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        assert [play.beat("A", 2, owned=owned) for owned in (None, ALL, {})] == [(2, None)] * 3

    def test_g020_the_second_member_waits_for_the_revocation(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        assert play.subscribe("B") == (3, {})
        assert play.shape() == ("Reconciling", 3, 3)
        assert play.targets() == {"A": HALF, "B": OTHER_HALF}

    def test_g021_partitions_move_when_their_revocation_is_acknowledged(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        play.subscribe("B")
        assert play.beat("A", 2) == (2, HALF)
        assert play.beat("B", 3) == (3, None)
        assert play.beat("A", 2, owned=HALF) == (3, None)
        assert play.beat("B", 3) == (3, OTHER_HALF)
        assert play.beat("B", 3) == (3, None)
        assert play.shape()[0] == "Stable"

    @pytest.mark.parametrize("owned", [{}, {"t": [0]}])
    def test_g023_g024_a_member_that_owns_nothing_of_it_skips_the_revocation(
        self, play: ConsumerPlay, owned: dict[str, list[int]]
    ) -> None:
        play.subscribe("A")
        play.subscribe("B")
        assert play.beat("A", 2, owned=owned) == (3, HALF)
        assert play.beat("B", 3) == (3, OTHER_HALF)

    def test_g026_g027_another_epoch_is_fenced(self, play: ConsumerPlay) -> None:
        stable_pair(play)
        for epoch, owned in ((2, None), (2, {"t": [0, 1, 2]}), (2, {"u": [0]}), (1, HALF), (4, None), (99, {})):
            response = play.heart("A", epoch, owned=owned)
            assert response.error_code == Error.FENCED_MEMBER_EPOCH
            relation = "smaller" if epoch < 3 else "greater"
            assert response.error_message.startswith(
                f"The consumer group member has a {relation} member epoch ({epoch}) than the one known by the group "
                "coordinator (3)."
            )
        assert play.beat("A", 3) == (3, None)

    def test_the_previous_epoch_passes_with_a_subset_of_the_assignment(self, play: ConsumerPlay) -> None:
        stable_pair(play)
        assert play.beat("A", 2, owned={"t": [0]}) == (3, None)

    def test_g029_a_rejoin_acknowledges_the_revocation(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        play.subscribe("B")
        play.beat("A", 2)
        assert play.subscribe("A") == (3, HALF)

    def test_g030_a_third_member_takes_from_the_one_with_more(self, play: ConsumerPlay) -> None:
        stable_pair(play)
        assert play.subscribe("C") == (4, {})
        settled = play.converge({"A": (3, HALF), "B": (3, OTHER_HALF), "C": (4, {})})
        assert settled == {"A": (4, HALF), "B": (4, {"t": [2]}), "C": (4, {"t": [3]})}
        assert play.shape() == ("Stable", 4, 4)

    def test_g035_partitions_pending_revocation_are_free_when_the_member_leaves(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        play.subscribe("B")
        play.beat("A", 2)
        play.beat("A", -1)
        assert play.beat("B", 3) == (4, ALL)

    def test_g036_a_changed_subscription_converges(self, play: ConsumerPlay) -> None:
        stable_pair(play)
        epoch, given = play.beat("A", 3, topics=["t", "u"])
        settled = play.converge({"A": (epoch, HALF if given is None else given), "B": (3, OTHER_HALF)})
        assert settled == {"A": (4, {"t": [0], "u": [0, 1]}), "B": (4, {"t": [1, 2, 3]})}

    def test_g038_a_member_may_unsubscribe(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        assert play.beat("A", 2, topics=[], owned={}) == (3, {})
        assert play.shape() == ("Stable", 3, 3)

    def test_g158_a_changed_subscription_adds_to_what_is_pending(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        play.subscribe("B")
        assert play.beat("A", 2) == (2, HALF)
        assert play.beat("A", 2, topics=["u"], owned=ALL) == (2, {})
        assert play.beat("A", 2, owned={"t": [0]}) == (2, None)
        assert play.beat("B", 3) == (4, None)
        assert play.beat("A", 2, owned={}) == (4, {"u": [0, 1]})
        assert play.beat("B", 4) == (4, ALL)

    def test_g101_a_member_without_partitions_is_told_so_once(self, play: ConsumerPlay) -> None:
        members: dict[str, tuple[int, dict[str, list[int]]]] = {}
        for member_id in "ABCDE":
            members[member_id] = play.subscribe(member_id)
            play.converge(members)
        assert sorted(len(owned.get("t", ())) for _, owned in members.values()) == [0, 1, 1, 1, 1]
        assert {epoch for epoch, _ in members.values()} == {play.shape()[1]}


class TestAssignors:
    def test_g093_range_gives_consecutive_partitions(self, play: ConsumerPlay) -> None:
        both = ["t", "u"]
        members = {name: play.subscribe(name, both, assignor="range") for name in "AB"}
        assert play.described().assignor_name == "range"
        settled = play.converge(members)
        assert [owned for _, owned in settled.values()] == [{"t": [0, 1], "u": [0]}, {"t": [2, 3], "u": [1]}]

    def test_g095_range_begins_with_static_members_by_instance_id(self, play: ConsumerPlay) -> None:
        play.subscribe("a", assignor="range")
        play.subscribe("z1", inst="i2", assignor="range")
        play.subscribe("z2", inst="i1", assignor="range")
        assert play.targets() == {"z2": {"t": [0, 1]}, "z1": {"t": [2]}, "a": {"t": [3]}}

    def test_g098_the_assignor_with_the_most_votes_is_used(self, play: ConsumerPlay) -> None:
        for member_id, assignor, used in (("A", "range", "range"), ("B", "uniform", None), ("C", "uniform", "uniform")):
            play.subscribe(member_id, assignor=assignor)
            assert used in {None, play.described().assignor_name}

    def test_of_assignors_with_equal_votes_the_last_voter_decides_and_uniform_is_shown(
        self, play: ConsumerPlay
    ) -> None:
        play.subscribe("A", assignor="uniform")
        play.subscribe("B", ["t", "u"], assignor="range")
        assert play.described().assignor_name == "uniform"
        assert play.targets() == {"A": {"t": [0, 1]}, "B": {"t": [2, 3], "u": [0, 1]}}

    def test_g099_uniform_takes_the_last_partitions_of_the_most_loaded(self, play: ConsumerPlay) -> None:
        play.subscribe("A", ["t", "u"])
        play.subscribe("B")
        assert play.targets() == {"A": {"t": [0], "u": [0, 1]}, "B": {"t": [1, 2, 3]}}

    def test_g150_the_first_configured_assignor_is_the_default(self) -> None:
        play = ConsumerPlay(group_consumer_assignors="range,uniform")
        play.subscribe("A", ["t", "u"])
        assert play.described().assignor_name == "range"

    @pytest.mark.parametrize(
        ("partitions", "joined", "before", "leaving", "after"),
        [
            (
                *(7, ("delta", "alpha", "charlie", "bravo")),
                {"delta": [0, 1], "alpha": [4, 5], "charlie": [2, 3], "bravo": [6]},
                *("charlie", {"delta": [0, 1, 3], "alpha": [4, 5], "bravo": [2, 6]}),
            ),
            (
                *(11, ("c6", "c10", "c21", "c32", "c43")),
                {"c6": [0, 1, 2], "c10": [6, 7], "c21": [4, 5], "c32": [3, 9], "c43": [8, 10]},
                *("c10", {"c6": [0, 1, 2], "c21": [4, 5, 6], "c32": [3, 9], "c43": [7, 8, 10]}),
            ),
        ],
    )
    def test_g164_g165_ties_are_decided_by_hashes_and_insertion(
        self,
        play: ConsumerPlay,
        partitions: int,
        joined: tuple[str, ...],
        before: dict[str, list[int]],
        leaving: str,
        after: dict[str, list[int]],
    ) -> None:
        play.names[play.cluster.create_topic("n", partitions).topic_id] = "n"
        epochs = {member_id: play.subscribe(member_id, ["n"])[0] for member_id in joined}
        assert play.targets() == {member_id: {"n": listed} for member_id, listed in before.items()}
        play.beat(leaving, -1)
        play.beat(joined[0], epochs[joined[0]])
        assert play.targets() == {member_id: {"n": listed} for member_id, listed in after.items()}


class TestAssignmentInterval:
    def test_g045_a_join_within_the_interval_is_taken_to_the_old_target(self) -> None:
        play = ConsumerPlay(group_consumer_assignment_interval_ms=3_000)
        assert play.subscribe("A") == (2, ALL)
        assert play.subscribe("B") == (2, {})
        assert play.shape() == ("Assigning", 3, 2)
        assert play.beat("A", 2) == (2, None)
        play.wait(3_000)
        assert play.beat("A", 2) == (2, HALF)
        assert play.shape() == ("Reconciling", 3, 3)


def test_a_classic_heartbeat_does_not_know_a_member_of_the_consumer_protocol(play: ConsumerPlay) -> None:
    play.subscribe("A")
    request = HeartbeatRequest(group_id="g", generation_id=2, member_id="A")
    assert play.send(request, 4).response.error_code == Error.UNKNOWN_MEMBER_ID


def test_release_3_9_has_the_api_and_the_protocol_is_off() -> None:
    play = ConsumerPlay(kafka_version="3.9")
    response = play.heart("A", 0, topics=["t"], owned={}, timeout=1, version=0)
    assert (response.error_code, response.error_message) == (Error.UNSUPPORTED_VERSION, None)
    assert play.described(version=0).error_code == Error.UNSUPPORTED_VERSION
