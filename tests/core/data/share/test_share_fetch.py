"""ShareFetch and ShareAcknowledge: H-050 to H-099 of the scenarios, as far as they are about one leader."""

from __future__ import annotations

from typing import Any

import pytest

from koordinator.emulator.core.data.share.facts import RecordsArchived
from koordinator.emulator.core.timers import RecordLockExpiry
from koordinator.wire.control_records import Marker, write_marker
from koordinator.wire.errors import Error
from koordinator.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from koordinator.wire.messages.read_share_group_state import ReadShareGroupStateResponse
from koordinator.wire.records import Record, read_batches, read_header, write_batch
from tests.core.data.share.conftest import GROUP_ID, ShareDesk, Stored, shown


def move_leader(share: ShareDesk, node_id: int) -> None:
    share.cluster.leaders.move(share.cluster.topics["x"], 0, node_id)
    share._perform(share.data.leaders_changed(share.now))


def delete_records(share: ShareDesk, offset: int) -> None:
    row = DeleteRecordsPartition(partition_index=0, offset=offset)
    share.send(DeleteRecordsRequest(topics=(DeleteRecordsTopic(name="x", partitions=(row,)),)))


# -- acquiring


def test_kip_932_records_come_with_their_locks(share: ShareDesk) -> None:
    share.P(5, 5, 5)
    answer = share.F("A", 0, 0, wait=500)
    assert shown(answer) == "[0-14 x1]"
    row = answer.response.responses[0].partitions[0]
    assert answer.response.acquisition_lock_timeout_ms == 30_000
    assert (row.current_leader.leader_id, row.current_leader.leader_epoch) == (0, 0)
    assert len(share.records(row.records)) == 15
    assert shown(share.F("A", 1)) == "no row"


@pytest.mark.parametrize("version", [1, 2])
def test_kip_932_max_records_ends_with_a_batch_of_the_log(share: ShareDesk, version: int) -> None:
    share.P(10, 10, 10)
    answers = [share.F("A", at, *[0][at:], wait=1, max_records=n, version=version) for at, n in enumerate((1, 5, 500))]
    assert list(map(shown, answers)) == ["[0-9 x1]", "[10-19 x1]", "[20-29 x1]"]
    assert [len(share.records(each.response.responses[0].partitions[0].records)) for each in answers] == [10, 10, 10]


def test_kip_1206_record_limit_mode_ends_within_a_batch(share: ShareDesk) -> None:
    share.P(10, 10, 10)
    sizes = (3, 9, 9, 100)
    answers = [
        share.F("A", n, *[0][n:], wait=1, max_records=size, share_acquire_mode=1) for n, size in enumerate(sizes)
    ]
    assert list(map(shown, answers)) == ["[0-2 x1]", "[3-9 x1][10-11 x1]", "[12-19 x1][20-20 x1]", "[21-29 x1]"]
    rows = [each.response.responses[0].partitions[0] for each in answers]
    assert [len(share.records(row.records)) for row in rows] == [10, 20, 20, 10]


def test_kip_1206_an_unknown_mode_fails_and_uses_the_epoch_up(share: ShareDesk) -> None:
    share.S2()
    assert shown(share.F("A", 1, share_acquire_mode=7)) == "-1"
    assert shown(share.F("A", 2)) == "no row"


def test_kip_932_nothing_wanted_is_nothing_acquired(share: ShareDesk) -> None:
    share.S2()
    share.P(5)
    fields: list[dict[str, Any]] = [{"max_records": 0}, {"max_bytes": 0}, {"max_records": -1}]
    assert [shown(share.F("A", n + 1, **each)) for n, each in enumerate(fields)] == ["no row"] * 3
    assert shown(share.F("A", 4)) == "[10-14 x1]"


def test_a_negative_limit_of_bytes_fails(share: ShareDesk) -> None:
    share.S1()
    assert shown(share.F("A", 0, 0, max_bytes=-1)) == "no row"
    assert shown(share.F("A", 1, max_bytes=-1)) == "-1"


