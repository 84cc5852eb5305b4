"""The fold of an emulator's trace that arrives in several loads, against the fold of all its lines at once."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest
from scenes.growing_traces import calm, generated, recorded, suite
from scenes.loads_on_lists import STATE, TraceStore, counted, folded
from scenes.trace_tales import Tale

from koordinator.pipeline.fold import cut
from koordinator.pipeline.generate import generate_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from koordinator.trace.exchanges import Line


def assert_loads_give_the_tables_of_one_load(lines: list[Line], cuts: Iterable[int]) -> TraceStore:
    """Load the lines up to each cut in turn; compare the tables after each load."""
    store, begin = TraceStore(), 0
    for end in cuts:
        store.load(lines[begin:end])
        assert counted(store.tables) == counted(folded(lines[:end])), (begin, end)
        begin = end
    return store


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("made", "n"), [(suite, 12), (generated, 6), (recorded, 3)])
def test_any_split_of_a_trace_into_loads_gives_the_tables_of_one_load(
    made: Callable[[int], list[Line]], n: int, seed: int
) -> None:
    lines, chance = made(seed % n), random.Random(f"loads {seed}")
    cuts = [*sorted(chance.sample(range(1, len(lines)), min(chance.randrange(1, 6), len(lines) - 1))), len(lines)]
    assert_loads_give_the_tables_of_one_load(lines, cuts)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("made", [calm, generated, suite])
def test_groups_that_go_on_from_a_cut_have_the_tables_of_one_load(
    made: Callable[[int], list[Line]], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cut, "CUT_LINES", 30)
    lines, chance = made(seed), random.Random(f"cuts {seed}")
    cuts = [len(lines) // 3]
    while cuts[-1] < len(lines) and len(cuts) < 12:
        cuts.append(min(len(lines), cuts[-1] + chance.choice((2, 10, 30, 90))))
    assert_loads_give_the_tables_of_one_load(lines, cuts)


def cut_group() -> tuple[list[Line], list[Line]]:
    """Return the lines of a group that has a cut once it has grown, and the requests of a member that left before it.

    The connection of that member stays open.
    """
    lines: list[Line] = [json.loads(line) for line in generate_trace(1, 3, 1_540).lines][1:1_501]
    gone = next(line["member_id"] for line in lines if line.get("change") == "removed")
    of_gone = [line for line in lines if line["kind"] == "request" and line.get("member_id") == gone]
    return [line for line in lines if line.get("change") != "closed" or not shares(line, of_gone[-1])], of_gone


def shares(line: Line, other: Line) -> bool:
    """Return whether two lines have the same connection."""
    return (line["node"], line["conn_id"]) == (other["node"], other["conn_id"])


@pytest.mark.slow
def test_new_members_and_known_ones_go_on_from_a_cut() -> None:
    lines, _ = cut_group()
    new = [json.loads(line) for line in generate_trace(1, 3, 1_900).lines][1_501:1_901]
    sizes = (len(lines) - 20, len(lines), len(lines) + 20, len(lines) + len(new))
    store = assert_loads_give_the_tables_of_one_load([*lines, *new], sizes)
    assert store.gone_on == 2


@pytest.mark.slow
def test_the_first_user_of_a_member_goes_on_from_a_cut() -> None:
    before, _ = cut_group()
    new = [json.loads(line) for line in generate_trace(1, 3, 1_900).lines][1_501:1_901]
    users = {True: "User:alice", False: "User:bob"}
    lines = [line | {"principal": users[line["seq"] < 1_000]} for line in (*before, *new)]
    store = assert_loads_give_the_tables_of_one_load(lines, (len(before) - 20, len(before), len(lines)))
    assert store.gone_on == 1
    assert {row.get("principal") for row in store.tables["silver/member"]} == {"User:alice", "User:bob"}


@pytest.mark.slow
def test_groups_go_on_from_the_states_of_older_stores() -> None:
    lines, _ = cut_group()
    new = [json.loads(line) for line in generate_trace(1, 3, 1_900).lines][1_501:1_901]
    store = assert_loads_give_the_tables_of_one_load(lines, (len(lines) - 20, len(lines)))
    for row in store.tables[STATE]:
        state = json.loads(row["state"])
        if "going_on" in state:
            del state["going_on"]["of_gone"], state["going_on"]["settled"]["of_trace"]["of_gone"]
            row["state"] = json.dumps(state)
    store.load(new)
    assert counted(store.tables) == counted(folded([*lines, *new]))
    assert store.gone_on == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "changed",
    [
        {"api": "Heartbeat", "api_key": 12},
        {"api": "OffsetCommit", "api_key": 8, "body": {"offsets": [["orders", 0, 5]]}},
        {"api": "OffsetFetch", "api_key": 9, "member_id": None},
        {"api": "ConsumerGroupHeartbeat", "member_id": "new", "generation": 0, "conn_id": 999},
    ],
    ids=lambda changed: str(changed["api"]),
)
def test_a_line_that_refers_to_what_was_before_the_cut_makes_a_load_fold_the_group(changed: Line) -> None:
    lines, of_gone = cut_group()
    last = {name: lines[-1][name] for name in ("wall_ts", "group_ts_us") if name in lines[-1]}
    request = {**of_gone[-1], **last, "seq": 1_501, "correlation_id": 7_777, **changed}
    response = {**request, "seq": 1_502, "kind": "response", "body": {}}
    both = [{name: value for name, value in line.items() if value is not None} for line in (request, response)]
    store = assert_loads_give_the_tables_of_one_load([*lines, *both], (len(lines) - 20, len(lines), len(lines) + 2))
    assert store.gone_on == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        {"kind": "state", "state_from": "Stable", "state_to": "Dead", "generation": 9, "cause": "unloaded"},
        {"kind": "member", "change": "loaded", "member_id": "m"},
        {"kind": "timer", "timer": "SessionExpiry", "member_id": "m"},
        {"kind": "response", "api": "JoinGroup", "error": "GROUP_MAX_SIZE_REACHED", "conn_id": 9, "correlation_id": 1},
    ],
    ids=lambda line: str(line["kind"]),
)
def test_a_change_that_reaches_back_makes_a_load_fold_the_group(line: Line) -> None:
    lines, _ = cut_group()
    end = next(each for each in reversed(lines) if "group_ts_us" in each)
    common = {name: end[name] for name in ("wall_ts", "group_ts_us", "group_id", "node")}
    store = assert_loads_give_the_tables_of_one_load(
        [*lines, common | {"seq": 1_501} | line], (len(lines) - 20, len(lines), len(lines) + 1)
    )
    assert store.gone_on == 0


@pytest.mark.slow
def test_the_end_of_a_connection_from_before_the_cut_makes_a_load_fold_the_group() -> None:
    lines, of_gone = cut_group()
    end = {"seq": 1_501, "wall_ts": lines[-1]["wall_ts"], "kind": "conn", "change": "closed"}
    end |= {name: of_gone[-1][name] for name in ("node", "conn_id")}
    store = assert_loads_give_the_tables_of_one_load([*lines, end], (len(lines) - 20, len(lines), len(lines) + 1))
    assert store.gone_on == 0


@pytest.mark.slow
def test_the_end_of_a_connection_that_a_member_of_before_the_cut_shared_makes_a_load_fold_the_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A member uses the connection on which another one has left."""
    monkeypatch.setattr(cut, "CUT_LINES", 30)
    lines = suite(326)
    store = assert_loads_give_the_tables_of_one_load(lines, (60, 260, 460, len(lines)))
    assert store.gone_on == 1


