"""Levers of share groups: who holds which record, and locks that end at once or by the group's clock."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from clients.share_member import ShareMember

from koordinator import Cluster, Emulator, faults
from koordinator.emulator.pages.timeline import timeline
from koordinator.pipeline.fold.trace_fold import fold
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator.emulator.control.results import RecordsInFlight

LOCK_MS = 30_000
"""`group.share.record.lock.duration.ms`."""

LIMIT = 5
"""`group.share.delivery.count.limit`."""

RELEASE = 2
"""An acknowledgement that lets records be delivered again."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Emulator() as cluster:
        cluster.create_topic("jobs", 1)
        yield cluster


@pytest.fixture
def a(cluster: Cluster) -> Iterator[ShareMember]:
    """Return a member that has acquired records 0 to 3."""
    with ShareMember(cluster, "jobs") as member:
        read(cluster, member, "jobs")
        cluster.topic("jobs").produce(*(f"job {at}" for at in range(4)))
        got = member.fetch(wait_ms=5_000)
        while not got or got[-1][1] < 3:
            got += member.fetch(wait_ms=5_000)
        yield member


def read(cluster: Cluster, member: ShareMember, topic: str) -> None:
    """Let a member join its group, which reads the topic from its end on."""
    member.join()
    while not cluster.group(member.group).share_positions(topic):
        member.fetch()


def rows(cluster: Cluster) -> list[RecordsInFlight]:
    (position,) = cluster.group("g").share_positions("jobs")
    return list(position.records)


def shown(cluster: Cluster) -> list[tuple[int, int, str, int, str | None]]:
    return [
        (each.first_offset, each.last_offset, each.state, each.delivery_count, each.member_id) for each in rows(cluster)
    ]


def test_the_holder_of_each_record_is_seen(cluster: Cluster, a: ShareMember) -> None:
    assert {(row.state, row.delivery_count, row.member_id) for row in rows(cluster)} == {("acquired", 1, "A")}
    remaining = rows(cluster)[0].lock_remaining_ms
    assert remaining is not None
    assert 0 < remaining <= LOCK_MS
    assert a.acknowledge(0, 1) == 0
    (position,) = cluster.group("g").share_positions()
    assert (position.topic, position.partition, position.start_offset, position.end_offset) == ("jobs", 0, 2, 3)


def test_after_an_unclean_election_nobody_holds_the_records_in_place_of_the_lost_ones(
    cluster: Cluster, a: ShareMember
) -> None:
    assert a.acknowledge(0, 3) == 0
    cluster.topic("jobs").produce("job 4")
    assert a.fetch(wait_ms=5_000) == [(4, 4, 1)]
    cluster.truncate("jobs", 0, to=4)
    cluster.topic("jobs").produce("another job 4")
    assert a.acknowledge(4, 4) == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert a.fetch(wait_ms=5_000) == [(4, 4, 1)]


def test_a_reset_of_topics_ends_the_locks_of_their_records(cluster: Cluster, a: ShareMember) -> None:
    assert a.acknowledge(0, 0) == 0
    cluster.reset("topics")
    assert cluster.group("g").expire_locks() == 0
    assert cluster.group("g").share_positions() == []


def test_the_lock_of_one_record_ends_and_its_acknowledgement_is_late(cluster: Cluster, a: ShareMember) -> None:
    assert cluster.group("g").expire_locks("jobs", 0, 2) == 1
    assert shown(cluster) == [(0, 1, "acquired", 1, "A"), (2, 2, "available", 1, None), (3, 3, "acquired", 1, "A")]
    assert a.acknowledge(2, 2) == Error.INVALID_RECORD_STATE
    assert a.fetch() == [(2, 2, 2)]
    assert a.acknowledge(2, 2) == 0


def test_the_locks_of_one_member_end_and_those_of_others_stay(cluster: Cluster, a: ShareMember) -> None:
    group = cluster.group("g")
    with pytest.raises(ValueError, match=r"group 'g' has no member 'B'; there is 'test'"):
        group.expire_locks(member="B")
    with ShareMember(cluster, "jobs", "B") as b:
        b.join()
        assert group.expire_locks(member="B") == 0
    assert group.expire_locks("jobs", member=a.name) == 4
    assert {row.state for row in rows(cluster)} == {"available"}
    assert group.expire_locks() == 0


