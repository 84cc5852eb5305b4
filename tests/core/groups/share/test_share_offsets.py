"""DescribeShareGroupOffsets, AlterShareGroupOffsets, DeleteShareGroupOffsets and DeleteGroups of share groups.

A test named after a scenario, such as h101, plays it as it was seen on a broker of release 4.3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from scenes.share_play import ALL, SharePlay, initialized

from koordinator.emulator.core.java.uuids import uuid_text
from koordinator.emulator.core.share_state.state import StateKey
from koordinator.wire.errors import Error
from koordinator.wire.messages import alter_share_group_offsets as alter_wire
from koordinator.wire.messages import delete_share_group_offsets as delete_wire
from koordinator.wire.messages import describe_share_group_offsets as describe_wire
from koordinator.wire.messages.delete_groups import DeleteGroupsRequest
from koordinator.wire.primitives import ZERO_UUID

if TYPE_CHECKING:
    from scenes.play import Exchange

NO_PARTITION = "This server does not host this topic-partition."


def start_describe(
    play: SharePlay, topics: dict[str, list[int]] | None, group: str = "g", version: int = 1
) -> Exchange[Any]:
    """Send DescribeShareGroupOffsets."""
    named = (
        None
        if topics is None
        else tuple(
            describe_wire.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=tuple(rows))
            for name, rows in topics.items()
        )
    )
    asked = describe_wire.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=named)
    return play.send(describe_wire.DescribeShareGroupOffsetsRequest(groups=(asked,)), version)


def described(play: SharePlay, topics: dict[str, list[int]] | None, group: str = "g", version: int = 1) -> Any:
    """Return (topic, partition): (start offset, lag, error) for each row."""
    (row,) = start_describe(play, topics, group, version).response.groups
    assert row.error_code == 0
    return {
        (topic.topic_name, each.partition_index): (each.start_offset, each.lag, each.error_code)
        for topic in row.topics
        for each in topic.partitions
    }


def start_alter(play: SharePlay, offsets: dict[tuple[str, int], int], group: str = "g") -> Exchange[Any]:
    """Send AlterShareGroupOffsets."""
    return start_alter_rows(play, [(name, {partition: offset}) for (name, partition), offset in offsets.items()], group)


def start_alter_rows(play: SharePlay, rows: list[tuple[str, dict[int, int]]], group: str = "g") -> Exchange[Any]:
    """Send AlterShareGroupOffsets with topics and their start offsets by partition."""
    topics = tuple(
        alter_wire.AlterShareGroupOffsetsRequestTopic(
            topic_name=name,
            partitions=tuple(
                alter_wire.AlterShareGroupOffsetsRequestPartition(partition_index=partition, start_offset=offset)
                for partition, offset in offsets.items()
            ),
        )
        for name, offsets in rows
    )
    return play.send(alter_wire.AlterShareGroupOffsetsRequest(group_id=group, topics=topics), 0)


def alter(play: SharePlay, offsets: dict[tuple[str, int], int], group: str = "g") -> Any:
    """Return {(topic, partition): error}, or (error, text) for the whole request."""
    response = start_alter(play, offsets, group).response
    if response.error_code:
        return Error(response.error_code), response.error_message
    return {
        (topic.topic_name, each.partition_index): Error(each.error_code)
        for topic in response.responses
        for each in topic.partitions
    }


def delete(play: SharePlay, *names: str, group: str = "g") -> Any:
    """Return {topic: (error, text, whether it has an id)}, or (error, text) for the whole request."""
    topics = tuple(delete_wire.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names)
    response = play.send(delete_wire.DeleteShareGroupOffsetsRequest(group_id=group, topics=topics), 0).response
    if response.error_code:
        return Error(response.error_code), response.error_message
    return {
        row.topic_name: (Error(row.error_code), row.error_message, row.topic_id != ZERO_UUID)
        for row in response.responses
    }


def left(play: SharePlay) -> None:
    """Let A join t, and leave."""
    play.settle_in("A")
    play.beat("A", -1)


class TestDescribedShareOffsets:
    def test_k1_before_a_write_there_is_no_offset(self, play: SharePlay) -> None:
        play.settle_in("A")
        assert described(play, None) == {("t", partition): (-1, -1, 0) for partition in range(4)}
        assert described(play, {"t": [1], "nope": [0]}) == {("t", 1): (-1, -1, 0), ("nope", 0): (-1, -1, 0)}
        assert described(play, {}) == {}

    def test_h104_a_group_need_not_exist(self, play: SharePlay) -> None:
        assert described(play, None, "nothing") == {}
        assert described(play, {"t": [0]}, "nothing") == {("t", 0): (-1, -1, 0)}

    def test_h102_a_start_offset_beyond_the_end_has_a_negative_lag(self, play: SharePlay) -> None:
        left(play)
        log = play.cluster.topics.log("t", 0)
        assert log is not None
        assert alter(play, {("t", 0): 100}) == {("t", 0): Error.NONE}
        assert described(play, {"t": [0]}) == {("t", 0): (100, log.end - 100, 0)}

    def test_h223_a_lag_is_computed_with_longs(self, play: SharePlay) -> None:
        left(play)
        log = play.cluster.topics.log("t", 0)
        assert log is not None
        lowest = -(1 << 63)
        assert alter(play, {("t", 0): lowest}) == {("t", 0): Error.NONE}
        assert described(play, {"t": [0]}) == {("t", 0): (lowest, log.end + lowest, 0)}

    @pytest.mark.parametrize("topics", [{"t": [-1, 0]}, {"t": []}, {"t": [0], "u": []}])
    def test_h222_a_negative_partition_and_a_topic_without_partitions_fail(
        self, play: SharePlay, topics: dict[str, list[int]]
    ) -> None:
        (row,) = start_describe(play, topics).response.groups
        text = "The server experienced an unexpected error when processing the request."
        assert (row.group_id, row.topics, row.error_code, row.error_message) == ("g", (), -1, text)

    def test_h222_topics_that_exist_are_described_first_and_once(self, play: SharePlay) -> None:
        rows = [("nope", (-1, -1)), ("t", (1, 0)), ("nope", ()), ("t", (1, 2))]
        topics = tuple(
            describe_wire.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=partitions)
            for name, partitions in rows
        )
        asked = describe_wire.DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=topics)
        answer = play.send(describe_wire.DescribeShareGroupOffsetsRequest(groups=(asked,)), 1).response
        found = [(row.topic_name, [each.partition_index for each in row.partitions]) for row in answer.groups[0].topics]
        assert found == [("t", [0, 1, 2]), ("nope", [-1, -1]), ("nope", [])]

    def test_the_offsets_of_several_share_coordinators_are_one_response(self, play: SharePlay) -> None:
        play.cluster.register(2, "127.0.0.1", 9093)
        left(play)
        offsets = {("t", partition): partition for partition in range(4)}
        alter(play, offsets)
        play.state = None
        sent = start_describe(play, {"t": [0, 1, 2, 3]})
        assert sorted(each.node_id for each in play.questions) == [1, 2]
        last = play.questions.pop()
        play.answer()
        assert sent.responses == []
        play.questions.append(last)
        play.answer()
        (topic,) = sent.response.groups[0].topics
        assert {("t", row.partition_index): row.start_offset for row in topic.partitions} == offsets

    def test_a_share_coordinator_that_cannot_answer_is_the_error_of_its_partition(self, play: SharePlay) -> None:
        left(play)
        alter(play, {("t", 0): 3})
        key = StateKey("g", play.cluster.topics["t"].topic_id, 0)
        play.shares.begin_load(play.now, play.shares.store.partition_of(key))
        loading = Error.COORDINATOR_LOAD_IN_PROGRESS
        assert described(play, {"t": [0]}) == {("t", 0): (-1, -1, loading)}

    def test_another_error_of_a_share_coordinator_is_no_offset(self, play: SharePlay) -> None:
        def refused(*_: object) -> Error:
            return Error.UNKNOWN_SERVER_ERROR

        with patch.object(play.shares.store, "status", refused):
            assert described(play, {"t": [0]}) == {("t", 0): (-1, -1, 0)}


class TestAlteredShareOffsets:
    def test_a_topic_without_a_partition_to_move_is_noted_as_begun(self, play: SharePlay) -> None:
        assert alter(play, {("t", 9): 7}) == {("t", 9): Error.UNKNOWN_TOPIC_OR_PARTITION}
        (record,) = play.appended[-1].records
        (row,) = record.value.initializing_topics
        assert (row.topic_name, row.partitions, record.value.initialized_topics) == ("t", (), ())

    def test_an_error_of_the_share_coordinator_is_that_of_the_partition_which_stays_begun(
        self, play: SharePlay
    ) -> None:
        left(play)
        play.state = Error.MESSAGE_TOO_LARGE
        results = alter(play, {("t", 0): 3, ("nope", 0): 1})
        assert results == {("t", 0): Error.UNKNOWN_SERVER_ERROR, ("nope", 0): Error.UNKNOWN_TOPIC_OR_PARTITION}
        assert [*play.share_group().state_partitions.initializing.values()] == [("t", frozenset({0}))]

    def test_h221_an_error_of_the_share_coordinator_is_named_after_its_operation(self, play: SharePlay) -> None:
        left(play)
        play.state = Error.MESSAGE_TOO_LARGE
        (row,) = start_alter(play, {("t", 0): 3}).response.responses[0].partitions
        assert row.error_message.startswith("Error in initialize state RPC. Unable to initialize share group state: ")

    def test_h222_a_negative_partition_fails_and_stays_begun(self, play: SharePlay) -> None:
        play.asked.clear()
        answer = start_alter_rows(play, [("t", {-1: 3, 0: 4}), ("nope", {-1: 1})]).response
        topic_id = uuid_text(play.cluster.topics["t"].topic_id)
        text = f"Initialize share group parameters has invalid partitionId - g {topic_id} -1"
        assert (answer.error_code, answer.error_message, answer.responses) == (-1, text, ())
        assert [*play.share_group().state_partitions.initializing.values()] == [("t", frozenset({-1, 0}))]
        assert play.asked == []

    def test_a_topic_that_is_given_twice_has_one_row_with_all_of_its_partitions(self, play: SharePlay) -> None:
        rows = [("t", {0: 3, 9: 1}), ("nope", {0: 1}), ("t", {1: 4, 0: 5}), ("nope", {1: 1})]
        sent = start_alter_rows(play, rows)
        play.answer()
        found = {
            row.topic_name: [(each.partition_index, each.error_code) for each in row.partitions]
            for row in sent.response.responses
        }
        unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
        assert found == {"nope": [(0, unknown), (1, unknown)], "t": [(0, 0), (9, unknown), (1, 0), (0, 0)]}
        assert [*play.share_group().state_partitions.initialized.values()] == [("t", frozenset({0, 1}))]
        assert described(play, {"t": [0, 1]})["t", 0][0] == 5

    def test_a_topic_without_partitions_has_a_row_if_it_exists(self, play: SharePlay) -> None:
        sent = start_alter_rows(play, [("t", {}), ("nope", {})])
        assert [row.topic_name for row in sent.response.responses] == ["t"]

    def test_a_topic_without_a_partition_to_move_stays_begun_beside_others(self, play: SharePlay) -> None:
        start_alter_rows(play, [("t", {}), ("u", {0: 1})])
        play.answer()
        state = play.share_group().state_partitions
        assert [*state.initializing.values()] == [("t", frozenset())]
        assert [*state.initialized.values()] == [("u", frozenset({0}))]

    def test_offsets_are_altered_even_if_another_node_coordinates_the_group_now(self, play: SharePlay) -> None:
        left(play)
        play.state = None
        sent = start_alter(play, {("t", 0): 3})
        play._perform(play.coordinator.unload(play.now, play.cluster.partition_of("g")))
        play.written()
        play.answer()
        assert sent.response.responses[0].partitions[0].error_code == Error.NONE
        assert play.written() == []
        assert "g" not in play.coordinator.groups

    def test_h098_an_empty_group_starts_elsewhere(self, play: SharePlay) -> None:
        left(play)
        play.asked.clear()
        results = alter(play, {("t", 0): 3, ("t", 9): 1, ("nope", 0): 1})
        unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
        assert results == {("t", 0): Error.NONE, ("t", 9): unknown, ("nope", 0): unknown}
        assert initialized(play.asked[0]) == {0: (4, 3)}
        assert play.beat("A", 0, ["t"]) == (5, ALL)

    def test_h101_who_may_be_altered(self, play: SharePlay) -> None:
        assert alter(play, {("t", 0): 1}, "") == (Error.INVALID_GROUP_ID, "The group id is invalid.")
        play.settle_in("A")
        assert alter(play, {("t", 0): 1}) == (Error.NON_EMPTY_GROUP, "The group is not empty.")
        play.stable_member(group="classic")
        text = "Group classic is not a share group."
        assert alter(play, {("t", 0): 1}, "classic") == (Error.GROUP_ID_NOT_FOUND, text)

    def test_k2_a_group_that_does_not_exist_is_created(self, play: SharePlay) -> None:
        assert alter(play, {("t", 0): 5}) == {("t", 0): Error.NONE}
        assert play.shape() == ("Empty", 1, 1)
        assert play.written() == [[15], [15]]
        assert described(play, {"t": [0]})["t", 0][0] == 5

    def test_nothing_to_alter_creates_no_group(self, play: SharePlay) -> None:
        assert alter(play, {("nope", 0): 5}) == {("nope", 0): Error.UNKNOWN_TOPIC_OR_PARTITION}
        assert "g" not in play.coordinator.groups


class TestDeletedShareOffsets:
    def test_k3_the_state_of_a_topic_is_deleted_and_the_group_stays(self, play: SharePlay) -> None:
        left(play)
        alter(play, {("t", 0): 5})
        results = delete(play, "t", "u", "nope")
        assert results == {
            "t": (Error.NONE, None, True),
            "u": (Error.UNKNOWN_TOPIC_OR_PARTITION, "There is no offset information to delete.", False),
            "nope": (Error.UNKNOWN_TOPIC_OR_PARTITION, NO_PARTITION, False),
        }
        assert described(play, {"t": [0]}) == {("t", 0): (-1, -1, 0)}
        assert play.shape()[0] == "Empty"

    def test_h224_topics_without_offsets_come_last_and_as_often_as_they_are_given(self, play: SharePlay) -> None:
        left(play)
        play.written()
        names = ("u", "nope", "t", "nope", "u", "t")
        topics = tuple(delete_wire.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names)
        request = delete_wire.DeleteShareGroupOffsetsRequest(group_id="g", topics=topics)
        rows = play.send(request, 0).response.responses
        assert [row.topic_name for row in rows] == ["t", "u", "nope", "nope", "u"]
        assert play.written() == [[15], [15]]
        assert delete(play, "u")["u"][0] == Error.UNKNOWN_TOPIC_OR_PARTITION
        assert play.written() == [[15]]

    def test_h224_a_deletion_leaves_what_is_being_initialized(self, play: SharePlay) -> None:
        left(play)
        start_alter_rows(play, [("t", {-1: 3})])
        assert delete(play, "t")["t"] == (Error.NONE, None, True)
        state = play.share_group().state_partitions
        assert [*state.initializing.values()] == [("t", frozenset({-1}))]

    def test_h225_a_group_without_a_record_of_state_has_no_rows(self, play: SharePlay) -> None:
        play.beat("A", 0, ["nope"])
        play.beat("A", -1)
        play.written()
        assert delete(play, "t", "nope") == {}
        assert play.written() == []

    def test_h101_who_may_be_deleted(self, play: SharePlay) -> None:
        assert delete(play, "t", group="") == (Error.INVALID_GROUP_ID, "The group id is invalid.")
        assert delete(play, "t", group="nothing") == (Error.GROUP_ID_NOT_FOUND, "Group nothing not found.")
        play.settle_in("A")
        assert delete(play, "t") == (Error.NON_EMPTY_GROUP, "The group is not empty.")

    def test_h030_only_an_empty_group_is_deleted_with_its_state(self, play: SharePlay) -> None:
        def result(group: str) -> Error:
            response = play.send(DeleteGroupsRequest(groups_names=(group,)), 2).response
            return Error(response.results[0].error_code)

        play.settle_in("A")
        assert result("g") == Error.NON_EMPTY_GROUP
        assert result("nothing") == Error.GROUP_ID_NOT_FOUND
        play.beat("A", -1)
        play.written()
        assert result("g") == Error.NONE
        assert play.written() == [[15], [-12, -15, -11]]
        assert "g" not in play.coordinator.groups
        assert play.shares.store.states == {}

    def test_a_group_that_another_node_coordinates_is_not_deleted(self, play: SharePlay) -> None:
        left(play)
        play.state = None
        sent = play.send(DeleteGroupsRequest(groups_names=("g",)), 2)
        play.reload("g")
        play.written()
        play.answer()
        assert sent.response.results[0].error_code == Error.NOT_COORDINATOR
        assert play.written() == []
        assert play.share_group().state_partitions.deleting

    @pytest.mark.parametrize("lost", [True, False])
    def test_a_group_whose_state_cannot_be_deleted_stays(self, play: SharePlay, *, lost: bool) -> None:
        left(play)
        play.state = None if lost else Error.NOT_ENOUGH_REPLICAS
        sent = play.send(DeleteGroupsRequest(groups_names=("g",)), 2)
        if lost:
            play.lose()
        assert sent.response.results[0].error_code == Error.COORDINATOR_NOT_AVAILABLE
        assert play.share_group().state_partitions.deleting