def test_kip_932_the_limit_of_records_in_flight_counts_finished_ones() -> None:
    share = ShareDesk(group_share_partition_max_record_locks=100)
    share.P(60, 60, 60)
    assert shown(share.F("A", 0, 0, wait=500)) == "[0-119 x1]"
    assert shown(share.F("A", 1)) == "no row"
    assert shown(share.A("A", 2, "30-59=1")) == "ok"
    assert shown(share.F("A", 3)) == "no row"
    assert shown(share.A("A", 4, "0-29=1")) == "ok"
    assert shown(share.F("A", 5)) == "[120-179 x1]"


def test_kip_932_new_records_end_a_wait(share: ShareDesk) -> None:
    waiting = share.F("A", 0, 0, wait=3000)
    share.wait(400)
    assert shown(waiting) == "parked"
    share.P(2)
    assert shown(waiting) == "[0-1 x1]"


def test_kip_932_a_release_by_acknowledgement_ends_no_wait(share: ShareDesk) -> None:
    share.P(2)
    share.F("A", 0, 0, wait=500)
    waiting = share.F("B", 0, 0, wait=3000)
    share.wait(400)
    share.A("A", 1, "0-1=2")
    share.wait(2599)
    assert shown(waiting) == "parked"
    share.wait(1)
    assert shown(waiting) == "[0-1 x2]"


def test_kip_932_the_next_acknowledgement_lets_waiting_fetches_see_an_earlier_release(share: ShareDesk) -> None:
    share.S2()
    waiting = share.F("B", 0, 0, wait=3000)
    share.A("A", 1, "0-1=2")
    assert shown(waiting) == "parked"
    share.A("A", 2, "2-2=2")
    assert shown(waiting) == "[0-1 x2]"


def test_kip_932_a_moved_start_offset_ends_a_wait() -> None:
    share = ShareDesk(group_share_partition_max_record_locks=100)
    share.P(60, 60, 60)
    share.F("A", 0, 0, wait=500)
    waiting = share.F("B", 0, 0, wait=3000)
    assert shown(waiting) == "parked"
    share.A("A", 1, "0-59=1")
    assert shown(waiting) == "[120-179 x1]"


def test_kip_932_a_finished_fetch_lets_others_look_at_the_rest(share: ShareDesk) -> None:
    share.S2()
    waiting = share.F("B", 0, 0, wait=3000)
    share.A("A", 1, "0-4=2")
    assert shown(waiting) == "parked"
    assert shown(share.F("C", 0, 0, max_records=1, share_acquire_mode=1)) == "[0-0 x2]"
    assert shown(waiting) == "[1-4 x2]"


def test_kip_932_an_acknowledgement_lets_no_fetch_of_another_group_look(share: ShareDesk) -> None:
    share.configs("h", share_auto_offset_reset="earliest")
    share.S2()
    assert shown(share.F("A", 0, 0, group_id="h", wait=500)) == "[0-9 x1]"
    waiting = share.F("B", 0, 0, wait=3000)
    share.A("A", 1, "0-4=2")
    assert shown(share.A("A", 1, "0-9=1", group_id="h")) == "ok"
    assert shown(waiting) == "parked"
    share.A("A", 2, "5-9=1")
    assert shown(waiting) == "[0-4 x2]"


@pytest.mark.slow
def test_one_append_answers_any_number_of_fetches(share: ShareDesk) -> None:
    waiting = [share.F(f"A{n}", 0, 0, wait=3000, max_records=1, share_acquire_mode=1) for n in range(500)]
    share.P(500)
    assert [shown(each) for each in waiting] == [f"[{n}-{n} x1]" for n in range(500)]


def test_kip_932_a_share_partition_begins_at_the_end_by_default(share: ShareDesk) -> None:
    share.configs(share_auto_offset_reset="latest")
    share.P(5)
    waiting = share.F("A", 0, 0, wait=400)
    share.wait(400)
    assert shown(waiting) == "empty row"
    share.P(2)
    assert shown(share.F("A", 1, wait=400)) == "[5-6 x1]"
    assert share.R == "(2,-1,[])"
    assert shown(share.A("A", 2, "5-5=1")) == "ok"
    assert share.R == "(2,5,[5-5/2/1])"


