"""The rows that the pages draw: the story of a group, and the overview of many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from browsing.recorded_traces import NAMES, crowd, lines_of, with_faults
from scenes.short_groups import SHORT, played

from koordinator import Simulation
from koordinator.emulator.pages.feed import Feed, drawn
from koordinator.emulator.pages.lanes import lanes_of
from koordinator.emulator.pages.texts import is_routine, summary
from koordinator.emulator.verify.group_trace import GroupTrace
from koordinator.emulator.verify.rebalances import rebalances

if TYPE_CHECKING:
    from collections.abc import Callable

    from scenes.short_groups import Lines

SCENES: dict[str, Callable[[], Lines]] = {
    **{name: lambda name=name: lines_of(name) for name in NAMES},  # type: ignore[misc]
    **{scene.__name__: lambda scene=scene: played(scene) for scene in SHORT},  # type: ignore[misc]
    "crowd": lambda: crowd(members=5, events=3000),
    "with_faults": with_faults,
}


def events_of(lines: Lines) -> Lines:
    return [line for line in lines if line["kind"] != "header"]


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES)
def test_the_rebalances_of_the_story_are_those_of_verify(scene: str) -> None:
    lines = events_of(SCENES[scene]())
    (group,) = lanes_of(lines).values()
    told = [{**vars_of(each), "number": 0} for _, each in group.story.rebalances]
    judged = rebalances(GroupTrace(lines, group.id))
    assert told == [{**vars_of(each), "number": 0} for each in judged if each.outcome != "open"]


def vars_of(rebalance: object) -> dict[str, Any]:
    return {name: getattr(rebalance, name) for name in rebalance.__slots__}  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES)
def test_a_feed_in_pieces_has_the_same_rows(scene: str) -> None:
    lines = events_of(SCENES[scene]())
    (name,) = lanes_of(lines)
    feed = Feed(name)
    rows = [row for at in range(0, len(lines), 7) for row in feed.take(lines[at : at + 7])["rows"]]
    whole = drawn(lines)["drawings"][name]["rows"]
    assert [row for row in rows if row[0] != "story"] == [row for row in whole if row[0] != "story"]
    # the item of a rebalance is rewritten
    assert {row[1]: row for row in rows if row[0] == "story"} == {row[1]: row for row in whole if row[0] == "story"}


def test_a_crash_of_many_members_is_one_sentence() -> None:
    with Simulation(topics={"orders": 5}, seed=1) as cluster:
        puppets = [cluster.group("svc").create_puppet(f"svc-{number}") for number in range(5)]
        for puppet in puppets:
            puppet.join()
        cluster.pass_time(3)
        for puppet in puppets:
            puppet.stop()
        rows = drawn(cluster._port.trace_lines())["drawings"]["svc"]["rows"]
    titles = [row[3] for row in rows if row[0] == "story"]
    assert "svc-0, svc-1, svc-2 and 2 more disconnected without leaving" in titles


def test_the_overview_counts_what_happened_in_each_group() -> None:
    with Simulation(topics={"orders": 2}, seed=1) as cluster:
        for name in ("a", "b"):
            cluster.group(name).create_puppet("p").join()
        leaver = cluster.group("b").create_puppet("q").join()
        cluster.pass_time(3)
        leaver.leave()
        cluster.pass_time(3)
        lines = events_of(cluster._port.trace_lines())
    joins, leaves = "a new member joins", "a member left by LeaveGroup"
    assert drawn(lines)["groups"] == [
        ["group", "a", "Stable", 1, 1, {joins: 1}],
        ["group", "b", "Stable", 3, 1, {joins: 2, leaves: 1}],
    ]


def test_the_members_of_a_group_before_the_trace_are_not_counted() -> None:
    lines = lines_of("cooperative")[1:]
    start = next(at for at, line in enumerate(lines) if line.get("state_from") == "Stable")
    (row,) = drawn(lines[start:])["groups"]
    assert row[4] is None


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ({"kind": "rule", "rule_id": "r1", "change": "removed", "api": "Fetch"}, "r1 removed"),
        (
            {"kind": "rule", "rule_id": "r1", "change": "used", "api": "Fetch", "body": {"kind": "delay", "ms": 5}},
            "r1 acts on Fetch: delay 5",
        ),
        ({"kind": "hold", "hold_id": "h1", "change": "behind", "api": "Fetch"}, "Fetch waits behind h1"),
        ({"kind": "hold", "hold_id": "h1", "change": "entered", "api": "Fetch"}, "h1 holds Fetch"),
        ({"kind": "hold", "hold_id": "h1", "change": "released", "api": "Fetch"}, "h1 released: Fetch continues"),
        ({"kind": "hold", "hold_id": "h1", "change": "removed"}, "h1 removed"),
        (
            {"kind": "locks", "cause": "lock_timeout", "body": {"ended": [["t", 0, 3, 5, 1, "archived"]]}},
            "lock ended · lock timeout · t-0: 3-5 archived",
        ),
        (
            {"kind": "archived", "cause": "delivered_too_often", "body": {"archived": [["t", 0, 3, 3, 5, "archived"]]}},
            "archived · delivered too often · t-0: 3 (delivery 5)",
        ),
        ({"kind": "dropped", "count": 7}, "7 older events were discarded"),
        (
            {"kind": "response", "api": "ShareFetch", "body": {"acquired": [["t", 0, 3, 3, 2]]}},
            "ShareFetch → OK · t-0: 3 (delivery 2)",
        ),
    ],
)
def test_a_line_is_told_in_a_few_words(line: dict[str, Any], text: str) -> None:
    assert summary(line) == text


def test_only_a_join_response_names_the_leader() -> None:
    response: dict[str, Any] = {"kind": "response", "body": {"members": ["a"]}}
    assert summary({**response, "api": "JoinGroup"}) == "JoinGroup → OK · leader of 1 member"
    assert summary({**response, "api": "LeaveGroup"}) == "LeaveGroup → OK"
    throttled = {**response, "api": "Fetch", "body": {"throttle_time_ms": 2_500}}
    assert summary(throttled) == "Fetch → OK · throttled for 2.5 s"
    assert is_routine({**throttled, "body": {}})
    assert not is_routine(throttled)


def test_the_row_of_a_refused_member_has_the_reason() -> None:
    with Simulation(topics={"t": 4}) as cluster:
        group = cluster.group("svc")
        group.create_puppet("one", ("range",)).join()
        group.wait_stable(members=1)
        group.create_puppet("two", ("sticky",)).join()
        (refused,) = [event for event in group.events() if event.error == "INCONSISTENT_GROUP_PROTOCOL" and event.api]
    reason = "it offers 'sticky', and all members of group 'svc' have 'range'; offer one of theirs, too"
    assert summary(dict(refused)) == f"JoinGroup → INCONSISTENT_GROUP_PROTOCOL · {reason}"
