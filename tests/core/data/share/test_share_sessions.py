"""Share sessions: H-032 to H-048 of the scenarios, and the partitions that an answer has."""

from __future__ import annotations

from typing import Any

import pytest

from koordinator.emulator.core.data.share import sessions
from koordinator.wire.errors import Error
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.core.data.share.conftest import ShareDesk, shown


def test_kip_932_a_session_begins_with_epoch_0_and_without_acknowledgements(share: ShareDesk) -> None:
    share.S1()
    assert shown(share.A("A", 0, "0-4=1")) == "123"
    assert shown(share.F("A", 0, 0, ack="0-4=1")) == "42"
    assert shown(share.F("A", 1)) == "122"
    assert shown(share.A("A", 1, "0-4=1")) == "122"
    assert shown(share.F("A", -1)) == "122"
    assert shown(share.A("A", -1)) == "122"


def test_kip_932_epochs_are_consecutive_and_never_repeated(share: ShareDesk) -> None:
    share.S2()
    assert [shown(share.F("A", epoch)) for epoch in (5, 1, 1, 2, -5)] == ["123", "no row", "123", "no row", "123"]


def test_kip_932_both_requests_count_in_one_sequence(share: ShareDesk) -> None:
    share.S2()
    assert shown(share.A("A", 1, "0-4=1")) == "ok"
    assert shown(share.A("A", 1, "5-9=1")) == "123"
    assert shown(share.F("A", 1)) == "123"
    assert shown(share.F("A", 2)) == "no row"


@pytest.mark.parametrize("ids", [(None, "A"), ("g", ""), ("g", None), ("g", "m" * 37)])
def test_kip_932_group_and_member_are_named(share: ShareDesk, ids: tuple[str | None, str | None]) -> None:
    group_id, member_id = ids
    for answer in (share.F(member_id, 0, 0, group_id=group_id), share.A(member_id, 1, group_id=group_id)):
        response = answer.response
        assert (response.error_code, response.error_message) == (42, None)
        assert response.acquisition_lock_timeout_ms == 0


def test_kip_932_membership_is_not_checked(share: ShareDesk) -> None:
    share.S1()
    assert shown(share.F("STRANGER", 0, 0, wait=500, max_records=1)) == "[0-4 x1]"


def test_kip_932_the_end_of_a_session_releases_its_records(share: ShareDesk) -> None:
    share.S2()
    assert shown(share.F("A", -1)) == "no row"
    assert share.R == "(2,0,[0-9/0/1])"
    assert shown(share.F("B", 0, 0, wait=500)) == "[0-9 x2]"


def test_kip_932_acknowledgements_of_the_last_request_are_written_before_the_release(share: ShareDesk) -> None:
    share.S2()
    last = share.F("A", -1, ack="0-3=1")
    assert shown(last) == "empty row"
    assert share.R == "(2,4,[4-9/0/1])"
    assert shown(share.F("A", -1)) == "122"


def test_kip_932_share_acknowledge_closes_the_session_as_well(share: ShareDesk) -> None:
    share.S2()
    assert shown(share.A("A", -1, "0-3=1")) == "ok"
    assert share.R == "(2,4,[4-9/0/1])"


def test_kip_932_records_of_forgotten_partitions_are_not_released(share: ShareDesk) -> None:
    share.S2()
    assert shown(share.F("A", 1, forget=[0])) == "no row"
    assert shown(share.A("A", 2, "0-4=1")) == "ok"
    assert shown(share.F("A", -1)) == "no row"
    assert share.R == "(2,0,[0-4/2/1])"
    waiting = share.F("B", 0, 0, wait=300)
    share.wait(300)
    assert shown(waiting) == "empty row"


def test_kip_932_rows_with_errors_repeat_until_the_partition_is_forgotten(share: ShareDesk) -> None:
    share.S1()
    first = share.F("A", 0, 7)
    assert shown(first) == "7: 3"
    assert first.response.responses[0].partitions[0].error_message is None
    assert shown(share.F("A", 1)) == "7: 3"
    assert shown(share.F("A", 2, 0, wait=500)) == "[0-9 x1]; 7: 3"
    assert shown(share.F("A", 3, forget=[7])) == "no row"