def test_kip_932_a_share_partition_may_begin_some_time_ago(share: ShareDesk) -> None:
    share.configs(share_auto_offset_reset="by_duration:PT60S")
    share.P(3, at=share.now - 300_000)
    share.P(3, at=share.now - 30_000)
    assert shown(share.F("A", 0, 0, wait=1)) == "[3-5 x1]"


def test_kip_932_deleted_records_are_passed_over(share: ShareDesk) -> None:
    share.P(5, 5, 5)
    assert shown(share.F("A", 0, 0, wait=500, max_records=5)) == "[0-4 x1]"
    delete_records(share, 8)
    assert shown(share.F("A", 1, wait=300)) == "no row"
    assert shown(share.F("A", 2, wait=300)) == "[5-14 x1]"
    assert shown(share.A("A", 3, "0-4=1")) == "ok"


def test_kip_932_released_records_that_were_deleted_are_archived(share: ShareDesk) -> None:
    share.P(5, 5, 5)
    share.F("A", 0, 0, wait=500)
    share.A("A", 1, "0-14=2")
    delete_records(share, 8)
    assert [shown(share.F("A", epoch)) for epoch in (2, 3, 4)] == ["no row", "[8-14 x2]", "no row"]


def test_kip_932_bytes_are_divided_among_partitions_and_each_has_a_batch() -> None:
    share = ShareDesk()
    y = share.topic("y", 3)
    for partition in range(3):
        share.produce(share.batch(*[b"v" * 100] * 5), "y", partition)
        share.produce(share.batch(*[b"v" * 100] * 5), "y", partition)
    partitions = [(y, at) for at in range(3)]
    share.F("A", 0, *partitions)
    assert shown(share.F("A", 1, max_bytes=3)) == "[0-4 x1]; 1: [0-4 x1]; 2: [0-4 x1]"
    rows = shown(share.F("A", 2, max_bytes=2))
    assert rows.count("[5-9 x1]") == 2
    assert share.F("A", 3, max_records=5).response.responses


def test_kip_932_partitions_take_turns_at_the_records() -> None:
    share = ShareDesk()
    y = share.topic("y", 2)
    for partition in range(2):
        share.produce(share.batch(*[b"v"] * 5), "y", partition)
    share.F("A", 0, (y, 0), (y, 1))
    assert shown(share.F("A", 1, max_records=5)) == "1: [0-4 x1]"
    assert shown(share.F("A", 2, max_records=5)) == "[0-4 x1]"


# -- loading


def test_kip_932_the_first_fetch_of_a_group_is_often_empty(share: ShareDesk) -> None:
    share.S1()
    assert shown(share.F("A", 0, 0)) == "no row"
    assert shown(share.F("A", 1)) == "[0-9 x1]"


def test_kip_932_loading_ends_a_wait(share: ShareDesk) -> None:
    share.S1()
    share.is_held = True
    waiting = share.F("A", 0, 0, wait=500)
    other = share.F("B", 0, 0)
    assert (shown(waiting), shown(other)) == ("parked", "no row")
    assert len(share.held) == 1
    share.flow()
    assert shown(waiting) == "[0-9 x1]"


@pytest.mark.parametrize(
    ("error", "row"),
    [(Error.INVALID_REQUEST, -1), (Error.FENCED_LEADER_EPOCH, 6), (Error.GROUP_ID_NOT_FOUND, 69)],
)
def test_kip_932_a_state_that_cannot_be_loaded_is_an_error_at_the_end_of_the_wait(
    share: ShareDesk, error: Error, row: int
) -> None:
    share.S1()
    share.coordinator.errors.append(error)
    waiting = share.F("A", 0, 0, wait=500)
    assert shown(waiting) == "parked"
    share.wait(500)
    assert shown(waiting) == str(row)
    assert shown(share.F("A", 1, wait=500)) == "[0-9 x1]"