@pytest.mark.slow
def test_a_load_of_a_long_group_folds_its_new_lines_and_keeps_a_state_of_the_same_size() -> None:
    lines: list[Line] = [json.loads(line) for line in generate_trace(1, 1, 9_000).lines]
    lines = [line for line in lines if line["kind"] not in ("header", "test")]
    store = assert_loads_give_the_tables_of_one_load(lines, [8_600, 8_700, 8_750, 9_000])
    assert (store.gone_on, store.folded[2:]) == (2, [50, 250])
    (state,) = (json.loads(row["state"]) for row in store.tables["silver/group_state"] if "group_id" in row)
    assert len(state["going_on"]["lines"]) < 1_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_loads_of_a_few_lines_give_the_tables_of_one_load(seed: int) -> None:
    lines, chance = suite(seed), random.Random(f"few {seed}")
    cuts = [chance.randrange(1, len(lines) - 40)]
    for _ in range(16):
        cuts.append(min(len(lines), cuts[-1] + chance.choice((1, 1, 2, 3, 5, 20))))
    assert_loads_give_the_tables_of_one_load(lines, cuts)


def test_a_load_folds_only_the_groups_that_its_lines_concern() -> None:
    lines: list[Line] = []
    for number in range(5):
        tale = Tale(f"g{number}")
        tale.forms({f"{number}-a": [0], f"{number}-b": [1]})
        for name in ("a", "b"):
            tale.call("LeaveGroup", f"{number}-{name}", member_id=f"{number}-{name}")
            tale.member("removed", f"{number}-{name}", "member_leave")
            tale.closes(f"{number}-{name}")
        moved = [
            line | {"conn_id": line["conn_id"] + 10 * number} if "conn_id" in line else line for line in tale.lines
        ]
        lines += [line | {"seq": len(lines) + at} for at, line in enumerate(moved, 1)]
    size = len(lines) // 5
    store = assert_loads_give_the_tables_of_one_load(lines, range(size, len(lines) + 1, size))
    assert store.folded == [size] * 5