def test_locks_of_other_topics_partitions_and_groups_stay(cluster: Cluster, a: ShareMember) -> None:
    del a
    cluster.create_topic("mails", 1)
    with ShareMember(cluster, "mails", "B") as b, ShareMember(cluster, "jobs", "C", "other") as c:
        read(cluster, b, "mails")
        read(cluster, c, "jobs")
        cluster.topic("mails").produce("mail")
        cluster.topic("jobs").produce("job 4")
        assert b.fetch(wait_ms=5_000) == [(0, 0, 1)]
        assert c.fetch(wait_ms=5_000) == [(4, 4, 1)]
        group = cluster.group("g")
        assert group.expire_locks("jobs", 0, 77) == 0
        assert group.expire_locks("jobs") == 4
        mails, (others,) = group.share_positions("mails"), cluster.group("other").share_positions()
        assert [row.state for position in (*mails, others) for row in position.records] == ["acquired", "acquired"]
        assert group.expire_locks() == 1


def test_a_share_partition_without_its_state_has_no_locks(cluster: Cluster) -> None:
    group = cluster.group("g")
    with ShareMember(cluster, "jobs") as member, group.hold("ReadShareGroupState") as hold:
        member.join()
        assert member.fetch() == []
        hold.wait_entered()
        assert (group.expire_locks(), group.share_positions()) == (0, [])


def test_a_lock_ends_by_the_clock_of_its_group(cluster: Cluster, a: ShareMember) -> None:
    group = cluster.group("g")
    group.advance(28)
    assert {row.state for row in rows(cluster)} == {"acquired"}
    group.advance(2)
    assert {row.state for row in rows(cluster)} == {"available"}
    assert a.fetch()[0][2] == 2


def test_a_stopped_clock_keeps_locks(cluster: Cluster, a: ShareMember) -> None:
    group = cluster.group("g")
    group.set_clock("manual")
    before = rows(cluster)[0].lock_remaining_ms
    assert a.acknowledge(0, 0) == 0
    assert rows(cluster)[-1].lock_remaining_ms == before


def test_a_record_is_archived_at_the_delivery_limit(cluster: Cluster, a: ShareMember) -> None:
    group = cluster.group("g")
    for _ in range(4):
        group.expire_locks("jobs", 0, 0)
        while not any(row.first_offset == 0 and row.state == "acquired" for row in rows(cluster)):
            a.fetch(wait_ms=1_000)
    group.expire_locks("jobs", 0, 0)
    (position,) = group.share_positions()
    assert position.start_offset == 1


def test_an_offset_needs_its_partition(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match=r"offset=5: an offset belongs to a topic and a partition"):
        cluster.group("g").expire_locks(offset=5)


def test_a_lock_of_unknown_names_is_refused(cluster: Cluster, a: ShareMember) -> None:
    del a
    group = cluster.group("g")
    with pytest.raises(ValueError, match="there is no topic 'job'"):
        group.expire_locks("job")
    with pytest.raises(ValueError, match="there is no topic 'jobz'"):
        group.share_positions("jobz")
    with pytest.raises(ValueError, match=r"topic 'jobs' has no partition 5: it has 1, from 0 to 0"):
        group.expire_locks("jobs", 5)
    with pytest.raises(ValueError, match=r"there is no group 'h'; there is 'g'"):
        cluster.group("h").expire_locks()
    cluster.group("c").create_puppet("one", group_protocol="consumer").join()
    with pytest.raises(ValueError, match=r"group 'c' is a consumer group: only members of share groups lock records"):
        cluster.group("c").expire_locks()


def test_locks_end_by_the_client_id_of_their_only_member(cluster: Cluster, a: ShareMember) -> None:
    del a
    assert cluster.group("g").expire_locks(member="test") == 4


def test_a_lever_is_in_the_trace_of_its_group(cluster: Cluster, a: ShareMember) -> None:
    del a
    cluster.group("g").expire_locks("jobs", 0, 3)
    (event,) = [event for event in cluster.group("g").events() if event["kind"] == "verb"]
    assert event["body"] == {"topic": "jobs", "partition": 0, "offset": 3}


def test_an_evicted_member_leaves_and_keeps_its_records(cluster: Cluster, a: ShareMember) -> None:
    group = cluster.group("g")
    group.evict("A")
    assert (group.type, group.state) == ("share", "Empty")
    assert a.acknowledge(0, 3) == 0


def test_committed_offsets_are_none_of_a_share_group(cluster: Cluster, a: ShareMember) -> None:
    del a
    with pytest.raises(ValueError, match="group 'g' is a share group and commits no offsets"):
        cluster.group("g").set_offsets({("jobs", 0): 1})


def test_a_reset_of_groups_forgets_sessions_and_records(cluster: Cluster, a: ShareMember) -> None:
    cluster.reset("groups")
    assert cluster.group("g").share_positions() == []
    assert cluster.group("g").state == "Dead"
    assert a.fetch_error() == Error.SHARE_SESSION_NOT_FOUND