def test_kip_932_a_share_coordinator_that_is_not_there_is_asked_again(share: ShareDesk) -> None:
    share.S1()
    share.coordinator.errors.extend([Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR])
    waiting = share.F("A", 0, 0, wait=5000)
    share.wait(2999)
    assert shown(waiting) == "parked"
    share.wait(1)
    assert shown(waiting) == "[0-9 x1]"


def test_kip_932_in_the_end_the_error_of_the_share_coordinator_counts(share: ShareDesk) -> None:
    share.S1()
    share.coordinator.errors.extend([Error.COORDINATOR_NOT_AVAILABLE] * 6)
    waiting = share.F("A", 0, 0, wait=40_000)
    share.wait(31_000)
    assert not share.coordinator.errors
    share.wait(9_000)
    assert shown(waiting) == "15"


def test_an_unreached_share_coordinator_is_asked_again(share: ShareDesk) -> None:
    share.S1()
    share.is_held = True
    waiting = share.F("A", 0, 0, wait=5000)
    share._perform(share.data.answered(share.now, share.held.popleft().token, None))
    share.wait(1000)
    share.flow()
    assert shown(waiting) == "[0-9 x1]"


def test_a_stored_state_that_contradicts_itself_is_an_error(share: ShareDesk) -> None:
    share.S1()
    share.coordinator.states[GROUP_ID, share.x, 0] = Stored(start=0, offsets={3: (9, 1)})
    waiting = share.F("A", 0, 0, wait=500)
    share.wait(500)
    assert shown(waiting) == "-1"


def test_kip_932_what_was_acquired_and_never_stored_is_delivered_again(share: ShareDesk) -> None:
    share.P(5, 5, 5)
    share.F("A", 0, 0, wait=500)
    share.A("A", 1, "2-3=1", "7-8=1", "10-10=2")
    share.data.shares.partitions.forget()
    share.F("A", 0, 0, max_records=3)
    answers = [shown(share.F("A", at, max_records=3)) for at in (1, 2, 3)]
    assert answers == ["[0-1 x1][4-4 x1]", "[5-6 x1][9-9 x1]", "[10-10 x2][11-14 x1]"]


def test_kip_932_a_closed_connection_releases_and_stores(share: ShareDesk) -> None:
    share.P(5, 5, 5)
    assert shown(share.F("A", 0, 0, wait=500, connection=9)) == "[0-14 x1]"
    share.A("A", 1, "2-3=1", "7-8=1", "10-10=2", connection=9)
    share.data.disconnected(share.now, 9)
    share.wait(0)
    assert share.R == "(2,0,[0-1/0/1 2-3/2/1 4-6/0/1 7-8/2/1 9-14/0/1])"
    share.F("A", 0, 0)
    assert shown(share.F("A", 1, wait=1500)) == "[0-1 x2][4-6 x2][9-14 x2]"


def test_a_response_without_the_share_partition_is_an_error(share: ShareDesk) -> None:
    share.S1()
    share.is_held = True
    waiting = share.F("A", 0, 0, wait=500)
    share._perform(share.data.answered(share.now, share.held.popleft().token, ReadShareGroupStateResponse()))
    share.wait(500)
    assert shown(waiting) == "-1"


# -- leaders


def test_kip_932_another_leader_is_named() -> None:
    share = ShareDesk(2)
    share.S1()
    share.cluster.leaders.move(share.cluster.topics["x"], 0, 2)
    share._perform(share.data.leaders_changed(share.now))
    response = share.F("A", 0, 0, wait=500).response
    row = response.responses[0].partitions[0]
    assert (row.error_code, row.current_leader.leader_id, row.current_leader.leader_epoch) == (6, 2, 1)
    assert [(node.node_id, node.port) for node in response.node_endpoints] == [(2, 9093)]