def test_kip_932_each_partition_has_its_result_of_acknowledgements(share: ShareDesk) -> None:
    share.S2()
    unknown = share.new_uuid()
    answer = share.A("A", 1, "0-0=1", at=(unknown, 0), more={(share.x, 9): "0-0=1", (share.x, 0): "5-9=1"})
    rows = {
        (topic.topic_id, row.partition_index): row for topic in answer.response.responses for row in topic.partitions
    }
    assert {key: row.error_code for key, row in rows.items()} == {(unknown, 0): 100, (share.x, 9): 3, (share.x, 0): 0}
    assert all(row.error_message is None for row in rows.values())
    assert share.R == "(2,0,[5-9/2/1])"


def test_kip_932_a_fetch_without_news_waits(share: ShareDesk) -> None:
    share.S2()
    waiting = share.F("A", 1, wait=500)
    share.wait(499)
    assert shown(waiting) == "parked"
    share.wait(1)
    assert shown(waiting) == "no row"
    assert shown(share.F("A", 2, wait=500, min_bytes=0)) == "no row"


def test_kip_932_a_fetch_that_is_overtaken_keeps_what_it_acquires(share: ShareDesk) -> None:
    share.F("A", 0, 0, connection=1)
    waiting = share.F("A", 1, wait=1500, connection=2)
    share.wait(300)
    assert shown(share.A("A", 2)) == "no row"
    share.P(1)
    assert shown(waiting) == "123"
    assert waiting.response.acquisition_lock_timeout_ms == 30_000
    assert shown(share.F("A", 3)) == "no row"
    assert shown(share.A("A", 4, "0-0=1")) == "ok"


def test_kip_932_sessions_have_a_limit_and_refusals_wait() -> None:
    share = ShareDesk(group_share_max_size=1, group_share_max_share_sessions=1)
    share.S1()
    assert shown(share.F("A", 0, 0, wait=2000)) == "[0-9 x1]"
    refused = share.F("B", 0, 0, wait=700)
    share.wait(699)
    assert shown(refused) == "parked"
    share.wait(1)
    assert shown(refused) == "133"
    assert shown(share.F("A", 0, 0)) == "empty row"
    assert shown(share.F("B", 0, 0)) == "133"


def test_sessions_have_a_limit_of_partitions_together(share: ShareDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "PARTITIONS_MAX", 3)
    assert shown(share.F("A", 0, 0, 7)) == "7: 3"
    assert shown(share.F("B", 0, 0, 7)) == "133"
    assert shown(share.F("B", 0, 0)) == "empty row"
    assert shown(share.F("B", 1, 8)) == "no row"
    share.F("A", -1)
    assert shown(share.F("C", 0, 0, 7)) == "empty row; 7: 3"


def test_kip_932_a_session_is_closed_once_if_two_requests_close_it(share: ShareDesk) -> None:
    share.S2()
    share.is_held = True
    first = share.A("A", -1, "0-3=1")
    assert shown(share.F("A", -1)) == "no row"
    assert shown(first) == "parked"
    share.flow()
    assert shown(first) == "ok"
    assert share.writes == [
        "0,4: 0-0/2/1 1-1/2/1 2-2/2/1 3-3/2/1",
        "0,4: " + " ".join(f"{n}-{n}/0/1" for n in range(4, 10)),
    ]
    assert shown(share.F("A", 0, 0)) == "[4-9 x2]"


def test_kip_932_a_new_session_does_not_release_the_records_of_the_old_one(share: ShareDesk) -> None:
    share.S2()
    assert shown(share.F("A", 0, 0)) == "empty row"
    assert shown(share.A("A", 1, "0-9=1")) == "ok"


def test_a_row_of_an_unknown_topic_has_its_error(share: ShareDesk) -> None:
    share.S1()
    unknown = share.new_uuid()
    assert shown(share.F("A", 0, (unknown, 0))) == "100"