def split(tale: Tale, at: Line) -> TraceStore:
    return assert_loads_give_the_tables_of_one_load(tale.lines, (at["seq"] - 1, tale.seq))


def test_a_line_that_says_how_busy_the_emulator_was_concerns_the_groups_of_that_time() -> None:
    tale = Tale()
    tale.forms({"a": [0]})
    tale.passes(5_000)
    tale.beat("a")
    late = tale.line("lag", of_group=False, body={"lag_ms": 4_000})
    store = split(tale, late)
    assert store.folded[-1] == len(tale.lines)
    (found,) = (row for row in store.tables["mart/verdict"] if row["check_id"] == "C04")
    assert "on a busy machine" in found["message"]


def test_the_next_line_of_a_connection_concerns_the_group_that_has_a_request_in_flight() -> None:
    tale = Tale()
    tale.forms({"a": [0]})
    tale.asks("Heartbeat", "a", member_id="a", generation=1)
    other = tale.asks("Metadata", "a", of_group=False)
    store = split(tale, other)
    (found,) = (row for row in store.tables["mart/verdict"] if row["check_id"] == "S10")
    assert found["status"] == "fail"


def test_a_node_that_stops_after_the_last_line_of_a_group_does_not_concern_it() -> None:
    tale = Tale()
    tale.forms({"a": [0]})
    tale.passes(5_000)
    tale.beat("a")
    stop = tale.line("node", of_group=False, change="stopped")
    store = split(tale, stop)
    assert store.folded[-1] == 1
    (found,) = (row for row in store.tables["mart/verdict"] if row["check_id"] == "C04")
    assert found["status"] == "fail"


@pytest.mark.parametrize("number", [1, 3])
def test_a_late_line_makes_a_load_fold_the_whole_trace(number: int) -> None:
    tale = Tale()
    tale.forms({"a": [0]})
    store = TraceStore()
    store.load([line for line in tale.lines if line["seq"] != number])
    store.load([line for line in tale.lines if line["seq"] == number])
    assert counted(store.tables) == counted(folded(tale.lines))


def test_events_that_the_emulator_discarded_concern_all_groups() -> None:
    tale = Tale()
    tale.forms({"a": [0]})
    lost = tale.line("dropped", of_group=False, count=9)
    store = split(tale, lost)
    assert {row.get("lost") for row in store.tables["silver/group"]} == {9}