def test_kip_932_a_share_partition_is_forgotten_with_its_leadership() -> None:
    share = ShareDesk(2)
    share.S2()
    waiting = share.F("B", 0, 0, wait=500)
    share.cluster.leaders.move(share.cluster.topics["x"], 0, 2)
    share._perform(share.data.leaders_changed(share.now))
    assert not share.data.shares.partitions.led
    assert not [key for _, key in share.data.fetches.timers.pending() if isinstance(key, RecordLockExpiry)]
    message = "This server does not host this topic-partition."
    assert shown(share.A("A", 1, "0-4=1")) == f"3 {message}"
    share.wait(500)
    assert shown(waiting) == "no row"


def test_a_state_that_comes_after_the_leadership_has_gone_counts_for_nothing() -> None:
    share = ShareDesk(2)
    share.S1()
    share.is_held = True
    waiting = share.F("A", 0, 0, wait=500)
    move_leader(share, 2)
    share.coordinator.errors.append(Error.INVALID_REQUEST)
    share.flow()
    assert not share.coordinator.errors
    share.wait(500)
    assert shown(waiting) == "no row"


def test_a_late_fenced_write_leaves_the_share_partition_that_was_loaded_since() -> None:
    share = ShareDesk(2)
    share.S2()
    share.is_held = True
    late = share.A("A", 1, "0-4=1")
    for leader in (2, 1):
        move_leader(share, leader)
    assert shown(share.F("A", 2)) == "no row"
    write, read = share.held
    share.held.clear()
    share._perform(share.data.answered(share.now, read.token, share.coordinator.answer(read.request)))
    assert shown(share.F("A", 3)) == "[0-9 x1]"
    share._perform(share.data.answered(share.now, write.token, share.coordinator.answer(write.request)))
    assert shown(late).startswith("6 ")
    share.is_held = False
    assert shown(share.A("A", 4, "0-9=1")) == "ok"


def test_a_wait_that_ends_as_the_topic_is_deleted_has_no_records(share: ShareDesk) -> None:
    share.F("A", 0, 0)
    waiting = share.F("A", 1, wait=500)
    # by another node
    share.cluster.delete_topic(share.cluster.topics["x"])
    share.wait(500)
    assert shown(waiting) == "no row"


def test_a_wait_ends_as_the_sessions_are_forgotten(share: ShareDesk) -> None:
    share.F("A", 0, 0)
    waiting = share.F("A", 1, wait=500)
    share._perform(share.data.shares.forget())
    assert shown(waiting) == "122"
    share.P(1)
    assert shown(share.F("A", 0, 0, wait=500)) == "[0-0 x1]"


def test_a_lock_that_ends_as_the_topic_is_deleted_ends_no_wait(share: ShareDesk) -> None:
    share.S2()
    waiting = share.F("B", 0, 0, wait=60_000)
    share.cluster.delete_topic(share.cluster.topics["x"])
    share.wait(30_000)
    assert shown(waiting) == "parked"


# -- acknowledging


def test_kip_932_acknowledgements_are_stored_with_the_start_offset_before_them(share: ShareDesk) -> None:
    share.P(5, 5, 5)
    share.F("A", 0, 0, wait=500)
    assert shown(share.A("A", 1, "0-4=1")) == "ok"
    assert shown(share.A("A", 2, "5-9=2")) == "ok"
    assert shown(share.F("A", 3, wait=500)) == "[5-9 x2]"
    assert shown(share.A("A", 4, "10-14=[0,1,2,3,1]")) == "ok"
    assert share.R == "(2,5,[5-9/0/1 10-10/4/1 11-11/2/1 12-12/0/1 13-13/4/1 14-14/2/1])"
    assert shown(share.F("A", 5, wait=300)) == "[12-12 x2]"
    assert [each.split(":")[0] for each in share.writes] == ["0,5", "5,0", "5,4"]


def test_kip_932_an_acknowledgement_is_answered_when_it_is_written(share: ShareDesk) -> None:
    share.S2()
    share.is_held = True
    waiting = share.A("A", 1, "0-4=1")
    assert shown(waiting) == "parked"
    share.flow()
    assert shown(waiting) == "ok"


def test_kip_932_records_released_by_a_fetch_are_not_delivered_by_it(share: ShareDesk) -> None:
    share.S2()
    share.P(1)
    assert shown(share.F("A", 1, ack="0-9=2")) == "[10-10 x1]"
    assert shown(share.F("A", 2)) == "[0-9 x2]"


