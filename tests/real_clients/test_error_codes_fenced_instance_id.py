"""KIP-345 on the real clients: 82 (78 as printed) for a static member whose place a rival has taken.

It meets whichever request the client has under way, or sends next.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from clients.consumers import POLL_MS, Member, Members, assignor_settings, error_name, patient_poll_ms, wait_until
from clients.error_reactions import FENCED_INSTANCE_ID, WAIT_S, Row, Then, Watched, cases, row_of

if TYPE_CHECKING:
    from clients.raw_member import Rival

    from koordinator import Cluster

pytestmark = pytest.mark.koordinator(topics={"t": 6})

UNKNOWN_MEMBER_ID = 25

SELDOM: dict[str, Any] = {
    "session_timeout_ms": 180_000,
    "heartbeat_interval_ms": 60_000,
    "max_poll_interval_ms": 300_000,
}
"""Settings with which no heartbeat precedes the requests of a test."""


def static(join: Members, kind: str, **settings: Any) -> Member:
    """The client with instance id "one"; it commits only when the test calls commit."""
    settings |= {"enable_auto_commit": False, **assignor_settings(kind, "range")}
    return join(kind, instance="one", goes_on=True, **settings)


def static_that_waits(join: Members, row: Row, numbering: str) -> Member:
    """The client of `one` with polls that last until the awaited response arrives (see the last test)."""
    return static(join, row.kind, poll_ms=patient_poll_ms(row.kind) if row.reaction(numbering).told else POLL_MS)


def commit(member: Member) -> object:
    """Commit the consumed offsets, for up to a second, and return the exception."""
    limit = {"timeout_ms": 1_000} if member.kind == "kafka-python" else {}
    sync = {"asynchronous": False} if member.kind == "confluent-kafka" else {}
    try:
        return member.do(lambda consumer: consumer.commit(**limit, **sync))
    except Exception as error:  # noqa: BLE001 - it is compared
        return error_name(error)


@pytest.mark.parametrize(("row", "numbering"), cases(FENCED_INSTANCE_ID, "JoinGroup"))
def test_kip_345_replaced_while_its_join_waits(
    koordinator: Cluster, join: Members, leader: Rival, rival: Rival, row: Row, numbering: str
) -> None:
    koordinator.produce("t", "for a patient poll, which else would not end")
    leader.join()
    member = static_that_waits(join, row, numbering)
    seen = Watched(koordinator.group("g"), member, row, numbering)
    # until the leader rejoins, which it never does
    seen.wait("its JoinGroup waits", lambda: seen.requests("JoinGroup"))
    rival.send_join()
    seen.wait_refused()
    match seen.reaction.then:
        case Then.TAKES_ITS_PLACE_BACK:
            assert rival.receive().error_code == seen.code
            assert [request.get("member_id", "") for request in seen.requests("JoinGroup")] == ["", ""]
        case Then.ASKS_NO_MORE:
            seen.check_told()
            seen.check_asks_no_more()
        case then:
            pytest.fail(f"nothing shows that it {then.value}")
    seen.check_told()


@pytest.mark.parametrize(("row", "numbering"), cases(FENCED_INSTANCE_ID, "SyncGroup"))
def test_kip_345_replaced_while_its_sync_waits(
    koordinator: Cluster, join: Members, leader: Rival, rival: Rival, row: Row, numbering: str
) -> None:
    koordinator.produce("t", "for a patient poll, which else would not end")
    leader.join()
    member = static_that_waits(join, row, numbering)
    seen = Watched(koordinator.group("g"), member, row, numbering)
    seen.wait("its JoinGroup waits", lambda: seen.requests("JoinGroup"))
    leader.join()
    # until the leader assigns, which it never does
    seen.wait("its SyncGroup waits", lambda: seen.requests("SyncGroup"))
    rival.send_join()
    seen.wait_refused()
    match seen.reaction.then:
        case Then.IS_REFUSED_AGAIN:
            seen.wait_refused(3, "JoinGroup")
            (old,) = {refusal["member_id"] for refusal in seen.refusals("SyncGroup")}
            assert {request["member_id"] for request in seen.requests("JoinGroup")[1:]} == {old}
        case Then.ASKS_NO_MORE:
            seen.check_told()
            seen.check_asks_no_more()
        case then:
            pytest.fail(f"nothing shows that it {then.value}")
    seen.check_told()


@pytest.mark.parametrize(("row", "numbering"), cases(FENCED_INSTANCE_ID, "Heartbeat"))
def test_kip_345_replaced_between_heartbeats(
    koordinator: Cluster, join: Members, rival: Rival, row: Row, numbering: str
) -> None:
    group = koordinator.group("g")
    koordinator.produce("t", "1", "2", "3")
    member = static(join, row.kind)
    seen = Watched(group, member, row, numbering)
    seen.wait("it has consumed", lambda: len(member.records) == 3)
    rival.join()
    match seen.reaction.then:
        case Then.IS_SILENT:
            seen.wait_refused()
            seen.check_asks_no_more()
            seen.check_told()
            assert len(member.assignment) == 6
            assert commit(member) == "FencedInstanceIdError"
        case Then.BEATS_ON:
            seen.wait_refused(3)
            assert len(member.assignment) == 6
        case Then.ASKS_NO_MORE:
            seen.wait_refused()
            seen.check_told()
            seen.wait("its partitions are lost", lambda: not member.assignment)
            seen.check_asks_no_more()
        case Then.WAS_UNNAMED:
            check_takes_its_place_back(seen, rival)
        case then:
            pytest.fail(f"nothing shows that it {then.value}")
    seen.check_told()


@pytest.mark.parametrize(("row", "numbering"), cases(FENCED_INSTANCE_ID, "OffsetCommit"))
def test_kip_345_replaced_before_it_commits(
    koordinator: Cluster, join: Members, rival: Rival, row: Row, numbering: str
) -> None:
    koordinator.produce("t", "1", "2", "3")
    member = static(join, row.kind, **SELDOM)
    seen = Watched(koordinator.group("g"), member, row, numbering)
    seen.wait("it has consumed", lambda: len(member.records) == 3)
    rival.join()
    assert commit(member) == seen.reaction.told
    told_by_polls: set[str] = set()
    match seen.reaction.then:
        case Then.GOES_ON | Then.TRIED_ON as then:
            seen.wait_refused(2 if then is Then.TRIED_ON else 1)
            seen.wait_polls(2)
            assert len(member.assignment) == 6
        case Then.IS_TOLD_AGAIN:
            seen.wait("a poll raises", lambda: member.errors)
            told_by_polls = {"_FATAL"}
        case Then.WAS_UNNAMED:
            check_takes_its_place_back(seen, rival)
        case then:
            pytest.fail(f"nothing shows that it {then.value}")
    assert {error_name(error) for error in member.errors} == told_by_polls


@pytest.mark.parametrize(("row", "numbering"), cases(FENCED_INSTANCE_ID, "LeaveGroup"))
def test_kip_345_an_admin_removes_a_member_by_an_id_it_had_before(
    koordinator: Cluster, rival: Rival, row: Row, numbering: str
) -> None:
    from kafka import KafkaAdminClient  # noqa: PLC0415
    from kafka.admin import MemberToRemove  # noqa: PLC0415

    group = koordinator.group("g")
    rival.join()
    admin = KafkaAdminClient(bootstrap_servers=koordinator.bootstrap_servers)
    try:
        wanted = [MemberToRemove("one-before", rival.instance_id), MemberToRemove("nobody")]
        removed = admin.remove_group_members("g", wanted)
    finally:
        admin.close()
    outcomes = {member_id: outcome.__name__ for member_id, outcome in removed.items()}
    reaction = row.reaction(numbering)
    assert reaction.then is Then.IN_THE_RESULT
    assert outcomes == {"one-before": reaction.told, "nobody": "UnknownMemberIdError"}
    assert [each.member_id for each in group.members] == [rival.member_id]


def check_takes_its_place_back(seen: Watched, rival: Rival) -> None:
    """Its request has no instance id, so the member is unknown; its next JoinGroup has one."""
    seen.wait("its request is refused", lambda: seen.refusals(seen.row.api, UNKNOWN_MEMBER_ID))
    seen.wait("it is back", lambda: rival.member_id not in {each.member_id for each in seen.group.members})
    seen.wait("it owns the topic", lambda: len(seen.member.assignment) == 6)
    assert [each.instance_id for each in seen.group.members] == ["one"]
    assert seen.refusals(seen.row.api) == []


def test_kip_345_an_older_client_is_a_dynamic_member_whatever_its_instance(koordinator: Cluster, join: Members) -> None:
    # JoinGroup v4, of Kafka 2.2, has no instance id: "downgrade static membership towards dynamic membership"
    group = koordinator.group("g")
    members = [join("kafka-python", instance="one", api_version=(2, 2)) for _ in range(2)]
    halves = "nobody is fenced, each owns its half"
    wait_until(halves, lambda: all(len(member.assignment) == 3 for member in members), *members, patience_s=WAIT_S)
    assert [each.instance_id for each in group.members] == [None, None]
    members.pop().close()
    # a static member would stay until its session expires
    group.wait_stable(members=1, timeout=WAIT_S)


def test_kafka_python_never_raises_errors_between_polls(
    koordinator: Cluster, join: Members, leader: Rival, rival: Rival
) -> None:
    leader.join()
    member = static(join, "kafka-python")
    seen = Watched(koordinator.group("g"), member, row_of(FENCED_INSTANCE_ID, "JoinGroup", "kafka-python"), "kafka")
    seen.wait("its JoinGroup waits", lambda: seen.requests("JoinGroup"))

    def between_polls(consumer: Any) -> None:
        rival.send_join()
        until = time.monotonic() + WAIT_S
        while not consumer._coordinator._join_task.is_done:
            assert time.monotonic() < until, "the client does not read the answer"
            time.sleep(0.01)

    member.do(between_polls)
    seen.wait_refused()
    # the next poll ignores the failed join and joins again
    assert rival.receive().error_code == seen.code
    assert member.errors == []