def test_the_timeline_tells_the_way_of_a_record(cluster: Cluster, a: ShareMember) -> None:
    cluster.group("g").expire_locks("jobs", 0, 3)
    assert a.acknowledge(3, 3) == Error.INVALID_RECORD_STATE
    assert a.fetch() == [(3, 3, 2)]
    assert a.acknowledge(3, 3, kind=2) == 0
    told = [
        re.sub(r", after \d+ ms", "", line.split(maxsplit=2)[2])
        for line in timeline(cluster.group("g").events(), 100)
        if "jobs-0" in line or "expire_locks" in line
    ]
    assert told[-6:] == [
        "expire_locks (topic jobs, partition 0, offset 3)",
        "lock ended, forced, jobs-0: 3",
        "ShareAcknowledge v1, jobs-0: 3 accept -> INVALID_RECORD_STATE   <-- first error",
        "ShareFetch v1 -> OK, jobs-0: 3 (delivery 2)",
        # its response waits for the share coordinator
        "ShareAcknowledge v1, jobs-0: 3 release",
        "ShareAcknowledge v1, jobs-0: 3 release -> OK",
    ]


def test_a_closed_session_and_an_expired_lock_are_in_the_trace(cluster: Cluster, a: ShareMember) -> None:
    group = cluster.group("g")
    group.advance(30)
    while not a.fetch(wait_ms=1_000):
        pass
    a.close_session()
    found = [(event["cause"], event["member_id"]) for event in group.events() if event["kind"] == "locks"]
    assert found == [("lock_expired", "A"), ("session_closed", "A")]
    (ended,) = [event["body"] for event in group.events() if event.get("cause") == "session_closed"]
    assert {tuple(row[:2]) + tuple(row[4:]) for row in ended["ended"]} == {("jobs", 0, 2, "available")}


def test_a_record_that_was_released_too_often_is_archived_in_the_trace(cluster: Cluster, a: ShareMember) -> None:
    group = cluster.group("g")
    for count in range(1, LIMIT + 1):
        assert a.acknowledge(3, 3, kind=RELEASE) == 0
        if count < LIMIT:
            while not (got := a.fetch(wait_ms=1_000)):
                pass
            assert got == [(3, 3, count + 1)]
    (event,) = [event for event in group.events() if event["kind"] == "archived"]
    assert (event["cause"], event["member_id"]) == ("delivered_too_often", "A")
    assert event["body"] == {"archived": [["jobs", 0, 3, 3, LIMIT, "archived"]]}
    assert "archived, delivered_too_often, jobs-0: 3 (delivery 5)" in "\n".join(timeline(group.events(), 100))
    rows = [row for path, rows in fold("t", list(cluster.events())) if path == "gold/delivery" for row in rows]
    fates = [(row["delivery_count"], row["outcome"], row["archived"]) for row in rows if row["first_offset"] == 3]
    assert fates == [(count, "released", count == LIMIT) for count in range(1, LIMIT + 1)]


def test_an_acknowledgement_is_refused_by_a_rule_and_the_record_stays(cluster: Cluster, a: ShareMember) -> None:
    rule = cluster.group("g").add_rule(
        "ShareAcknowledge", faults.error("INVALID_RECORD_STATE", at="partition"), once=True
    )
    assert a.acknowledge(0, 0) == Error.INVALID_RECORD_STATE
    assert rule.hits == 1
    assert rows(cluster)[0].state == "acquired"


@pytest.mark.parametrize("api", ["ShareAcknowledge", "WriteShareGroupState"])
def test_an_acknowledgement_is_late_while_it_or_its_write_is_held(cluster: Cluster, a: ShareMember, api: str) -> None:
    with ThreadPoolExecutor() as pool, cluster.group("g").hold(api) as hold:
        answered = pool.submit(a.acknowledge, 0, 3)
        assert hold.wait_entered().api == api
        assert not answered.done()
        assert cluster.group("g").share_positions()[0].start_offset == 0
        hold.release()
        assert answered.result(10) == 0
    assert cluster.group("g").share_positions()[0].start_offset == 4


def test_a_share_session_is_lost_by_a_rule(cluster: Cluster, a: ShareMember) -> None:
    cluster.group("g").add_rule("ShareFetch", faults.error("SHARE_SESSION_NOT_FOUND"), once=True)
    assert a.fetch_error() == Error.SHARE_SESSION_NOT_FOUND
    assert a.fetch() == []