@pytest.mark.parametrize("texts", [["0=5"], ["0=-1"], ["0-4=[1,1]"], ["9-5=1"], ["5-6=1", "4=1"], ["0=[]"], ["5-9=4"]])
def test_kip_932_malformed_acknowledgements_change_nothing(share: ShareDesk, texts: list[str]) -> None:
    share.S2()
    assert shown(share.A("A", 1, *texts)) == "42"
    assert share.writes == []
    assert shown(share.A("A", 2, "0-9=1")) == "ok"


def test_kip_932_records_come_first_from_partitions_whose_place_in_the_log_is_known(share: ShareDesk) -> None:
    y = share.topic("y")
    share.P(5)
    share.P(5, topic="y")
    assert shown(share.F("A", 0, 0, wait=100)) == "[0-4 x1]"
    assert shown(share.F("A", 1, (y, 0), wait=100)) == "[0-4 x1]"
    share.P(5, topic="y")
    assert shown(share.F("A", 2, wait=100)) == "[5-9 x1]"
    share.P(5)
    share.P(5, topic="y")
    for epoch, topic_id in ((3, share.x), (4, y)):
        (topic,) = share.F("A", epoch, wait=100, max_records=1).response.responses
        assert topic.topic_id == topic_id
        share.P(5)


def test_kip_932_acknowledgements_across_the_start_of_nothing_in_flight_fail_as_in_kafka(share: ShareDesk) -> None:
    y = share.topic("y")
    share.P(3, topic="y")
    share.S2()
    assert shown(share.F("A", 1, (y, 0), wait=100)) == "[0-2 x1]"
    assert shown(share.A("A", 2, "0-9=1")) == "ok"
    failed = share.A("A", 3, "0-2=1", at=(y, 0), more={(share.x, 0): "9-10=1"})
    assert (failed.response.error_code, failed.response.responses) == (-1, ())
    assert share.writes[-1] == "0,3: 0-2/2/1"
    for request in (share.F("A", 4, ack="9-10=1"), share.F("A", -1, ack="9-10=1"), share.A("A", -1, "9-10=1")):
        assert shown(request) == "-1"
    assert shown(share.A("A", 5, "0-9=1", "10=1")).startswith("121 ")


def test_kip_1222_version_1_cannot_renew(share: ShareDesk) -> None:
    share.S2()
    assert shown(share.A("A", 1, "5-9=4", version=1)) == "42"


def test_kip_1222_renewals_may_be_mixed_with_other_types(share: ShareDesk) -> None:
    share.S2()
    assert shown(share.A("A", 1, "0-0=1")) == "ok"
    renewed = share.A("A", 2, "1-4=[4,1,2,4]", is_renew_ack=True)
    assert (shown(renewed), renewed.response.acquisition_lock_timeout_ms) == ("ok", 30_000)
    assert share.R == "(2,1,[2-2/2/1 3-3/0/1])"


def test_kip_1222_renewals_can_be_switched_off(share: ShareDesk) -> None:
    share.S2()
    share.configs(share_renew_acknowledge_enable="false")
    refused = share.A("A", 1, "0-9=4", is_renew_ack=True)
    assert shown(refused) == "121 Renewing acquisition locks is not enabled for the group."


def test_kip_932_a_fetch_has_the_result_of_its_acknowledgements(share: ShareDesk) -> None:
    share.S2()
    message = "Batch record not found. The first offset in request is past acquired records."
    assert shown(share.F("A", 1, ack="30-31=1")) == f"empty row, 42 {message}"


def test_kip_932_every_partition_of_a_fetch_with_acknowledgements_has_a_row(share: ShareDesk) -> None:
    share.topic("y")
    share.S2()
    y = share.cluster.topics["y"].topic_id
    rows = [topic.topic_id for topic in share.F("A", 1, (y, 0), ack="0-4=1").response.responses]
    assert sorted(rows) == sorted([share.x, y])


