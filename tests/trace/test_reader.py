"""The reader of traces: what each line settles, what it keeps, and what it refuses."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from marks.cases import case
from scenes.growing_traces import calm, generated, recorded, suite
from scenes.trace_tales import COMPLETING, EMPTY, PREPARING, STABLE, Tale

from koordinator.emulator.verify.group_trace import GroupTrace
from koordinator.emulator.verify.rebalances import rounds, target_of
from koordinator.trace import Event, Exchange, Membership, Rebalance, TraceError, TraceReader, read

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.emulator.verify.group_trace import Line

TRACES = sorted((Path(__file__).parents[1] / "pages" / "traces").glob("*.jsonl"))

UUID = "35bf992d-c9e9-4616-a12e-7696a6cecc1b"


def of_whole(trace: GroupTrace) -> list[Rebalance]:
    """Return the rebalances with the arrivals, targets and names of all lines, as the fold has them."""
    found = [(each, each.arrivals(trace.joins.get(each.generation or 0, ()))) for each in rounds(trace)]
    return [each.rebalance(joined, target_of(trace, each), trace.label) for each, joined in found]


def assert_equals_the_whole_trace(lines: list[Line]) -> None:
    """Compare what a reader settles line by line with what the whole trace of each group shows."""
    timeline = read(lines)
    for group_id in timeline.group_ids:
        trace = GroupTrace(lines, group_id)
        assert [str(each) for each in timeline.exchanges if each.group_id == group_id] == [*map(str, trace.exchanges)]
        assert list(read(lines, group_id).rebalances) == of_whole(trace)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("made", [recorded, generated])
def test_a_trace_that_is_read_line_by_line_shows_what_the_whole_trace_shows(
    made: Callable[[int], list[Line]], seed: int
) -> None:
    assert_equals_the_whole_trace(made(seed))


@pytest.mark.slow
@pytest.mark.parametrize("made", [suite, calm])
def test_random_traces_that_are_read_line_by_line_show_what_the_whole_trace_shows(
    made: Callable[[int], list[Line]],
) -> None:
    for seed in range(20):
        with case(made.__name__, seed):
            assert_equals_the_whole_trace(made(seed))


def test_a_line_settles_what_it_ends() -> None:
    tale, reader = Tale(), TraceReader()
    tale.forms({"a": [0], "b": [1]})
    tale.member("removed", "b", "member_leave")
    settled = [each for line in tale.lines for each in reader.feed(line)]
    assert [type(each) for each in settled if not isinstance(each, Event)] == [
        *[Exchange, Exchange, Rebalance, Exchange, Exchange, Membership]
    ]
    member = settled[-1]
    assert isinstance(member, Membership)
    assert (member.label, member.client_id, member.cause, member.left_seq) == ("b", "b", "member_leave", tale.seq)
    assert [each.label for each in reader.open() if isinstance(each, Membership)] == ["a"]


def test_a_rebalance_waits_for_a_response_that_a_test_holds_back() -> None:
    tale, reader = Tale(), TraceReader()
    joins = {name: tale.joins(name) for name in "ab"}
    tale.state(EMPTY, PREPARING, 0, "member_join", member_id="a")
    tale.passes(7)
    joins["c"] = tale.joins("c")
    tale.state(PREPARING, COMPLETING, 1, "joined")
    for name in "ab":
        tale.answers(joins[name], generation=1)
    tale.state(COMPLETING, STABLE, 1, "assigned")
    before = [each for line in tale.lines for each in reader.feed(line)]
    assert not [each for each in before if isinstance(each, Rebalance)]
    assert [each.members for each in reader.open() if isinstance(each, Rebalance)] == [("a", "b")]
    (found,) = [each for each in reader.feed(tale.answers(joins["c"], generation=1)) if isinstance(each, Rebalance)]
    assert (found.members, found.straggler, found.straggler_wait_ms) == (("a", "b", "c"), "c", 7)


def test_the_end_of_a_connection_settles_its_request() -> None:
    tale, reader = Tale(), TraceReader()
    asked = tale.asks("Heartbeat", "a", member_id="a")
    reader.feed(asked)
    _, call = reader.feed(tale.closes("a"))
    assert isinstance(call, Exchange)
    assert (call.seq, call.response, call.error, call.answered_us) == (asked["seq"], None, None, None)
    assert reader.open() == []


def test_the_reader_keeps_only_what_is_open() -> None:
    tale, reader, sizes = Tale(), TraceReader(), []
    for _ in range(30):
        begin = len(tale.lines)
        tale.forms({"a": [0], "b": [1]}, instances={"b": "two"}, before=STABLE)
        tale.beat("a")
        # a static member that rejoins gets the same generation
        tale.answers(tale.joins("b", instance="two"), generation=tale._generation)
        tale.asks("Produce", "lost")
        tale.closes("lost")
        tale.member("removed", f"c{begin}", "session_expired", instance=f"three-{begin}")
        for line in tale.lines[begin:]:
            reader.feed(line)
        sizes.append(len(pickle.dumps(reader)))
    assert max(sizes[10:]) - min(sizes[10:]) < 40  # numbers get longer


def test_a_replaced_static_member_has_two_memberships() -> None:
    tale = Tale()
    tale.member("added", f"one-{UUID}", "member_join", instance="one")
    tale.member("replaced", f"one-{UUID}", "fenced", instance="one")
    tale.member("added", "one-2", "member_join", instance="one")
    first, second = read(tale.lines).memberships
    assert (first.cause, first.label, second.cause, second.label) == ("fenced", "one", None, "one")


@pytest.mark.parametrize(
    ("member", "name"),
    [
        (Membership("g", "m-1", "one", "app"), "one"),
        (Membership("g", f"app-{UUID}", None, "app"), "app"),
        (Membership("g", f"app-7-{UUID}"), "app-7"),
    ],
)
def test_a_member_is_named_by_its_instance_its_client_or_its_id(member: Membership, name: str) -> None:
    assert member.name == name


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_a_file_its_text_and_its_values_are_the_same_trace(path: Path) -> None:
    lines = path.read_text().splitlines()
    timeline = read(path)
    assert timeline == read(lines) == read(map(json.loads, lines)) == read(line.encode() for line in lines)
    assert timeline.header is not None
    assert [dict(each) for each in timeline.events] == [json.loads(line) for line in lines[1:]]


def test_the_errors_are_those_that_are_not_part_of_the_protocol() -> None:
    tale = Tale()
    tale.call("JoinGroup", "a", "MEMBER_ID_REQUIRED")
    tale.beat("a", error="REBALANCE_IN_PROGRESS")
    bad = tale.beat("a", error="UNKNOWN_MEMBER_ID")
    assert [each.seq for each in read(tale.lines).errors] == [bad]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"seq":1,"ki', 'line 2: {"seq":1,"ki is no JSON; a line that is cut is read when it is complete'),
        ("[1]", "line 2: [1] is no JSON object; `koordinator serve --trace` writes one object a line"),
        ('{"seq":1}', 'line 2: {"seq":1} has no `kind`; `koordinator serve --trace` writes the kind of each event'),
        ({"kind": "lag", "seq": "7"}, "has the sequence number '7'; it must be a whole number"),
        ({"kind": "header", "schema_version": 2}, "has the schema version 2; this koordinator reads 1"),
        (b"\xff" * 500, "line 2: " + "\ufffd" * 60 + "… is no JSON"),
    ],
)
def test_a_line_that_is_no_line_of_a_trace_is_named(line: str | bytes | Line, problem: str) -> None:
    reader = TraceReader()
    assert reader.feed("\n") == []
    with pytest.raises(TraceError) as caught:
        reader.feed(line)
    assert problem in str(caught.value)


def test_an_event_is_a_mapping_with_attributes() -> None:
    tale = Tale()
    event = Event(tale.asks("Heartbeat", "a", member_id="a"))
    assert (event["kind"], event.kind, event.get("body"), event.body) == ("request", "request", None, {})
    assert (event.wall_us, event.group_us, event.error) == (event["wall_ts"], event["group_ts_us"], None)
    assert json.loads(json.dumps(event)) == event == tale.lines[0]


def test_an_event_is_read_only() -> None:
    event = Event({"seq": 7, "kind": "lag"})
    with pytest.raises(TypeError, match=r"event #7 is read-only; change a copy, dict\(event\)"):
        event["seq"] = 8
    for change in (event.clear, event.popitem, lambda: event.update(seq=8), lambda: event.pop("seq")):
        with pytest.raises(TypeError):
            change()
    assert event == {"seq": 7, "kind": "lag"}


def test_an_event_can_be_copied_and_pickled() -> None:
    event = Event({"seq": 7, "kind": "lag", "body": {"lag_ms": 1}})
    for same in (copy.copy(event), copy.deepcopy(event), pickle.loads(pickle.dumps(event))):  # noqa: S301 - our own
        assert same == event
        assert type(same) is Event
