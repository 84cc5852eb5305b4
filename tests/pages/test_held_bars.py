"""The records and tasks that members hold, as rows for the pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenes.share_groups import two_workers
from scenes.trace_tales import Tale

from koordinator import Simulation
from koordinator.emulator.pages.feed import Feed, drawn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.trace.exchanges import Line


def held(rows: Iterable[list[Any]], kind: str) -> list[list[Any]]:
    return [row[1:] for row in rows if row[0] == kind]


def names_of(rows: list[list[Any]]) -> dict[int, str]:
    return {index: name for index, name, *_ in held(rows, "lane")}


def test_deliveries_have_their_member_and_their_end() -> None:
    lines = two_workers()
    rows = drawn(lines)["drawings"]["g"]["rows"]
    names, kinds = names_of(rows), {line.seq: line.api or line.kind for line in lines}
    found = [
        (place, first, last, names[lane], count, outcome, kinds[end])
        for _, place, first, last, lane, count, end, outcome in held(rows, "delivery")
        if first <= 2
    ]
    assert found == [
        ("jobs-0", 0, 1, "test", 1, "accepted", "ShareAcknowledge"),
        ("jobs-0", 2, 2, "test", 1, "forced", "locks"),
        ("jobs-0", 2, 2, "test #2", 2, "rejected", "ShareAcknowledge"),
    ]


def test_a_live_page_replaces_a_delivery_when_it_ends() -> None:
    tale, feed = Tale(), Feed("g")
    tale.takes("a", (0, 4, 1))
    begun = held(feed.take(tale.lines)["rows"], "delivery")
    assert [row[2:4] + row[6:] for row in begun] == [[0, 4, None, "open"]]
    seen = len(tale.lines)
    tale.acknowledges("a", (0, 2, "accept"))
    ended = held(feed.take(tale.lines[seen:])["rows"], "delivery")
    assert [row[2:4] + row[6:] for row in ended] == [[0, 2, 3, "accepted"], [3, 4, None, "open"]]
    assert ended[0][:2] == begun[0][:2]
    assert not held(feed.take([])["rows"], "delivery")


def streams_group() -> list[Line]:
    with Simulation(topics={"in": 2}) as cluster:
        group = cluster.group("app")
        for name in ("one", "two"):
            group.create_puppet(name, topics=["in"], group_protocol="streams").join()
        group.wait_stable(members=2)
        return list(cluster.events())


def test_tasks_have_the_lanes_of_their_members() -> None:
    rows = drawn(streams_group())["drawings"]["app"]["rows"]
    names = names_of(rows)
    open_ = {task: (kind, names[lane]) for _, task, kind, lane, end in held(rows, "task") if end is None}
    assert {*open_} == {"0_0", "0_1"}
    assert {*open_.values()} == {("active", "one"), ("active", "two")}


def test_a_classic_group_holds_neither() -> None:
    tale = Tale()
    tale.forms({"a": [0]})
    rows = drawn(tale.lines)["drawings"]["g"]["rows"]
    assert not held(rows, "delivery")
    assert not held(rows, "task")