def test_kip_932_batches_that_share_an_offset_have_a_valid_shape(share: ShareDesk) -> None:
    share.S2()
    assert (
        shown(share.A("A", 1, "0-4=1", "4-9=1")) == "121 The offset cannot be acknowledged. The offset is not acquired."
    )


def test_kip_932_a_fenced_write_drops_the_share_partition(share: ShareDesk) -> None:
    share.S2()
    assert shown(share.A("A", 1, "0-4=1")) == "ok"
    share.coordinator.states[GROUP_ID, share.x, 0] = Stored(state_epoch=4, start=2)
    assert shown(share.A("A", 2, "5-9=1")) == "6 Error in write state RPC. error 124"
    assert shown(share.F("A", 3, wait=500)) == "[2-9 x1]"


def test_kip_932_a_failed_write_leaves_the_records_with_their_member(share: ShareDesk) -> None:
    share.S2()
    share.coordinator.errors.append(Error.INVALID_REQUEST)
    assert shown(share.A("A", 1, "0-9=1")) == "-1 Error in write state RPC. error 42"
    assert shown(share.A("A", 2, "0-9=1")) == "ok"


# -- locks


def test_a_clock_moves_the_ends_of_the_locks_of_its_group_while_others_are_loaded(share: ShareDesk) -> None:
    share.S2()
    share.is_held = True
    share.F("A", 0, 0, group_id="h")
    for epoch, group_id, row in ((1, "h", "no row"), (2, "g", "[0-9 x2]")):
        share.cluster.clocks.of(group_id, share.now).move_to(share.now, share.now + 30_000)
        share.data.shares.partitions.clock_changed(share.now, group_id)
        share.wait(0)
        assert shown(share.F("A", epoch)) == row


def test_kip_932_an_expired_lock_ends_a_wait(share: ShareDesk) -> None:
    share.configs(share_record_lock_duration_ms="1500")
    share.P(8)
    first = share.F("A", 0, 0, wait=1000)
    assert first.response.acquisition_lock_timeout_ms == 1500
    waiting = share.F("A", 1, wait=4000)
    share.wait(1499)
    assert shown(waiting) == "parked"
    share.wait(1)
    assert shown(waiting) == "[0-7 x2]"
    assert share.R == "(2,0,[0-7/0/1])"


def test_kip_932_expired_records_cannot_be_acknowledged(share: ShareDesk) -> None:
    share.configs(share_record_lock_duration_ms="1500")
    share.S2()
    share.wait(1700)
    assert shown(share.A("A", 1, "0-0=1")).startswith("121 ")


def test_kip_932_a_failed_write_of_expired_locks_changes_nothing(share: ShareDesk) -> None:
    share.S2()
    share.coordinator.errors.append(Error.FENCED_STATE_EPOCH)
    share.wait(30_000)
    assert share.writes == []
    assert shown(share.F("A", 1)) == "[0-9 x2]"


def test_no_timer_is_left_when_nothing_is_locked(share: ShareDesk) -> None:
    share.S2()
    share.A("A", 1, "0-9=1")
    assert not [key for _, key in share.data.fetches.timers.pending() if isinstance(key, RecordLockExpiry)]


@pytest.mark.parametrize("state", ["archived", "archiving"])
def test_kip_932_the_release_after_the_last_delivery_is_a_fact_once_it_is_written(share: ShareDesk, state: str) -> None:
    share.configs(share_delivery_count_limit="2")
    if state == "archiving":
        share.configs(errors_deadletterqueue_topic_name="dlq.jobs")
    share.S2()
    assert shown(share.A("A", 1, "0-9=2")) == "ok"
    assert shown(share.F("A", 2, wait=500)) == "[0-9 x2]"
    share.coordinator.errors.append(Error.INVALID_REQUEST)
    share.A("A", 3, "0-9=2")
    assert archived(share) == []
    assert shown(share.A("A", 4, "0-3=1", "4-9=2")) == "ok"
    (fact,) = archived(share)
    assert (fact.group_id, fact.member_id) == ("g", "A")
    assert fact.records == tuple(("x", 0, at, at, 2, state) for at in range(4, 10))


