"""Heartbeats of share groups: shape, joins, epochs, initialization, leaving (KIP-932).

A test named after a scenario, such as h017, plays it as it was seen on a broker of release 4.3.1.
"""

from __future__ import annotations

from typing import Any

import pytest
from scenes.share_play import ALL, SharePlay, initialized

from koordinator.emulator.core.groups.facts import MemberChanged, StateChanged
from koordinator.wire.errors import Error
from koordinator.wire.messages.heartbeat import HeartbeatRequest

FENCED = "The member must abandon all its partitions and rejoin."


class TestShapeOfShares:
    @pytest.mark.parametrize("group", ["", "  "])
    def test_h002_a_group_needs_an_id(self, play: SharePlay, group: str) -> None:
        response = play.heart("A", 0, ["t"], group=group)
        assert (response.error_code, response.error_message) == (Error.INVALID_REQUEST, "GroupId can't be empty.")
        assert (response.member_id, response.member_epoch, response.heartbeat_interval_ms) == (None, 0, 0)
        assert response.assignment is None

    def test_h003_a_member_makes_its_own_id(self, play: SharePlay) -> None:
        assert play.beat("", 0, ["t"]) == (Error.INVALID_REQUEST, None)
        assert play.beat(" ", 0, ["t"]) == (Error.INVALID_REQUEST, "MemberId can't be empty.")
        assert play.beat("m" * 37, 0, ["t"]) == (Error.INVALID_REQUEST, None)

    @pytest.mark.parametrize(
        ("epoch", "topics", "rack", "message"),
        [
            (0, None, None, "SubscribedTopicNames must be set in first request."),
            (0, [], None, "SubscribedTopicNames must be set in first request."),
            (0, ["t"], " ", "RackId can't be empty."),
            (-2, None, None, "MemberEpoch is invalid."),
            (-3, ["t"], None, "MemberEpoch is invalid."),
        ],
    )
    def test_h005_h006_an_invalid_heartbeat_creates_nothing(
        self, play: SharePlay, epoch: int, topics: Any, rack: str | None, message: str
    ) -> None:
        assert play.beat("A", epoch, topics, rack=rack) == (Error.INVALID_REQUEST, message)
        assert play.described().error_code == Error.GROUP_ID_NOT_FOUND

    def test_h008_an_unknown_topic_is_no_error_and_an_unknown_member_is(self, play: SharePlay) -> None:
        assert play.beat("A", 0, ["nope"]) == (2, {})
        for epoch, topics in ((1, None), (3, ["t"]), (-1, None)):
            refusal = Error.UNKNOWN_MEMBER_ID, "Member X is not a member of group g."
            assert play.beat("X", epoch, topics) == refusal

    def test_h009_a_member_may_repeat_its_previous_epoch_and_no_other(self, play: SharePlay) -> None:
        assert play.settle_in("A") == (3, ALL)
        assert play.beat("A", 3) == (3, None)
        assert play.beat("A", 2) == (3, None)
        smaller = (
            "The share group member has a smaller member epoch (1) than the one known by the group coordinator (3), and"
            f" it does not match the previous member epoch (2). {FENCED}"
        )
        assert play.beat("A", 1) == (Error.FENCED_MEMBER_EPOCH, smaller)
        greater = (
            f"The share group member has a greater member epoch (9) than the one known by the group coordinator (3). "
            f"{FENCED}"
        )
        assert play.beat("A", 9) == (Error.FENCED_MEMBER_EPOCH, greater)

    def test_a_group_that_does_not_exist_is_named_by_its_requests(self, play: SharePlay) -> None:
        assert play.beat("A", 4) == (Error.GROUP_ID_NOT_FOUND, "Share group g not found.")
        assert play.beat("A", -1) == (Error.GROUP_ID_NOT_FOUND, "Group g not found.")

    def test_a_group_of_another_kind_is_no_share_group(self, play: SharePlay) -> None:
        play.stable_member(group="classic")
        for epoch in (0, 1, -1):
            refusal = Error.GROUP_ID_NOT_FOUND, "Group classic is not a share group."
            assert play.beat("A", epoch, ["t"], group="classic") == refusal

    def test_h011_other_protocols_are_refused(self, play: SharePlay) -> None:
        play.settle_in("A")
        assert play.join("").response.error_code == Error.INCONSISTENT_GROUP_PROTOCOL
        beat = HeartbeatRequest(group_id="g", generation_id=3, member_id="A")
        assert play.send(beat, 3).response.error_code == Error.UNKNOWN_MEMBER_ID

    def test_h015_a_full_group_refuses_whoever_is_not_in_it(self) -> None:
        play = SharePlay(group_share_max_size=1)
        play.settle_in("A")
        full = Error.GROUP_MAX_SIZE_REACHED, "The share group has reached its maximum capacity of 1 members."
        assert play.beat("B", 0, ["t"]) == full
        assert play.beat("B", 5) == full
        assert play.beat("A", 0, ["t"]) == (3, ALL)


