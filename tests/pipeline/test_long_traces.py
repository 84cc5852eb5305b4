"""A long trace is folded in parts, with the rows of a fold of all its lines at once."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from scenes.growing_traces import calm, generated, recorded, suite
from scenes.loads_on_lists import STATE, TraceStore, counted, folded
from spark.event_frames import row

from koordinator.pipeline.fold import cut, frames, long_trace
from koordinator.pipeline.fold.trace_fold import fold
from koordinator.pipeline.generate import generate_trace
from koordinator.pipeline.schema import EVENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from koordinator.pipeline.fold.group_facts import Row
    from koordinator.trace.exchanges import Line

RESULT = to_arrow_schema(frames.ROWS, timezone="UTC")


def table(lines: Iterable[Line]) -> pa.Table:
    rows = [row(line) for line in lines if line["kind"] != "header"]
    return pa.Table.from_pylist(rows, to_arrow_schema(EVENT.columns)).select(frames.COLUMNS)


def tables(parts: Iterable[pa.Table]) -> dict[str, Counter[str]]:
    """Return the rows of each table but the states of groups, as texts."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for name, rows in frames._trace_rows(RESULT, "t", parts):
        if name != "group_state":
            found[name].update(map(str, rows.to_pylist()))
    return {name: rows for name, rows in found.items() if rows}


def in_parts(events: pa.Table, next_size: Callable[[], int]) -> Iterator[pa.Table]:
    start = 0
    while start < len(events):
        part = events.slice(start, next_size())
        yield part
        start += len(part)


@pytest.fixture
def sizes_of_folds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Fold every part on its own; return the number of lines of each fold."""
    sizes: list[int] = []

    def counted(trace_id: str, lines: Sequence[Line]) -> Iterator[tuple[str, Iterable[Row]]]:
        sizes.append(len(lines))
        return fold(trace_id, lines)

    monkeypatch.setattr(long_trace, "fold", counted)
    monkeypatch.setattr(frames, "LONG_ROWS", 1)
    return sizes


SEEDS = {suite: [*range(12), 320, 326], calm: range(12), generated: range(12), recorded: range(3)}


@pytest.mark.parametrize(("made", "seed"), [(made, seed) for made, seeds in SEEDS.items() for seed in seeds])
def test_a_trace_in_parts_has_the_rows_of_the_whole(
    made: Callable[[int], list[Line]], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cut, "CUT_LINES", 30)
    events, chance = table(made(seed)), random.Random(f"parts {seed}")
    expected = tables([events])
    monkeypatch.setattr(frames, "LONG_ROWS", 1)
    assert tables(in_parts(events, lambda: chance.choice((10, 30, 90, 200)))) == expected


@pytest.mark.parametrize("number", [pytest.param(2, marks=pytest.mark.slow), 3, 10, 13])
def test_a_fold_of_a_long_trace_has_no_more_lines_the_longer_the_trace(number: int, sizes_of_folds: list[int]) -> None:
    """Some of these groups go on from an older cut, because a line refers to the time before the last one."""
    events = table(map(json.loads, generate_trace(1, number, 20_000).lines))
    expected = tables([events])
    sizes_of_folds.clear()
    parts = [*in_parts(events, lambda: 3_000)]
    assert tables(parts) == expected
    assert len(sizes_of_folds) == len(parts)
    assert max(sizes_of_folds) < 10_000


def test_lines_that_were_lost_make_a_long_trace_wait_for_its_end(sizes_of_folds: list[int]) -> None:
    lines = [json.loads(line) for line in generate_trace(1, 3, 3_000).lines]
    lines[1_500] = {name: lines[1_500][name] for name in ("seq", "wall_ts")} | {"kind": "dropped", "count": 3}
    events = table(lines)
    expected = tables([events])
    sizes_of_folds.clear()
    assert tables(in_parts(events, lambda: 1_000)) == expected
    assert max(sizes_of_folds) > len(events)


@pytest.mark.parametrize("number", [pytest.param(2, marks=pytest.mark.slow), 3, 13])
def test_a_later_load_goes_on_from_the_states_of_a_long_trace(number: int, sizes_of_folds: list[int]) -> None:
    lines = [json.loads(line) for line in generate_trace(1, number, 12_400).lines][1:]
    lines = [line for line in lines if line["kind"] != "test"]
    old, new = lines[:12_000], lines[12_000:]
    found = [*frames._trace_rows(RESULT, "t", in_parts(table(old), lambda: 3_000))]
    assert len(sizes_of_folds) == 4
    states = [
        {name: value for name, value in state.items() if value is not None}
        for name, rows in found
        if name == "group_state"
        for state in rows.to_pylist()
    ]
    store = TraceStore()
    store.lines, store.tables = old, {**folded(old), STATE: states}
    store.load(new)
    assert counted(store.tables) == counted(folded(lines))
    assert store.gone_on