def test_kip_932_in_4_3_an_unknown_topic_makes_the_whole_answer_an_error() -> None:
    share = ShareDesk(kafka_version="4.3")
    share.S1()
    unknown = share.new_uuid()
    assert shown(share.F("A", 0, (unknown, 0))) == "-1"
    assert shown(share.F("A", 1, 0, wait=500)) == "-1"
    assert shown(share.A("A", 2, "0-4=1")) == "ok"
    assert shown(share.F("A", 3, ack="5-9=1")) == "-1"
    assert share.R == "(2,5,[5-9/2/1])"
    assert shown(share.F("A", 4, forget=[(unknown, 0)])) == "no row"


@pytest.mark.parametrize(("release", "shows"), [("4.2", "100"), ("4.3", "-1"), ("4.4", "100")])
def test_kip_932_in_4_3_a_deleted_topic_makes_the_whole_answer_an_error(release: str, shows: str) -> None:
    share = ShareDesk(kafka_version=release)
    share.S2()
    share.topic("y")
    share.send(DeleteTopicsRequest(topics=(DeleteTopicState(name="x"),)))
    assert shown(share.F("A", 1)) == shows
    assert shown(share.A("A", 2, "0-4=1")) == "100"
    assert not share.data.shares.partitions.led


def test_kip_932_empty_lists_of_acknowledgements_have_no_row(share: ShareDesk) -> None:
    share.S2()
    assert shown(share.A("A", 1)) == "no row"


def test_kip_932_a_closed_connection_ends_the_session_that_it_opened(share: ShareDesk) -> None:
    share.S2(connection=7)
    share.data.disconnected(share.now, 6)
    share.wait(0)
    assert shown(share.F("A", 1, connection=8)) == "no row"
    share.data.disconnected(share.now, 8)
    share.data.disconnected(share.now, 7)
    share.wait(0)
    assert share.R == "(2,0,[0-9/0/1])"
    assert shown(share.F("A", 2)) == "122"


def test_kip_932_a_closed_connection_leaves_a_session_that_another_one_has_opened_since(share: ShareDesk) -> None:
    share.S2(connection=7)
    share.F("A", 0, 0, connection=8)
    share.data.disconnected(share.now, 7)
    assert shown(share.A("A", 1, "0-9=1")) == "ok"


def test_kip_932_after_an_error_the_next_row_is_sent_even_if_it_is_empty() -> None:
    share = ShareDesk(2)
    share.S2()
    share.A("A", 1, "0-9=1")
    answers = []
    for epoch, leader in ((2, 2), (3, 1), (4, 1)):
        share.cluster.leaders.move(share.cluster.topics["x"], 0, leader)
        share.data.leaders_changed(share.now)
        answers.append(shown(share.F("A", epoch, wait=1, min_bytes=0)))
    assert answers == ["6", "empty row", "no row"]


def test_kip_932_without_sessions_a_closed_connection_drops_the_share_partitions_of_the_group(share: ShareDesk) -> None:
    share.S2(connection=7)
    share.F("A", -1, connection=7)
    assert share.data.shares.partitions.led
    share.data.disconnected(share.now, 7)
    assert not share.data.shares.partitions.led


def test_kip_932_with_another_session_share_partitions_stay_in_memory(share: ShareDesk) -> None:
    share.S2(connection=7)
    share.F("B", 0, 0, connection=8)
    share.data.disconnected(share.now, 7)
    share.wait(0)
    assert shown(share.F("B", 1)) == "[0-9 x2]"


def test_kip_932_renewals_have_no_records(share: ShareDesk) -> None:
    share.S2()
    for name in ("wait", "min_bytes", "max_bytes", "max_records"):
        fields: dict[str, Any] = dict.fromkeys(("wait", "max_bytes", "max_records", "min_bytes"), 0) | {name: 1}
        answer = share.F("A", 1, ack="0-9=4", is_renew_ack=True, **fields)
        assert shown(answer) == "42"
    share.P(5)
    renewed = share.F("A", 1, ack="0-9=4", is_renew_ack=True, max_bytes=0, max_records=0)
    assert shown(renewed) == "empty row"
    assert renewed.response.error_code == Error.NONE