class TestShareEpochs:
    def test_h017_partitions_are_initialized_before_they_are_assigned(self, play: SharePlay) -> None:
        play.state = None
        assert play.beat("A", 0, ["u"]) == (2, {})
        assert play.written() == [[10, 11, 13, 12, 14, 15]]
        assert initialized(play.asked[0]) == {0: (2, -1), 1: (2, -1)}
        assert play.beat("A", 2) == (2, None)
        play.answer()
        assert play.written() == [[15]]
        assert play.beat("A", 2) == (3, {"u": [0, 1]})
        assert play.written() == [[11, 13, 12, 14]]
        member = play.share_group().members["A"]
        assert (member.epoch, member.previous_epoch) == (3, 2)

    def test_h018_a_new_member_gets_its_partitions_at_once(self, play: SharePlay) -> None:
        play.settle_in("A")
        epoch, given = play.beat("B", 0, ["t"])
        _, rest = play.beat("A", 3)
        assert epoch == 4
        assert sorted(given["t"] + rest["t"]) == [0, 1, 2, 3]
        assert len(given["t"]) == 2
        assert play.beat("A", 4) == (4, None)

    def test_h020_leaving_raises_the_epoch_and_the_next_heartbeat_computes_the_target(self, play: SharePlay) -> None:
        play.settle_in("A")
        for name in "BCDE":
            play.beat(name, 0, ["t"])
        given = {name: play.beat(name, play.share_group().members[name].epoch) for name in "ABCDE"}
        assert {epoch for epoch, _ in given.values()} == {7}
        response = play.heart("E", -1)
        assert (response.member_id, response.member_epoch, response.heartbeat_interval_ms) == ("E", -1, 0)
        assert response.assignment is None
        assert play.shape() == ("Stable", 8, 7)
        after = [play.beat(name, 7) for name in "ABCD"]
        assert {epoch for epoch, _ in after} == {8}
        held = [*play.share_group().members.values()]
        assert sorted(each for member in held for row in member.assigned.values() for each in row) == [0, 1, 2, 3]

    def test_d1_more_members_than_partitions_share_them(self, play: SharePlay) -> None:
        play.settle_in("A")
        for name in "BCDE":
            play.beat(name, 0, ["t"])
        for name in "ABCDE":
            play.beat(name, play.share_group().members[name].epoch)
        sizes = {name: len(member.assigned.popitem()[1]) for name, member in play.share_group().members.items()}
        assert sizes == {"A": 2, "B": 2, "C": 1, "D": 2, "E": 1}

    def test_h021_names_repeat_the_assignment(self, play: SharePlay) -> None:
        play.settle_in("A")
        assert play.beat("A", 3, ["t"]) == (3, ALL)

    def test_h023_a_member_may_subscribe_to_nothing_later(self, play: SharePlay) -> None:
        play.settle_in("A")
        assert play.beat("A", 3, []) == (4, {})
        assert play.beat("A", 4) == (4, None)
        assert play.shape()[0] == "Stable"
        assert play.described().members[0].subscribed_topic_names == ()

    @pytest.mark.parametrize(("release", "target"), [("4.3", 3), ("4.4", 4)])
    def test_h024_an_empty_group_keeps_its_epochs_and_its_state(self, release: str, target: int) -> None:
        play = SharePlay(kafka_version=release)
        play.settle_in("A")
        play.written()
        play.beat("A", -1)
        assert play.written() == [[-14, -13, -10, 11, *([12] if target == 4 else [])]]
        assert play.shape() == ("Empty", 4, target)
        assert play.beat("A", -1)[0] == Error.UNKNOWN_MEMBER_ID
        assert play.beat("A", 4)[0] == Error.UNKNOWN_MEMBER_ID
        assert play.beat("A", 0, ["t"]) == (5, ALL)

    def test_an_empty_group_is_not_removed_by_itself(self, play: SharePlay) -> None:
        play.settle_in("A")
        play.beat("A", -1)
        play.wait(8 * 24 * 3_600_000)
        assert play.shape()[0] == "Empty"

    def test_h026_new_partitions_take_two_epochs(self, play: SharePlay) -> None:
        play.settle_in("A", ["u"])
        play.cluster.grow_topic(play.cluster.topics["u"], 3)
        assert play.beat("A", 3) == (4, None)
        assert play.beat("A", 4) == (5, {"u": [0, 1, 2]})

    @pytest.mark.parametrize(("release", "raises"), [("4.2", True), ("4.3", False)])
    def test_new_partitions_come_with_the_epoch_of_a_leave_since_4_3(self, release: str, *, raises: bool) -> None:
        play = SharePlay(kafka_version=release)
        epoch, _ = play.settle_in("A", ["u"])
        play.beat("B", 0, ["u"])
        play.cluster.grow_topic(play.cluster.topics["u"], 3)
        assert play.beat("A", epoch)[0] == epoch + 2
        play.beat("B", -1)
        play.written()
        assert play.beat("A", epoch + 2) == (epoch + 3 + raises, {"u": [0, 1, 2]})
        (written,) = play.written()
        assert (11 in written) is raises

    @pytest.mark.parametrize(("release", "start"), [("4.3", -1), ("4.4", 0)])
    def test_partitions_added_to_a_topic_of_the_group_begin_at_their_first_record_since_4_4(
        self, release: str, start: int
    ) -> None:
        play = SharePlay(kafka_version=release)
        play.settle_in("A", ["u"])
        play.cluster.grow_topic(play.cluster.topics["u"], 3)
        play.beat("A", 3)
        assert [initialized(each) for each in play.asked] == [{0: (2, -1), 1: (2, -1)}, {2: (4, start)}]

    def test_h027_a_deleted_topic_leaves_the_record_of_state_partitions(self, play: SharePlay) -> None:
        play.settle_in("A", ["u"])
        play.cluster.delete_topic(play.cluster.topics["u"])
        play._perform(play.coordinator.topics_deleted(play.now, ["u"]))
        assert play.share_group().state_partitions.initialized == {}
        assert play.beat("A", 3) == (4, {})
        assert play.share_group().metadata_hash == 0
        assert play.described().members[0].subscribed_topic_names == ("u",)

    def test_a_rack_alone_does_not_raise_the_epoch(self, play: SharePlay) -> None:
        play.settle_in("A")
        play.written()
        assert play.beat("A", 3, rack="r") == (3, None)
        assert play.written() == [[10]]

    def test_a_target_waits_for_the_assignment_interval(self) -> None:
        play = SharePlay(group_share_assignment_interval_ms=1000)
        assert play.beat("A", 0, ["t"]) == (2, {})
        assert play.beat("A", 2) == (2, None)
        play.wait(1000)
        assert play.beat("A", 2) == (3, ALL)


