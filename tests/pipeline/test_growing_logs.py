"""Logs that arrive in two loads: the tables of one load, and a fold of the new events only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from spark.loads import differing, load, tables
from spark.log_rows import recorded

from koordinator.pipeline import input_files, layers, loading
from koordinator.pipeline.fold.frames import FOLD
from koordinator.pipeline.local_files import LogOptions
from koordinator.pipeline.schema import HEADER, ROUND, TRACE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

FOLLOW = LogOptions(follow=True)

BEGIN = "[2026-11-21 {},000] INFO [GroupCoordinator 1]: {} (kafka.coordinator.group.GroupCoordinator)\n"
REJOIN = (
    "Preparing to rebalance group g in state PreparingRebalance with old generation {} (__consumer_offsets-3)"
    " (reason: leader s-1 re-joining group during Stable; client reason: not provided)"
)
STABILIZED = "Stabilized group g generation {} (__consumer_offsets-3) with 1 members"
ASSIGNED = (
    "Assignment received from leader s-1 for group g for generation {}. The group has 1 members, 1 of which are static."
)
LEFT = BEGIN.format(
    "10:00:00", "Member[group.instance.id Some(s), member.id s-1] in group g has left, removing it from the group"
)


@pytest.fixture(scope="module", params=["memory", "spark"])
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield the engine of the loads."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "spark":
            patch.setattr(loading, "SMALL_BYTES", -1)
        yield request.param


@pytest.fixture(scope="module")
def folded_events(engine: str) -> Iterator[list[int]]:
    """Return the number of events that each load folds. Only the tables of the fold are made."""
    counts: list[int] = []

    def counting(event: Any, *more: Any) -> Any:
        counts.append(len(event) if engine == "memory" else event.count())
        return build(event, *more)

    steps = [step for step in layers.PER_HOME_STEPS if step.table in (TRACE, FOLD) or FOLD in step.inputs]
    (build,) = (step.build for step in steps if step.table is FOLD)
    counted = (layers.Step(FOLD, counting, step.inputs) if step.table is FOLD else step for step in steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layers, "PER_HOME_STEPS", tuple(counted))
        patch.setattr(layers, "STORE_STEPS", ())
        yield counts


@pytest.fixture(scope="module")
def lines_read(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a file that gets the numbers of lines that tasks of Spark read from growing files."""
    del engine
    path, whole_lines = tmp_path_factory.mktemp("read") / "lines", input_files.lines.whole_lines

    def counted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            with path.open("a") as file:
                file.write(f"{batch.num_rows}\n")
            yield batch

    def counting(text: DataFrame) -> DataFrame:
        lines = whole_lines(text)
        return lines.mapInArrow(counted, lines.schema)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(input_files.lines, "whole_lines", counting)
        yield path


def round_of(hour: int, generation: int) -> str:
    texts = (REJOIN.format(generation - 1), STABILIZED.format(generation), ASSIGNED.format(generation))
    return "".join(BEGIN.format(f"{hour:02}:00:0{number}", text) for number, text in enumerate(texts))


Tables = dict[str, list[Any]]

NOW = {
    "quiet/server.log": round_of(8, 8),
    "renamed/server.log": round_of(8, 8) + round_of(9, 9),
    "late/server.log": round_of(10, 9),
}
THEN = {"renamed/server.log": NOW["renamed/server.log"] + LEFT, "late/server.log.1": round_of(8, 8)}


@pytest.fixture(scope="module")
def loaded(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, folded_events: list[int], lines_read: Path
) -> tuple[Tables, Tables]:
    """Return the tables after two loads, and those after one load of the same files."""
    assert not folded_events
    assert not lines_read.exists()
    root = tmp_path_factory.mktemp("growing")
    lines = [f"{line}\n" for line in recorded("4.3")]
    for part in (
        NOW | {"log/server.log": "".join(lines[: len(lines) // 2])},
        THEN | {"log/server.log": "".join(lines)},
    ):
        for name, text in part.items():
            path = root / "logs" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        load(spark, root / "store", root / "logs", options=FOLLOW)
    load(spark, root / "whole", root / "logs", options=FOLLOW)
    return tables(root / "store"), tables(root / "whole")


def test_logs_in_two_loads_give_the_tables_of_one_load(loaded: tuple[Tables, Tables]) -> None:
    found, whole = loaded
    # each load adds a header with the times of its own lines
    assert differing(found, whole).keys() <= {HEADER.path}
    assert len(whole[ROUND.path]) > 20


@pytest.mark.usefixtures("loaded")
def test_a_load_folds_new_events_unless_they_are_late_or_rename_a_member(folded_events: list[int]) -> None:
    first, second, all_events = folded_events
    of_quiet, before_renaming, before_late = 3, 6, 3
    assert first + second == all_events + before_renaming + before_late
    assert first > of_quiet + before_renaming + before_late


@pytest.mark.usefixtures("loaded")
def test_a_load_reads_a_file_that_has_grown_once(engine: str, lines_read: Path) -> None:
    if engine == "memory":
        return
    log, half, of_round = len(recorded("4.3")), len(recorded("4.3")) // 2, 3
    first = half + len("".join(NOW.values()).splitlines())
    second = log + len("".join(THEN.values()).splitlines())
    whole = second + len("".join(NOW.values()).splitlines()) - 2 * of_round
    assert sum(map(int, lines_read.read_text().split())) == first + second + whole
