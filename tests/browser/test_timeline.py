"""The page of a trace in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from browsing.chromium import processor_s
from browsing.recorded_traces import crowd, lines_of, with_faults
from browsing.screenshots import kept

from koordinator import Simulation
from koordinator.emulator.pages.feed import Feed

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    Open = Callable[..., Page]

pytestmark = pytest.mark.needs("chromium")


def titles(page: Page) -> list[str]:
    return page.locator(".k-item strong").all_inner_texts()


def test_the_story_of_a_static_bounce_has_no_rebalance(opened: Open) -> None:
    page = opened("static_bounce")
    story = " | ".join(titles(page))
    assert "svc-2 disconnected without leaving" in story
    assert "no rebalance" in story
    assert page.locator(".k-l-lane").all_inner_texts() == ["svc-1\nstatic", "svc-2\nstatic", "svc-3\nstatic"]


def test_the_label_of_a_member_has_its_user(opened: Open) -> None:
    page = opened([line | {"principal": "User:alice"} if line["kind"] == "request" else line for line in with_faults()])
    assert page.locator(".k-l-lane").all_inner_texts() == ["svc-1\nalice", "i-2\nstatic\nalice", "i-2 #2\nstatic"]


def test_a_restarted_member_stays_in_its_lane(opened: Open) -> None:
    page = opened("static_bounce")
    states = page.evaluate("Koordinator.timeline.group.lanes.find((l) => l.name === 'svc-2').spans.map((s) => s.state)")
    assert states[-5:] == ["stable", "away", "joining", "syncing", "stable"]


def test_a_cooperative_rebalance_moves_only_the_necessary_partitions(opened: Open) -> None:
    page = opened("cooperative")
    moved = page.evaluate(
        """() => {
            const group = Koordinator.timeline.group;
            const third = group.states.find((span) => span.generation === 3 && span.state === "Stable").end - 1;
            const owner = (spans, at) => Koordinator.spanAt(spans, at).owners.join();
            const end = group.model.lines.length - 1;
            const moved = ([_, spans]) => owner(spans, third) !== owner(spans, end);
            return [...group.partitions].filter(moved).map(([name]) => name);
        }"""
    )
    assert moved == ["orders-0", "orders-3"]
    assert "4 partitions continued without a pause." in " ".join(page.locator(".k-item span").all_inner_texts())


def test_a_link_opens_the_page_at_its_moment(opened: Open) -> None:
    page = opened("cooperative", anchor="#seq=140")
    assert page.evaluate("Koordinator.timeline.seq") == 140
    assert "3 of 3" not in page.locator(".k-now").inner_text()


def test_the_arrow_keys_step_through_the_events(opened: Open) -> None:
    page = opened("static_bounce")
    page.locator(".k-scrub").focus()
    page.keyboard.press("Home")
    seen = [page.evaluate("Koordinator.timeline.seq")]
    for _ in range(5):
        page.keyboard.press("ArrowRight")
        seen.append(page.evaluate("Koordinator.timeline.seq"))
    assert seen == sorted(set(seen))
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("Koordinator.timeline.seq") == seen[-2]


def test_the_tape_shows_request_and_response_of_a_selected_row(opened: Open) -> None:
    page = opened("cooperative")
    page.locator(".k-tape select").select_option("SyncGroup")
    page.locator(".k-row", has_text="orders 0, 3").first.click()
    shown = page.locator(".k-details")
    assert "SyncGroup" in shown.locator("h2").inner_text()
    assert '"orders": [3, 0]' in shown.inner_text()
    assert "Before and after" in shown.inner_text()


def test_actions_of_a_test_are_shown_in_their_lanes(opened: Open) -> None:
    page = opened(with_faults())
    story = titles(page)
    assert "rule-1 added: OffsetCommit, client id svc-1, group orders-svc → error REBALANCE_IN_PROGRESS" in story
    assert "svc-1: rule-1 acts on OffsetCommit: error REBALANCE_IN_PROGRESS" in story
    assert "i-2: hold-1 holds Heartbeat" in story
    assert "clock advanced by 2 min (advance)" in story
    assert "fence i-2" in story
    held_s = page.evaluate(
        """() => {
            const group = Koordinator.timeline.group;
            const [held] = group.lanes.find((lane) => lane.name === "i-2").holds;
            return group.model.secondsAt(held.end) - group.model.secondsAt(held.start);
        }"""
    )
    assert 0 < held_s <= 1
    assert "rule-1 acted; Kafka never returns this here." in page.locator(".k-details").inner_text()


def test_html_in_a_trace_is_shown_as_text(opened: Open) -> None:
    evil = "<img src=x onerror=alert(1)></script>"
    request = {"kind": "request", "api": "JoinGroup", "api_version": 9, "conn_id": 1, "correlation_id": 1, "node": 1}
    lines = [
        {**request, "seq": 1, "wall_ts": 1_000_000, "client_id": evil, "group_id": evil, "body": {"topics": [evil]}}
    ]
    page = opened(lines, title=evil, subtitle=evil)
    assert page.locator("h1").inner_text() == evil
    assert page.locator(".k-l-lane").all_inner_texts() == [evil]
    assert page.locator("img").count() == 0


@pytest.mark.parametrize(
    ("name", "colours"),
    [
        ("static_bounce", ("Stable", "PreparingRebalance", "joining", "syncing", "stable", "good")),
        ("cooperative", ("Stable", "PreparingRebalance", "CompletingRebalance", "joining", "unjoined", "stable")),
    ],
)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_chart_has_its_colours_in_light_and_dark(opened: Open, name: str, colours: list[str], scheme: str) -> None:
    page = opened(name, scheme=scheme)
    with kept(page, f"timeline-{name}-{scheme}", only=".k-main") as drawn:
        assert drawn.has(*colours, inside=".k-chart")


def test_fifty_members_and_ten_thousand_events_take_seconds_of_the_processor(opened: Open) -> None:
    began_s = processor_s(page := opened(crowd(events=10_000)))
    assert page.locator(".k-l-lane").count() == 50
    assert page.locator(".k-row").count() < 100
    page.evaluate(
        """() => {
            const trace = JSON.parse(document.getElementById("trace").textContent);
            Koordinator.timeline = Koordinator.mount(document.getElementById("timeline"), trace);
        }"""
    )
    mounted_s = processor_s(page)
    assert mounted_s - began_s < 10
    page.evaluate("for (let n = 0; n < 10; n += 1) Koordinator.timeline.step(-1);")
    assert processor_s(page) - mounted_s < 10


def test_the_test_of_the_group_can_be_copied(opened: Open) -> None:
    page = opened("static_bounce")
    page.get_by_role("button", name="Copy as test").click()
    page.get_by_text("test copied").wait_for()
    assert page.evaluate("Koordinator.timeline.copiedText").startswith("def test_orders_svc(koordinator):")


def test_an_empty_trace_opens(opened: Open) -> None:
    assert opened([]).locator(".k-l-lane").count() == 0


def test_appended_lines_extend_the_story(opened: Open) -> None:
    page = opened("static_bounce")
    whole = titles(page)
    lines = lines_of("static_bounce")
    feed = Feed("orders-svc")
    changes = [feed.take(lines[1:50]), feed.take(lines[50:])]
    page.evaluate(
        """([{ rows, ...first }, second]) => {
            const drawings = { "orders-svc": { rows, test: "" } };
            const root = document.getElementById("timeline");
            Koordinator.timeline = Koordinator.mount(root, { title: "live", drawings, ...first });
            Koordinator.timeline.append(second);
        }""",
        changes,
    )
    page.wait_for_function("count => document.querySelectorAll('.k-item').length === count", arg=len(whole))
    assert titles(page) == whole


def overview(groups: int, members: int) -> list[dict[str, Any]]:
    """Return a trace of many groups, the first of which has many members."""
    with Simulation(topics={"orders": 2 * members}, seed=1) as cluster:
        crowd = cluster.group("g-000")
        for number in range(members):
            crowd.create_puppet(f"svc-{number:03}", protocols=["cooperative-sticky"]).join()
        for number in range(1, groups):
            puppet = cluster.group(f"g-{number:03}").create_puppet("single").join()
            if number % 100 == 0:
                puppet.leave()
        cluster.pass_time(5)
        return cluster._port.trace_lines()


def test_groups_are_searched_and_what_happened_is_grouped(opened: Open) -> None:
    page = opened(overview(groups=30, members=3))
    shown = page.locator(".k-groups tbody tr:visible")
    assert shown.count() == 30
    assert "a new member joins: " in page.locator(".k-happened button").first.inner_text()
    page.get_by_label("Search groups").fill("g-02")
    assert shown.count() == 10
    page.get_by_role("button", name="g-025").click()
    assert page.locator(".k-l-lane").all_inner_texts() == ["single"]


def test_members_are_found_by_name(opened: Open) -> None:
    page = opened(overview(groups=1, members=20))
    assert page.locator(".k-l-lane").count() == 20
    page.get_by_label("Show only members and partitions with this name").fill("svc-013")
    assert page.locator(".k-l-lane").all_inner_texts() == ["svc-013"]
    assert page.locator(".k-l-partition").count() == 2


def test_the_label_of_a_moved_partition_can_be_read(opened: Open) -> None:
    page = opened([])
    page.clock.install(time=0)
    page.clock.pause_at(1_000)
    lines = lines_of("cooperative")[1:]
    feed = Feed("orders-svc")
    moved = next(at for at, line in enumerate(lines) if line.get("cause") == "assigned" and line["generation"] == 5)
    changes = [feed.take(lines[:moved]), *(feed.take([line]) for line in lines[moved:])]
    page.evaluate(
        """(changes) => {
            const timeline = Koordinator.mount(document.getElementById("timeline"), { live: true });
            timeline.append({ lines: [], groups: changes[0].groups });
            timeline.update();
            // further updates come while labels are marked
            for (const change of changes) { timeline.append(change); timeline.update(); }
        }""",
        changes,
    )
    marked = page.locator(".k-l-partition.k-moved")
    assert marked.all_inner_texts() == ["orders-0", "orders-3"]
    page.clock.run_for(1_000)
    assert marked.count() == 2
    page.clock.run_for(2_000)
    assert marked.count() == 0
    assert "C3 since" in str(page.locator(".k-l-partition").first.get_attribute("title"))