class TestInitializationOfShares:
    def test_a_refused_initialization_is_asked_for_again_by_the_next_heartbeat(self, play: SharePlay) -> None:
        play.state = Error.MESSAGE_TOO_LARGE
        assert play.beat("A", 0, ["u"]) == (2, {})
        assert play.share_group().state_partitions.initializing == {}
        play.state = Error.NONE
        assert play.beat("A", 2) == (2, None)
        assert play.beat("A", 2) == (3, {"u": [0, 1]})

    @pytest.mark.parametrize(("release", "start"), [("4.3", -1), ("4.4", 0)])
    def test_an_initialization_without_answer_is_asked_for_again_after_half_a_minute(
        self, release: str, start: int
    ) -> None:
        play = SharePlay(kafka_version=release)
        play.state = None
        play.beat("A", 0, ["u"])
        play.lose()
        play.wait(29_999)
        play.beat("A", 2)
        assert len(play.asked) == 1
        play.wait(1)
        play.beat("A", 2)
        assert [initialized(each) for each in play.asked] == [{0: (2, -1), 1: (2, -1)}, {0: (2, start), 1: (2, start)}]

    def test_a_response_that_comes_after_the_group_has_gone_counts_for_nothing(self, play: SharePlay) -> None:
        play.state = None
        play.beat("A", 0, ["u"])
        play._perform(play.coordinator.unload(play.now, play.cluster.partition_of("g")))
        play.written()
        play.answer()
        assert play.written() == []
        assert "g" not in play.coordinator.groups

    def test_a_response_that_comes_after_its_topic_has_gone_counts_for_nothing(self, play: SharePlay) -> None:
        play.state = None
        play.beat("A", 0, ["u"])
        play.cluster.delete_topic(play.cluster.topics["u"])
        play._perform(play.coordinator.topics_deleted(play.now, ["u"]))
        play.written()
        play.answer()
        assert play.written() == []
        assert play.share_group().state_partitions.initialized == {}

    def test_a_loaded_group_goes_on(self, play: SharePlay) -> None:
        play.settle_in("A")
        play.reload("g")
        assert play.beat("A", 3) == (3, None)
        assert play.shape() == ("Stable", 3, 3)