def archived(share: ShareDesk) -> list[RecordsArchived]:
    return [fact for fact in share.facts if isinstance(fact, RecordsArchived)]


def test_kip_932_failing_records_are_delivered_in_ever_smaller_parts(share: ShareDesk) -> None:
    share.P(8)
    share.F("A", 0, 0)
    answers = []
    for epoch in range(1, 25, 2):
        answer = share.F("A", epoch)
        answers.append(shown(answer))
        rows = answer.response.responses[0].partitions[0].acquired_records
        share.A("A", epoch + 1, *[f"{row.first_offset}-{row.last_offset}=2" for row in rows])
    assert answers == [
        *("[0-7 x1]", "[0-7 x2]", "[0-7 x3]", "[0-3 x4]", "[0-0 x5]", "[1-1 x5]", "[2-2 x5]", "[3-3 x5]"),
        *("[4-7 x4]", "[4-4 x5]", "[5-5 x5]", "[6-6 x5]"),
    ]
    assert share.R.endswith("6-6/4/5 7-7/0/4])")


def transactions(share: ShareDesk) -> None:
    """Write 3 records committed, 2 aborted, 2 committed, then 1 without a transaction."""
    log = share.cluster.topics["x"].logs[0]
    sequence = 0
    for size, is_commit in ((3, True), (2, False), (2, True)):
        values = [Record(timestamp=share.now, value=b"v")] * size
        own: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
        batch = write_batch(values, **own, base_sequence=sequence, is_transactional=True)
        marker = write_marker(Marker(is_commit=is_commit, coordinator_epoch=0), **own, timestamp=share.now)
        for each in (batch, marker):
            header = read_header(each)
            log.producers.appended(header, log.append(header, each, 0), each)
        sequence += size
    share.P(1)


def test_kip_932_uncommitted_groups_get_all_records_and_markers(share: ShareDesk) -> None:
    transactions(share)
    assert shown(share.F("A", 0, 0, wait=1)) == "[0-10 x1]"
    assert shown(share.A("A", 1, "0-10=1")) == "ok"


def test_kip_932_committed_groups_get_no_aborted_records(share: ShareDesk) -> None:
    share.configs(share_isolation_level="read_committed")
    transactions(share)
    answer = share.F("A", 0, 0, wait=1)
    assert shown(answer) == "[0-3 x1][6-10 x1]"
    headers = [header.base_offset for header, _ in read_batches(answer.response.responses[0].partitions[0].records)]
    assert headers == [0, 3, 4, 6, 7, 9, 10]
    assert share.R == "(2,-1,[])"
    assert [shown(share.A("A", 1, "0-3=1")), shown(share.A("A", 2, "4-5=1"))] == ["ok", "ok"]
    assert shown(share.A("A", 3, "6-10=[0,1,1,0,1]")) == "ok"
    assert share.R == "(2,6,[6-6/4/1 7-8/2/1 9-9/4/1 10-10/2/1])"


def test_kip_932_committed_groups_read_below_the_last_stable_offset(share: ShareDesk) -> None:
    share.configs(share_isolation_level="read_committed")
    share.P(2)
    log = share.cluster.topics["x"].logs[0]
    own: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
    records = [Record(timestamp=share.now, value=b"v")]
    batch = write_batch(records, **own, base_sequence=0, is_transactional=True)
    log.producers.appended(read_header(batch), log.append(read_header(batch), batch, 0), batch)
    share.P(1)
    assert shown(share.F("A", 0, 0, wait=1)) == "[0-1 x1]"
    waiting = share.F("A", 1, wait=500)
    assert shown(waiting) == "parked"
    marker = write_marker(Marker(is_commit=True, coordinator_epoch=0), **own, timestamp=share.now)
    log.producers.appended(read_header(marker), log.append(read_header(marker), marker, 0), marker)
    share.data.grown(share.now, [("x", 0)])
    share.wait(0)
    assert shown(waiting) == "[2-4 x1]"
