"""The tasks of members of streams groups: from the response that assigns them to the one without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator import Simulation
from koordinator.trace import TaskStay, TraceReader, read

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.trace import Event


def two_members() -> tuple[list[Event], dict[str, str]]:
    """Return the trace of a group of two members, of which the first leaves; and their names by member id."""
    with Simulation(topics={"in": 4}) as cluster:
        group = cluster.group("app")
        one = group.create_puppet("one", topics=["in"], group_protocol="streams").join()
        group.wait_stable(members=1)
        two = group.create_puppet("two", topics=["in"], group_protocol="streams").join()
        group.wait_stable(members=2)
        names = {one.member_id: "one", two.member_id: "two"}
        one.leave()
        group.wait_stable(members=1)
        return list(cluster.events()), names


def test_a_task_stays_with_a_member_from_its_assignment_to_its_revocation() -> None:
    events, names = two_members()
    kinds = {event.seq: (event.kind, event.change) for event in events}
    found = [
        (names[each.member_id], each.task_id, each.type, kinds.get(each.ended_seq or -1)) for each in read(events).tasks
    ]
    revoked, left = ("response", None), ("member", "removed")
    assert found == [
        *(("one", task, "active", left) for task in ("0_0", "0_1")),
        *(("one", task, "active", revoked) for task in ("0_2", "0_3")),
        *(("two", task, "active", None) for task in ("0_2", "0_3", "0_0", "0_1")),
    ]


def test_the_reader_keeps_the_tasks_that_members_have() -> None:
    events, names = two_members()
    reader = TraceReader()
    for event in events:
        reader.feed(event)
    assert {(names[each.member_id], each.partition) for each in stays(reader.open())} == {
        ("two", partition) for partition in range(4)
    }


def stays(values: Iterable[object]) -> list[TaskStay]:
    return [each for each in values if isinstance(each, TaskStay)]


def test_standby_and_warmup_tasks_have_their_type() -> None:
    tasks = {"active": {"0": [1]}, "standby": {"0": [2]}, "warmup": {"1": [0]}}
    call = {"group_id": "g", "member_id": "m", "api": "StreamsGroupHeartbeat", "wall_ts": 5}
    given = {"kind": "response", "seq": 1, **call, "body": {"tasks": tasks}}
    found = read([given]).tasks
    assert [str(each) for each in found] == [
        "#1 active task 0_1 of m",
        "#1 standby task 0_2 of m",
        "#1 warmup task 1_0 of m",
    ]