class TestShareMembers:
    def test_a_silent_member_is_removed_at_its_session_timeout(self, play: SharePlay) -> None:
        play.settle_in("A")
        timeout_ms = play.settings.group_share_session_timeout_ms
        play.wait(timeout_ms - 1)
        assert play.shape() == ("Stable", 3, 3)
        play.wait(1)
        assert play.shape() == ("Empty", 4, 4)
        (removed,) = [fact for fact in play.facts_of(MemberChanged) if fact.change == "removed"]
        assert removed.reason == "Member A fenced from the group because its session expired."

    def test_a_heartbeat_starts_the_session_anew(self, play: SharePlay) -> None:
        play.settle_in("A")
        play.wait(play.settings.group_share_session_timeout_ms - 1)
        play.beat("A", 3)
        play.wait(play.settings.group_share_session_timeout_ms - 1)
        assert play.shape()[0] == "Stable"


class TestFailedShareWrites:
    def test_a_failed_join_leaves_nothing(self, play: SharePlay) -> None:
        play.writes = Error.NOT_ENOUGH_REPLICAS
        assert play.beat("A", 0, ["t"])[0] == Error.COORDINATOR_NOT_AVAILABLE
        assert "g" not in play.coordinator.groups
        play.writes = Error.NONE
        assert play.settle_in("A") == (3, ALL)

    @pytest.mark.parametrize("written", [True, False])
    def test_a_refused_heartbeat_removes_no_group_with_records_in_flight(
        self, play: SharePlay, *, written: bool
    ) -> None:
        play.writes = None
        play.start_heart("A", 0, ["nope"])
        play.start_heart("A", -1)
        assert play.beat("B", 5)[0] == Error.UNKNOWN_MEMBER_ID
        play.complete_writes(Error.NONE if written else Error.NOT_ENOUGH_REPLICAS)
        assert ("g" in play.coordinator.groups) == written
        play.writes = Error.NONE
        assert play.settle_in("B") == ((5, ALL) if written else (3, ALL))

    def test_a_failed_heartbeat_leaves_the_member_as_it_was(self, play: SharePlay) -> None:
        play.settle_in("A")
        play.writes = Error.NOT_ENOUGH_REPLICAS
        assert play.beat("A", 3, ["u"])[0] == Error.COORDINATOR_NOT_AVAILABLE
        play.writes = Error.NONE
        assert play.beat("A", 3, ["t"]) == (3, ALL)


def test_the_trace_has_the_states(play: SharePlay) -> None:
    play.settle_in("A")
    play.beat("A", -1)
    states = [(fact.before, fact.after, fact.cause) for fact in play.facts_of(StateChanged)]
    assert states == [("Empty", "Stable", "member_join"), ("Stable", "Empty", "emptied")]
